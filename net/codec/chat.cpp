#include "net/codec/chat.hpp"

#include <boost/json/serialize.hpp>

#include "net/codec/answer_parts.hpp"
#include "net/codec/messages.hpp"

namespace troupe::net {
namespace {

namespace json = boost::json;

struct chat_options {
  std::uint32_t n = 1;
  bool logprobs = false;
  bool prompt_logprobs = false;
  bool return_token_ids = false;
  bool include_usage = false;
  bool continuous_usage = false;
};

class chat_answer final : public answer {
 public:
  chat_answer(answer_head head, chat_options options) : answer(std::move(head)), options_(options) {}

  void end_stream(chunks& out) override {
    if (!options_.include_usage) return;
    json::object chunk = frame("chat.completion.chunk");
    chunk["choices"] = json::array();
    chunk["usage"] = usage_json(usage());
    out.push_back(json::serialize(chunk));
  }

  json::object whole() override {
    json::object body = frame("chat.completion");
    json::array choices;
    collected().resize(1);
    prompt_answer& record = collected().front();
    record.choices.resize(options_.n);
    for (std::uint32_t c = 0; c < options_.n; ++c) choices.push_back(whole_choice(record.choices[c], c));
    body["choices"] = std::move(choices);
    body["usage"] = usage_json(usage());
    if (options_.prompt_logprobs) body["prompt_logprobs"] = prompt_logprobs_json(record.start.prompt_details);
    if (options_.return_token_ids) body["prompt_token_ids"] = ids_json(record.start.prompt_ids);
    return body;
  }

 protected:
  void stream_started(std::size_t, const actors::generation_started& event, chunks& out) override {
    for (std::uint32_t c = 0; c < options_.n; ++c) {
      json::object chunk = chunk_of(c, {{"role", "assistant"}, {"content", ""}});
      if (options_.prompt_logprobs && c == 0) chunk["prompt_logprobs"] = prompt_logprobs_json(event.prompt_details);
      if (options_.return_token_ids && c == 0) chunk["prompt_token_ids"] = ids_json(event.prompt_ids);
      push(std::move(chunk), out);
    }
  }

  void stream_delta(std::size_t, const actors::generation_delta& event, chunks& out) override {
    if (event.text.empty() && !options_.logprobs && !options_.return_token_ids) return;
    json::object chunk = chunk_of(event.choice, {{"content", text_json(event.text)}});
    json::object& choice = chunk["choices"].get_array().front().get_object();
    if (options_.logprobs) choice["logprobs"] = chat_logprobs_json(event.tokens);
    if (options_.return_token_ids) choice["token_ids"] = ids_json(std::span(event.tokens));
    push(std::move(chunk), out);
  }

  void stream_finished(std::size_t, const actors::generation_finished& event, chunks& out) override {
    json::object chunk = chunk_of(event.choice, {});
    json::object& choice = chunk["choices"].get_array().front().get_object();
    choice["finish_reason"] = finish_reason_text(event);
    choice["stop_reason"] = stop_reason_json(event);
    push(std::move(chunk), out);
  }

 private:
  json::object frame(std::string_view object) const {
    return {{"id", "chatcmpl-" + head().id}, {"object", object}, {"created", head().created}, {"model", head().model}};
  }

  json::object chunk_of(std::uint32_t index, json::object delta) const {
    json::object choice{
        {"index", index}, {"delta", std::move(delta)}, {"logprobs", nullptr}, {"finish_reason", nullptr}};
    json::object chunk = frame("chat.completion.chunk");
    chunk["choices"] = json::array{std::move(choice)};
    return chunk;
  }

  void push(json::object chunk, chunks& out) const {
    if (options_.continuous_usage) {
      chunk["usage"] = usage_json(running_usage());
    } else if (options_.include_usage) {
      chunk["usage"] = nullptr;
    }
    out.push_back(json::serialize(chunk));
  }

  json::object whole_choice(choice_answer& taken, std::uint32_t index) const {
    json::object out{
        {"index", index},
        {"message", {{"role", "assistant"}, {"content", text_json(std::move(taken.text))}, {"refusal", nullptr}}},
        {"logprobs", nullptr},
        {"finish_reason", finish_reason_text(taken.end)},
        {"stop_reason", stop_reason_json(taken.end)}};
    if (options_.logprobs) out["logprobs"] = chat_logprobs_json(taken.tokens);
    if (options_.return_token_ids) out["token_ids"] = ids_json(std::span<const actors::token_detail>(taken.tokens));
    return out;
  }

  chat_options options_;
};

void read_logprobs(object_reader& in, model::sampling_params& sampling) {
  const bool wanted = in.boolean("logprobs").value_or(false);
  const auto top = in.integer("top_logprobs", 0, 20);
  if (top && !wanted) in.fail("top_logprobs", "is only allowed with \"logprobs\": true");
  if (wanted) sampling.top_logprobs = static_cast<int>(top.value_or(0));
}

/// max_completion_tokens is max_tokens' newer name, and goes first. An answer of no tokens is no chat.
void read_max_tokens(object_reader& in, actors::generation_request& request) {
  if (request.max_tokens && *request.max_tokens == 0) in.fail("max_tokens", "must be at least 1");
  if (const auto most = in.integer("max_completion_tokens", 1, INT32_MAX))
    request.max_tokens = static_cast<std::uint32_t>(*most);
  if (request.max_tokens && request.sampling.min_tokens > *request.max_tokens)
    in.fail("min_tokens", "must not be more than max_tokens");
}

/// Only text comes out.
void check_modalities(object_reader& in) {
  const json::array* modalities = in.array("modalities");
  if (!modalities) return;
  for (const json::value& one : *modalities)
    if (!one.is_string() || one.get_string() != "text")
      in.fail(error{error_kind::unsupported, "only \"text\" is supported", "modalities"});
}

}  // namespace

result<generation_call> parse_chat(const json::object& body, const codec_context& context, answer_head head) {
  object_reader in(body);
  generation_fields fields = read_generation_fields(in, context);
  actors::generation_request& request = fields.request;
  request.prompt = read_chat(in, context.model);
  request.add_special_tokens = in.boolean("add_special_tokens").value_or(false);
  read_logprobs(in, request.sampling);
  read_max_tokens(in, request);
  check_modalities(in);
  if (in.failure()) return *in.failure();

  const chat_options options{.n = request.n,
                             .logprobs = request.sampling.top_logprobs >= 0,
                             .prompt_logprobs = request.prompt_logprobs >= 0,
                             .return_token_ids = fields.return_token_ids,
                             .include_usage = fields.include_usage,
                             .continuous_usage = fields.continuous_usage};
  generation_call call;
  call.stream = fields.stream;
  call.token_ids = fields.return_token_ids;
  call.answer = std::make_unique<chat_answer>(std::move(head), options);
  call.requests.push_back(std::move(request));
  return call;
}

}  // namespace troupe::net
