#include "cpu/rope.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>

namespace troupe::cpu {
namespace {

using model::rope_kind;

model::rope_spec plain(std::uint32_t dim) {
  model::rope_spec spec;
  spec.rotary_dim = dim;
  return spec;
}

std::vector<float> angles_at(const rope_table& table, std::uint32_t position, std::uint32_t prompt = 0) {
  std::vector<float> angles(2 * std::size_t{table.pairs()});
  table.angles(position, prompt, angles);
  return angles;
}

/// The angle of pair i, from its cosine and sine.
double angle(const std::vector<float>& angles, std::uint32_t i) {
  return std::atan2(angles[angles.size() / 2 + i], angles[i]);
}

/// RoFormer, 2021, equation 13: pair i turns by position * theta^(-2i / d) in the complex plane.
TEST(Rope, TurnsEachPairInTheComplexPlane) {
  for (const bool interleaved : {false, true}) {
    auto spec = plain(8);
    spec.interleaved = interleaved;
    const rope_table table(spec, 1024);
    std::vector<float> head{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};  // The last two are beyond the rotary dimension.
    const auto before = head;
    table.rotate(angles_at(table, 37), head.data());
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::uint32_t x = interleaved ? 2 * i : i;
      const std::uint32_t y = interleaved ? 2 * i + 1 : i + 4;
      const auto turned =
          std::complex<double>(before[x], before[y]) * std::polar(1.0, 37 * std::pow(10000.0, -2.0 * i / 8));
      EXPECT_NEAR(head[x], turned.real(), 2e-5);
      EXPECT_NEAR(head[y], turned.imag(), 2e-5);
    }
    EXPECT_EQ(head[8], 9.0F);
    EXPECT_EQ(head[9], 10.0F);
  }
}

TEST(Rope, DividesPositionsByTheLinearFactor) {
  auto spec = plain(16);
  spec.kind = rope_kind::linear;
  spec.factor = 4;
  const rope_table scaled(spec, 1024), unscaled(plain(16), 1024);
  const auto far = angles_at(scaled, 400), near = angles_at(unscaled, 100);
  for (std::size_t i = 0; i < far.size(); ++i) EXPECT_NEAR(far[i], near[i], 1e-4F);
}

TEST(Rope, DividesFrequenciesByTheFilesFactors) {
  auto spec = plain(4);
  spec.frequency_factors = {1.0F, 8.0F};
  const auto angles = angles_at(rope_table(spec, 64), 8);
  EXPECT_NEAR(angle(angles, 0), 8.0 - 2 * M_PI, 1e-5);
  EXPECT_NEAR(angle(angles, 1), 0.01, 1e-6);
}

/// The base grows with the longer of prompt and position; below the trained context nothing changes.
TEST(Rope, StretchesADynamicBaseByThePromptOrThePosition) {
  auto spec = plain(8);
  spec.kind = rope_kind::dynamic;
  spec.factor = 2;
  const rope_table table(spec, 100);
  const rope_table unscaled(plain(8), 100);
  EXPECT_EQ(angles_at(table, 99, 100), angles_at(unscaled, 99));
  EXPECT_EQ(angles_at(table, 10, 150), angles_at(table, 10, 150));
  EXPECT_NE(angles_at(table, 10, 150), angles_at(unscaled, 10));
  EXPECT_EQ(angles_at(table, 149, 10), angles_at(table, 149, 150));
  const double base = 10000.0 * std::pow(2.0 * 150 / 100 - 1, 8.0 / 6.0);
  EXPECT_NEAR(angle(angles_at(table, 10, 150), 1), 10 * std::pow(base, -0.25), 1e-5);
}

/// YaRN, 2023: fast pairs keep their frequency, slow ones are divided, and attention is scaled by 0.1 ln(s) + 1.
TEST(Rope, InterpolatesYarnBetweenItsCorrectionDimensions) {
  auto spec = plain(64);
  spec.kind = rope_kind::yarn;
  spec.factor = 8;
  spec.original_context = 4096;
  const auto angles = angles_at(rope_table(spec, 32768), 1);
  const double scale = 0.1 * std::log(8.0) + 1.0;
  EXPECT_NEAR(std::hypot(angles[0], angles[32]), scale, 1e-6);
  EXPECT_NEAR(angle(angles, 0), 1.0, 1e-6);
  EXPECT_NEAR(angle(angles, 31), std::pow(10000.0, -62.0 / 64) / 8, 1e-8);
  spec.attention_factor = 1.5;
  const auto fixed = angles_at(rope_table(spec, 32768), 1);
  EXPECT_NEAR(std::hypot(fixed[0], fixed[32]), 1.5, 1e-6);
}

TEST(Rope, DividesOnlyLongWavelengthsForLlama3) {
  auto spec = plain(128);
  spec.kind = rope_kind::llama3;
  spec.theta = 500000;
  spec.factor = 8;
  spec.original_context = 8192;
  const auto angles = angles_at(rope_table(spec, 131072), 1);
  EXPECT_NEAR(angle(angles, 0), 1.0, 1e-6);
  EXPECT_NEAR(angle(angles, 63), std::pow(500000.0, -126.0 / 128) / 8, 1e-9);
}

}  // namespace
}  // namespace troupe::cpu
