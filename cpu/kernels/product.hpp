#pragma once

#include "cpu/kernels/kernels.hpp"

/// Products of activation rows with packed weight panels. A tile holds up to 4 rows x 16 columns; every output has the
/// same order of additions whatever the number of rows in its tile, and no sum is split.
namespace troupe::cpu {

template <class V, int Rows>
struct tile {
  using f32 = typename V::f32;
  f32 sum[Rows];

  [[gnu::always_inline]] void clear() {
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) sum[r] = V::zero();
  }
};

/// Panels of floats or bfloat16: one fused multiply-add per input, in input order.
template <class V, bool Bf16>
struct float_panel {
  template <int Rows>
  [[gnu::always_inline]] static void multiply(const std::byte* panel, std::uint32_t inputs, const activation_view& x,
                                              const std::uint32_t* rows, tile<V, Rows>& t) {
    const float* values[Rows];
    for (int r = 0; r < Rows; ++r) values[r] = x.values + rows[r] * x.stride;
    for (std::uint32_t k = 0; k < inputs; ++k) {
      typename V::f32 w;
      if constexpr (Bf16) {
        w = V::load_bf16(reinterpret_cast<const std::uint16_t*>(panel) + std::size_t{k} * panel_columns);
      } else {
        w = V::load(reinterpret_cast<const float*>(panel) + std::size_t{k} * panel_columns);
      }
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) t.sum[r] = V::fma(V::set1(values[r][k]), w, t.sum[r]);
    }
  }
};

/// Rows of codes as the integer panels read them.
template <class V, int Rows>
struct code_rows {
  const std::int8_t* codes[Rows];
  const float* scales[Rows];
  const float* sums[Rows];

  [[gnu::always_inline]] code_rows(const activation_view& x, const std::uint32_t* rows) {
    for (int r = 0; r < Rows; ++r) {
      codes[r] = x.codes + rows[r] * x.stride;
      scales[r] = x.scales + rows[r] * x.block_stride;
      sums[r] = x.sums + rows[r] * x.block_stride;
    }
  }
};

/// Panels of signed bytes: exact integer sums per block of 32 inputs, then scaled.
template <class V>
struct s8_panel {
  static constexpr std::size_t code_bytes = panel_columns * group_inputs;
  static constexpr std::size_t block_bytes = code_bytes + panel_columns * sizeof(std::uint16_t);

  template <int Rows>
  [[gnu::always_inline]] static void multiply(const std::byte* panel, std::uint32_t inputs, const activation_view& x,
                                              const std::uint32_t* rows, tile<V, Rows>& t) {
    const code_rows<V, Rows> a(x, rows);
    const auto* block = reinterpret_cast<const std::int8_t*>(panel);
    const std::uint32_t blocks = inputs / group_inputs;
    for (std::uint32_t b = 0; b < blocks; ++b, block += block_bytes) {
      typename V::i32 dot[Rows];
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) dot[r] = V::zero_i32();
#pragma GCC unroll 8
      for (std::uint32_t q = 0; q < 8; ++q) {
        const auto w = V::load_quad(block + q * 64);
        V::prefetch(block + q * 64 + 2304);
#pragma GCC unroll 4
        for (int r = 0; r < Rows; ++r) dot[r] = V::dot_signed(dot[r], w, a.codes[r] + b * group_inputs + q * 4);
      }
      const auto scale = V::load_f16(reinterpret_cast<const std::uint16_t*>(block + code_bytes));
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) {
        t.sum[r] = V::fma(V::to_f32(dot[r]), V::mul(scale, V::set1(a.scales[r][b])), t.sum[r]);
      }
    }
  }
};

/// Panels of 4-bit weights, weight = scale * nibble + minimum per block of 32: exact integer sums per block; the
/// minimum multiplies the sum of the row's block.
template <class V>
struct u4_panel {
  static constexpr std::size_t nibble_bytes = panel_columns * group_inputs / 2;
  static constexpr std::size_t block_bytes = nibble_bytes + 2 * panel_columns * sizeof(std::uint16_t);

  template <int Rows>
  [[gnu::always_inline]] static void multiply(const std::byte* panel, std::uint32_t inputs, const activation_view& x,
                                              const std::uint32_t* rows, tile<V, Rows>& t) {
    const code_rows<V, Rows> a(x, rows);
    const auto* block = reinterpret_cast<const std::uint8_t*>(panel);
    const std::uint32_t blocks = inputs / group_inputs;
    for (std::uint32_t b = 0; b < blocks; ++b, block += block_bytes) {
      typename V::nibble_sum dot[Rows];
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) dot[r] = V::zero_nibbles();
#pragma GCC unroll 8
      for (std::uint32_t q = 0; q < 8; ++q) {
        const auto w = V::load_nibbles(block + q * 32);
        if (q % 2 == 0) V::prefetch(block + q * 32 + 2304);
#pragma GCC unroll 4
        for (int r = 0; r < Rows; ++r) dot[r] = V::dot_nibbles(dot[r], w, a.codes[r] + b * group_inputs + q * 4);
      }
      const auto scale = V::load_f16(reinterpret_cast<const std::uint16_t*>(block + nibble_bytes));
      const auto minimum = V::load_f16(reinterpret_cast<const std::uint16_t*>(block + nibble_bytes) + panel_columns);
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) {
        const auto scaled = V::mul(scale, V::set1(a.scales[r][b]));
        t.sum[r] = V::fma(V::to_f32(V::total(dot[r])), scaled, t.sum[r]);
        t.sum[r] = V::fma(minimum, V::set1(a.sums[r][b]), t.sum[r]);
      }
    }
  }
};

template <class V>
[[gnu::always_inline]] inline void store_columns(float* out, const typename V::f32& x, std::uint32_t columns) {
  if (columns >= panel_columns) {
    V::store(out, x);
    return;
  }
  float all[panel_columns];
  V::store(all, x);
  for (std::uint32_t c = 0; c < columns; ++c) out[c] = all[c];
}

template <class V, class Panel, int Rows>
void multiply_tile(const product_arguments& a, const std::byte* panel, std::uint32_t first_row, float* out,
                   std::uint32_t columns) {
  tile<V, Rows> t;
  t.clear();
  Panel::template multiply<Rows>(panel, a.inputs, a.x, a.rows + first_row, t);
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r) {
    store_columns<V>(out + (first_row + static_cast<std::uint32_t>(r)) * a.out_stride, t.sum[r], columns);
  }
}

template <class V, class Panel>
void multiply_panels(const product_arguments& a) {
  for (std::uint32_t p = a.first_panel; p < a.last_panel; ++p) {
    const std::byte* panel = a.weights + p * a.panel_bytes;
    const std::uint32_t offset = (p - a.first_panel) * panel_columns;
    float* out = a.out + offset;
    const std::uint32_t columns = a.columns - offset;
    std::uint32_t row = 0;
    for (; row + tile_rows <= a.row_count; row += tile_rows) multiply_tile<V, Panel, 4>(a, panel, row, out, columns);
    switch (a.row_count - row) {
      case 1:
        multiply_tile<V, Panel, 1>(a, panel, row, out, columns);
        break;
      case 2:
        multiply_tile<V, Panel, 2>(a, panel, row, out, columns);
        break;
      case 3:
        multiply_tile<V, Panel, 3>(a, panel, row, out, columns);
        break;
      default:
        break;
    }
  }
}

}  // namespace troupe::cpu
