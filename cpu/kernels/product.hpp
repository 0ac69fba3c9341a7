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

/// Panels of signed bytes: exact integer sums per group of 128 inputs, then scaled by the row's group scale; the
/// column's scale comes last.
template <class V>
struct s8_panel {
  template <int Rows>
  [[gnu::always_inline]] static void multiply(const std::byte* panel, std::uint32_t inputs, const activation_view& x,
                                              const std::uint32_t* rows, tile<V, Rows>& t) {
    const std::int8_t* codes[Rows];
    const float* scales[Rows];
    for (int r = 0; r < Rows; ++r) {
      codes[r] = x.codes + rows[r] * x.stride;
      scales[r] = x.scales + rows[r] * x.scale_stride;
    }
    const auto* weights = reinterpret_cast<const std::int8_t*>(panel);
    for (std::uint32_t start = 0, group = 0; start < inputs; start += code_group, ++group) {
      typename V::i32 dot[Rows];
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) dot[r] = V::zero_i32();
      const std::uint32_t end = start + code_group < inputs ? start + code_group : inputs;
      for (std::uint32_t k = start; k < end; k += 4) {
        const auto w = V::load_quad(weights + std::size_t{k} * panel_columns);
        V::prefetch(weights + std::size_t{k} * panel_columns + 2048);
#pragma GCC unroll 4
        for (int r = 0; r < Rows; ++r) dot[r] = V::dot_signed(dot[r], w, codes[r] + k);
      }
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) {
        t.sum[r] = V::fma(V::to_f32(dot[r]), V::set1(scales[r][group]), t.sum[r]);
      }
    }
    const auto column_scales = V::load(reinterpret_cast<const float*>(panel + std::size_t{inputs} * panel_columns));
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) t.sum[r] = V::mul(t.sum[r], column_scales);
  }
};

/// Panels of 4-bit weights, weight = scale * nibble + minimum per block of 32: exact integer sums per block; the
/// minimum multiplies the sum of the row's block.
template <class V>
struct u4_panel {
  static constexpr std::size_t nibble_bytes = panel_columns * weight_group / 2;
  static constexpr std::size_t block_bytes = nibble_bytes + 2 * panel_columns * sizeof(std::uint16_t);

  template <int Rows>
  [[gnu::always_inline]] static void multiply(const std::byte* panel, std::uint32_t inputs, const activation_view& x,
                                              const std::uint32_t* rows, tile<V, Rows>& t) {
    const std::int8_t* codes[Rows];
    const float* scales[Rows];
    const float* sums[Rows];
    for (int r = 0; r < Rows; ++r) {
      codes[r] = x.codes + rows[r] * x.stride;
      scales[r] = x.scales + rows[r] * x.scale_stride;
      sums[r] = x.sums + rows[r] * x.sum_stride;
    }
    const auto* block = reinterpret_cast<const std::uint8_t*>(panel);
    const std::uint32_t blocks = inputs / weight_group;
    for (std::uint32_t b = 0; b < blocks; ++b, block += block_bytes) {
      typename V::nibble_sum dot[Rows];
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) dot[r] = V::zero_nibbles();
#pragma GCC unroll 8
      for (std::uint32_t q = 0; q < 8; ++q) {
        const auto w = V::load_nibbles(block + q * 32);
        if (q % 2 == 0) V::prefetch(block + q * 32 + 2304);
#pragma GCC unroll 4
        for (int r = 0; r < Rows; ++r) dot[r] = V::dot_nibbles(dot[r], w, codes[r] + b * weight_group + q * 4);
      }
      const auto scale = V::load_f16(reinterpret_cast<const std::uint16_t*>(block + nibble_bytes));
      const auto minimum = V::load_f16(reinterpret_cast<const std::uint16_t*>(block + nibble_bytes) + panel_columns);
      const std::uint32_t group = b / (code_group / weight_group);
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) {
        const auto scaled = V::mul(scale, V::set1(scales[r][group]));
        t.sum[r] = V::fma(V::to_f32(V::total(dot[r])), scaled, t.sum[r]);
        t.sum[r] = V::fma(minimum, V::set1(sums[r][b]), t.sum[r]);
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
