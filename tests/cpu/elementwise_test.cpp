#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cpu/isa.hpp"
#include "cpu/kernels/kernels.hpp"
#include "synthetic.hpp"

/// Row kernels: close to the C library in double precision, and equal on every instruction set.
namespace troupe::cpu {
namespace {

std::vector<const kernels*> tables() {
  std::vector<const kernels*> all;
  for (const isa tier : {isa::scalar, isa::avx2, isa::avx512}) {
    if (supported(tier)) all.push_back(&kernels_of(tier));
  }
  return all;
}

void expect_same(const std::vector<float>& a, const std::vector<float>& b, const kernels& k) {
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0) << to_string(k.tier);
}

TEST(Elementwise, SiluIsTheCLibrarysToAFewUlps) {
  std::vector<float> gate_up;
  std::vector<float> gates;
  for (float x = -100.0F; x < 100.0F; x += 0.37F) gates.push_back(x);
  gates.resize(gates.size() / 16 * 16);
  for (std::size_t i = 0; i < gates.size(); i += 16) {
    gate_up.insert(gate_up.end(), gates.begin() + static_cast<std::ptrdiff_t>(i),
                   gates.begin() + static_cast<std::ptrdiff_t>(i) + 16);
    gate_up.insert(gate_up.end(), 16, 1.0F);
  }
  std::vector<float> first;
  for (const auto* k : tables()) {
    std::vector<float> out(gates.size());
    k->silu_panels(gate_up.data(), static_cast<std::uint32_t>(gates.size() / 16), out.data());
    for (std::size_t i = 0; i < gates.size(); ++i) {
      const double exact = gates[i] / (1.0 + std::exp(-double{gates[i]}));
      ASSERT_NEAR(out[i], exact, 5e-7 * std::fabs(exact) + 1e-35) << gates[i];
    }
    if (first.empty()) first = out;
    expect_same(out, first, *k);
  }
}

TEST(Elementwise, SoftmaxSumsToOneAndKeepsTheOrder) {
  std::vector<float> first;
  for (const auto* k : tables()) {
    auto values = test::random_values(37, 3, 4.0F);
    const auto scores = values;
    k->softmax(values.data(), 37);
    double total = 0, exact_total = 0;
    for (const float s : scores) exact_total += std::exp(double{s});
    for (std::size_t i = 0; i < 37; ++i) {
      total += values[i];
      ASSERT_NEAR(values[i], std::exp(double{scores[i]}) / exact_total, 1e-6);
    }
    EXPECT_NEAR(total, 1.0, 1e-6);
    if (first.empty()) first = values;
    expect_same(values, first, *k);
  }
}

TEST(Elementwise, RmsNormDividesByTheRootMeanSquare) {
  std::vector<float> first;
  for (const auto* k : tables()) {
    auto x = test::random_values(72, 4);
    auto weight = test::random_values(72, 5);
    x.resize(96, 0.0F);
    weight.resize(96, 0.0F);
    std::vector<float> out(96, 7.0F);
    k->rms_norm(x.data(), weight.data(), 72, 96, 1e-5F, out.data());
    double squares = 0;
    for (const float v : x) squares += double{v} * v;
    for (std::size_t i = 0; i < 96; ++i) ASSERT_NEAR(out[i], x[i] / std::sqrt(squares / 72 + 1e-5) * weight[i], 1e-5);
    if (first.empty()) first = out;
    expect_same(out, first, *k);
  }
}

TEST(Elementwise, CodesAreWithinHalfAStepAndTheirSumsAreExact) {
  std::vector<float> first;
  for (const auto* k : tables()) {
    auto values = test::random_values(96, 6);
    std::fill(values.begin() + 32, values.begin() + 64, 0.0F);
    values[70] = 1e-40F;
    std::vector<std::int8_t> codes(96);
    std::vector<float> scales(3), sums(3);
    k->quantize_row(values.data(), 96, codes.data(), scales.data(), sums.data());
    for (std::size_t b = 0; b < 3; ++b) {
      int sum = 0;
      for (std::size_t i = b * 32; i < b * 32 + 32; ++i) {
        ASSERT_NEAR(scales[b] * static_cast<float>(codes[i]), values[i], scales[b] * 0.5001F);
        ASSERT_GE(codes[i], -127);
        sum += codes[i];
      }
      EXPECT_EQ(sums[b], static_cast<float>(sum) * scales[b]);
    }
    EXPECT_EQ(scales[1], 0.0F);
    if (first.empty()) first = scales;
    expect_same(scales, first, *k);
  }
}

TEST(Elementwise, SigmoidAndDotAreTheSameEverywhere) {
  const float inputs[] = {-100.0F, -1.5F, 0.0F, 0.3F, 88.5F};
  const auto values = test::random_values(64, 8, 100.0F);
  for (const auto* k : tables()) {
    for (const float x : inputs) {
      EXPECT_NEAR(k->sigmoid(x), 1.0 / (1.0 + std::exp(-double{x})), 1e-7);
      EXPECT_EQ(k->sigmoid(x), kernels_of(isa::scalar).sigmoid(x));
    }
    EXPECT_TRUE(std::isnan(k->sigmoid(NAN)));
    EXPECT_EQ(k->dot(values.data(), values.data(), 64), kernels_of(isa::scalar).dot(values.data(), values.data(), 64));
  }
}

}  // namespace
}  // namespace troupe::cpu
