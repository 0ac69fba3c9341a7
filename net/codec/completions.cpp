#include "net/codec/completions.hpp"

#include <algorithm>
#include <boost/json/serialize.hpp>

#include "net/codec/answer_parts.hpp"

namespace troupe::net {
namespace {

namespace json = boost::json;

struct completion_options {
  std::uint32_t n = 1;
  bool echo = false;
  bool logprobs = false;
  bool prompt_logprobs = false;
  bool return_token_ids = false;
  bool include_usage = false;
  bool continuous_usage = false;
};

class completion_answer final : public answer {
 public:
  completion_answer(answer_head head, completion_options options, std::size_t prompts)
      : answer(std::move(head)), options_(options), offsets_(prompts * options.n) {}

  void end_stream(chunks& out) override {
    if (!options_.include_usage) return;
    json::object chunk = frame();
    chunk["choices"] = json::array();
    chunk["usage"] = usage_json(usage());
    out.push_back(json::serialize(chunk));
  }

  json::object whole() override {
    json::array choices;
    for (std::size_t p = 0; p < collected().size(); ++p)
      for (std::uint32_t c = 0; c < options_.n; ++c) choices.push_back(whole_choice(p, c));
    json::object body = frame();
    body["choices"] = std::move(choices);
    body["usage"] = usage_json(usage());
    return body;
  }

 protected:
  void stream_started(std::size_t prompt, const actors::generation_started& event, chunks& out) override {
    if (!options_.echo && !options_.return_token_ids && !options_.prompt_logprobs) return;
    for (std::uint32_t c = 0; c < options_.n; ++c) {
      json::object choice = open_choice(prompt, c, options_.echo ? event.prompt_text : "");
      if (options_.echo && options_.logprobs)
        choice["logprobs"] = completion_logprobs_json(event.prompt_details, offsets_[prompt * options_.n + c]);
      if (options_.prompt_logprobs) choice["prompt_logprobs"] = prompt_logprobs_json(event.prompt_details);
      if (options_.return_token_ids) choice["prompt_token_ids"] = ids_json(event.prompt_ids);
      push(std::move(choice), out);
    }
  }

  void stream_delta(std::size_t prompt, const actors::generation_delta& event, chunks& out) override {
    if (event.text.empty() && !options_.logprobs && !options_.return_token_ids) return;
    json::object choice = open_choice(prompt, event.choice, event.text);
    if (options_.logprobs)
      choice["logprobs"] = completion_logprobs_json(event.tokens, offsets_.at(prompt * options_.n + event.choice));
    if (options_.return_token_ids) choice["token_ids"] = ids_json(std::span(event.tokens));
    push(std::move(choice), out);
  }

  void stream_finished(std::size_t prompt, const actors::generation_finished& event, chunks& out) override {
    json::object choice = open_choice(prompt, event.choice, "");
    choice["finish_reason"] = finish_reason_text(event);
    choice["stop_reason"] = stop_reason_json(event);
    push(std::move(choice), out);
  }

 private:
  json::object frame() const {
    return {{"id", "cmpl-" + head().id},
            {"object", "text_completion"},
            {"created", head().created},
            {"model", head().model}};
  }

  json::object open_choice(std::size_t prompt, std::uint32_t choice, std::string text) const {
    return {{"index", prompt * options_.n + choice},
            {"text", text_json(std::move(text))},
            {"logprobs", nullptr},
            {"finish_reason", nullptr},
            {"stop_reason", nullptr}};
  }

  void push(json::object choice, chunks& out) const {
    json::object chunk = frame();
    chunk["choices"] = json::array{std::move(choice)};
    if (options_.continuous_usage) {
      chunk["usage"] = usage_json(running_usage());
    } else if (options_.include_usage) {
      chunk["usage"] = nullptr;
    }
    out.push_back(json::serialize(chunk));
  }

  json::object whole_choice(std::size_t prompt, std::uint32_t index) {
    prompt_answer& record = collected()[prompt];
    record.choices.resize(options_.n);
    choice_answer& taken = record.choices[index];
    json::object out = open_choice(prompt, index, (options_.echo ? record.start.prompt_text : "") + taken.text);
    if (options_.logprobs) {
      std::vector<actors::token_detail> tokens;
      if (options_.echo) tokens = record.start.prompt_details;
      tokens.insert(tokens.end(), taken.tokens.begin(), taken.tokens.end());
      std::size_t offset = 0;
      out["logprobs"] = completion_logprobs_json(tokens, offset);
    }
    out["finish_reason"] = finish_reason_text(taken.end);
    out["stop_reason"] = stop_reason_json(taken.end);
    if (options_.prompt_logprobs) out["prompt_logprobs"] = prompt_logprobs_json(record.start.prompt_details);
    if (options_.return_token_ids) {
      out["prompt_token_ids"] = ids_json(record.start.prompt_ids);
      out["token_ids"] = ids_json(std::span<const actors::token_detail>(taken.tokens));
    }
    return out;
  }

