#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <string>
#include <vector>

#include "actors/service.hpp"
#include "net/codec/generation_fields.hpp"

namespace troupe::net {

/// POST /tokenize and /detokenize, with vLLM's bodies: {"prompt" or "messages", ...} -> {"count", "max_model_len",
/// "tokens", "token_strs"}; {"tokens"} -> {"prompt"}.
struct tokenize_call {
  actors::tokenize_request request;
  bool return_token_strs = false;
};
result<tokenize_call> parse_tokenize(const boost::json::object& body, const codec_context& context);
result<std::vector<token_id>> parse_detokenize(const boost::json::object& body, const codec_context& context);

/// `texts`: the tokens as the vocabulary spells them, one for each id; null: not asked for.
boost::json::object tokenize_answer(const std::vector<token_id>& ids, std::uint32_t max_context,
                                    const std::vector<std::string>* texts);
boost::json::object detokenize_answer(std::string text);

}  // namespace troupe::net
