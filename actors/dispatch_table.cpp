#include "actors/dispatch_table.hpp"

#include <algorithm>

#include "base/json/utf8.hpp"

namespace troupe::actors {

dispatch_table::outcome dispatch_table::take(const std::vector<choice_update>& updates) {
  outcome out;
  for (const auto& update : updates) {
    if (update.context->ended()) {
      answers_.erase(update.context->request.id);
    } else if (update.dispatcher_life == life_) {
      const work_mark mark(*update.context, hop::dispatcher);
      take_one(update, out);
    }
  }
  return out;
}

token_detail dispatch_table::detail_of(const model::sampled_token& token) const {
  const auto text_of = [](const std::string& bytes) { return to_valid_utf8(bytes); };
  token_detail out;
  out.id = token.id;
  out.bytes = text_.token_bytes(token.id);
  out.text = text_of(out.bytes);
  out.logprob = token.logprob;
  for (const auto& [id, logprob] : token.top) {
    std::string bytes = text_.token_bytes(id);
    std::string text = text_of(bytes);
    out.top.push_back({id, std::move(text), std::move(bytes), logprob});
  }
  return out;
}

void dispatch_table::start(const request_ptr& context, answer& a, const std::vector<model::sampled_token>* scores) {
  if (a.started) return;
  a.started = true;
  const auto& request = context->request;
  generation_started event;
  event.prompt_ids = context->prompt_ids;
  if (request.echo) event.prompt_text = text_.decode(context->prompt_ids, request.skip_special_tokens);
  if (request.prompt_logprobs >= 0) {
    for (std::size_t i = 0; i < context->prompt_ids.size(); ++i) {
      const bool scored = i != 0 && scores != nullptr && i - 1 < scores->size();
      event.prompt_details.push_back(
          detail_of(scored ? (*scores)[i - 1] : model::sampled_token{context->prompt_ids[i], {}, {}}));
    }
  }
  context->emit(std::move(event));
}

void dispatch_table::take_one(const choice_update& update, outcome& out) {
  const auto& context = update.context;
  const auto& request = context->request;
  auto& a = answers_[request.id];
  if (a.choices.empty()) {
    for (std::uint32_t i = 0; i < request.n; ++i)
      a.choices.push_back({std::make_unique<engine::text_state>(text_, request.skip_special_tokens, request.stop)});
  }
  if (update.prompt_scores) return start(context, a, update.prompt_scores.get());
  start(context, a, nullptr);
  choice& c = a.choices[update.choice];
  if (c.ended) {
    // Computed before the collector heard of the stop string, or by a new collector that never did.
    if (c.text->stopped_by() && !update.end) out.stopped.push_back({context, update.choice});
    return;
  }
  if (update.token && update.position != c.tokens) return;  // a new collector comes to what is known here
  generation_delta delta;
  delta.choice = update.choice;
  if (update.token) {
    ++c.tokens;
    if (!update.hidden) {
      delta.text = c.text->push(update.token->id, c.tokens >= request.sampling.min_tokens);
      delta.tokens.push_back(detail_of(*update.token));
    }
  }
  std::optional<generation_finished> finished = update.end;
  if (finished && !c.text->stopped_by()) delta.text += c.text->finish();
  if (const auto& stop = c.text->stopped_by()) {
    finished = generation_finished{update.choice, finish_reason::stop, *stop, c.tokens};
    if (!update.end) out.stopped.push_back({context, update.choice});
  }
  if (!delta.text.empty() || !delta.tokens.empty()) context->emit(std::move(delta));
  if (finished) end(context, a, *std::move(finished), out);
}

void dispatch_table::end(const request_ptr& context, answer& a, generation_finished finished, outcome& out) {
  choice& c = a.choices[finished.choice];
  c.ended = true;
  finished.completion_tokens = c.tokens;
  measured_.request_success.Add({{"finished_reason", std::string(to_string(finished.reason))}}).Increment();
  measured_.request_generation_tokens.Observe(c.tokens);
  context->emit(std::move(finished));
  if (!std::all_of(a.choices.begin(), a.choices.end(), [](const choice& one) { return one.ended; })) return;
  generation_done done;
  done.prompt_tokens = static_cast<std::uint32_t>(context->prompt_ids.size());
  for (const auto& one : a.choices) done.completion_tokens += one.tokens;
  context->finish(done);
  out.complete.push_back(context);
  answers_.erase(context->request.id);
}

}  // namespace troupe::actors
