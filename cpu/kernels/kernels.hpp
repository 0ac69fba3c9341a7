#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/cpu_backend.hpp"

/// The inner loops of the CPU backend, one table of functions per instruction set. All tables give the same bits for
/// the same input: integer sums are exact, floating-point sums have one fixed order over 16 lanes, a product and a sum
/// are fused by name, and no library function with a choice of roundings is called.
namespace troupe::cpu {

inline constexpr std::uint32_t panel_columns = 16;  ///< Output columns of a weight panel.
inline constexpr std::uint32_t group_inputs = 32;   ///< Inputs that share a scale, of weights and of activations.
inline constexpr std::uint32_t tile_rows = 4;       ///< Rows that a kernel keeps in registers.
inline constexpr std::uint32_t segment_keys = 256;  ///< Keys per attention segment, by absolute position.

constexpr std::uint32_t round_up(std::uint32_t value, std::uint32_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// How a packed panel stores its weights. `inputs` is padded to a multiple of 32 with zero weights.
enum class weight_format : std::uint8_t {
  f32,   ///< [inputs][16] floats.
  bf16,  ///< [inputs][16] bfloat16.
  s8,    ///< Blocks of 32 inputs: codes in [-127, 127], [8][16][4], then 16 fp16 scales.
  u4,    ///< Blocks of 32 inputs: nibbles, [8][low: columns 0-7, high: 8-15][4], then 16 fp16 scales, 16 fp16 minima.
};

/// Rows of activations as the kernels read them: fp32 values, and codes with value = scale * code. Strides in elements.
struct activation_view {
  const float* values = nullptr;       ///< [rows, padded inputs]
  const std::int8_t* codes = nullptr;  ///< [rows, padded inputs], in [-127, 127]
  const float* scales = nullptr;       ///< [rows, blocks of 32]
  const float* sums = nullptr;         ///< [rows, blocks of 32]: scale * sum of the block's codes.
  std::size_t stride = 0;              ///< Of values and codes.
  std::size_t block_stride = 0;        ///< Of scales and sums.
};

/// out[r, c] = sum over k of x[rows[r], k] * w[c, k], for the panels [first_panel, last_panel).
struct product_arguments {
  const std::byte* weights = nullptr;  ///< Panel 0.
  std::size_t panel_bytes = 0;
  std::uint32_t inputs = 0;  ///< Padded.
  std::uint32_t first_panel = 0;
  std::uint32_t last_panel = 0;
  activation_view x;
  const std::uint32_t* rows = nullptr;  ///< [row_count] indices into x.
  std::uint32_t row_count = 0;
  float* out = nullptr;  ///< Row r, first column of first_panel: out + r * out_stride.
  std::size_t out_stride = 0;
  std::uint32_t columns = 0;  ///< Columns to write from first_panel on; the last panel may be cut.
};

/// One query row and one group of query heads that share a key/value head, over keys [first, last) of one segment.
struct attention_arguments {
  const float* query = nullptr;  ///< [heads][head_dim], scaled.
  std::uint32_t heads = 0;
  std::uint32_t head_dim = 0;
  const std::byte* const* pages =
      nullptr;              ///< Of the segment's keys: [head_dim][16] keys, then [16][padded head_dim] values.
  std::uint32_t first = 0;  ///< Relative to the segment's start.
  std::uint32_t last = 0;
  float* out = nullptr;    ///< [heads][padded head_dim]: sum of exp(score - max) * value.
  float* peak = nullptr;   ///< [heads]: max.
  float* total = nullptr;  ///< [heads]: sum of exp(score - max).
};

/// Joins segment results in ascending order: (out, peak, total) absorbs the next segment's.
struct merge_arguments {
  float* out = nullptr;
  float* peak = nullptr;
  float* total = nullptr;
  const float* next_out = nullptr;
  float next_peak = 0;
  float next_total = 0;
  std::uint32_t padded_dim = 0;
};

/// Lengths named `padded` are multiples of 16; the caller's buffers are that long and zero beyond the real length.
struct kernels {
  isa tier;
  void (*product_f32)(const product_arguments&);
  void (*product_bf16)(const product_arguments&);
  void (*product_s8)(const product_arguments&);
  void (*product_u4)(const product_arguments&);

  /// Codes of `inputs` values in blocks of 32. A block with a value that is not finite
  /// gets zero codes and a NaN scale, so that the damage shows in that row alone.
  void (*quantize_row)(const float* values, std::uint32_t inputs, std::int8_t* codes, float* scales, float* sums);

  /// out = x / sqrt(mean(x^2) + epsilon) * weight over `size` values.
  void (*rms_norm)(const float* x, const float* weight, std::uint32_t size, std::uint32_t padded, float epsilon,
                   float* out);
  /// out[16 * p + i] = silu(gate) * up for pairs of panels, where `gate_up` alternates 16 gates and 16 ups.
  void (*silu_panels)(const float* gate_up, std::uint32_t pairs, float* out);
  /// x += factor * y.
  void (*add_scaled)(float* x, const float* y, float factor, std::uint32_t padded);
  /// x *= factor.
  void (*scale)(float* x, float factor, std::uint32_t padded);
  float (*dot)(const float* x, const float* y, std::uint32_t padded);
  /// Softmax in place over `size` values; the padding is left as it is.
  void (*softmax)(float* x, std::uint32_t size);
  float (*sigmoid)(float x);

  void (*attend_f32)(const attention_arguments&);
  void (*attend_bf16)(const attention_arguments&);
  void (*merge_segment)(const merge_arguments&);
  /// out = out / total.
  void (*finish_attention)(float* out, float total, std::uint32_t padded_dim);
};

/// The table of a tier that `supported()`.
const kernels& kernels_of(isa tier);

}  // namespace troupe::cpu
