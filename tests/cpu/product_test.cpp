#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/float16.hpp"
#include "cpu/activations.hpp"
#include "cpu/block_source.hpp"
#include "cpu/isa.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/packed_matrix.hpp"
#include "synthetic.hpp"

/// Products of packed weights against plain double-precision sums over the same weights and codes.
namespace troupe::cpu {
namespace {

using engine::precision;

struct packed {
  packed_matrix matrix;
  std::vector<std::byte> bytes;
};

packed pack_all(weight_format format, const model::matrix_view& source) {
  packed p{packed_shape(format, source.rows, source.cols), {}};
  p.bytes.resize(p.matrix.total_bytes());
  for (std::uint32_t panel = 0; panel < p.matrix.panels; ++panel) {
    EXPECT_TRUE(pack_panel(p.matrix, source, panel, p.bytes.data() + panel * p.matrix.panel_bytes()));
  }
  p.matrix.bytes = p.bytes.data();
  return p;
}

void (*product_of(const kernels& k, weight_format format))(const product_arguments&) {
  switch (format) {
    case weight_format::f32:
      return k.product_f32;
    case weight_format::bf16:
      return k.product_bf16;
    case weight_format::s8:
      return k.product_s8;
    case weight_format::u4:
      return k.product_u4;
  }
  return nullptr;
}

/// [rows, outputs], with 7 floats of guard per row that must stay untouched.
std::vector<float> multiply(const kernels& k, const packed& w, activation_buffer& x, std::uint32_t rows) {
  const std::size_t stride = w.matrix.outputs + 7;
  std::vector<float> out(rows * stride, -77.0F);
  std::vector<std::uint32_t> index(rows);
  for (std::uint32_t r = 0; r < rows; ++r) index[r] = rows - 1 - r;
  product_of(k, w.matrix.format)({.weights = w.matrix.bytes,
                                  .panel_bytes = w.matrix.panel_bytes(),
                                  .inputs = w.matrix.padded_inputs,
                                  .first_panel = 0,
                                  .last_panel = w.matrix.panels,
                                  .x = x.view(),
                                  .rows = index.data(),
                                  .row_count = rows,
                                  .out = out.data(),
                                  .out_stride = stride,
                                  .columns = w.matrix.outputs});
  return out;
}

/// Weight (column, k) read back from the layout that weight_format documents.
double weight_at(const packed& p, std::uint32_t column, std::uint32_t k) {
  const auto& m = p.matrix;
  const std::byte* panel = p.bytes.data() + column / 16 * m.panel_bytes();
  const std::uint32_t c = column % 16;
  const auto read = [](const std::byte* at, auto& value) { std::memcpy(&value, at, sizeof value); };
  const auto half = [&](const std::byte* at) {
    std::uint16_t bits = 0;
    read(at, bits);
    return double{half_to_float(bits)};
  };
  switch (m.format) {
    case weight_format::f32: {
      float value = 0;
      read(panel + (std::size_t{k} * 16 + c) * 4, value);
      return value;
    }
    case weight_format::bf16: {
      std::uint16_t bits = 0;
      read(panel + (std::size_t{k} * 16 + c) * 2, bits);
      return bfloat16_to_float(bits);
    }
    case weight_format::s8: {
      const std::byte* block = panel + k / 32 * 544;
      return half(block + 512 + c * 2) * static_cast<std::int8_t>(block[k % 32 / 4 * 64 + c * 4 + k % 4]);
    }
    case weight_format::u4: {
      const std::byte* block = panel + k / 32 * 320;
      const auto both = std::to_integer<unsigned>(block[k % 32 / 4 * 32 + c % 8 * 4 + k % 4]);
      return half(block + 256 + c * 2) * (c < 8 ? both & 15 : both >> 4) + half(block + 288 + c * 2);
    }
  }
  return 0;
}

double input_at(const activation_view& x, bool coded, std::uint32_t row, std::uint32_t k) {
  if (!coded) return x.values[row * x.stride + k];
  return double{x.scales[row * x.block_stride + k / 32]} * x.codes[row * x.stride + k];
}

struct shape {
  weight_format format;
  std::uint32_t outputs, inputs;
};

std::string format_name(weight_format f) {
  constexpr const char* names[] = {"f32", "bf16", "s8", "u4"};
  return names[static_cast<int>(f)];
}

class Product : public testing::TestWithParam<shape> {};

INSTANTIATE_TEST_SUITE_P(Shapes, Product,
                         testing::Values(shape{weight_format::f32, 16, 32}, shape{weight_format::f32, 37, 50},
                                         shape{weight_format::bf16, 48, 64}, shape{weight_format::bf16, 5, 576},
                                         shape{weight_format::s8, 64, 128}, shape{weight_format::s8, 19, 576},
                                         shape{weight_format::s8, 16, 45}, shape{weight_format::u4, 16, 32},
                                         shape{weight_format::u4, 33, 1536}, shape{weight_format::u4, 40, 72}),
                         [](const auto& tested) {
                           return format_name(tested.param.format) + "_" + std::to_string(tested.param.outputs) + "x" +
                                  std::to_string(tested.param.inputs);
                         });

TEST_P(Product, EqualsAPlainSumOnEveryInstructionSetAndForEveryNumberOfRows) {
  const auto [format, outputs, inputs] = GetParam();
  const test::matrix weights = test::random_matrix(outputs, inputs, 1);
  const packed w = pack_all(format, weights.view());
  const bool coded = format == weight_format::s8 || format == weight_format::u4;
  constexpr std::uint32_t most = 7;
  activation_buffer x(inputs, coded);
  x.reserve(most);
  const auto values = test::random_values(std::size_t{most} * inputs, 2);
  for (std::uint32_t r = 0; r < most; ++r) {
    std::copy_n(values.data() + std::size_t{r} * inputs, inputs, x.row(r));
    x.quantize(kernels_of(isa::scalar), r);
  }
  std::vector<float> alone;
  for (std::uint32_t rows = 1; rows <= most; ++rows) {
    const auto plain = multiply(kernels_of(isa::scalar), w, x, rows);
    const std::size_t stride = outputs + 7;
    for (std::uint32_t r = 0; r < rows; ++r) {
      for (std::uint32_t c = 0; c < outputs; ++c) {
        double sum = 0, size = 0;
        for (std::uint32_t i = 0; i < inputs; ++i) {
          const double term = input_at(x.view(), coded, rows - 1 - r, i) * weight_at(w, c, i);
          sum += term;
          size += std::fabs(term);
        }
        ASSERT_NEAR(plain[r * stride + c], sum, 1e-6 * size) << "row " << r << " column " << c;
      }
      for (std::size_t c = outputs; c < stride; ++c) ASSERT_EQ(plain[r * stride + c], -77.0F);
    }
    // Row 0 of x is the last one here: the same bits whatever the number of rows.
    const std::vector<float> row0(plain.end() - static_cast<std::ptrdiff_t>(stride), plain.end());
    if (rows == 1) alone = row0;
    ASSERT_EQ(std::memcmp(row0.data(), alone.data(), alone.size() * sizeof(float)), 0) << rows << " rows";
    for (const isa tier : {isa::avx2, isa::avx512}) {
      if (!supported(tier)) continue;
      const auto fast = multiply(kernels_of(tier), w, x, rows);
      ASSERT_EQ(std::memcmp(fast.data(), plain.data(), plain.size() * sizeof(float)), 0)
          << to_string(tier) << ", " << rows << " rows";
    }
  }
}

/// Where every code has the largest magnitude, 16-bit sums come closest to their limit.
TEST(Product, DoesNotOverflowWhereEveryCodeIsExtreme) {
  for (const auto format : {weight_format::s8, weight_format::u4}) {
    test::matrix weights = test::random_matrix(16, 64, 3);
    activation_buffer x(64, true);
    x.reserve(4);
    for (std::uint32_t r = 0; r < 4; ++r) {
      for (std::uint32_t i = 0; i < 64; ++i) x.row(r)[i] = r % 2 == 0 ? 1.0F : -1.0F;
      x.quantize(kernels_of(isa::scalar), r);
    }
    // One zero per block makes the other 31 nibbles 15.
    for (std::uint32_t i = 0; i < weights.values.size(); ++i) {
      weights.values[i] = format == weight_format::u4 ? (i % 32 == 0 ? 0.0F : 1.5F) : (i / 64 % 2 == 0 ? 1.0F : -1.0F);
    }
    const packed w = pack_all(format, weights.view());
    const auto plain = multiply(kernels_of(isa::scalar), w, x, 4);
    for (std::uint32_t c = 0; c < 16; ++c) {
      double sum = 0;
      for (std::uint32_t i = 0; i < 64; ++i) sum += weight_at(w, c, i) * input_at(x.view(), true, 3, i);
      ASSERT_NEAR(plain[c], sum, 1e-4 * std::fabs(sum));
    }
    for (const isa tier : {isa::avx2, isa::avx512}) {
      if (!supported(tier)) continue;
      const auto fast = multiply(kernels_of(tier), w, x, 4);
      ASSERT_EQ(std::memcmp(fast.data(), plain.data(), plain.size() * sizeof(float)), 0) << to_string(tier);
    }
  }
}

TEST(Product, GivesNaNForARowThatIsNotFiniteAndLeavesTheOthersAlone) {
  const test::matrix weights = test::random_matrix(16, 32, 4);
  const packed w = pack_all(weight_format::s8, weights.view());
  activation_buffer x(32, true);
  x.reserve(2);
  for (std::uint32_t i = 0; i < 32; ++i) {
    x.row(0)[i] = 1.0F;
    x.row(1)[i] = 0.5F;
  }
  x.row(0)[5] = INFINITY;
  for (std::uint32_t r = 0; r < 2; ++r) x.quantize(kernels_of(best_isa()), r);
  const auto out = multiply(kernels_of(best_isa()), w, x, 2);
  for (std::uint32_t c = 0; c < 16; ++c) {
    EXPECT_TRUE(std::isfinite(out[c]));
    EXPECT_TRUE(std::isnan(out[16 + 7 + c]));
  }
}

}  // namespace
}  // namespace troupe::cpu
