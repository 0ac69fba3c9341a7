#pragma once

#include <cstring>

#include "cpu/kernels/kernels.hpp"

/// Loops over single rows: exponential, norm, quantisation, activation function.
namespace troupe::cpu {

/// e^x to about 1 ulp for x in [-87.3, 88]; 0 below, e^88 above, 0 for NaN. Range reduction by ln 2 in two parts, then
/// the Taylor polynomial of degree 7 on |r| <= ln(2) / 2, whose remainder is below 6e-9.
template <class V>
[[gnu::always_inline]] inline typename V::f32 exponential(const typename V::f32& x) {
  const auto limited = V::min(V::max(x, V::set1(-87.33F)), V::set1(88.0F));
  const auto n = V::round(V::mul(limited, V::set1(1.44269504F)));
  const auto whole = V::to_f32(n);
  auto r = V::fma(whole, V::set1(-0.693359375F), limited);
  r = V::fma(whole, V::set1(2.12194440e-4F), r);
  auto p = V::set1(1.0F / 5040.0F);
  p = V::fma(p, r, V::set1(1.0F / 720.0F));
  p = V::fma(p, r, V::set1(1.0F / 120.0F));
  p = V::fma(p, r, V::set1(1.0F / 24.0F));
  p = V::fma(p, r, V::set1(1.0F / 6.0F));
  p = V::fma(p, r, V::set1(0.5F));
  p = V::fma(p, r, V::set1(1.0F));
  p = V::fma(p, r, V::set1(1.0F));
  return V::keep_from(V::mul(p, V::power_of_two(n)), x, V::set1(-87.33F));
}

template <class V>
void quantize_row(const float* values, std::uint32_t inputs, std::int8_t* codes, float* scales, float* sums) {
  for (std::uint32_t b = 0; b < inputs / group_inputs; ++b, values += group_inputs, codes += group_inputs) {
    const auto low = V::load(values);
    const auto high = V::load(values + 16);
    const std::int32_t peak_bits = V::largest_i32(V::max_i32(V::magnitude_bits(low), V::magnitude_bits(high)));
    float peak;
    std::memcpy(&peak, &peak_bits, 4);
    const bool finite = peak_bits < 0x7F800000;
    // Below 2^-100 the reciprocal could overflow; such a block is zero for every purpose.
    const bool visible = finite && peak >= 0x1p-100F;
    const auto inverse = V::set1(visible ? 127.0F / peak : 0.0F);
    const auto low_codes = visible ? V::round(V::mul(low, inverse)) : V::zero_i32();
    const auto high_codes = visible ? V::round(V::mul(high, inverse)) : V::zero_i32();
    V::store_i8(codes, low_codes);
    V::store_i8(codes + 16, high_codes);
    scales[b] = finite ? (visible ? peak / 127.0F : 0.0F) : __builtin_nanf("");
    sums[b] = static_cast<float>(V::sum_i32(V::add_i32(low_codes, high_codes))) * scales[b];
  }
}

template <class V>
void rms_norm(const float* x, const float* weight, std::uint32_t size, std::uint32_t padded, float epsilon,
              float* out) {
  auto squares = V::zero();
  for (std::uint32_t i = 0; i < padded; i += 16) {
    const auto v = V::load(x + i);
    squares = V::fma(v, v, squares);
  }
  const float mean = V::sum(squares) / static_cast<float>(size);
  const auto factor = V::set1(1.0F / __builtin_sqrtf(mean + epsilon));
  for (std::uint32_t i = 0; i < padded; i += 16) {
    V::store(out + i, V::mul(V::mul(V::load(x + i), factor), V::load(weight + i)));
  }
}

template <class V>
void silu_panels(const float* gate_up, std::uint32_t pairs, float* out) {
  for (std::uint32_t p = 0; p < pairs; ++p, gate_up += 2 * panel_columns, out += panel_columns) {
    const auto g = V::load(gate_up);
    const auto denominator = V::add(V::set1(1.0F), exponential<V>(V::sub(V::zero(), g)));
    V::store(out, V::mul(V::div(g, denominator), V::load(gate_up + panel_columns)));
  }
}

template <class V>
void add_scaled(float* x, const float* y, float factor, std::uint32_t padded) {
  const auto f = V::set1(factor);
  for (std::uint32_t i = 0; i < padded; i += 16) V::store(x + i, V::fma(f, V::load(y + i), V::load(x + i)));
}

template <class V>
void scale_row(float* x, float factor, std::uint32_t padded) {
  const auto f = V::set1(factor);
  for (std::uint32_t i = 0; i < padded; i += 16) V::store(x + i, V::mul(V::load(x + i), f));
}

template <class V>
float dot(const float* x, const float* y, std::uint32_t padded) {
  auto sum = V::zero();
  for (std::uint32_t i = 0; i < padded; i += 16) sum = V::fma(V::load(x + i), V::load(y + i), sum);
  return V::sum(sum);
}

template <class V>
void softmax(float* x, std::uint32_t size) {
  float peak = x[0];
  for (std::uint32_t i = 1; i < size; ++i) peak = x[i] > peak ? x[i] : peak;
  float total = 0.0F;
  for (std::uint32_t i = 0; i < size; i += 16) {
    const std::uint32_t count = size - i < 16 ? size - i : 16;
    float lanes[16] = {};
    for (std::uint32_t j = 0; j < count; ++j) lanes[j] = x[i + j];
    V::store(lanes, exponential<V>(V::sub(V::load(lanes), V::set1(peak))));
    for (std::uint32_t j = 0; j < count; ++j) {
      // exp(NaN) is 0 here: a NaN score stays NaN.
      if (x[i + j] == x[i + j]) x[i + j] = lanes[j];
      total += x[i + j];
    }
  }
  for (std::uint32_t i = 0; i < size; ++i) x[i] = x[i] / total;
}

template <class V>
float sigmoid(float x) {
  float lanes[16];
  V::store(lanes, V::div(V::set1(1.0F), V::add(V::set1(1.0F), exponential<V>(V::set1(-x)))));
  return x == x ? lanes[0] : x;
}

}  // namespace troupe::cpu
