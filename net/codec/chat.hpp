#pragma once

#include "net/codec/answer.hpp"

namespace troupe::net {

/// POST /v1/chat/completions (OpenAI's chat with vLLM's extensions).
result<generation_call> parse_chat(const boost::json::object& body, const codec_context& context, answer_head head);

}  // namespace troupe::net
