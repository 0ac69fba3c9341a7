#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpu/compute.hpp"
#include "cpu/expert_store.hpp"
#include "cpu/model_weights.hpp"
#include "cpu/routing.hpp"

/// The feed-forward half of a layer: dense, or routed to experts layer by layer: all rows are routed, grouped by
/// expert, multiplied group by group, and combined per row in the order of its choices.
namespace troupe::cpu {

class feed_forward {
 public:
  feed_forward(compute& c, const model::model_spec& spec, bool quantized);

  /// out[row] += residual * ffn(normed[row]) for `rows` rows; `normed` has codes where compute is 8-bit.
  /// `expert_tokens` ([experts]) counts the rows of each expert; empty for a dense layer.
  result<void> add(std::uint32_t layer, const layer_weights& weights, expert_store& experts, activation_buffer& normed,
                   std::uint32_t rows, float* out, std::size_t out_stride, std::span<std::uint32_t> expert_tokens);

 private:
  /// A network and the rows that go through it; the i-th row's results are at `middle_first + i` and `out + i *
  /// stride`.
  struct job {
    const packed_ffn* ffn = nullptr;
    std::span<const std::uint32_t> rows;
    activation_buffer* middle = nullptr;
    std::uint32_t middle_first = 0;
    float* out = nullptr;
  };

  void run(std::span<const job> jobs, const activation_view& x);
  void gate_up_task(const job& j, const activation_view& x, std::uint32_t group, std::span<const std::uint32_t> rows,
                    std::uint32_t first_row, float* scratch);
  void route(const layer_weights& weights, const activation_buffer& normed, std::uint32_t rows);
  void combine(const layer_weights& weights, activation_buffer& normed, std::uint32_t rows, float* out,
               std::size_t out_stride);

  compute& compute_;
  const model::model_spec& spec_;
  std::uint32_t hidden_padded_;
  activation_buffer dense_middle_, expert_middle_, shared_middle_;
  std::vector<float> results_;         ///< [entries, hidden_padded]: experts' outputs, or the dense output.
  std::vector<float> shared_results_;  ///< [rows, hidden_padded]
  std::vector<float> scores_;          ///< [rows, padded experts]
  std::vector<float> choice_;          ///< [rows, choice_scratch]
  std::vector<std::uint32_t> chosen_;  ///< [rows, top_k]
  std::vector<float> chosen_weights_;  ///< [rows, top_k]
  std::vector<float> scratch_;         ///< Per thread: gate and up of one task.
  expert_groups groups_;
  std::vector<std::uint32_t> active_;
  std::vector<expert_store::expert> pinned_;
  std::vector<job> jobs_;
};

}  // namespace troupe::cpu