  completion_options options_;
  std::vector<std::size_t> offsets_;  ///< Characters sent, for each choice of each prompt.
};

/// A list of prompts that are all strings or all lists of ids.
std::vector<actors::prompt_input> read_prompt_list(object_reader& in, const json::array& list, std::size_t vocabulary) {
  std::vector<actors::prompt_input> prompts;
  if (list.size() > max_prompts) {
    in.fail("prompt", "must have at most " + std::to_string(max_prompts) + " prompts");
    return prompts;
  }
  for (const json::value& one : list) {
    const std::string place = "prompt[" + std::to_string(prompts.size()) + "]";
    if (one.kind() != list.front().kind()) {
      in.fail(place, "must be of the same type as prompt[0]");
    } else if (one.is_string()) {
      prompts.emplace_back(std::string(one.get_string()));
    } else if (one.get_array().empty()) {
      in.fail(place, "must not be empty");
    } else if (auto ids = read_ids(one.get_array(), place, vocabulary); ids) {
      prompts.emplace_back(*std::move(ids));
    } else {
      in.fail(ids.error());
    }
    if (in.failure()) return prompts;
  }
  return prompts;
}

}  // namespace

std::vector<actors::prompt_input> read_prompts(object_reader& in, std::size_t vocabulary) {
  const json::value* value = in.any("prompt");
  if (!value) {
    in.fail("prompt", "is required");
  } else if (value->is_string()) {
    return {std::string(value->get_string())};
  } else if (!value->is_array()) {
    in.fail("prompt", "must be a string or an array, but is " + std::string(kind_name(*value)));
  } else if (value->get_array().empty()) {
    in.fail("prompt", "must not be empty");
  } else if (const json::array& list = value->get_array(); list.front().is_string() || list.front().is_array()) {
    return read_prompt_list(in, list, vocabulary);
  } else if (auto ids = in.ids("prompt", vocabulary)) {
    return {*std::move(ids)};
  }
  return {};
}

result<generation_call> parse_completion(const json::object& body, const codec_context& context, answer_head head) {
  object_reader in(body);
  generation_fields fields = read_generation_fields(in, context);
  actors::generation_request& shared = fields.request;
  auto prompts = read_prompts(in, context.model.vocabulary);
  shared.add_special_tokens = in.boolean("add_special_tokens").value_or(true);
  shared.echo = in.boolean("echo").value_or(false);
  shared.sampling.top_logprobs = static_cast<int>(in.integer("logprobs", 0, 20).value_or(-1));
  if (const auto best_of = in.integer("best_of", 1, context.limits.max_n); best_of && *best_of != shared.n)
    in.fail(error{error_kind::unsupported, "is only supported equal to n", "best_of"});
  if (prompts.size() * shared.n > max_answers)
    in.fail("n", "must not ask for more than " + std::to_string(max_answers) + " answers to all prompts");
  if (shared.max_tokens && shared.sampling.min_tokens > *shared.max_tokens)
    in.fail("min_tokens", "must not be more than max_tokens");
  if (in.failure()) return *in.failure();

  const completion_options options{.n = shared.n,
                                   .echo = shared.echo,
                                   .logprobs = shared.sampling.top_logprobs >= 0,
                                   .prompt_logprobs = shared.prompt_logprobs >= 0,
                                   .return_token_ids = fields.return_token_ids,
                                   .include_usage = fields.include_usage,
                                   .continuous_usage = fields.continuous_usage};
  if (options.echo && options.logprobs)
    shared.prompt_logprobs = std::max(shared.prompt_logprobs, shared.sampling.top_logprobs);

  generation_call call{.requests = {},
                       .stream = fields.stream,
                       .token_ids = fields.return_token_ids,
                       .answer = std::make_unique<completion_answer>(std::move(head), options, prompts.size())};
  for (auto& prompt : prompts) {
    call.requests.push_back(shared);
    call.requests.back().prompt = std::move(prompt);
  }
  return call;
}

}  // namespace troupe::net
