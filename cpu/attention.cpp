#include "cpu/attention.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace troupe::cpu {
namespace {

void grow(std::vector<float>& buffer, std::size_t size) {
  if (buffer.size() < size) buffer.resize(size, 0.0F);
}

void add_bias(std::span<const float> bias, float* row, std::uint32_t size) {
  if (bias.empty()) return;
  for (std::uint32_t i = 0; i < size; ++i) row[i] += bias[i];
}

void clip(float* row, std::uint32_t size, float limit) {
  if (limit == 0.0F) return;
  for (std::uint32_t i = 0; i < size; ++i) row[i] = std::min(std::max(row[i], -limit), limit);
}

}  // namespace

attention::attention(compute& c, const model::model_spec& spec, bool quantized)
    : compute_(c),
      spec_(spec),
      rope_(spec.rope, spec.max_context),
      padded_dim_(round_up(spec.attention.head_dim, 16)),
      query_stride_(round_up(spec.attention.heads * spec.attention.head_dim, group_inputs)),
      key_stride_(round_up(spec.attention.kv_heads * spec.attention.head_dim, group_inputs)),
      result_stride_(std::size_t{group()} * (padded_dim_ + 2)),
      mixed_(spec.attention.heads * spec.attention.head_dim, quantized) {}

void attention::begin(std::span<const engine::step_sequence> batch, const step_plan& plan) {
  batch_ = batch;
  plan_ = &plan;
  const auto rows = plan.rows.size();
  const std::size_t stride = 2 * std::size_t{rope_.pairs()};
  grow(angles_, rows * stride);
  grow(query_, rows * query_stride_);
  grow(key_, rows * key_stride_);
  grow(value_, rows * key_stride_);
  grow(sum_, rows * spec_.attention.heads * padded_dim_);
  grow(peak_, rows * spec_.attention.heads);
  grow(total_, rows * spec_.attention.heads);
  grow(projected_, rows * round_up(spec_.hidden, group_inputs));
  mixed_.reserve(static_cast<std::uint32_t>(rows));
  compute_.for_rows(static_cast<std::uint32_t>(rows), [&](std::uint32_t r) {
    const auto& row = plan.rows[r];
    rope_.angles(row.position, batch[row.sequence].prompt_tokens, {angles_.data() + r * stride, stride});
  });
}

std::uint32_t attention::first_key(std::uint32_t layer, std::uint32_t position) const {
  const std::uint32_t window = spec_.layers[layer].sliding_window;
  return window == 0 || position < window ? 0 : position + 1 - window;
}

/// Biases, norms, clipping, rotation; then the key and value go to the cache and the query takes the score's scale.
void attention::prepare_row(std::uint32_t r, std::uint32_t layer, const layer_weights& weights, kv_cache& cache) {
  const auto& a = spec_.attention;
  const auto& k = compute_.kernel();
  float* query = query_.data() + r * query_stride_;
  float* key = key_.data() + r * key_stride_;
  float* value = value_.data() + r * key_stride_;
  const std::uint32_t query_size = a.heads * a.head_dim;
  const std::uint32_t key_size = a.kv_heads * a.head_dim;
  add_bias(weights.query_bias, query, query_size);
  add_bias(weights.key_bias, key, key_size);
  add_bias(weights.value_bias, value, key_size);

  const auto norm = [&](float* x, std::span<const float> weight, std::uint32_t size) {
    if (size % 16 == 0) return k.rms_norm(x, weight.data(), size, size, spec_.norm_epsilon, x);
    // The kernel reads and writes whole lanes; the next head begins before they end.
    std::vector<float> lanes(round_up(size, 16));
    std::copy_n(x, size, lanes.data());
    k.rms_norm(lanes.data(), weight.data(), size, round_up(size, 16), spec_.norm_epsilon, lanes.data());
    std::copy_n(lanes.data(), size, x);
  };
  if (a.qk_norm == model::qk_norm_kind::full) {
    norm(query, weights.query_norm, query_size);
    norm(key, weights.key_norm, key_size);
  } else if (a.qk_norm == model::qk_norm_kind::per_head) {
    for (std::uint32_t h = 0; h < a.heads; ++h) norm(query + h * a.head_dim, weights.query_norm, a.head_dim);
    for (std::uint32_t h = 0; h < a.kv_heads; ++h) norm(key + h * a.head_dim, weights.key_norm, a.head_dim);
  }
  clip(query, query_size, a.clip_qkv);
  clip(key, key_size, a.clip_qkv);
  clip(value, key_size, a.clip_qkv);

  const std::size_t stride = 2 * std::size_t{rope_.pairs()};
  const std::span<const float> angles(angles_.data() + r * stride, stride);
  for (std::uint32_t h = 0; h < a.heads; ++h) rope_.rotate(angles, query + h * a.head_dim);
  for (std::uint32_t h = 0; h < a.kv_heads; ++h) rope_.rotate(angles, key + h * a.head_dim);
  for (std::uint32_t i = 0; i < query_size; ++i) query[i] *= a.scale;

  const auto& row = plan_->rows[r];
  const auto page = batch_[row.sequence].pages[row.position / engine::page_tokens];
  for (std::uint32_t h = 0; h < a.kv_heads; ++h) {
    cache.write(page, layer, h, row.position % engine::page_tokens, key + h * a.head_dim, value + h * a.head_dim);
  }
}

