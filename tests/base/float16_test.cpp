#include "base/float16.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace troupe {
namespace {

TEST(Half, RoundTripsEveryFiniteValue) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    if ((half & 0x7C00) == 0x7C00) continue;
    ASSERT_EQ(float_to_half(half_to_float(half)), half);
  }
}

TEST(Half, RoundsToNearestEvenAndOverflowsToInfinity) {
  EXPECT_EQ(float_to_half(1.0F + 0x1p-11F), 0x3C00);  // A tie goes to the even side.
  EXPECT_EQ(float_to_half(1.0F + 0x1.8p-10F), 0x3C02);
  EXPECT_EQ(float_to_half(65519.0F), 0x7BFF);
  EXPECT_EQ(float_to_half(65520.0F), 0x7C00);
  EXPECT_EQ(float_to_half(-1e30F), 0xFC00);
  EXPECT_EQ(float_to_half(0x1p-25F), 0x0000);
  EXPECT_EQ(float_to_half(0x1.8p-25F), 0x0001);
}

TEST(Half, KeepsInfinitiesAndNaNs) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(half_to_float(0x7C00), infinity);
  EXPECT_EQ(half_to_float(0xFC00), -infinity);
  EXPECT_TRUE(std::isnan(half_to_float(0x7C01)));
  EXPECT_TRUE(std::isnan(half_to_float(float_to_half(NAN))));
}

TEST(Bfloat16, RoundTripsEveryFiniteValue) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto value = static_cast<std::uint16_t>(bits);
    if ((value & 0x7F80) == 0x7F80) continue;
    ASSERT_EQ(float_to_bfloat16(bfloat16_to_float(value)), value);
  }
}

TEST(Bfloat16, RoundsToNearestEvenAndOverflowsToInfinity) {
  EXPECT_EQ(float_to_bfloat16(1.0F + 0x1p-8F), 0x3F80);  // A tie goes to the even side.
  EXPECT_EQ(float_to_bfloat16(1.0F + 0x1.8p-7F), 0x3F82);
  EXPECT_EQ(float_to_bfloat16(-std::numeric_limits<float>::max()), 0xFF80);
  EXPECT_TRUE(std::isnan(bfloat16_to_float(float_to_bfloat16(std::bit_cast<float>(0x7F800001U)))));
}

}  // namespace
}  // namespace troupe
