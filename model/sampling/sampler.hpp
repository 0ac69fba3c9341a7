#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.hpp"

namespace troupe::model {

struct candidate;

/// How one choice's tokens are drawn. Defaults mean "off". Ranges are checked where requests are parsed.
struct sampling_params {
  double temperature = 1.0;  ///< 0: greedy.
  int top_k = 0;             ///< <= 0: off.
  double top_p = 1.0;
  double min_p = 0.0;
  double typical_p = 1.0;
  double repetition_penalty = 1.0;                     ///< Over prompt and answer (CTRL, 2019).
  double presence_penalty = 0.0;                       ///< Over the answer.
  double frequency_penalty = 0.0;                      ///< Over the answer.
  std::vector<std::pair<token_id, float>> logit_bias;  ///< Each id inside the vocabulary, once.
  std::uint64_t seed = 0;
  std::uint32_t choice = 0;      ///< Index among n choices: part of the random stream.
  std::uint32_t min_tokens = 0;  ///< End tokens are banned before.
  bool ignore_eos = false;       ///< End tokens do not end (and are not banned).
  int top_logprobs = -1;         ///< -1: no logprobs; otherwise how many alternatives (0: the chosen one's only).

  /// So near to 0 that the temperature counts as 0: the likeliest token, whatever else is set.
  bool greedy() const { return temperature < 1e-4; }
};

struct token_logprob {
  token_id id = 0;
  float logprob = 0.0F;  ///< Natural log of the model's own distribution (before temperature and filters), >= -9999.
};

struct sampled_token {
  token_id id = 0;
  std::optional<float> logprob;
  std::vector<token_logprob> top;  ///< Most likely first, `top_logprobs` of them.
};

/// Draws tokens for one choice. The random number for a token depends on (seed, choice, position) only, through Philox
/// 4x32-10 (Salmon et al., 2011), so a draw is the same alone, in any batch, after preemption or on another machine.
/// Order: penalties, bias (-100 bans, +100 forces), min_tokens; then temperature, top-k, typical-p, top-p, min-p.
/// One owner, one thread.
class sampler {
 public:
  /// `prompt` feeds the repetition penalty; `end_tokens` are what min_tokens bans. `vocab` > 0.
  sampler(sampling_params params, std::span<const token_id> prompt, std::span<const token_id> end_tokens,
          std::size_t vocab);

  /// `logits`: `vocab` values, not changed; NaN counts as minus infinity. Records the drawn token.
  sampled_token sample(std::span<const float> logits);

  /// Takes a token as if drawn, without drawing: rebuilds the state when an answer is replayed from its log.
  void accept(token_id id);

  std::size_t generated() const { return generated_; }
  const sampling_params& params() const { return params_; }

 private:
  void adjust(std::span<const float> logits);
  void keep_forced();
  token_id draw() const;
  void narrow_to_top_p(std::vector<candidate>& candidates) const;

  sampling_params params_;
  std::vector<token_id> end_tokens_;
  std::vector<std::pair<token_id, std::uint32_t>> answer_counts_;  ///< Sorted by id.
  std::vector<token_id> seen_;                                     ///< Sorted: prompt and answer.
  std::vector<float> scratch_;  ///< Of the vocabulary's size, once it draws: many only wait.
  std::size_t generated_ = 0;
};

/// log softmax of `logits` at `id` and the `top` most likely: prompt logprobs and sampled ones use the same arithmetic.
sampled_token score(std::span<const float> logits, token_id id, int top);

}  // namespace troupe::model