void attention::attend_segment(std::uint32_t r, std::uint32_t layer, std::uint32_t kv_head, std::uint32_t segment,
                               const kv_cache& cache, float* out, float* peak, float* total) const {
  const auto& row = plan_->rows[r];
  const std::uint32_t start = segment * segment_keys;
  const std::uint32_t first = std::max(first_key(layer, row.position), start);
  const std::uint32_t last = std::min(row.position + 1, start + segment_keys);
  std::array<const std::byte*, segment_keys / engine::page_tokens> pages{};
  const auto table = batch_[row.sequence].pages.subspan(start / engine::page_tokens);
  for (std::uint32_t p = (first - start) / engine::page_tokens; p * engine::page_tokens < last - start; ++p) {
    pages[p] = cache.block(table[p], layer, kv_head);
  }
  const attention_arguments arguments{
      .query = query_.data() + r * query_stride_ + std::size_t{kv_head} * group() * spec_.attention.head_dim,
      .heads = group(),
      .head_dim = spec_.attention.head_dim,
      .pages = pages.data(),
      .first = first - start,
      .last = last - start,
      .out = out,
      .peak = peak,
      .total = total};
  if (cache.bf16()) {
    compute_.kernel().attend_bf16(arguments);
  } else {
    compute_.kernel().attend_f32(arguments);
  }
}

void attention::join(std::uint32_t r, std::uint32_t head, const float* out, float peak, float total, bool first) {
  const std::size_t at = std::size_t{r} * spec_.attention.heads + head;
  float* sum = sum_.data() + at * padded_dim_;
  if (first) {
    std::copy_n(out, padded_dim_, sum);
    peak_[at] = peak;
    total_[at] = total;
    return;
  }
  compute_.kernel().merge_segment({.out = sum,
                                   .peak = &peak_[at],
                                   .total = &total_[at],
                                   .next_out = out,
                                   .next_peak = peak,
                                   .next_total = total,
                                   .padded_dim = padded_dim_});
}

