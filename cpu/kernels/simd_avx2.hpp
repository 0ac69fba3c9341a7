#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

/// AVX2 + FMA + F16C: 16 lanes in two registers. Each function equals the one of scalar_simd bit for bit. Included only
/// by the source file that is compiled for AVX2.
namespace troupe::cpu {

struct avx2_simd {
  struct f32 {
    __m256 lo, hi;
  };
  struct i32 {
    __m256i lo, hi;
  };
  struct quad {
    __m256i lo, hi;
  };
  struct nibble_sum {
    __m256i lo, hi;  ///< Two 16-bit sums for each of 8 columns.
  };

  static f32 zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static i32 zero_i32() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
  static nibble_sum zero_nibbles() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
  static f32 set1(float x) {
    const auto all = _mm256_set1_ps(x);
    return {all, all};
  }
  static f32 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static void store(float* p, f32 x) {
    _mm256_storeu_ps(p, x.lo);
    _mm256_storeu_ps(p + 8, x.hi);
  }
  static f32 load_bf16(const std::uint16_t* p) { return {widen_bf16(p), widen_bf16(p + 8)}; }
  static f32 load_f16(const std::uint16_t* p) { return {_mm256_cvtph_ps(load128(p)), _mm256_cvtph_ps(load128(p + 8))}; }

  static f32 add(f32 a, f32 b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
  static f32 sub(f32 a, f32 b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
  static f32 mul(f32 a, f32 b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
  static f32 div(f32 a, f32 b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
  static f32 max(f32 a, f32 b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
  static f32 min(f32 a, f32 b) { return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)}; }
  static f32 fma(f32 a, f32 b, f32 c) { return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)}; }
  static f32 keep_from(f32 x, f32 test, f32 limit) {
    return {_mm256_and_ps(x.lo, _mm256_cmp_ps(test.lo, limit.lo, _CMP_GE_OQ)),
            _mm256_and_ps(x.hi, _mm256_cmp_ps(test.hi, limit.hi, _CMP_GE_OQ))};
  }
  static f32 to_f32(i32 x) { return {_mm256_cvtepi32_ps(x.lo), _mm256_cvtepi32_ps(x.hi)}; }
  static i32 round(f32 x) { return {_mm256_cvtps_epi32(x.lo), _mm256_cvtps_epi32(x.hi)}; }
  static f32 power_of_two(i32 n) { return {power(n.lo), power(n.hi)}; }
  static i32 magnitude_bits(f32 x) {
    const auto mask = _mm256_set1_epi32(0x7FFFFFFF);
    return {_mm256_and_si256(_mm256_castps_si256(x.lo), mask), _mm256_and_si256(_mm256_castps_si256(x.hi), mask)};
  }
  static i32 max_i32(i32 a, i32 b) { return {_mm256_max_epi32(a.lo, b.lo), _mm256_max_epi32(a.hi, b.hi)}; }
  static i32 add_i32(i32 a, i32 b) { return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)}; }
  static void store_i8(std::int8_t* p, i32 x) {
    auto words = _mm256_packs_epi32(x.lo, x.hi);
    words = _mm256_permute4x64_epi64(words, 0xD8);
    const auto bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
  }

  static float sum(f32 x) {
    const auto eight = _mm256_add_ps(x.lo, x.hi);
    auto four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_shuffle_ps(four, four, 1)));
  }
  static float largest(f32 x) {
    const auto eight = _mm256_max_ps(x.lo, x.hi);
    auto four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_shuffle_ps(four, four, 1)));
  }
  static std::int32_t largest_i32(i32 x) {
    const auto eight = _mm256_max_epi32(x.lo, x.hi);
    auto four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4E));
    return _mm_cvtsi128_si32(_mm_max_epi32(four, _mm_shuffle_epi32(four, 0xB1)));
  }
  static std::int32_t sum_i32(i32 x) {
    const auto eight = _mm256_add_epi32(x.lo, x.hi);
    auto four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4E));
    return _mm_cvtsi128_si32(_mm_add_epi32(four, _mm_shuffle_epi32(four, 0xB1)));
  }

  static quad load_nibbles(const std::uint8_t* p) {
    const auto both = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    const auto mask = _mm256_set1_epi8(15);
    return {_mm256_and_si256(both, mask), _mm256_and_si256(_mm256_srli_epi16(both, 4), mask)};
  }
  static quad load_quad(const std::int8_t* p) {
    const auto* vectors = reinterpret_cast<const __m256i*>(p);
    return {_mm256_loadu_si256(vectors), _mm256_loadu_si256(vectors + 1)};
  }
  /// A pair is at most 2 * 15 * 127 and a 32-block puts 8 pairs into a lane: 30,480 fits 16 bits.
  static nibble_sum dot_nibbles(nibble_sum sum, quad w, const std::int8_t* a) {
    const auto codes = broadcast(a);
    return {_mm256_add_epi16(sum.lo, _mm256_maddubs_epi16(w.lo, codes)),
            _mm256_add_epi16(sum.hi, _mm256_maddubs_epi16(w.hi, codes))};
  }
  static i32 total(nibble_sum sum) {
    const auto ones = _mm256_set1_epi16(1);
    return {_mm256_madd_epi16(sum.lo, ones), _mm256_madd_epi16(sum.hi, ones)};
  }
  /// The sign of a code moves to the weight, so that the unsigned operand is |code|: a pair is at most 2 * 127 * 127,
  /// which fits 16 bits.
  static i32 dot_signed(i32 sum, quad w, const std::int8_t* a) {
    const auto codes = broadcast(a);
    const auto magnitudes = _mm256_abs_epi8(codes);
    const auto ones = _mm256_set1_epi16(1);
    const auto lo = _mm256_maddubs_epi16(magnitudes, _mm256_sign_epi8(w.lo, codes));
    const auto hi = _mm256_maddubs_epi16(magnitudes, _mm256_sign_epi8(w.hi, codes));
    return {_mm256_add_epi32(sum.lo, _mm256_madd_epi16(lo, ones)),
            _mm256_add_epi32(sum.hi, _mm256_madd_epi16(hi, ones))};
  }
  /// Forced inline: GCC 12 takes a function that only prefetches for one without effect and drops the call.
  [[gnu::always_inline]] static void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }

 private:
  static __m128i load128(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
  static __m256i broadcast(const std::int8_t* a) {
    std::int32_t four;
    std::memcpy(&four, a, 4);
    return _mm256_set1_epi32(four);
  }
  static __m256 widen_bf16(const std::uint16_t* p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load128(p)), 16));
  }
  static __m256 power(__m256i n) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
  }
};

}  // namespace troupe::cpu
