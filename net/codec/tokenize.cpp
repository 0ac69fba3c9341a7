#include "net/codec/tokenize.hpp"

#include <boost/json/array.hpp>

#include "net/codec/answer_parts.hpp"
#include "net/codec/messages.hpp"

namespace troupe::net {

result<tokenize_call> parse_tokenize(const boost::json::object& body, const codec_context& context) {
  object_reader in(body);
  check_model(in, context.model);
  tokenize_call call;
  const bool is_chat = in.has("messages");
  if (is_chat) {
    if (in.has("prompt")) in.fail("messages", "must not be given together with prompt");
    call.request.prompt = read_chat(in, context.model);
  } else if (auto text = in.text("prompt")) {
    call.request.prompt = *std::move(text);
  } else {
    in.fail("prompt", "is required (or messages)");
  }
  call.request.add_special_tokens = in.boolean("add_special_tokens").value_or(!is_chat);
  call.request.parse_special_tokens = in.boolean("parse_special_tokens").value_or(true);
  call.return_token_strs = in.boolean("return_token_strs").value_or(false);
  if (in.failure()) return *in.failure();
  return call;
}

result<std::vector<token_id>> parse_detokenize(const boost::json::object& body, const codec_context& context) {
  object_reader in(body);
  check_model(in, context.model);
  auto ids = in.ids("tokens", context.model.vocabulary);
  if (!ids) in.fail("tokens", "is required");
  if (in.failure()) return *in.failure();
  return *std::move(ids);
}

boost::json::object tokenize_answer(const std::vector<token_id>& ids, std::uint32_t max_context,
                                    const std::vector<std::string>* texts) {
  boost::json::object body{{"count", ids.size()},
                           {"max_model_len", max_context},
                           {"tokens", ids_json(std::span(ids))},
                           {"token_strs", nullptr}};
  if (texts) {
    boost::json::array strings;
    for (const std::string& text : *texts) strings.push_back(text_json(text));
    body["token_strs"] = std::move(strings);
  }
  return body;
}

boost::json::object detokenize_answer(std::string text) { return {{"prompt", text_json(std::move(text))}}; }

}  // namespace troupe::net
