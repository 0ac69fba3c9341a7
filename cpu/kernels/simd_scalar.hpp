#pragma once

#include <cstdint>
#include <cstring>

/// The portable tier: 16 lanes as plain loops. It defines what the other tiers must equal bit for bit, down to the
/// order of additions. Included by the tier's own source file only.
namespace troupe::cpu {

struct scalar_simd {
  struct f32 {
    float v[16];
  };
  struct i32 {
    std::int32_t v[16];
  };
  /// 16 columns x 4 consecutive k of 8-bit weights, column-major: byte 4 * column + k.
  struct quad {
    std::uint8_t v[64];
  };
  /// Sums of nibble products; the vector tiers hold them in 16 bits, so at most one 32-block goes in.
  using nibble_sum = i32;

  static f32 zero() { return f32{}; }
  static i32 zero_i32() { return i32{}; }
  static nibble_sum zero_nibbles() { return i32{}; }
  static f32 set1(float x) {
    f32 r;
    for (float& lane : r.v) lane = x;
    return r;
  }
  static f32 load(const float* p) {
    f32 r;
    std::memcpy(r.v, p, sizeof r.v);
    return r;
  }
  static void store(float* p, const f32& x) { std::memcpy(p, x.v, sizeof x.v); }

  static f32 load_bf16(const std::uint16_t* p) {
    f32 r;
    for (int i = 0; i < 16; ++i) {
      const std::uint32_t bits = std::uint32_t{p[i]} << 16;
      std::memcpy(&r.v[i], &bits, 4);
    }
    return r;
  }
  static f32 load_f16(const std::uint16_t* p) {
    f32 r;
    for (int i = 0; i < 16; ++i) r.v[i] = half(p[i]);
    return r;
  }

  static f32 add(const f32& a, const f32& b) {
    return map(a, b, [](float x, float y) { return x + y; });
  }
  static f32 sub(const f32& a, const f32& b) {
    return map(a, b, [](float x, float y) { return x - y; });
  }
  static f32 mul(const f32& a, const f32& b) {
    return map(a, b, [](float x, float y) { return x * y; });
  }
  static f32 div(const f32& a, const f32& b) {
    return map(a, b, [](float x, float y) { return x / y; });
  }
  /// The second operand where either is NaN, as the x86 instructions do.
  static f32 max(const f32& a, const f32& b) {
    return map(a, b, [](float x, float y) { return x > y ? x : y; });
  }
  static f32 min(const f32& a, const f32& b) {
    return map(a, b, [](float x, float y) { return x < y ? x : y; });
  }
  /// a * b + c with one rounding.
  static f32 fma(const f32& a, const f32& b, const f32& c) {
    f32 r;
    for (int i = 0; i < 16; ++i) r.v[i] = __builtin_fmaf(a.v[i], b.v[i], c.v[i]);
    return r;
  }
  /// `x` where `test` >= `limit`, else 0.
  static f32 keep_from(const f32& x, const f32& test, const f32& limit) {
    f32 r;
    for (int i = 0; i < 16; ++i) r.v[i] = test.v[i] >= limit.v[i] ? x.v[i] : 0.0F;
    return r;
  }
  static f32 to_f32(const i32& x) {
    f32 r;
    for (int i = 0; i < 16; ++i) r.v[i] = static_cast<float>(x.v[i]);
    return r;
  }
  /// Rounds to nearest even.
  static i32 round(const f32& x) {
    i32 r;
    for (int i = 0; i < 16; ++i) {
      r.v[i] = x.v[i] >= -2147483648.0F && x.v[i] < 2147483648.0F ? static_cast<std::int32_t>(__builtin_rintf(x.v[i]))
                                                                  : INT32_MIN;
    }
    return r;
  }
  /// 2^n for n in [-126, 127].
  static f32 power_of_two(const i32& n) {
    f32 r;
    for (int i = 0; i < 16; ++i) {
      const std::uint32_t bits = static_cast<std::uint32_t>(n.v[i] + 127) << 23;
      std::memcpy(&r.v[i], &bits, 4);
    }
    return r;
  }
  /// Bits of |x|: ordered like the magnitudes, infinities and NaN above all.
  static i32 magnitude_bits(const f32& x) {
    i32 r;
    for (int i = 0; i < 16; ++i) {
      std::uint32_t bits;
      std::memcpy(&bits, &x.v[i], 4);
      r.v[i] = static_cast<std::int32_t>(bits & 0x7FFFFFFF);
    }
    return r;
  }
  static i32 max_i32(const i32& a, const i32& b) {
    i32 r;
    for (int i = 0; i < 16; ++i) r.v[i] = a.v[i] > b.v[i] ? a.v[i] : b.v[i];
    return r;
  }
  static i32 add_i32(const i32& a, const i32& b) {
    i32 r;
    for (int i = 0; i < 16; ++i) r.v[i] = a.v[i] + b.v[i];
    return r;
  }
  /// Lanes within [-128, 127].
  static void store_i8(std::int8_t* p, const i32& x) {
    for (int i = 0; i < 16; ++i) p[i] = static_cast<std::int8_t>(x.v[i]);
  }

