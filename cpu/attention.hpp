#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpu/compute.hpp"
#include "cpu/kv_cache.hpp"
#include "cpu/model_weights.hpp"
#include "cpu/rope.hpp"
#include "cpu/step_plan.hpp"

/// The attention half of a layer: projections, norms and rotation of queries and keys, the cache, and attention in
/// segments of 256 keys by absolute position, joined in ascending order. A row sees the same segments in the same order
/// whatever chunk or batch it came in.
namespace troupe::cpu {

class attention {
 public:
  attention(compute& c, const model::model_spec& spec, bool quantized);

  /// Once per step: the rows' angles.
  void begin(std::span<const engine::step_sequence> batch, const step_plan& plan);

  /// out[row] += residual * attention(normed[row]); writes the rows' keys and values to the cache.
  void add(std::uint32_t layer, const layer_weights& weights, kv_cache& cache, const activation_buffer& normed,
           float* out, std::size_t out_stride);

 private:
  void prepare_row(std::uint32_t row, std::uint32_t layer, const layer_weights& weights, kv_cache& cache);
  void attend_rows(std::uint32_t layer, const kv_cache& cache);
  void attend_segment(std::uint32_t row, std::uint32_t layer, std::uint32_t kv_head, std::uint32_t segment,
                      const kv_cache& cache, float* out, float* peak, float* total) const;
  void join(std::uint32_t row, std::uint32_t head, const float* out, float peak, float total, bool first);

  std::uint32_t first_key(std::uint32_t layer, std::uint32_t position) const;
  std::uint32_t group() const { return spec_.attention.heads / spec_.attention.kv_heads; }

  compute& compute_;
  const model::model_spec& spec_;
  rope_table rope_;
  std::uint32_t padded_dim_;
  std::size_t query_stride_;
  std::size_t key_stride_;
  std::size_t result_stride_;  ///< Floats per (row, kv head, segment) in `partial_`.
  std::span<const engine::step_sequence> batch_;
  const step_plan* plan_ = nullptr;
  std::vector<float> angles_;  ///< [rows, 2 * pairs]
  std::vector<float> query_, key_, value_;
  std::vector<float> sum_;             ///< [rows, heads, padded_dim]
  std::vector<float> peak_, total_;    ///< [rows, heads]
  std::vector<float> partial_;         ///< Segment results: out, then peak and total, per head of a group.
  std::vector<std::uint32_t> offset_;  ///< [rows]: first segment's index in `partial_`, per kv head.
  activation_buffer mixed_;            ///< [rows, heads * head_dim]
  std::vector<float> projected_;       ///< [rows, hidden padded]
};

}  // namespace troupe::cpu
