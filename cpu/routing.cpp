#include "cpu/routing.hpp"

#include <algorithm>
#include <limits>

namespace troupe::cpu {
namespace {

constexpr float excluded = -std::numeric_limits<float>::infinity();

/// The index of the largest value, the lowest of equal ones; excluded ones are passed over.
std::uint32_t largest(std::span<const float> values) {
  const auto size = static_cast<std::uint32_t>(values.size());
  std::uint32_t best = size;
  for (std::uint32_t i = 0; i < size; ++i) {
    if (values[i] == excluded) continue;
    if (best == size || values[i] > values[best]) best = i;
  }
  return best;
}

float score_of_group(model::group_scoring scoring, std::span<const float> values) {
  float best = values[0];
  float second = excluded;
  for (const float value : values.subspan(1)) {
    if (value > best) {
      second = best;
      best = value;
    } else if (value > second) {
      second = value;
    }
  }
  return scoring == model::group_scoring::best ? best : best + second;
}

/// Leaves the experts of the best groups in `values` and excludes all others. `groups`: room for the groups' scores.
void keep_best_groups(const model::moe_spec& spec, std::span<float> values, std::span<float> groups) {
  const std::uint32_t size = spec.experts / spec.groups;
  for (std::uint32_t g = 0; g < spec.groups; ++g)
    groups[g] = score_of_group(spec.group_score, values.subspan(std::size_t{g} * size, size));
  for (std::uint32_t round = 0; round < spec.top_groups; ++round) groups[largest(groups)] = excluded;
  for (std::uint32_t g = 0; g < spec.groups; ++g)
    if (groups[g] != excluded) std::fill_n(values.begin() + g * size, size, excluded);
}

}  // namespace

std::size_t choice_scratch(const model::moe_spec& spec) { return std::size_t{spec.experts} + spec.groups; }

void choose_experts(const model::moe_spec& spec, std::span<const float> scores, std::span<const float> bias,
                    std::span<float> scratch, std::uint32_t* experts, float* weights) {
  const auto values = scratch.first(spec.experts);
  std::copy_n(scores.begin(), spec.experts, values.begin());
  for (std::size_t e = 0; e < bias.size(); ++e) values[e] += bias[e];
  if (spec.groups > 1) keep_best_groups(spec, values, scratch.subspan(spec.experts, spec.groups));
  float total = 0.0F;
  for (std::uint32_t slot = 0; slot < spec.top_k; ++slot) {
    const std::uint32_t best = largest(values);
    values[best] = excluded;
    experts[slot] = best;
    weights[slot] = scores[best];
    total += weights[slot];
  }
  if (spec.normalize_top_k) {
    // Scores of single experts may all be zero, and their sum with them.
    if (spec.scoring == model::router_scoring::sigmoid) total += 1e-20F;
    for (std::uint32_t slot = 0; slot < spec.top_k; ++slot) weights[slot] /= total;
  }
  if (spec.routed_scale != 1.0F)
    for (std::uint32_t slot = 0; slot < spec.top_k; ++slot) weights[slot] *= spec.routed_scale;
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