  /// Halves are added until one lane is left: (i, i + 8), (i, i + 4), (i, i + 2), (0, 1).
  static float sum(const f32& x) {
    f32 r = x;
    for (int half_width = 8; half_width > 0; half_width /= 2) {
      for (int i = 0; i < half_width; ++i) r.v[i] = r.v[i] + r.v[i + half_width];
    }
    return r.v[0];
  }
  static float largest(const f32& x) {
    f32 r = x;
    for (int half_width = 8; half_width > 0; half_width /= 2) {
      for (int i = 0; i < half_width; ++i) r.v[i] = r.v[i] > r.v[i + half_width] ? r.v[i] : r.v[i + half_width];
    }
    return r.v[0];
  }
  static std::int32_t largest_i32(const i32& x) {
    std::int32_t r = x.v[0];
    for (const auto lane : x.v) r = lane > r ? lane : r;
    return r;
  }
  static std::int32_t sum_i32(const i32& x) {
    std::int32_t r = 0;
    for (const auto lane : x.v) r += lane;
    return r;
  }

  /// 32 bytes of nibbles: low ones are columns 0-7, high ones columns 8-15, 4 consecutive k each.
  static quad load_nibbles(const std::uint8_t* p) {
    quad r;
    for (int i = 0; i < 32; ++i) {
      r.v[i] = p[i] & 15;
      r.v[i + 32] = static_cast<std::uint8_t>(p[i] >> 4);
    }
    return r;
  }
  static quad load_quad(const std::int8_t* p) {
    quad r;
    std::memcpy(r.v, p, sizeof r.v);
    return r;
  }
  /// sum[column] += the 4 products of unsigned nibbles and the codes at `a`.
  static nibble_sum dot_nibbles(const nibble_sum& sum, const quad& w, const std::int8_t* a) {
    nibble_sum r = sum;
    for (int i = 0; i < 64; ++i) r.v[i / 4] += std::int32_t{w.v[i]} * a[i % 4];
    return r;
  }
  static i32 total(const nibble_sum& sum) { return sum; }
  /// sum[column] += the 4 products of signed weights in [-127, 127] and the codes at `a`, also in [-127, 127].
  static i32 dot_signed(const i32& sum, const quad& w, const std::int8_t* a) {
    i32 r = sum;
    for (int i = 0; i < 64; ++i) r.v[i / 4] += std::int32_t{static_cast<std::int8_t>(w.v[i])} * a[i % 4];
    return r;
  }
  static void prefetch(const void*) {}

 private:
  template <class Op>
  static f32 map(const f32& a, const f32& b, Op op) {
    f32 r;
    for (int i = 0; i < 16; ++i) r.v[i] = op(a.v[i], b.v[i]);
    return r;
  }
  static float half(std::uint16_t h) {
    const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000) << 16;
    const std::uint32_t magnitude = h & 0x7FFFU;
    std::uint32_t bits;
    if (magnitude >= 0x7C00) {
      bits = sign | 0x7F800000 | (magnitude & 0x3FF) << 13;
    } else if (magnitude >= 0x0400) {
      bits = sign | ((magnitude << 13) + (112U << 23));
    } else {
      const float value = static_cast<float>(magnitude) * 0x1p-24F;
      std::memcpy(&bits, &value, 4);
      bits |= sign;
    }
    float r;
    std::memcpy(&r, &bits, 4);
    return r;
  }
};

}  // namespace troupe::cpu
