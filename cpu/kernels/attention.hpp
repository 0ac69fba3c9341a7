#pragma once

#include "cpu/kernels/elementwise.hpp"
#include "cpu/kernels/kernels.hpp"

/// Attention of one query row over one segment of keys. A page holds keys with the position innermost, so that 16
/// scores are one vector and no sum crosses lanes; values have the dimension innermost.
namespace troupe::cpu {

inline constexpr std::uint32_t page_keys = 16;
inline constexpr std::uint32_t head_tile = 4;  ///< Query heads that read a key once.

template <class V, class Element>
[[gnu::always_inline]] inline typename V::f32 load_element(const Element* p) {
  if constexpr (sizeof(Element) == 2) {
    return V::load_bf16(p);
  } else {
    return V::load(p);
  }
}

/// scores[h][key] for whole pages; what lies outside [first, last) is set to -inf afterwards.
template <class V, class Element, int Heads>
void score_pages(const attention_arguments& a, std::uint32_t head, float (*scores)[segment_keys]) {
  for (std::uint32_t page = a.first / page_keys; page * page_keys < a.last; ++page) {
    const auto* keys = reinterpret_cast<const Element*>(a.pages[page]);
    typename V::f32 sum[Heads];
#pragma GCC unroll 4
    for (int h = 0; h < Heads; ++h) sum[h] = V::zero();
    const float* query = a.query + std::size_t{head} * a.head_dim;
    for (std::uint32_t d = 0; d < a.head_dim; ++d) {
      const auto k = load_element<V>(keys + std::size_t{d} * page_keys);
#pragma GCC unroll 4
      for (int h = 0; h < Heads; ++h) {
        sum[h] = V::fma(V::set1(query[static_cast<std::uint32_t>(h) * a.head_dim + d]), k, sum[h]);
      }
    }
#pragma GCC unroll 4
    for (int h = 0; h < Heads; ++h) V::store(scores[h] + page * page_keys, sum[h]);
  }
}

template <class V, class Element, int Heads>
void weigh_values(const attention_arguments& a, std::uint32_t head, const float (*weights)[segment_keys]) {
  const std::uint32_t padded = round_up(a.head_dim, 16);
  for (std::uint32_t d = 0; d < padded; d += 16) {
    typename V::f32 sum[Heads];
#pragma GCC unroll 4
    for (int h = 0; h < Heads; ++h) sum[h] = V::zero();
    for (std::uint32_t key = a.first; key < a.last; ++key) {
      const auto* values =
          reinterpret_cast<const Element*>(a.pages[key / page_keys]) + std::size_t{a.head_dim} * page_keys;
      const auto v = load_element<V>(values + std::size_t{key % page_keys} * padded + d);
#pragma GCC unroll 4
      for (int h = 0; h < Heads; ++h) sum[h] = V::fma(V::set1(weights[h][key]), v, sum[h]);
    }
#pragma GCC unroll 4
    for (int h = 0; h < Heads; ++h) V::store(a.out + (head + static_cast<std::uint32_t>(h)) * padded + d, sum[h]);
  }
}

/// Turns scores into exp(score - max) and returns max and sum.
template <class V>
void exponentiate(const attention_arguments& a, float* scores, float& peak, float& total) {
  const std::uint32_t begin = a.first / page_keys * page_keys;
  const std::uint32_t end = round_up(a.last, page_keys);
  for (std::uint32_t key = begin; key < a.first; ++key) scores[key] = -__builtin_inff();
  for (std::uint32_t key = a.last; key < end; ++key) scores[key] = -__builtin_inff();
  auto peaks = V::set1(-__builtin_inff());
  for (std::uint32_t key = begin; key < end; key += 16) peaks = V::max(V::load(scores + key), peaks);
  peak = V::largest(peaks);
  auto sum = V::zero();
  for (std::uint32_t key = begin; key < end; key += 16) {
    const auto weight = exponential<V>(V::sub(V::load(scores + key), V::set1(peak)));
    V::store(scores + key, weight);
    sum = V::add(sum, weight);
  }
  total = V::sum(sum);
}

template <class V, class Element, int Heads>
void attend_heads(const attention_arguments& a, std::uint32_t head) {
  float scores[Heads][segment_keys];
  score_pages<V, Element, Heads>(a, head, scores);
  for (int h = 0; h < Heads; ++h) {
    const std::uint32_t at = head + static_cast<std::uint32_t>(h);
    exponentiate<V>(a, scores[h], a.peak[at], a.total[at]);
  }
  weigh_values<V, Element, Heads>(a, head, scores);
}

template <class V, class Element>
void attend(const attention_arguments& a) {
  std::uint32_t head = 0;
  for (; head + head_tile <= a.heads; head += head_tile) attend_heads<V, Element, 4>(a, head);
  switch (a.heads - head) {
    case 1:
      attend_heads<V, Element, 1>(a, head);
      break;
    case 2:
      attend_heads<V, Element, 2>(a, head);
      break;
    case 3:
      attend_heads<V, Element, 3>(a, head);
      break;
    default:
      break;
  }
}

template <class V>
void merge_segment(const merge_arguments& a) {
  const float peak = *a.peak > a.next_peak ? *a.peak : a.next_peak;
  float lanes[16] = {*a.peak - peak, a.next_peak - peak};
  V::store(lanes, exponential<V>(V::load(lanes)));
  const auto old_weight = V::set1(lanes[0]);
  const auto next_weight = V::set1(lanes[1]);
  for (std::uint32_t d = 0; d < a.padded_dim; d += 16) {
    V::store(a.out + d, V::fma(V::load(a.next_out + d), next_weight, V::mul(V::load(a.out + d), old_weight)));
  }
  *a.total = __builtin_fmaf(a.next_total, lanes[1], *a.total * lanes[0]);
  *a.peak = peak;
}

template <class V>
void finish_attention(float* out, float total, std::uint32_t padded_dim) {
  for (std::uint32_t d = 0; d < padded_dim; d += 16) V::store(out + d, V::div(V::load(out + d), V::set1(total)));
}

}  // namespace troupe::cpu
