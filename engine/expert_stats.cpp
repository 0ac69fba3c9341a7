#include "engine/expert_stats.hpp"

#include <algorithm>
#include <numeric>

namespace troupe::engine {

void expert_stats::add(std::span<const std::uint32_t> step) {
  const std::size_t count = std::min(step.size(), tokens_.size());
  for (std::size_t i = 0; i < count; ++i) tokens_[i] += step[i];
}

std::uint64_t expert_stats::layer_total(std::uint32_t layer) const {
  const auto begin = tokens_.begin() + static_cast<std::ptrdiff_t>(std::size_t{layer} * experts_);
  return std::accumulate(begin, begin + experts_, std::uint64_t{0});
}

double expert_stats::share(std::uint32_t layer, std::uint32_t expert) const {
  const std::uint64_t total = layer_total(layer);
  return total == 0 ? 0.0 : static_cast<double>(tokens(layer, expert)) / static_cast<double>(total);
}

double expert_stats::imbalance(std::uint32_t layer) const {
  std::uint64_t highest = 0;
  for (std::uint32_t e = 0; e < experts_; ++e) highest = std::max(highest, tokens(layer, e));
  const std::uint64_t total = layer_total(layer);
  return total == 0 ? 1.0 : static_cast<double>(highest) * experts_ / static_cast<double>(total);
}

}  // namespace troupe::engine
