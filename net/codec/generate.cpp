#include "net/codec/generate.hpp"

#include <boost/json/serialize.hpp>

#include "net/codec/answer_parts.hpp"
#include "net/codec/completions.hpp"

namespace troupe::net {
namespace {

namespace json = boost::json;

constexpr std::uint32_t default_max_tokens = 200;

struct generate_options {
  bool echo = false;
  bool logprobs = false;
  bool return_token_ids = false;
};

class generate_answer final : public answer {
 public:
  generate_answer(answer_head head, generate_options options) : answer(std::move(head)), options_(options) {}

  /// The last chunk says how the answer ended and what it took.
  void end_stream(chunks& out) override {
    json::object chunk = frame("");
    add_end(chunk, end_);
    out.push_back(json::serialize(chunk));
  }

  json::object whole() override {
    collected().resize(1);
    prompt_answer& record = collected().front();
    record.choices.resize(1);
    choice_answer& taken = record.choices.front();
    json::object body = frame((options_.echo ? record.start.prompt_text : "") + taken.text);
    add_tokens(body, taken.tokens);
    if (options_.return_token_ids) body["prompt_token_ids"] = ids_json(record.start.prompt_ids);
    add_end(body, taken.end);
    return body;
  }

 protected:
  void stream_started(std::size_t, const actors::generation_started& event, chunks& out) override {
    if (!options_.echo && !options_.return_token_ids) return;
    json::object chunk = frame(options_.echo ? event.prompt_text : "");
    if (options_.return_token_ids) chunk["prompt_token_ids"] = ids_json(event.prompt_ids);
    out.push_back(json::serialize(chunk));
  }

  void stream_delta(std::size_t, const actors::generation_delta& event, chunks& out) override {
    if (event.text.empty() && !options_.logprobs && !options_.return_token_ids) return;
    json::object chunk = frame(event.text);
    add_tokens(chunk, event.tokens);
    out.push_back(json::serialize(chunk));
  }

  void stream_finished(std::size_t, const actors::generation_finished& event, chunks&) override { end_ = event; }

 private:
  json::object frame(std::string text) const {
    return {{"id", "gen-" + head().id}, {"model", head().model}, {"text", text_json(std::move(text))}};
  }

  void add_tokens(json::object& out, const std::vector<actors::token_detail>& tokens) const {
    if (options_.logprobs) out["logprobs"] = chat_logprobs_json(tokens)["content"];
    if (options_.return_token_ids) out["token_ids"] = ids_json(std::span(tokens));
  }

  void add_end(json::object& out, const actors::generation_finished& end) const {
    out["finish_reason"] = finish_reason_text(end);
    out["stop_reason"] = stop_reason_json(end);
    out["usage"] = usage_json(usage());
  }

  generate_options options_;
  actors::generation_finished end_;
};

}  // namespace

result<generation_call> parse_generate(const json::object& body, const codec_context& context, answer_head head) {
  object_reader in(body);
  generation_fields fields = read_generation_fields(in, context);
  actors::generation_request& request = fields.request;
  auto prompts = read_prompts(in, context.model.vocabulary);
  if (prompts.size() > 1) in.fail("prompt", "must be one prompt; /v1/completions takes several");
  if (request.n != 1) in.fail("n", "must be 1; /v1/completions gives several choices");
  if (!request.max_tokens) request.max_tokens = default_max_tokens;
  if (request.sampling.min_tokens > *request.max_tokens) in.fail("min_tokens", "must not be more than max_tokens");
  request.add_special_tokens = in.boolean("add_special_tokens").value_or(true);
  request.echo = in.boolean("echo").value_or(false);
  request.sampling.top_logprobs = static_cast<int>(in.integer("logprobs", 0, 20).value_or(-1));
  if (in.failure()) return *in.failure();

  const generate_options options{.echo = request.echo,
                                 .logprobs = request.sampling.top_logprobs >= 0,
                                 .return_token_ids = fields.return_token_ids};
  request.prompt = std::move(prompts.front());
  generation_call call;
  call.stream = fields.stream;
  call.token_ids = fields.return_token_ids;
  call.answer = std::make_unique<generate_answer>(std::move(head), options);
  call.requests.push_back(std::move(request));
  return call;
}

}  // namespace troupe::net
