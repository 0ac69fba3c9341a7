#include "model/sampling/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/sampling/filters.hpp"
#include "model/sampling/philox.hpp"

namespace troupe::model {
namespace {

constexpr float lowest_logprob = -9999.0F;  // what OpenAI reports for very unlikely tokens
constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

/// Top-p, min-p and typical-p look at this many candidates before they ask for the whole vocabulary.
constexpr std::size_t usual_candidates = 256;

float usable(float logit) { return std::isnan(logit) ? minus_infinity : logit; }

token_id most_likely(std::span<const float> logits) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < logits.size(); ++i)
    if (logits[i] > logits[best]) best = i;
  return static_cast<token_id>(best);
}

/// log of the sum of exponentials, in index order, so that every caller gets the same bits.
double log_sum_exp(std::span<const float> logits) {
  float highest = minus_infinity;
  for (const float l : logits) highest = std::max(highest, usable(l));
  if (highest == minus_infinity) return 0.0;
  if (highest == std::numeric_limits<float>::infinity()) return highest;
  double sum = 0.0;
  for (const float l : logits) sum += std::exp(static_cast<double>(usable(l)) - highest);
  return highest + std::log(sum);
}

float logprob_of(float logit, double normalizer) {
  const double value = static_cast<double>(usable(logit)) - normalizer;
  if (!(value > lowest_logprob)) return lowest_logprob;  // also NaN: infinity minus infinity
  return static_cast<float>(std::min(value, 0.0));
}

}  // namespace

sampled_token score(std::span<const float> logits, token_id id, int top) {
  sampled_token out;
  out.id = id;
  const double normalizer = log_sum_exp(logits);
  out.logprob = logprob_of(logits[static_cast<std::size_t>(id)], normalizer);
  if (top <= 0) return out;
  const std::size_t count = std::min<std::size_t>(static_cast<std::size_t>(top), logits.size());
  std::vector<candidate> best;  // a heap of the `count` most likely, the least likely of them in front
  best.reserve(count + 1);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const candidate next{static_cast<token_id>(i), usable(logits[i]), 0.0};
    if (best.size() == count && !more_likely(next, best.front())) continue;
    best.push_back(next);
    std::push_heap(best.begin(), best.end(), more_likely);
    if (best.size() > count) {
      std::pop_heap(best.begin(), best.end(), more_likely);
      best.pop_back();
    }
  }
  std::sort(best.begin(), best.end(), more_likely);
  for (const auto& c : best) out.top.push_back({c.id, logprob_of(c.logit, normalizer)});
  return out;
}

sampler::sampler(sampling_params params, std::span<const token_id> prompt, std::span<const token_id> end_tokens,
                 std::size_t vocab)
    : params_(std::move(params)), end_tokens_(end_tokens.begin(), end_tokens.end()) {
  seen_.assign(prompt.begin(), prompt.end());
  std::sort(seen_.begin(), seen_.end());
  seen_.erase(std::unique(seen_.begin(), seen_.end()), seen_.end());
  // A prompt may hold ids that only the caller checked; those outside the vocabulary have no logit to change.
  std::erase_if(seen_, [&](token_id id) { return id < 0 || static_cast<std::size_t>(id) >= vocab; });
}

void sampler::accept(token_id id) {
  ++generated_;
  const auto seen = std::lower_bound(seen_.begin(), seen_.end(), id);
  if (seen == seen_.end() || *seen != id) seen_.insert(seen, id);
  const auto count = std::lower_bound(answer_counts_.begin(), answer_counts_.end(), id,
                                      [](const auto& entry, token_id wanted) { return entry.first < wanted; });
  if (count != answer_counts_.end() && count->first == id)
    ++count->second;
  else
    answer_counts_.insert(count, {id, 1});
}

