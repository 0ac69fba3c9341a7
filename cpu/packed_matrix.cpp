#include "cpu/packed_matrix.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/float16.hpp"
#include "cpu/block_source.hpp"

namespace troupe::cpu {
namespace {

/// 32 weights as signed bytes: weight = scale * code.
struct byte_group {
  std::array<std::int8_t, group_inputs> codes{};
  std::uint16_t scale = 0;  ///< fp16 bits
};

constexpr std::size_t byte_bytes = panel_columns * group_inputs;
constexpr std::size_t byte_block_bytes = byte_bytes + panel_columns * sizeof(std::uint16_t);
constexpr std::size_t nibble_bytes = panel_columns * group_inputs / 2;
constexpr std::size_t nibble_block_bytes = nibble_bytes + 2 * panel_columns * sizeof(std::uint16_t);

error not_finite(const model::matrix_view& source, std::uint32_t row) {
  return error{error_kind::corrupt, "row " + std::to_string(row) + " holds a weight that is not finite", source.name};
}

error too_large(const model::matrix_view& source, std::uint32_t row) {
  return error{error_kind::unsupported,
               "row " + std::to_string(row) + " holds weights too large for 8 or 4 bits; use --precision bf16",
               source.name};
}

/// Values of one source row, zero-padded; an error where one is not finite.
result<void> read_row(const model::matrix_view& source, std::uint32_t row, std::vector<float>& values) {
  model::dequantize_row(source, row, std::span(values).first(source.cols));
  // The sum of x * 0 is 0 exactly when every x is finite.
  float probe = 0.0F;
  for (std::uint32_t k = 0; k < source.cols; ++k) probe += values[k] * 0.0F;
  if (probe != 0.0F) return not_finite(source, row);
  return {};
}

void put_floats(std::span<const float> values, std::uint32_t column, std::byte* panel) {
  auto* out = reinterpret_cast<float*>(panel) + column;
  for (std::size_t k = 0; k < values.size(); ++k) out[k * panel_columns] = values[k];
}

void put_bf16(std::span<const float> values, std::uint32_t column, std::byte* panel) {
  auto* out = reinterpret_cast<std::uint16_t*>(panel) + column;
  for (std::size_t k = 0; k < values.size(); ++k) out[k * panel_columns] = float_to_bfloat16(values[k]);
}

/// Q8_0 keeps its codes and scales; any other source is quantised to max|w| / 127 per block.
bool copy_q8_0(const model::matrix_view& source, std::uint32_t row, std::uint32_t group, byte_group& out) {
  constexpr std::size_t file_block = 34;
  const auto* block =
      reinterpret_cast<const std::uint8_t*>(source.bytes.data()) + row * source.row_bytes() + group * file_block;
  std::memcpy(&out.scale, block, 2);
  std::memcpy(out.codes.data(), block + 2, group_inputs);
  // The kernels negate codes: -128 has no opposite.
  return std::find(out.codes.begin(), out.codes.end(), std::int8_t{-128}) == out.codes.end();
}

byte_group quantize_bytes(std::span<const float, group_inputs> values) {
  float peak = 0.0F;
  for (const float v : values) peak = std::max(peak, std::fabs(v));
  byte_group group;
  group.scale = float_to_half(peak / 127.0F);
  const float scale = half_to_float(group.scale);
  const float inverse = scale > 0.0F ? 1.0F / scale : 0.0F;
  for (std::uint32_t k = 0; k < group_inputs; ++k) {
    group.codes[k] = static_cast<std::int8_t>(std::clamp(std::nearbyint(values[k] * inverse), -127.0F, 127.0F));
  }
  return group;
}

void put_bytes(const byte_group& group, std::uint32_t column, std::byte* block) {
  auto* codes = reinterpret_cast<std::int8_t*>(block) + column * 4;
  for (std::uint32_t k = 0; k < group_inputs; ++k) codes[k / 4 * 4 * panel_columns + k % 4] = group.codes[k];
  std::memcpy(block + byte_bytes + column * sizeof group.scale, &group.scale, sizeof group.scale);
}

void put_group(const nibble_group& group, std::uint32_t column, std::byte* block) {
  auto* nibbles = reinterpret_cast<std::uint8_t*>(block);
  const std::uint32_t at = column % 8 * 4;
  const int shift = column < 8 ? 0 : 4;
  for (std::uint32_t k = 0; k < group_inputs; ++k) {
    nibbles[k / 4 * 32 + at + k % 4] |= static_cast<std::uint8_t>(group.codes[k] << shift);
  }
  auto* scales = reinterpret_cast<std::uint16_t*>(block + nibble_bytes);
  scales[column] = group.scale;
  scales[panel_columns + column] = group.minimum;
}

bool finite_half(std::uint16_t bits) { return (bits & 0x7C00) != 0x7C00; }

result<void> put_u4_row(const model::matrix_view& source, std::uint32_t row, std::vector<float>& values,
                        std::uint32_t column, std::byte* panel) {
  const bool direct = has_nibble_groups(source.type);
  if (!direct) {
    if (auto read = read_row(source, row, values); !read) return read;
  }
  const std::uint32_t groups = static_cast<std::uint32_t>(values.size()) / group_inputs;
  for (std::uint32_t g = 0; g < groups; ++g) {
    const auto group = direct ? read_group(source, row, g)
                              : quantize_group(std::span<const float, group_inputs>(
                                    values.data() + std::size_t{g} * group_inputs, group_inputs));
    if (!finite_half(group.scale) || !finite_half(group.minimum)) {
      return direct ? not_finite(source, row) : too_large(source, row);
    }
    put_group(group, column, panel + g * nibble_block_bytes);
  }
  return {};
}

result<void> put_s8_row(const model::matrix_view& source, std::uint32_t row, std::vector<float>& values,
                        std::uint32_t column, std::byte* panel) {
  if (auto read = read_row(source, row, values); !read) return read;
  const std::uint32_t groups = static_cast<std::uint32_t>(values.size()) / group_inputs;
  for (std::uint32_t g = 0; g < groups; ++g) {
    byte_group group;
    if (source.type != model::dtype::q8_0 || !copy_q8_0(source, row, g, group)) {
      group = quantize_bytes(
          std::span<const float, group_inputs>(values.data() + std::size_t{g} * group_inputs, group_inputs));
    }
    if (!finite_half(group.scale)) return too_large(source, row);
    put_bytes(group, column, panel + g * byte_block_bytes);
  }
  return {};
}

}  // namespace

std::size_t packed_matrix::panel_bytes() const {
  switch (format) {
    case weight_format::f32:
      return std::size_t{padded_inputs} * panel_columns * sizeof(float);
    case weight_format::bf16:
      return std::size_t{padded_inputs} * panel_columns * sizeof(std::uint16_t);
    case weight_format::s8:
      return padded_inputs / group_inputs * byte_block_bytes;
    case weight_format::u4:
      return padded_inputs / group_inputs * nibble_block_bytes;
  }
  return 0;
}

packed_matrix packed_shape(weight_format format, std::uint32_t outputs, std::uint32_t inputs) {
  return {.format = format,
          .inputs = inputs,
          .padded_inputs = round_up(inputs, group_inputs),
          .outputs = outputs,
          .panels = round_up(outputs, panel_columns) / panel_columns};
}

weight_format format_for(engine::precision compute, model::dtype source) {
  using model::dtype;
  switch (compute) {
    case engine::precision::fp32:
      return weight_format::f32;
    case engine::precision::bf16:
      return weight_format::bf16;
    case engine::precision::int8:
      return weight_format::s8;
    case engine::precision::int4:
      break;
  }
  switch (source) {
    case dtype::f32:
    case dtype::f16:
    case dtype::bf16:
    case dtype::q4_0:
    case dtype::q4_1:
    case dtype::q4_k:
      return weight_format::u4;
    default:
      return weight_format::s8;
  }
}

result<void> pack_panel(const packed_matrix& target, const model::matrix_view& source, std::uint32_t panel,
                        std::byte* out) {
  std::memset(out, 0, target.panel_bytes());
  std::vector<float> values(target.padded_inputs, 0.0F);
  const std::uint32_t first = panel * panel_columns;
  const std::uint32_t count = std::min(panel_columns, target.outputs - first);
  for (std::uint32_t column = 0; column < count; ++column) {
    const std::uint32_t row = first + column;
    result<void> put;
    switch (target.format) {
      case weight_format::s8:
        put = put_s8_row(source, row, values, column, out);
        break;
      case weight_format::u4:
        put = put_u4_row(source, row, values, column, out);
        break;
      default:
        put = read_row(source, row, values);
        if (!put) break;
        if (target.format == weight_format::f32) {
          put_floats(values, column, out);
        } else {
          put_bf16(values, column, out);
        }
    }
    if (!put) return put;
  }
  return {};
}

}  // namespace troupe::cpu
