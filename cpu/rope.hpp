#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/spec.hpp"

/// Rotary position embedding (RoFormer, 2021): angles per position, and the rotation of one head.
namespace troupe::cpu {

class rope_table {
 public:
  rope_table(const model::rope_spec& spec, std::uint32_t max_context);

  std::uint32_t pairs() const { return static_cast<std::uint32_t>(inverse_.size()); }

  /// Cosines, then sines, of a position's angles, `pairs()` each, scaled by yarn's attention factor. Dynamic scaling
  /// takes its base from the longer of the prompt and the sequence so far, as transformers does when it prefills a
  /// prompt at once and then decodes token by token; other kinds ignore `prompt_tokens`.
  void angles(std::uint32_t position, std::uint32_t prompt_tokens, std::span<float> out) const;

  /// Rotates the leading `2 * pairs()` values of one head in place.
  void rotate(std::span<const float> angles, float* head) const;

 private:
  double dynamic_theta(std::uint32_t length) const;

  model::rope_spec spec_;
  std::uint32_t context_;
  std::vector<float> inverse_;  ///< Inverse frequencies.
  float factor_ = 1.0F;         ///< Multiplies cosines and sines.
};

}  // namespace troupe::cpu
