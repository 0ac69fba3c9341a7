#pragma once

#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "cpu/kernels/kernels.hpp"
#include "model/tensor.hpp"

/// Weights in the order in which the kernels read them: panels of 16 output columns, zero-padded to whole panels and to
/// whole blocks of 32 inputs. Packing looks at every weight once and refuses those that are not finite.
namespace troupe::cpu {

/// A packed matrix; its bytes belong to whoever packed it.
struct packed_matrix {
  weight_format format = weight_format::f32;
  std::uint32_t inputs = 0;         ///< Real ones.
  std::uint32_t padded_inputs = 0;  ///< Multiple of 32.
  std::uint32_t outputs = 0;        ///< Real ones.
  std::uint32_t panels = 0;
  const std::byte* bytes = nullptr;

  std::size_t panel_bytes() const;
  std::uint64_t total_bytes() const { return panel_bytes() * panels; }
};

/// The shape that packing [outputs, inputs] gives, without bytes.
packed_matrix packed_shape(weight_format format, std::uint32_t outputs, std::uint32_t inputs);

/// What `compute` stores a weight as. 4-bit compute keeps source formats of more than 4 bits per weight that were
/// quantised already (Q5, Q6, Q8, I8, F8) in 8 bits: squeezing them once more would lose what their author paid for.
weight_format format_for(engine::precision compute, model::dtype source);

/// Packs panel `panel` of `target` (rows 16 * panel ... of `source`) into `out`, `panel_bytes()` long. 4-bit sources
/// keep their codes, scales and minima; other sources are quantised. Any thread. An error names the tensor.
result<void> pack_panel(const packed_matrix& target, const model::matrix_view& source, std::uint32_t panel,
                        std::byte* out);

}  // namespace troupe::cpu
