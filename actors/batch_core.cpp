#include "actors/batch_core.hpp"

#include <algorithm>

namespace troupe::actors {
namespace {

/// Alone in a step, with nobody else to blame.
constexpr unsigned most_failures = 3;

double seconds(steady_time::duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace

batch_core::batch_core(engine::scheduler_limits limits, std::uint32_t pages, const std::vector<token_id>& end_tokens,
                       std::size_t vocabulary, model_metrics& measured)
    : pages_(pages),
      scheduler_(limits, pages_),
      end_tokens_(end_tokens),
      vocabulary_(vocabulary),
      measured_(measured) {}

std::shared_ptr<model::sampler> batch_core::make_sampler(const generation_request& request,
                                                         std::span<const token_id> prompt, std::uint32_t index) const {
  model::sampling_params params = request.sampling;
  params.choice = index;
  std::vector<token_id> ends = end_tokens_;
  ends.insert(ends.end(), request.stop_token_ids.begin(), request.stop_token_ids.end());
  return std::make_shared<model::sampler>(std::move(params), prompt, ends, vocabulary_);
}

void batch_core::add(request_ptr context, ticket_ptr held, steady_time now) {
  if (!still_wanted(*context, "batch_collector", now)) return forgotten_.push_back(context);
  const auto& request = context->request;
  const request_id id = request.id;
  forget(id);
  record r;
  r.context = context;
  r.dispatcher_life = context->at.load().dispatcher_life;
  r.held = std::move(held);
  const bool scores = request.prompt_logprobs >= 0;
  const bool computes = context->max_new_tokens != 0 || (scores && context->prompt_ids.size() > 1);
  for (std::uint32_t i = 0; i < request.n; ++i) {
    choice c;
    c.sequence = sequence_id{next_sequence_++};
    c.sampler = make_sampler(request, context->prompt_ids, i);
    r.choices.push_back(std::move(c));
  }
  auto& kept = records_[id] = std::move(r);
  measured_.prompt_tokens.Increment(static_cast<double>(context->prompt_ids.size()));
  measured_.request_prompt_tokens.Observe(static_cast<double>(context->prompt_ids.size()));
  kept.scores_sent = !scores;
  for (std::uint32_t i = 0; i < request.n; ++i) {
    // Only the first choice works for a request that wants nothing but its prompt's scores.
    if (!computes) end_choice(kept, i, {i, finish_reason::length, {}, 0});
    if (!computes || (context->max_new_tokens == 0 && i != 0)) continue;
    engine::sequence s;
    s.id = kept.choices[i].sequence;
    s.tenant = request.tenant;
    s.tokens = context->prompt_ids;
    s.prompt_tokens = static_cast<std::uint32_t>(s.tokens.size());
    s.max_new_tokens = context->max_new_tokens;
    s.score_prompt = scores && i == 0;
    s.deadline = request.deadline;
    s.queue_deadline = request.queue_deadline;
    s.begun = request.call->begun;
    s.cancel = request.cancel;
    s.window = request.window;
    owners_[s.id] = {id, i};
    if (auto added = scheduler_.add(std::move(s), now); !added) return fail(id, std::move(added).error());
  }
  finish_if_done(id, now);
  update_gauges();
}

void batch_core::stop(request_id id, std::uint32_t index, steady_time now) {
  const auto it = records_.find(id);
  if (it == records_.end() || it->second.choices[index].ended) return;
  auto& c = it->second.choices[index];
  c.ended = true;
  owners_.erase(c.sequence);
  scheduler_.remove(c.sequence);
  finish_if_done(id, now);
  update_gauges();
}

void batch_core::drop(const engine::dropped_sequence& dropped) {
  const auto it = owners_.find(dropped.id);
  if (it == owners_.end()) return;
  const request_id id = it->second.request;
  switch (dropped.reason) {
    case engine::drop_reason::cancelled:
      return fail(id, {error_kind::cancelled, "the client went away", "batch_collector"});
    case engine::drop_reason::deadline:
      return fail(id, {error_kind::deadline_exceeded, "the deadline passed before the answer was complete",
                       dropped.started ? "executor" : "batch_collector"});
    case engine::drop_reason::queue_deadline:
      return fail(id, {error_kind::deadline_exceeded, "the request waited too long for a place in the batch", "queue"});
  }
}

void batch_core::fail(request_id id, error why) {
  const auto it = records_.find(id);
  if (it == records_.end()) return;
  const request_ptr context = it->second.context;
  forget(id);
  context->fail(std::move(why));
  forgotten_.push_back(context);
}

void batch_core::forget(request_id id) {
  const auto it = records_.find(id);
  if (it == records_.end()) return;
  for (const auto& c : it->second.choices) {
    owners_.erase(c.sequence);
    scheduler_.remove(c.sequence);
  }
  records_.erase(it);
}

/// Others may have ended a request: a stop string its answer, a drain or a watch its life.
void batch_core::forget_ended() {
  std::vector<request_ptr> ended;
  for (const auto& [id, r] : records_)
    if (r.context->ended()) ended.push_back(r.context);
  for (const auto& context : ended) {
    forget(context->request.id);
    forgotten_.push_back(context);
  }
}

bool batch_core::waits_for_clients() const {
  return std::all_of(records_.begin(), records_.end(), [](const auto& entry) {
    const auto& window = entry.second.context->request.window;
    return window != nullptr && window->full();
  });
}

void batch_core::sweep(steady_time now) {
  if (step_out_) return;
  for (const auto& dropped : scheduler_.sweep(now)) drop(dropped);
  forget_ended();
  update_gauges();
}

step_job_ptr batch_core::next_step(steady_time now) {
  if (step_out_) return nullptr;
  const auto items = scheduler_.plan(now, next_suspect());
  update_gauges();
  if (items.empty()) return nullptr;
  auto job = std::make_shared<step_job>();
  double rows = 0;
  for (const auto& item : items) {
    job->entries.push_back(entry_for(item));
    rows += item.count;
    auto& r = records_.at(owners_.at(item.id).request);
    if (r.first_step) continue;
    r.first_step = now;
    measured_.request_queue_time.Observe(seconds(now - r.context->arrived));
  }
  measured_.batch_size.Observe(static_cast<double>(items.size()));
  measured_.step_tokens.Observe(rows);
  step_out_ = job;
  return job;
}

/// Who is to be computed alone. One whose client does not read cannot prove itself now, and keeps nobody waiting.
std::optional<sequence_id> batch_core::next_suspect() {
  std::erase_if(suspects_, [&](const suspect& s) { return !owners_.contains(s.id); });
  const auto ready = std::find_if(suspects_.begin(), suspects_.end(),
                                  [&](const suspect& s) { return !scheduler_.find(s.id)->paused(); });
  return ready == suspects_.end() ? std::nullopt : std::optional(ready->id);
}

step_entry batch_core::entry_for(const engine::step_item& item) {
  const engine::sequence& s = *scheduler_.find(item.id);
  const auto [request, index] = owners_.at(item.id);
  record& r = records_.at(request);
  step_entry entry;
  entry.item = item;
  entry.tokens.assign(s.tokens.begin() + item.first, s.tokens.begin() + item.first + item.count);
  entry.pages = s.pages;
  entry.prompt_tokens = s.prompt_tokens;
  for (std::uint32_t position = item.score_from; position < item.score_to; ++position)
    entry.score_targets.push_back(s.tokens[position + 1]);
  entry.score_alternatives = r.context->request.prompt_logprobs;
  if (item.samples) entry.sampler = r.choices[index].sampler;
  return entry;
}

void batch_core::step_done(const step_job& job, steady_time now) {
  step_out_.reset();
  measured_.step_seconds.Observe(job.seconds);
  if (job.entries.size() == 1) {
    const auto& alone = job.entries[0].item;
    std::erase_if(suspects_,
                  [&](const suspect& s) { return s.id == alone.id && alone.first + alone.count >= s.until; });
  }
  for (std::size_t i = 0; i < job.entries.size(); ++i) {
    scheduler_.advance(job.entries[i].item);
    take_outcome(job.entries[i], job.outcomes[i], now);
  }
  update_gauges();
}

void batch_core::take_outcome(const step_entry& entry, const step_outcome& outcome, steady_time now) {
  const auto owner_it = owners_.find(outcome.id);
  if (owner_it == owners_.end()) return;  // stopped or dropped while the step ran
  const auto [request, index] = owner_it->second;
  record& r = records_.at(request);
  r.scores.insert(r.scores.end(), outcome.scores.begin(), outcome.scores.end());
  const bool prompt_done = entry.item.first + entry.item.count >= entry.prompt_tokens;
  if (index == 0 && prompt_done) send_scores(r);
  if (outcome.token)
    take_token(r, index, *outcome.token, now);
  else if (prompt_done && r.context->max_new_tokens == 0)
    for (std::uint32_t i = 0; i < r.choices.size(); ++i) end_choice(r, i, {i, finish_reason::length, {}, 0});
  finish_if_done(request, now);
}

void batch_core::send_scores(record& r) {
  if (r.scores_sent) return;
  r.scores_sent = true;
  choice_update update = update_for(r, 0);
  update.prompt_scores = std::make_shared<const std::vector<model::sampled_token>>(std::move(r.scores));
  send(r, std::move(update));
  for (auto& later : r.pending) updates_.push_back(std::move(later));
  r.pending.clear();
}

choice_update batch_core::update_for(const record& r, std::uint32_t index) const {
  choice_update out;
  out.context = r.context;
  out.choice = index;
  out.dispatcher_life = r.dispatcher_life;
  return out;
}

void batch_core::send(record& r, choice_update update) {
  if (r.scores_sent)
    updates_.push_back(std::move(update));
  else
    r.pending.push_back(std::move(update));
}

void batch_core::take_token(record& r, std::uint32_t index, const model::sampled_token& token, steady_time now) {
  choice& c = r.choices[index];
  scheduler_.append(c.sequence, token.id);
  measured_.generation_tokens.Increment();
  if (!r.first_token) {
    r.first_token = now;
    measured_.time_to_first_token.Observe(seconds(now - r.context->arrived));
    measured_.request_prefill_time.Observe(seconds(now - *r.first_step));
  }
  if (c.last_token) measured_.inter_token_latency.Observe(seconds(now - *c.last_token));
  c.last_token = now;
  choice_update update = update_for(r, index);
  update.position = static_cast<std::uint32_t>(c.sampler->generated()) - 1;
  update.token = token;
  update.end = end_after(r, index, token.id);
  update.hidden = update.end && update.end->reason == finish_reason::stop;
  const bool ends = update.end.has_value();
  send(r, std::move(update));
  if (!ends) return;
  c.ended = true;
  owners_.erase(c.sequence);
  scheduler_.remove(c.sequence);
}

std::optional<generation_finished> batch_core::end_after(const record& r, std::uint32_t index, token_id token) const {
  const auto& request = r.context->request;
  const auto generated = static_cast<std::uint32_t>(r.choices[index].sampler->generated());
  const auto contains = [&](const std::vector<token_id>& ids) {
    return std::find(ids.begin(), ids.end(), token) != ids.end();
  };
  if (generated >= request.sampling.min_tokens) {
    if (contains(request.stop_token_ids)) return generation_finished{index, finish_reason::stop, token, generated};
    if (!request.sampling.ignore_eos && contains(end_tokens_))
      return generation_finished{index, finish_reason::stop, {}, generated};
  }
  if (generated >= r.context->max_new_tokens) return generation_finished{index, finish_reason::length, {}, generated};
  return std::nullopt;
}

void batch_core::end_choice(record& r, std::uint32_t index, generation_finished end) {
  choice& c = r.choices[index];
  if (c.ended) return;
  c.ended = true;
  owners_.erase(c.sequence);
  scheduler_.remove(c.sequence);
  choice_update update = update_for(r, index);
  update.end = std::move(end);
  send(r, std::move(update));
}

void batch_core::finish_if_done(request_id id, steady_time now) {
  const auto it = records_.find(id);
  if (it == records_.end()) return;
  record& r = it->second;
  if (!std::all_of(r.choices.begin(), r.choices.end(), [](const choice& c) { return c.ended; })) return;
  send_scores(r);
  if (r.first_token) measured_.request_decode_time.Observe(seconds(now - *r.first_token));
  if (r.first_step) measured_.request_inference_time.Observe(seconds(now - *r.first_step));
  records_.erase(it);
}

void batch_core::rebuild_samplers() {
  for (auto& [id, r] : records_) {
    for (std::uint32_t i = 0; i < r.choices.size(); ++i) {
      const engine::sequence* s = scheduler_.find(r.choices[i].sequence);
      if (s == nullptr) continue;
      auto fresh = make_sampler(r.context->request, r.context->prompt_ids, i);
      for (std::size_t at = s->prompt_tokens; at < s->tokens.size(); ++at) fresh->accept(s->tokens[at]);
      r.choices[i].sampler = std::move(fresh);
    }
  }
}

void batch_core::step_lost() {
  step_out_ = nullptr;
  scheduler_.forget_computed();
  rebuild_samplers();
  update_gauges();
}

void batch_core::step_failed(const error& why) {
  const step_job_ptr job = step_out_;
  if (!job) return;
  step_lost();
  for (const auto& entry : job->entries) {
    suspect& s = suspect_of(entry);
    if (job->entries.size() != 1 || ++s.failures < most_failures) continue;
    if (const auto it = owners_.find(s.id); it != owners_.end()) fail(it->second.request, why);
  }
}

batch_core::suspect& batch_core::suspect_of(const step_entry& entry) {
  const std::uint32_t until = entry.item.first + entry.item.count;
  const auto it =
      std::find_if(suspects_.begin(), suspects_.end(), [&](const suspect& s) { return s.id == entry.item.id; });
  if (it == suspects_.end()) return suspects_.emplace_back(suspect{entry.item.id, until});
  it->until = std::max(it->until, until);
  return *it;
}

void batch_core::update_gauges() {
  measured_.requests_running.Set(static_cast<double>(scheduler_.running()));
  measured_.requests_waiting.Set(static_cast<double>(scheduler_.waiting()));
  measured_.kv_cache_usage.Set(pages_.total() == 0 ? 0.0 : static_cast<double>(pages_.used()) / pages_.total());
  measured_.preemptions.Increment(static_cast<double>(scheduler_.preemptions() - counted_preemptions_));
  counted_preemptions_ = scheduler_.preemptions();
}

}  // namespace troupe::actors