/// Fills the scratch with the logits after bias, bans and penalties.
void sampler::adjust(std::span<const float> logits) {
  scratch_.resize(logits.size());
  std::transform(logits.begin(), logits.end(), scratch_.begin(), usable);
  const auto at = [&](token_id id) -> float& { return scratch_[static_cast<std::size_t>(id)]; };
  if (params_.repetition_penalty != 1.0) {
    const auto penalty = static_cast<float>(params_.repetition_penalty);
    for (const token_id id : seen_) at(id) = at(id) < 0.0F ? at(id) * penalty : at(id) / penalty;
  }
  if (params_.presence_penalty != 0.0 || params_.frequency_penalty != 0.0) {
    for (const auto& [id, count] : answer_counts_)
      at(id) -= static_cast<float>(params_.presence_penalty + params_.frequency_penalty * count);
  }
  for (const auto& [id, bias] : params_.logit_bias) {
    if (bias <= -100.0F)
      at(id) = minus_infinity;
    else
      at(id) += bias;
  }
  if (generated_ < params_.min_tokens && !params_.ignore_eos)
    for (const token_id id : end_tokens_)
      if (id >= 0 && static_cast<std::size_t>(id) < scratch_.size()) at(id) = minus_infinity;
}

/// A bias of +100 forces its token (with several, the draw is among them), as OpenAI describes it.
void sampler::keep_forced() {
  const bool any = std::any_of(params_.logit_bias.begin(), params_.logit_bias.end(),
                               [](const auto& b) { return b.second >= 100.0F; });
  if (!any) return;
  std::vector<std::pair<token_id, float>> forced;
  for (const auto& [id, bias] : params_.logit_bias)
    if (const float logit = scratch_[static_cast<std::size_t>(id)]; bias >= 100.0F && logit != minus_infinity)
      forced.emplace_back(id, logit);
  if (forced.empty()) return;
  std::fill(scratch_.begin(), scratch_.end(), minus_infinity);
  for (const auto& [id, logit] : forced) scratch_[static_cast<std::size_t>(id)] = logit;
}

token_id sampler::draw() const {
  const std::size_t vocab = scratch_.size();
  const auto inverse_temperature = static_cast<float>(1.0 / params_.temperature);
  std::vector<candidate> candidates;
  candidates.reserve(vocab);
  for (std::size_t i = 0; i < vocab; ++i)
    if (scratch_[i] != minus_infinity)
      candidates.push_back({static_cast<token_id>(i), scratch_[i] * inverse_temperature, 0.0});
  if (candidates.empty()) return most_likely(scratch_);

  if (params_.top_k > 0) keep_top_k(candidates, static_cast<std::size_t>(params_.top_k));
  normalize(candidates);
  if (params_.typical_p < 1.0) {
    keep_top_k(candidates, candidates.size());
    keep_typical(candidates, params_.typical_p);
    normalize(candidates);
  }
  if (params_.top_p < 1.0) {
    narrow_to_top_p(candidates);
    normalize(candidates);
  }
  if (params_.min_p > 0.0) {
    keep_min_p(candidates, params_.min_p);
    normalize(candidates);
  }

  const double mark = uniform_draw(params_.seed, params_.choice, generated_);
  double mass = 0.0;
  for (const auto& c : candidates) {
    mass += c.probability;
    if (mark < mass) return c.id;
  }
  return candidates.back().id;  // rounding left the sum a little below one
}

/// The nucleus usually lies within the first few candidates: sort no more than are needed.
void sampler::narrow_to_top_p(std::vector<candidate>& candidates) const {
  for (std::size_t head = usual_candidates; head < candidates.size(); head *= 8) {
    const auto middle = candidates.begin() + static_cast<std::ptrdiff_t>(head);
    std::partial_sort(candidates.begin(), middle, candidates.end(), more_likely);
    double mass = 0.0;
    for (auto it = candidates.begin(); it != middle; ++it) mass += it->probability;
    if (mass < params_.top_p) continue;
    candidates.erase(middle, candidates.end());
    return keep_top_p(candidates, params_.top_p);
  }
  std::sort(candidates.begin(), candidates.end(), more_likely);
  keep_top_p(candidates, params_.top_p);
}

sampled_token sampler::sample(std::span<const float> logits) {
  adjust(logits);
  keep_forced();
  const token_id id = params_.greedy() ? most_likely(scratch_) : draw();
  sampled_token out;
  if (params_.top_logprobs >= 0) out = score(logits, id, params_.top_logprobs);
  out.id = id;
  accept(id);
  return out;
}

}  // namespace troupe::model
