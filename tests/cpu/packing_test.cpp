#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/float16.hpp"
#include "cpu/block_source.hpp"
#include "cpu/packed_matrix.hpp"
#include "synthetic.hpp"

namespace troupe::cpu {
namespace {

using engine::precision;
using model::dtype;

/// A row of random blocks with finite scales.
model::matrix_view random_blocks(dtype type, std::vector<std::byte>& bytes, std::uint32_t values) {
  const auto& t = model::traits(type);
  bytes.resize(values / t.block_size * t.block_bytes);
  std::mt19937 engine(5);
  for (auto& b : bytes) b = static_cast<std::byte>(engine());
  for (std::size_t at = 0; at < bytes.size(); at += t.block_bytes) {
    const int halves = type == dtype::q4_0 || type == dtype::q8_0 ? 1 : 2;
    for (int h = 0; h < halves; ++h) {
      const std::uint16_t half =
          float_to_half(static_cast<float>(engine() % 1000) / 50000.0F - 0.01F * static_cast<float>(h));
      std::memcpy(bytes.data() + at + 2 * static_cast<std::size_t>(h), &half, 2);
    }
  }
  return {.type = type, .rows = 1, .cols = values, .bytes = bytes, .scale = {}, .name = "blocks"};
}

TEST(Packing, TakesFourBitBlocksOverAsTheyAre) {
  for (const auto type : {dtype::q4_0, dtype::q4_1, dtype::q4_k}) {
    ASSERT_TRUE(has_nibble_groups(type));
    std::vector<std::byte> bytes;
    const auto view = random_blocks(type, bytes, 1024);
    std::vector<float> expected(1024);
    model::dequantize_row(view, 0, expected);
    for (std::uint32_t g = 0; g < 32; ++g) {
      const auto group = read_group(view, 0, g);
      for (std::uint32_t i = 0; i < 32; ++i) {
        const float value =
            half_to_float(group.scale) * static_cast<float>(group.codes[i]) + half_to_float(group.minimum);
        // Q4_K's scale is rounded to fp16, 11 bits; the others are exact.
        const float bound = type == dtype::q4_k
                                ? 0x1p-10F * (15 * half_to_float(group.scale) + std::fabs(half_to_float(group.minimum)))
                                : 1e-7F;
        ASSERT_NEAR(value, expected[g * 32 + i], bound) << model::traits(type).name << " value " << g * 32 + i;
      }
    }
  }
}

TEST(Packing, QuantisesBetterThanTheRangeAlone) {
  double refined = 0, plain = 0;
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    const auto values = test::random_values(32, seed);
    const auto group = quantize_group(std::span<const float, 32>(values.data(), 32));
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    const float step = (*high - *low) / 15;
    for (std::uint32_t i = 0; i < 32; ++i) {
      refined += std::pow(
          half_to_float(group.scale) * static_cast<float>(group.codes[i]) + half_to_float(group.minimum) - values[i],
          2);
      plain += std::pow(*low + step * std::nearbyint((values[i] - *low) / step) - values[i], 2);
    }
  }
  EXPECT_LT(refined, plain);
}

TEST(Packing, KeepsConstantGroupsExactly) {
  const std::vector<float> values(32, 0.5F);
  const auto group = quantize_group(std::span<const float, 32>(values.data(), 32));
  for (const auto code : group.codes) {
    EXPECT_EQ(half_to_float(group.scale) * static_cast<float>(code) + half_to_float(group.minimum), 0.5F);
  }
}

/// Q8_0 keeps its bytes, except where a code has no opposite.
TEST(Packing, TakesQ8BlocksOverUnlessACodeHasNoOpposite) {
  std::vector<std::byte> bytes;
  auto view = random_blocks(dtype::q8_0, bytes, 32);
  for (std::size_t i = 2; i < bytes.size(); ++i) {
    if (bytes[i] == std::byte{0x80}) bytes[i] = std::byte{0x81};
  }
  for (const bool extreme : {false, true}) {
    if (extreme) bytes[2] = std::byte{0x80};
    std::vector<float> expected(32);
    model::dequantize_row(view, 0, expected);
    const auto shape = packed_shape(weight_format::s8, 1, 32);
    std::vector<std::byte> panel(shape.panel_bytes());
    ASSERT_TRUE(pack_panel(shape, view, 0, panel.data()));
    std::uint16_t scale = 0;
    std::memcpy(&scale, panel.data() + 512, 2);
    for (std::uint32_t k = 0; k < 32; ++k) {
      const auto code = static_cast<std::int8_t>(panel[k / 4 * 64 + k % 4]);
      EXPECT_NE(code, -128);
      const float value = half_to_float(scale) * static_cast<float>(code);
      EXPECT_NEAR(value, expected[k], extreme ? half_to_float(scale) : 0.0F) << k;
    }
  }
}

TEST(Packing, KeepsMoreBitsWhereTheSourceHasThem) {
  EXPECT_EQ(format_for(precision::int4, dtype::q4_1), weight_format::u4);
  EXPECT_EQ(format_for(precision::int4, dtype::bf16), weight_format::u4);
  EXPECT_EQ(format_for(precision::int4, dtype::q6_k), weight_format::s8);
  EXPECT_EQ(format_for(precision::int8, dtype::q4_0), weight_format::s8);
  EXPECT_EQ(format_for(precision::bf16, dtype::q4_0), weight_format::bf16);
  EXPECT_EQ(format_for(precision::fp32, dtype::f16), weight_format::f32);
}

TEST(Packing, SaysWhichRowIsTooLargeForItsBits) {
  auto weights = test::random_matrix(4, 32, 1);
  weights.values[2 * 32 + 3] = 1e20F;
  for (const auto format : {weight_format::s8, weight_format::u4}) {
    const auto shape = packed_shape(format, 4, 32);
    std::vector<std::byte> panel(shape.panel_bytes());
    const auto packed = pack_panel(shape, weights.view(), 0, panel.data());
    ASSERT_FALSE(packed);
    EXPECT_EQ(packed.error().kind, error_kind::unsupported);
    EXPECT_NE(packed.error().message.find("row 2"), std::string::npos);
  }
}

}  // namespace
}  // namespace troupe::cpu
