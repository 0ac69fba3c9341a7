#include "cpu/block_source.hpp"

#include <algorithm>
#include <cmath>

#include "base/float16.hpp"

namespace troupe::cpu {
namespace {

constexpr std::size_t q4_0_bytes = 18;
constexpr std::size_t q4_1_bytes = 20;
constexpr std::size_t q4_k_bytes = 144;
constexpr std::uint32_t q4_k_values = 256;

std::uint16_t read_u16(const std::uint8_t* p) { return static_cast<std::uint16_t>(p[0] | p[1] << 8); }

/// Byte i holds value i in its low and value i + 16 in its high nibble.
void split_nibbles(const std::uint8_t* bytes, nibble_group& group) {
  for (std::uint32_t i = 0; i < 16; ++i) {
    group.codes[i] = bytes[i] & 15;
    group.codes[i + 16] = bytes[i] >> 4;
  }
}

/// One of 8 groups of a Q4_K super-block: d, dmin, 8 x (6-bit scale, 6-bit minimum) in 12 bytes, 128 bytes of nibbles.
nibble_group read_q4_k(const std::uint8_t* block, std::uint32_t index) {
  const float d = half_to_float(read_u16(block));
  const float d_min = half_to_float(read_u16(block + 2));
  const std::uint8_t* packed = block + 4;
  std::uint32_t scale, minimum;
  if (index < 4) {
    scale = packed[index] & 63;
    minimum = packed[index + 4] & 63;
  } else {
    scale = (packed[index + 4] & 15) | (packed[index - 4] >> 6) << 4;
    minimum = (packed[index + 4] >> 4) | (packed[index] >> 6) << 4;
  }
  nibble_group group;
  group.scale = float_to_half(d * static_cast<float>(scale));
  group.minimum = float_to_half(-d_min * static_cast<float>(minimum));
  const std::uint8_t* codes = block + 16 + std::size_t{index / 2} * 32;
  for (std::uint32_t i = 0; i < 32; ++i) group.codes[i] = index % 2 == 0 ? codes[i] & 15 : codes[i] >> 4;
  return group;
}

struct line {
  float scale, minimum;
};

/// Codes for a scale and minimum that were rounded to fp16, and the squared error that they leave.
float assign_codes(std::span<const float, group_inputs> values, nibble_group& group) {
  const float scale = half_to_float(group.scale);
  const float minimum = half_to_float(group.minimum);
  const float inverse = scale > 0.0F ? 1.0F / scale : 0.0F;
  float error = 0.0F;
  for (std::uint32_t i = 0; i < group_inputs; ++i) {
    const float code = std::clamp(std::nearbyint((values[i] - minimum) * inverse), 0.0F, 15.0F);
    group.codes[i] = static_cast<std::uint8_t>(code);
    const float miss = scale * code + minimum - values[i];
    error += miss * miss;
  }
  return error;
}

/// The line value = scale * code + minimum through the group's codes.
line least_squares(std::span<const float, group_inputs> values, const nibble_group& group) {
  double n = group_inputs, sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (std::uint32_t i = 0; i < group_inputs; ++i) {
    const double x = group.codes[i];
    sx += x;
    sy += values[i];
    sxx += x * x;
    sxy += x * values[i];
  }
  const double spread = n * sxx - sx * sx;
  if (spread <= 0) return {0.0F, static_cast<float>(sy / n)};
  const double scale = (n * sxy - sx * sy) / spread;
  return {static_cast<float>(scale), static_cast<float>((sy - scale * sx) / n)};
}

}  // namespace

bool has_nibble_groups(model::dtype type) {
  return type == model::dtype::q4_0 || type == model::dtype::q4_1 || type == model::dtype::q4_k;
}

nibble_group read_group(const model::matrix_view& source, std::uint32_t row, std::uint32_t group) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(source.bytes.data()) + row * source.row_bytes();
  nibble_group result;
  switch (source.type) {
    case model::dtype::q4_0: {
      const auto* block = bytes + group * q4_0_bytes;
      split_nibbles(block + 2, result);
      result.scale = read_u16(block);
      result.minimum = float_to_half(-8.0F * half_to_float(result.scale));
      break;
    }
    case model::dtype::q4_1: {
      const auto* block = bytes + group * q4_1_bytes;
      split_nibbles(block + 4, result);
      result.scale = read_u16(block);
      result.minimum = read_u16(block + 2);
      break;
    }
    default: {
      constexpr std::uint32_t groups = q4_k_values / group_inputs;
      result = read_q4_k(bytes + group / groups * q4_k_bytes, group % groups);
      break;
    }
  }
  return result;
}

nibble_group quantize_group(std::span<const float, group_inputs> values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  nibble_group best;
  best.scale = float_to_half((*high - *low) / 15.0F);
  best.minimum = float_to_half(*low);
  float best_error = assign_codes(values, best);
  nibble_group candidate = best;
  for (int round = 0; round < 4 && best_error > 0.0F; ++round) {
    const auto fit = least_squares(values, candidate);
    candidate.scale = float_to_half(std::max(fit.scale, 0.0F));
    candidate.minimum = float_to_half(fit.minimum);
    const float error = assign_codes(values, candidate);
    if (!(error < best_error)) break;
    best = candidate;
    best_error = error;
  }
  return best;
}

}  // namespace troupe::cpu
