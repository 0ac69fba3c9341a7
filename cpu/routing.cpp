#include "cpu/routing.hpp"

#include <algorithm>

namespace troupe::cpu {

void choose_experts(const model::moe_spec& spec, std::span<const float> probabilities, std::uint32_t* experts,
                    float* weights) {
  float total = 0.0F;
  for (std::uint32_t slot = 0; slot < spec.top_k; ++slot) {
    std::uint32_t best = spec.experts;
    for (std::uint32_t e = 0; e < spec.experts; ++e) {
      if (std::find(experts, experts + slot, e) != experts + slot) continue;
      if (best == spec.experts || probabilities[e] > probabilities[best]) best = e;
    }
    experts[slot] = best;
    weights[slot] = probabilities[best];
    total += weights[slot];
  }
  if (!spec.normalize_top_k) return;
  for (std::uint32_t slot = 0; slot < spec.top_k; ++slot) weights[slot] /= total;
}

void expert_groups::build(std::span<const std::uint32_t> chosen, std::uint32_t top_k, std::uint32_t experts) {
  counts_.assign(experts, 0);
  for (const auto expert : chosen) ++counts_[expert];
  groups.clear();
  std::uint32_t next = 0;
  for (std::uint32_t e = 0; e < experts; ++e) {
    if (counts_[e] == 0) continue;
    groups.push_back({.expert = e, .first = next, .count = counts_[e]});
    next += counts_[e];
  }
  for (const auto& g : groups) counts_[g.expert] = g.first;
  tokens.resize(chosen.size());
  entry_of.resize(chosen.size());
  for (std::uint32_t i = 0; i < chosen.size(); ++i) {
    const std::uint32_t entry = counts_[chosen[i]]++;
    tokens[entry] = i / top_k;
    entry_of[i] = entry;
  }
}

}  // namespace troupe::cpu
