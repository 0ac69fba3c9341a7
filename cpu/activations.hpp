#pragma once

#include <cstdint>
#include <vector>

#include "cpu/kernels/kernels.hpp"

namespace troupe::cpu {

/// Rows of activations that feed products: fp32 values and, for 8-bit arithmetic, their codes. Columns are padded to a
/// multiple of 32; what lies beyond the real columns stays zero because nobody writes there.
class activation_buffer {
 public:
  activation_buffer() = default;
  activation_buffer(std::uint32_t columns, bool quantized)
      : padded_(round_up(columns, group_inputs)), quantized_(quantized) {}

  /// Makes room for `rows` rows; keeps what the first rows hold only while no growth is needed.
  void reserve(std::uint32_t rows) {
    if (rows <= rows_) return;
    rows_ = rows;
    values_.assign(std::size_t{rows} * padded_, 0.0F);
    if (!quantized_) return;
    codes_.assign(std::size_t{rows} * padded_, 0);
    scales_.assign(std::size_t{rows} * blocks(), 0.0F);
    sums_.assign(std::size_t{rows} * blocks(), 0.0F);
  }

  std::uint32_t padded() const { return padded_; }
  float* row(std::uint32_t r) { return values_.data() + std::size_t{r} * padded_; }

  activation_view view() const {
    return {.values = values_.data(),
            .codes = codes_.data(),
            .scales = scales_.data(),
            .sums = sums_.data(),
            .stride = padded_,
            .block_stride = blocks()};
  }

  /// Codes for columns [first, first + count) of a row: whole blocks of 32.
  void quantize(const kernels& k, std::uint32_t r, std::uint32_t first, std::uint32_t count) {
    if (!quantized_) return;
    k.quantize_row(row(r) + first, count, codes_.data() + std::size_t{r} * padded_ + first,
                   scales_.data() + std::size_t{r} * blocks() + first / group_inputs,
                   sums_.data() + std::size_t{r} * blocks() + first / group_inputs);
  }
  void quantize(const kernels& k, std::uint32_t r) { quantize(k, r, 0, padded_); }

 private:
  std::uint32_t blocks() const { return padded_ / group_inputs; }

  std::uint32_t padded_ = 0;
  std::uint32_t rows_ = 0;
  bool quantized_ = false;
  std::vector<float> values_;
  std::vector<std::int8_t> codes_;
  std::vector<float> scales_;
  std::vector<float> sums_;
};

}  // namespace troupe::cpu
