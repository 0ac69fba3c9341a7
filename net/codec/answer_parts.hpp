#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <span>
#include <string>

#include "actors/service.hpp"
#include "net/codec/answer.hpp"

/// The pieces of JSON that several APIs' answers share. Every number is finite and every text valid UTF-8.
namespace troupe::net {

boost::json::object usage_json(const token_usage& usage);
boost::json::value stop_reason_json(const actors::generation_finished& end);
std::string_view finish_reason_text(const actors::generation_finished& end);
boost::json::array ids_json(std::span<const token_id> ids);
boost::json::array ids_json(std::span<const actors::token_detail> tokens);

/// Text for JSON: bytes that are no UTF-8 become U+FFFD.
boost::json::string text_json(std::string text);

/// OpenAI's chat form: {"content": [{token, logprob, bytes, top_logprobs}], "refusal": null}.
boost::json::object chat_logprobs_json(std::span<const actors::token_detail> tokens);

/// OpenAI's completions form: parallel arrays. `offset` is where the first token's text begins, in characters from the
/// beginning of the choice's text, and is moved past the last. A token that is part of a character is spelled
/// "bytes:\xe2\x82", so that keys of `top_logprobs` stay apart.
boost::json::object completion_logprobs_json(std::span<const actors::token_detail> tokens, std::size_t& offset);

/// vLLM's prompt_logprobs: null for the first token, then {"<id>": {logprob, rank, decoded_token}}. The rank is null
/// where the prompt's token is not among the alternatives.
boost::json::array prompt_logprobs_json(std::span<const actors::token_detail> prompt);

}  // namespace troupe::net
