#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "model/files/mapped_file.hpp"
#include "model/files/safetensors.hpp"
#include "model/tensor.hpp"

namespace troupe::model {
namespace {

/// What tools/make_golden_quants.py stored.
class golden_quants {
 public:
  golden_quants() : file_(mapped_file::open(TROUPE_TEST_DATA "/quants/golden.safetensors")) {
    loaded_ = file_ && read_safetensors(*file_, tensors_);
  }
  bool loaded() const { return loaded_; }

  std::span<const std::byte> bytes(const std::string& name) const { return tensors_.at(name).bytes; }
  std::vector<float> floats(const std::string& name) const {
    const auto raw = bytes(name);
    std::vector<float> out(raw.size() / sizeof(float));
    std::memcpy(out.data(), raw.data(), raw.size());
    return out;
  }

 private:
  result<mapped_file> file_;
  tensor_table tensors_;
  bool loaded_ = false;
};

bool same(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

class QuantisedFormat : public testing::TestWithParam<dtype> {};

TEST_P(QuantisedFormat, ReadsAsTheReferenceDoes) {
  const golden_quants golden;
  ASSERT_TRUE(golden.loaded());
  const std::string name(traits(GetParam()).name);
  const auto expected = golden.floats(name + ".values");
  const auto blocks = golden.bytes(name + ".blocks");
  ASSERT_EQ(bytes_of(GetParam(), expected.size()), blocks.size());
  std::vector<float> values(expected.size());
  dequantize(GetParam(), blocks, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    // The reference multiplies in another order in some formats: one rounding apart.
    const float slack = traits(GetParam()).block_size == 1 ? 0.0F : 1e-6F * std::abs(expected[i]) + 1e-9F;
    EXPECT_TRUE(same(values[i], expected[i]) || std::abs(values[i] - expected[i]) <= slack)
        << i << ": " << values[i] << " instead of " << expected[i];
  }
}

INSTANTIATE_TEST_SUITE_P(All, QuantisedFormat,
                         testing::Values(dtype::f16, dtype::bf16, dtype::i8, dtype::f8_e4m3, dtype::q4_0, dtype::q4_1,
                                         dtype::q5_0, dtype::q5_1, dtype::q8_0, dtype::q4_k, dtype::q5_k, dtype::q6_k),
                         [](const auto& test) { return std::string(traits(test.param).name); });

TEST(Quantize, MakesTheBlocksThatTheReferenceMakes) {
  const golden_quants golden;
  ASSERT_TRUE(golden.loaded());
  for (const auto type : {dtype::q4_0, dtype::q4_1, dtype::q8_0}) {
    std::vector<std::byte> blocks;
    ASSERT_TRUE(quantize(type, golden.floats("written.values"), blocks));
    const auto expected = golden.bytes("written." + std::string(traits(type).name));
    EXPECT_TRUE(std::ranges::equal(blocks, expected)) << traits(type).name;
  }
}

TEST(Quantize, RoundsToTheNearestHalfAndTiesToEven) {
  const golden_quants golden;
  ASSERT_TRUE(golden.loaded());
  for (const auto type : {dtype::f16, dtype::bf16}) {
    std::vector<std::byte> rounded;
    ASSERT_TRUE(quantize(type, golden.floats("rounded.values"), rounded));
    EXPECT_TRUE(std::ranges::equal(rounded, golden.bytes("rounded." + std::string(traits(type).name))))
        << traits(type).name;
  }
}

TEST(Quantize, RefusesWhatFillsNoBlockOrIsNoNumber) {
  std::vector<std::byte> out;
  const std::vector<float> part(31, 1.0F);
  EXPECT_FALSE(quantize(dtype::q8_0, part, out));
  std::vector<float> block(32, 1.0F);
  block[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(quantize(dtype::q4_0, block, out));
  const std::vector<float> super_block(256, 1.0F);
  const auto k = quantize(dtype::q4_k, super_block, out);
  ASSERT_FALSE(k);
  EXPECT_EQ(k.error().kind, error_kind::unsupported);
  EXPECT_TRUE(out.empty());
}

TEST(Dtype, CountsBytesOnlyOfWholeBlocks) {
  EXPECT_EQ(bytes_of(dtype::q4_k, 512), 288U);
  EXPECT_EQ(bytes_of(dtype::q4_k, 300), std::nullopt);
  EXPECT_EQ(bytes_of(dtype::f32, std::numeric_limits<std::uint64_t>::max()), std::nullopt);
  EXPECT_EQ(dtype_from_name("Q6_K"), dtype::q6_k);
  EXPECT_EQ(dtype_from_name("Q2_K"), std::nullopt);
}

TEST(Scales, MultiplyTheirOwnBlockOfTheMatrix) {
  const std::vector<std::int8_t> codes{1, 2, 3, 4, 5, 6, 7, 8, 9};
  const std::vector<float> scales{10.0F, 100.0F, 1000.0F, 10000.0F};  // of 2 x 2 blocks over a 3 x 3 matrix
  matrix_view matrix{
      .type = dtype::i8, .rows = 3, .cols = 3, .bytes = std::as_bytes(std::span(codes)), .scale = {}, .name = "m"};
  matrix.scale = {dtype::f32, std::as_bytes(std::span(scales)), 2, 2};
  std::vector<float> row(3);
  dequantize_row(matrix, 1, row);
  EXPECT_EQ(row, (std::vector<float>{40.0F, 50.0F, 600.0F}));
  dequantize_row(matrix, 2, row);
  EXPECT_EQ(row, (std::vector<float>{7000.0F, 8000.0F, 90000.0F}));
}

}  // namespace
}  // namespace troupe::model
