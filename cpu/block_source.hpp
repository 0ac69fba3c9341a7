#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "cpu/kernels/kernels.hpp"
#include "model/tensor.hpp"

/// Weights in groups of 32 as 4-bit codes: weight = scale * code + minimum, scale and minimum in fp16.
namespace troupe::cpu {

struct nibble_group {
  std::array<std::uint8_t, group_inputs> codes{};  ///< 0..15
  std::uint16_t scale = 0;                         ///< fp16 bits
  std::uint16_t minimum = 0;                       ///< fp16 bits
};

/// Whether a row of this type can be taken over group by group. Q4_K's scales are products of a 6-bit and an fp16
/// number: they are rounded to fp16, everything else is kept exactly.
bool has_nibble_groups(model::dtype type);

/// Group `group` of row `row`; the type must have nibble groups.
nibble_group read_group(const model::matrix_view& source, std::uint32_t row, std::uint32_t group);

/// Finds codes for 32 finite values: starts from their range, then refines scale and minimum by least squares.
nibble_group quantize_group(std::span<const float, group_inputs> values);

}  // namespace troupe::cpu
