#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/ids.hpp"

/// The filters that narrow a distribution before a draw, each a plain function over candidates, so that each can be
/// checked against the reference alone. Definitions follow transformers' logits warpers of the same names.
namespace troupe::model {

struct candidate {
  token_id id = 0;
  float logit = 0.0F;        ///< After penalties and temperature.
  double probability = 0.0;  ///< Set by `normalize`.
};

/// Most likely first; equal logits: the lower id first.
bool more_likely(const candidate& a, const candidate& b);

/// Keeps the `k` most likely, in order. k >= candidates.size(): only sorts them.
void keep_top_k(std::vector<candidate>& candidates, std::size_t k);

/// Softmax over the candidates' logits, summed in their order.
void normalize(std::span<candidate> candidates);

/// Nucleus sampling (Holtzman et al., 2020): the smallest head of the sorted candidates whose probability reaches `p`.
void keep_top_p(std::vector<candidate>& candidates, double p);

/// Candidates at least `p` times as likely as the most likely one.
void keep_min_p(std::vector<candidate>& candidates, double p);

/// Locally typical sampling (Meister et al., 2022): those whose information is nearest to the entropy, until their
/// probability reaches `p`. Leaves the candidates sorted by likelihood.
void keep_typical(std::vector<candidate>& candidates, double p);

}  // namespace troupe::model
