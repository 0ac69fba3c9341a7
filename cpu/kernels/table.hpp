#pragma once

#include "cpu/kernels/attention.hpp"
#include "cpu/kernels/elementwise.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/kernels/product.hpp"

/// Builds a tier's table from its vector type. Each tier's source file includes this after its simd header and is
/// compiled with its own flags, so nothing here may instantiate a standard library template.
namespace troupe::cpu {

template <class V>
constexpr kernels make_kernels(isa tier) {
  return {
      .tier = tier,
      .product_f32 = multiply_panels<V, float_panel<V, false>>,
      .product_bf16 = multiply_panels<V, float_panel<V, true>>,
      .product_s8 = multiply_panels<V, s8_panel<V>>,
      .product_u4 = multiply_panels<V, u4_panel<V>>,
      .quantize_row = quantize_row<V>,
      .rms_norm = rms_norm<V>,
      .silu_panels = silu_panels<V>,
      .add_scaled = add_scaled<V>,
      .scale = scale_row<V>,
      .dot = dot<V>,
      .softmax = softmax<V>,
      .sigmoid = sigmoid<V>,
      .attend_f32 = attend<V, float>,
      .attend_bf16 = attend<V, std::uint16_t>,
      .merge_segment = merge_segment<V>,
      .finish_attention = finish_attention<V>,
  };
}

}  // namespace troupe::cpu