/// Many (row, kv head) pairs: each task joins its own segments. Few, with long contexts: every segment is a task of its
/// own and the joining follows, in the same order.
void attention::attend_rows(std::uint32_t layer, const kv_cache& cache) {
  const auto& rows = plan_->rows;
  const std::uint32_t kv_heads = spec_.attention.kv_heads;
  const auto first_segment = [&](std::uint32_t r) { return first_key(layer, rows[r].position) / segment_keys; };
  const auto segments = [&](std::uint32_t r) { return rows[r].position / segment_keys + 1 - first_segment(r); };
  const auto count = static_cast<std::uint32_t>(rows.size());
  const auto join_result = [&](std::uint32_t r, std::uint32_t kv_head, const float* result, bool first) {
    const float* peaks = result + std::size_t{group()} * padded_dim_;
    for (std::uint32_t h = 0; h < group(); ++h) {
      join(r, kv_head * group() + h, result + std::size_t{h} * padded_dim_, peaks[h], peaks[group() + h], first);
    }
  };
  const auto compute_segment = [&](std::uint32_t r, std::uint32_t kv_head, std::uint32_t segment, float* result) {
    float* peaks = result + std::size_t{group()} * padded_dim_;
    attend_segment(r, layer, kv_head, segment, cache, result, peaks, peaks + group());
  };

  if (count * kv_heads >= compute_.pool().threads() * 4) {
    grow(partial_, compute_.pool().threads() * result_stride_);
    compute_.pool().run(count * kv_heads, [&](std::uint32_t task, unsigned worker) {
      const std::uint32_t r = task / kv_heads;
      const std::uint32_t kv_head = task % kv_heads;
      float* result = partial_.data() + worker * result_stride_;
      for (std::uint32_t s = 0; s < segments(r); ++s) {
        compute_segment(r, kv_head, first_segment(r) + s, result);
        join_result(r, kv_head, result, s == 0);
      }
    });
    return;
  }

  offset_.resize(count + 1);
  offset_[0] = 0;
  for (std::uint32_t r = 0; r < count; ++r) offset_[r + 1] = offset_[r] + segments(r) * kv_heads;
  grow(partial_, offset_[count] * result_stride_);
  compute_.pool().run(offset_[count], [&](std::uint32_t task, unsigned) {
    const auto r =
        static_cast<std::uint32_t>(std::upper_bound(offset_.begin(), offset_.end(), task) - offset_.begin() - 1);
    const std::uint32_t local = task - offset_[r];
    compute_segment(r, local % kv_heads, first_segment(r) + local / kv_heads, partial_.data() + task * result_stride_);
  });
  for (std::uint32_t r = 0; r < count; ++r) {
    for (std::uint32_t i = 0; i < segments(r) * kv_heads; ++i) {
      join_result(r, i % kv_heads, partial_.data() + (offset_[r] + i) * result_stride_, i < kv_heads);
    }
  }
}

void attention::add(std::uint32_t layer, const layer_weights& weights, kv_cache& cache, const activation_buffer& normed,
                    float* out, std::size_t out_stride) {
  const auto& a = spec_.attention;
  const auto rows = static_cast<std::uint32_t>(plan_->rows.size());
  const std::array<product, 3> inputs{{{&weights.query.matrix, query_.data(), query_stride_},
                                       {&weights.key.matrix, key_.data(), key_stride_},
                                       {&weights.value.matrix, value_.data(), key_stride_}}};
  compute_.multiply(inputs, normed.view(), compute_.all_rows(rows));
  compute_.for_rows(rows, [&](std::uint32_t r) { prepare_row(r, layer, weights, cache); });
  attend_rows(layer, cache);
  compute_.for_rows(rows, [&](std::uint32_t r) {
    for (std::uint32_t h = 0; h < a.heads; ++h) {
      const std::size_t at = std::size_t{r} * a.heads + h;
      float* sum = sum_.data() + at * padded_dim_;
      compute_.kernel().finish_attention(sum, total_[at], padded_dim_);
      std::copy_n(sum, a.head_dim, mixed_.row(r) + std::size_t{h} * a.head_dim);
    }
    mixed_.quantize(compute_.kernel(), r);
  });
  const std::uint32_t hidden = round_up(spec_.hidden, group_inputs);
  const product output{&weights.output.matrix, projected_.data(), hidden};
  compute_.multiply(std::span(&output, 1), mixed_.view(), compute_.all_rows(rows));
  compute_.for_rows(rows, [&](std::uint32_t r) {
    float* projected = projected_.data() + std::size_t{r} * hidden;
    add_bias(weights.output_bias, projected, spec_.hidden);
    compute_.kernel().add_scaled(out + r * out_stride, projected, spec_.residual_multiplier, hidden);
  });
}

}  // namespace troupe::cpu
