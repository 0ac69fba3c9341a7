#pragma once

#include "net/codec/answer.hpp"

namespace troupe::net {

/// Most prompts in one body.
inline constexpr std::size_t max_prompts = 1024;
inline constexpr std::size_t max_answers = 2048;  ///< Prompts times n.

/// POST /v1/completions (OpenAI's legacy completions with vLLM's extensions). The choices of prompt p are numbered
/// p * n ... p * n + n - 1.
result<generation_call> parse_completion(const boost::json::object& body, const codec_context& context,
                                         answer_head head);

/// "prompt" of a body: a string, ids, or a list of either; each becomes one prompt. Faults go to `in`.
std::vector<actors::prompt_input> read_prompts(object_reader& in, std::size_t vocabulary);

}  // namespace troupe::net
