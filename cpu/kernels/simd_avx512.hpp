#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

/// AVX-512 (F, BW, VL, DQ) with VNNI: 16 lanes in one register. Each function equals the one of scalar_simd bit for
/// bit. Included only by the source file that is compiled for AVX-512.
namespace troupe::cpu {

struct avx512_simd {
  using f32 = __m512;
  using i32 = __m512i;
  struct quad {
    __m512i v;
  };
  using nibble_sum = __m512i;  ///< VNNI adds in 32 bits.

  static f32 zero() { return _mm512_setzero_ps(); }
  static i32 zero_i32() { return _mm512_setzero_si512(); }
  static nibble_sum zero_nibbles() { return _mm512_setzero_si512(); }
  static f32 set1(float x) { return _mm512_set1_ps(x); }
  static f32 load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, f32 x) { _mm512_storeu_ps(p, x); }
  static f32 load_bf16(const std::uint16_t* p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load256(p)), 16));
  }
  static f32 load_f16(const std::uint16_t* p) { return _mm512_cvtph_ps(load256(p)); }

  static f32 add(f32 a, f32 b) { return _mm512_add_ps(a, b); }
  static f32 sub(f32 a, f32 b) { return _mm512_sub_ps(a, b); }
  static f32 mul(f32 a, f32 b) { return _mm512_mul_ps(a, b); }
  static f32 div(f32 a, f32 b) { return _mm512_div_ps(a, b); }
  static f32 max(f32 a, f32 b) { return _mm512_max_ps(a, b); }
  static f32 min(f32 a, f32 b) { return _mm512_min_ps(a, b); }
  static f32 fma(f32 a, f32 b, f32 c) { return _mm512_fmadd_ps(a, b, c); }
  static f32 keep_from(f32 x, f32 test, f32 limit) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(test, limit, _CMP_GE_OQ), x);
  }
  static f32 to_f32(i32 x) { return _mm512_cvtepi32_ps(x); }
  static i32 round(f32 x) { return _mm512_cvtps_epi32(x); }
  static f32 power_of_two(i32 n) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(n, _mm512_set1_epi32(127)), 23));
  }
  static i32 magnitude_bits(f32 x) { return _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7FFFFFFF)); }
  static i32 max_i32(i32 a, i32 b) { return _mm512_max_epi32(a, b); }
  static i32 add_i32(i32 a, i32 b) { return _mm512_add_epi32(a, b); }
  static void store_i8(std::int8_t* p, i32 x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(x));
  }

  static float sum(f32 x) {
    const auto eight = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    auto four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_shuffle_ps(four, four, 1)));
  }
  static float largest(f32 x) {
    const auto eight = _mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    auto four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_shuffle_ps(four, four, 1)));
  }
  static std::int32_t largest_i32(i32 x) { return _mm512_reduce_max_epi32(x); }
  static std::int32_t sum_i32(i32 x) { return _mm512_reduce_add_epi32(x); }

  static quad load_nibbles(const std::uint8_t* p) {
    const auto both = load256(p);
    const auto mask = _mm256_set1_epi8(15);
    const auto low = _mm256_and_si256(both, mask);
    const auto high = _mm256_and_si256(_mm256_srli_epi16(both, 4), mask);
    return {_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1)};
  }
  static quad load_quad(const std::int8_t* p) { return {_mm512_loadu_si512(p)}; }
  static nibble_sum dot_nibbles(nibble_sum sum, quad w, const std::int8_t* a) {
    return _mm512_dpbusd_epi32(sum, w.v, broadcast(a));
  }
  static i32 total(nibble_sum sum) { return sum; }
  /// The sign of a code moves to the weight, as in the AVX2 tier.
  static i32 dot_signed(i32 sum, quad w, const std::int8_t* a) {
    const auto codes = broadcast(a);
    const auto negative = _mm512_movepi8_mask(codes);
    const auto weights = _mm512_mask_sub_epi8(w.v, negative, _mm512_setzero_si512(), w.v);
    return _mm512_dpbusd_epi32(sum, _mm512_abs_epi8(codes), weights);
  }
  /// Forced inline: GCC 12 takes a function that only prefetches for one without effect and drops the call.
  [[gnu::always_inline]] static void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }

 private:
  static __m256i load256(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  static __m512i broadcast(const std::int8_t* a) {
    std::int32_t four;
    std::memcpy(&four, a, 4);
    return _mm512_set1_epi32(four);
  }
};

}  // namespace troupe::cpu
