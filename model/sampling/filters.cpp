#include "model/sampling/filters.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::model {

bool more_likely(const candidate& a, const candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

void keep_top_k(std::vector<candidate>& candidates, std::size_t k) {
  if (k < candidates.size()) {
    std::nth_element(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(k), candidates.end(),
                     more_likely);
    candidates.resize(k);
  }
  std::sort(candidates.begin(), candidates.end(), more_likely);
}

void normalize(std::span<candidate> candidates) {
  float highest = -std::numeric_limits<float>::infinity();
  for (const auto& c : candidates) highest = std::max(highest, c.logit);
  double sum = 0.0;
  for (auto& c : candidates) sum += c.probability = std::exp(static_cast<double>(c.logit) - highest);
  for (auto& c : candidates) c.probability /= sum;
}

void keep_top_p(std::vector<candidate>& candidates, double p) {
  double mass = 0.0;
  std::size_t kept = 0;
  while (kept < candidates.size() && (kept == 0 || mass < p)) mass += candidates[kept++].probability;
  candidates.resize(kept);
}

void keep_min_p(std::vector<candidate>& candidates, double p) {
  double highest = 0.0;
  for (const auto& c : candidates) highest = std::max(highest, c.probability);
  std::erase_if(candidates, [&](const candidate& c) { return c.probability < p * highest; });
}

void keep_typical(std::vector<candidate>& candidates, double p) {
  double entropy = 0.0;
  for (const auto& c : candidates)
    if (c.probability > 0.0) entropy -= c.probability * std::log(c.probability);
  const auto surprise = [&](const candidate& c) {
    return c.probability > 0.0 ? std::abs(-std::log(c.probability) - entropy) : std::numeric_limits<double>::infinity();
  };
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](const candidate& a, const candidate& b) { return surprise(a) < surprise(b); });
  keep_top_p(candidates, p);
  std::sort(candidates.begin(), candidates.end(), more_likely);
}

}  // namespace troupe::model
