#include "model/tensor.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/float16.hpp"

namespace troupe::model {
namespace {

constexpr std::array<dtype_traits, 13> all_traits{{
    {"F32", 1, 4},
    {"F16", 1, 2},
    {"BF16", 1, 2},
    {"I8", 1, 1},
    {"F8_E4M3", 1, 1},
    {"Q4_0", 32, 18},
    {"Q4_1", 32, 20},
    {"Q5_0", 32, 22},
    {"Q5_1", 32, 24},
    {"Q8_0", 32, 34},
    {"Q4_K", 256, 144},
    {"Q5_K", 256, 176},
    {"Q6_K", 256, 210},
}};

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

std::uint8_t byte_at(const std::byte* from, std::size_t index) { return std::to_integer<std::uint8_t>(from[index]); }

/// OCP FP8 E4M3 (2023): no infinities, S.1111.111 is NaN.
float f8_e4m3_to_float(std::uint8_t bits) {
  const std::uint32_t exponent = bits >> 3U & 0xFU;
  const std::uint32_t mantissa = bits & 7U;
  float magnitude = 0.0F;
  if (exponent == 0xF && mantissa == 7) {
    magnitude = std::numeric_limits<float>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = std::ldexp(static_cast<float>(mantissa), -9);
  } else {
    magnitude = std::ldexp(static_cast<float>(8 + mantissa), static_cast<int>(exponent) - 10);
  }
  return (bits & 0x80U) != 0 ? -magnitude : magnitude;
}

// The block formats, as ggml's documentation lays them out. `b` is one block, `y` its values.

void block_q4_0(const std::byte* b, float* y) {
  const float d = half_to_float(load<std::uint16_t>(b));
  for (std::size_t i = 0; i < 16; ++i) {
    const std::uint8_t q = byte_at(b + 2, i);
    y[i] = static_cast<float>((q & 0xF) - 8) * d;
    y[i + 16] = static_cast<float>((q >> 4) - 8) * d;
  }
}

void block_q4_1(const std::byte* b, float* y) {
  const float d = half_to_float(load<std::uint16_t>(b));
  const float m = half_to_float(load<std::uint16_t>(b + 2));
  for (std::size_t i = 0; i < 16; ++i) {
    const std::uint8_t q = byte_at(b + 4, i);
    y[i] = static_cast<float>(q & 0xF) * d + m;
    y[i + 16] = static_cast<float>(q >> 4) * d + m;
  }
}

/// Five-bit values: 16 bytes of low nibbles and 32 high bits.
void five_bits(const std::byte* high, const std::byte* low, std::array<int, 32>& q) {
  const auto bits = load<std::uint32_t>(high);
  for (std::size_t i = 0; i < 16; ++i) {
    const std::uint8_t nibbles = byte_at(low, i);
    q[i] = (nibbles & 0xF) | static_cast<int>((bits >> i & 1U) << 4U);
    q[i + 16] = (nibbles >> 4) | static_cast<int>((bits >> (i + 16) & 1U) << 4U);
  }
}

void block_q5_0(const std::byte* b, float* y) {
  const float d = half_to_float(load<std::uint16_t>(b));
  std::array<int, 32> q;
  five_bits(b + 2, b + 6, q);
  for (std::size_t i = 0; i < 32; ++i) y[i] = static_cast<float>(q[i] - 16) * d;
}

void block_q5_1(const std::byte* b, float* y) {
  const float d = half_to_float(load<std::uint16_t>(b));
  const float m = half_to_float(load<std::uint16_t>(b + 2));
  std::array<int, 32> q;
  five_bits(b + 4, b + 8, q);
  for (std::size_t i = 0; i < 32; ++i) y[i] = static_cast<float>(q[i]) * d + m;
}

void block_q8_0(const std::byte* b, float* y) {
  const float d = half_to_float(load<std::uint16_t>(b));
  for (std::size_t i = 0; i < 32; ++i) y[i] = static_cast<float>(load<std::int8_t>(b + 2 + i)) * d;
}

/// Scale and minimum of sub-block `j` of Q4_K and Q5_K: eight pairs of six bits in twelve bytes.
std::array<std::uint8_t, 2> scale_and_min(const std::byte* packed, std::size_t j) {
  const auto at = [&](std::size_t i) { return byte_at(packed, i); };
  if (j < 4) return {static_cast<std::uint8_t>(at(j) & 63), static_cast<std::uint8_t>(at(j + 4) & 63)};
  return {static_cast<std::uint8_t>((at(j + 4) & 0xF) | (at(j - 4) >> 6) << 4),
          static_cast<std::uint8_t>((at(j + 4) >> 4) | (at(j) >> 6) << 4)};
}

void block_q4_k(const std::byte* b, float* y) {
  const float d = half_to_float(load<std::uint16_t>(b));
  const float dmin = half_to_float(load<std::uint16_t>(b + 2));
  const std::byte* quants = b + 16;
  for (std::size_t j = 0; j < 8; ++j) {
    const auto [scale, minimum] = scale_and_min(b + 4, j);
    const float ds = d * static_cast<float>(scale);
    const float ms = dmin * static_cast<float>(minimum);
    const std::byte* q = quants + j / 2 * 32;
    for (std::size_t i = 0; i < 32; ++i) {
      const int nibble = j % 2 == 0 ? byte_at(q, i) & 0xF : byte_at(q, i) >> 4;
      y[j * 32 + i] = ds * static_cast<float>(nibble) - ms;
    }
  }
}

void block_q5_k(const std::byte* b, float* y) {
  const float d = half_to_float(load<std::uint16_t>(b));
  const float dmin = half_to_float(load<std::uint16_t>(b + 2));
  const std::byte* high = b + 16;
  const std::byte* quants = b + 48;
  for (std::size_t j = 0; j < 8; ++j) {
    const auto [scale, minimum] = scale_and_min(b + 4, j);
    const float ds = d * static_cast<float>(scale);
    const float ms = dmin * static_cast<float>(minimum);
    const std::byte* q = quants + j / 2 * 32;
    for (std::size_t i = 0; i < 32; ++i) {
      const int nibble = j % 2 == 0 ? byte_at(q, i) & 0xF : byte_at(q, i) >> 4;
      const int bit = byte_at(high, i) >> j & 1;
      y[j * 32 + i] = ds * static_cast<float>(nibble + 16 * bit) - ms;
    }
  }
}

void block_q6_k(const std::byte* b, float* y) {
  const std::byte* scales = b + 192;
  const float d = half_to_float(load<std::uint16_t>(b + 208));
  for (std::size_t half = 0; half < 2; ++half) {
    const std::byte* low = b + half * 64;
    const std::byte* high = b + 128 + half * 32;
    for (std::size_t quarter = 0; quarter < 4; ++quarter) {
      for (std::size_t i = 0; i < 32; ++i) {
        const std::uint8_t pair = byte_at(low, (quarter % 2) * 32 + i);
        const int nibble = quarter < 2 ? pair & 0xF : pair >> 4;
        const int bits = byte_at(high, i) >> (2 * quarter) & 3;
        const int scale = load<std::int8_t>(scales + half * 8 + quarter * 2 + i / 16);
        y[half * 128 + quarter * 32 + i] =
            d * static_cast<float>(scale) * static_cast<float>((nibble | bits << 4) - 32);
      }
    }
  }
}

using block_function = void (*)(const std::byte*, float*);

block_function block_of(dtype type) {
  switch (type) {
    case dtype::q4_0:
      return block_q4_0;
    case dtype::q4_1:
      return block_q4_1;
    case dtype::q5_0:
      return block_q5_0;
    case dtype::q5_1:
      return block_q5_1;
    case dtype::q8_0:
      return block_q8_0;
    case dtype::q4_k:
      return block_q4_k;
    case dtype::q5_k:
      return block_q5_k;
    case dtype::q6_k:
      return block_q6_k;
    case dtype::f32:
      return [](const std::byte* b, float* y) { *y = load<float>(b); };
    case dtype::f16:
      return [](const std::byte* b, float* y) { *y = half_to_float(load<std::uint16_t>(b)); };
    case dtype::bf16:
      return [](const std::byte* b, float* y) { *y = bfloat16_to_float(load<std::uint16_t>(b)); };
    case dtype::i8:
      return [](const std::byte* b, float* y) { *y = static_cast<float>(load<std::int8_t>(b)); };
    case dtype::f8_e4m3:
      return [](const std::byte* b, float* y) { *y = f8_e4m3_to_float(load<std::uint8_t>(b)); };
  }
  return nullptr;
}

template <class T>
void append(std::vector<std::byte>& out, T value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

/// Two values in [0, 15] per byte: the low nibbles hold the first half of the block.
template <class Code>
void append_nibbles(std::vector<std::byte>& out, std::span<const float> values, Code code) {
  for (std::size_t i = 0; i < 16; ++i)
    out.push_back(static_cast<std::byte>(code(values[i]) | code(values[i + 16]) << 4));
}

void quantize_q8_0(std::span<const float> values, std::vector<std::byte>& out) {
  float largest = 0.0F;
  for (const float v : values) largest = std::max(largest, std::abs(v));
  const float d = largest / 127.0F;
  const float inverse = d == 0.0F ? 0.0F : 1.0F / d;
  append(out, float_to_half(d));
  for (const float v : values) append(out, static_cast<std::int8_t>(std::round(v * inverse)));
}

void quantize_q4_0(std::span<const float> values, std::vector<std::byte>& out) {
  float extreme = 0.0F;  // the value of largest magnitude, with its sign: it maps to -8
  for (const float v : values)
    if (std::abs(v) > std::abs(extreme)) extreme = v;
  const float d = extreme / -8.0F;
  const float inverse = d == 0.0F ? 0.0F : 1.0F / d;
  append(out, float_to_half(d));
  append_nibbles(out, values, [=](float v) { return std::clamp(static_cast<int>(v * inverse + 8.5F), 0, 15); });
}

void quantize_q4_1(std::span<const float> values, std::vector<std::byte>& out) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const float minimum = *low;
  const float d = (*high - minimum) / 15.0F;
  const float inverse = d == 0.0F ? 0.0F : 1.0F / d;
  append(out, float_to_half(d));
  append(out, float_to_half(minimum));
  append_nibbles(out, values,
                 [=](float v) { return std::clamp(static_cast<int>((v - minimum) * inverse + 0.5F), 0, 15); });
}

}  // namespace

const dtype_traits& traits(dtype type) { return all_traits[static_cast<std::size_t>(type)]; }

std::optional<dtype> dtype_from_name(std::string_view name) {
  for (std::size_t i = 0; i < all_traits.size(); ++i)
    if (all_traits[i].name == name) return static_cast<dtype>(i);
  return std::nullopt;
}

std::optional<std::uint64_t> bytes_of(dtype type, std::uint64_t count) {
  const auto& t = traits(type);
  std::uint64_t bytes = 0;
  if (count % t.block_size != 0) return std::nullopt;
  if (__builtin_mul_overflow(count / t.block_size, std::uint64_t{t.block_bytes}, &bytes)) return std::nullopt;
  return bytes;
}

void dequantize(dtype type, std::span<const std::byte> bytes, std::span<float> out) {
  const auto& t = traits(type);
  const block_function block = block_of(type);
  const std::byte* from = bytes.data();
  for (std::size_t i = 0; i < out.size(); i += t.block_size, from += t.block_bytes) block(from, out.data() + i);
}

void dequantize_row(const matrix_view& matrix, std::uint32_t row, std::span<float> out) {
  dequantize(matrix.type, matrix.bytes.subspan(row * matrix.row_bytes(), matrix.row_bytes()), out);
  const scale_view& scale = matrix.scale;
  if (scale.bytes.empty()) return;
  const std::uint32_t blocks = (matrix.cols + scale.block_cols - 1) / scale.block_cols;
  const std::size_t element = traits(scale.type).block_bytes;
  for (std::uint32_t block = 0; block < blocks; ++block) {
    const std::size_t index = std::size_t{row / scale.block_rows} * blocks + block;
    float factor = 0.0F;
    dequantize(scale.type, scale.bytes.subspan(index * element, element), {&factor, 1});
    const std::uint32_t end = std::min<std::uint64_t>(matrix.cols, std::uint64_t{block + 1} * scale.block_cols);
    for (std::uint32_t col = block * scale.block_cols; col < end; ++col) out[col] *= factor;
  }
}

result<void> quantize(dtype type, std::span<const float> values, std::vector<std::byte>& out) {
  const std::uint32_t block = traits(type).block_size;
  if (values.size() % block != 0)
    return error{error_kind::invalid, "the number of values is no multiple of the block size " + std::to_string(block),
                 ""};
  if (type > dtype::bf16 && !std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); }))
    return error{error_kind::invalid, "NaN and infinite values cannot be quantised", ""};
  for (std::size_t i = 0; i < values.size(); i += block) {
    const auto part = values.subspan(i, block);
    switch (type) {
      case dtype::f32:
        append(out, part[0]);
        break;
      case dtype::f16:
        append(out, float_to_half(part[0]));
        break;
      case dtype::bf16:
        append(out, float_to_bfloat16(part[0]));
        break;
      case dtype::q8_0:
        quantize_q8_0(part, out);
        break;
      case dtype::q4_0:
        quantize_q4_0(part, out);
        break;
      case dtype::q4_1:
        quantize_q4_1(part, out);
        break;
      default:
        return error{error_kind::unsupported, "cannot write " + std::string(traits(type).name) + " weights", ""};
    }
  }
  return {};
}

}  // namespace troupe::model
