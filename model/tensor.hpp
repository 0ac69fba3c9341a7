#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

/// How weights lie in a file: element and block formats, and views of mapped bytes. Nothing here owns or copies
/// weights.
namespace troupe::model {

/// Element formats. From q4_0 on: GGUF block formats, whose bytes are laid out as ggml's specification says.
enum class dtype : std::uint8_t {
  f32,
  f16,
  bf16,
  i8,
  f8_e4m3,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q4_k,
  q5_k,
  q6_k,
};

struct dtype_traits {
  std::string_view name;      ///< "F32", "Q4_K", as the files spell it.
  std::uint32_t block_size;   ///< Values per block; 1 for plain elements.
  std::uint32_t block_bytes;  ///< Bytes per block.
};
const dtype_traits& traits(dtype type);
std::optional<dtype> dtype_from_name(std::string_view name);

/// Bytes of `count` values that form whole blocks; nothing when `count` is no multiple of the block size or the product
/// does not fit 64 bits.
std::optional<std::uint64_t> bytes_of(dtype type, std::uint64_t count);

/// Scales that turn stored I8 or F8_E4M3 values into weights: value * scale[row / block_rows, col / block_cols].
struct scale_view {
  dtype type = dtype::f32;  ///< f32, f16 or bf16.
  std::span<const std::byte>
      bytes;  ///< [ceil(rows / block_rows), ceil(cols / block_cols)]; empty: no scales, factor 1.
  std::uint32_t block_rows = 1;
  std::uint32_t block_cols = 1;
};

/// One weight matrix [rows, cols], row-major, as it lies in a mapped file. A vector is a matrix of one row.
/// Valid as long as the `opened_model` it came from. Bytes may be unaligned.
struct matrix_view {
  dtype type = dtype::f32;
  std::uint32_t rows = 0;
  std::uint32_t cols = 0;
  std::span<const std::byte> bytes;
  scale_view scale;
  std::string name;  ///< The tensor's name in its file, for messages.

  std::size_t row_bytes() const { return rows == 0 ? 0 : bytes.size() / rows; }
};

/// Writes row `row` of `matrix` to `out` (`cols` values) as fp32, scales applied: the reference dequantisation.
/// Any thread; `row < rows` and `out.size() == cols` are the caller's duty.
void dequantize_row(const matrix_view& matrix, std::uint32_t row, std::span<float> out);

/// Dequantises `count` values (whole blocks) from `bytes`, without scales.
void dequantize(dtype type, std::span<const std::byte> bytes, std::span<float> out);

/// Quantises `values` into blocks of `type` appended to `out`; f32, f16, bf16, q8_0, q4_0 and q4_1 (the writer's
/// formats).
result<void> quantize(dtype type, std::span<const float> values, std::vector<std::byte>& out);

}  // namespace troupe::model
