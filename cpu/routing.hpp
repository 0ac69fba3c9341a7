#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpu/kernels/kernels.hpp"
#include "model/spec.hpp"

/// Which expert works on which token, and the tokens sorted by expert.
namespace troupe::cpu {

/// Picks the `top_k` experts whose score and bias sum to most, in falling order, the lower index first where equal, and
/// writes them and their scores without bias, divided by their sum if the spec normalises, and scaled. Where the spec
/// has groups, the best `top_groups` of them are picked first, by the same rule. A router whose scores are not finite
/// picks the first experts with NaN weights, so the damage stays visible and in its row. `bias` is empty for none;
/// `scratch` serves as memory for [experts + groups] values.
void choose_experts(const model::moe_spec& spec, std::span<const float> scores, std::span<const float> bias,
                    std::span<float> scratch, std::uint32_t* experts, float* weights);

/// How many values `choose_experts` needs as scratch.
std::size_t choice_scratch(const model::moe_spec& spec);

/// (token, slot) pairs grouped by expert. A slot's order inside its group is the order of tokens.
struct expert_groups {
  struct group {
    std::uint32_t expert = 0;
    std::uint32_t first = 0;  ///< Into `entries`.
    std::uint32_t count = 0;
  };
  std::vector<group> groups;            ///< Experts with at least one token, ascending.
  std::vector<std::uint32_t> tokens;    ///< [entries]: the token of each.
  std::vector<std::uint32_t> entry_of;  ///< [tokens, top_k]: where the token's slot went.

  /// Counting sort of `chosen`, [tokens, top_k].
  void build(std::span<const std::uint32_t> chosen, std::uint32_t top_k, std::uint32_t experts);

 private:
  std::vector<std::uint32_t> counts_;
};

}  // namespace troupe::cpu
