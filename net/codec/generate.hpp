#pragma once

#include "net/codec/answer.hpp"

namespace troupe::net {

/// POST /generate, Troupe's own small API: {"prompt", "max_tokens": 200, ...} -> {"text", "finish_reason", "usage",
/// ...}. One prompt (a string or ids), one choice.
result<generation_call> parse_generate(const boost::json::object& body, const codec_context& context, answer_head head);

}  // namespace troupe::net
