#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "cpu/memory_block.hpp"
#include "cpu/packed_matrix.hpp"
#include "cpu/thread_pool.hpp"
#include "cpu/weight_source.hpp"

/// The weights that every token uses, packed: everything but the experts. Norms, biases and routers stay fp32 at every
/// precision.
namespace troupe::cpu {

/// A packed matrix with its memory.
struct owned_matrix {
  packed_matrix matrix;
  memory_block memory;
};

/// A gated feed-forward network in one block of memory. Gate and up panels alternate, so that one task can finish
/// silu(gate) * up for its columns.
struct packed_ffn {
  std::uint32_t width = 0;
  packed_matrix gate_up;  ///< 2 * panels(width) panels: gate 0, up 0, gate 1, ...
  packed_matrix down;
  memory_block memory;

  std::uint64_t bytes() const { return gate_up.total_bytes() + down.total_bytes(); }
};

struct ffn_source {
  model::matrix_view gate, up, down;

  result<void> done(const weight_source& source) const {
    result<void> out;
    for (const auto* view : {&gate, &up, &down})
      if (auto done = source.done_with(*view); out) out = std::move(done);
    return out;
  }
};

/// Shapes and formats only; `bytes()` says what packing will take.
packed_ffn ffn_shape(engine::precision compute, const ffn_source& source);
/// `pool` may be null: then the calling thread packs alone.
result<packed_ffn> pack_ffn(engine::precision compute, const ffn_source& source, thread_pool* pool);

struct layer_weights {
  std::vector<float> attention_norm;  ///< Vectors are padded with zeros to a multiple of 32.
  owned_matrix query, key, value, output;
  std::vector<float> query_bias, key_bias, value_bias, output_bias;  ///< Empty: none.
  std::vector<float> query_norm, key_norm;
  std::vector<float> ffn_norm;
  packed_ffn dense;                   ///< Dense layers.
  owned_matrix router;                ///< Sparse layers; fp32.
  std::vector<float> selection_bias;  ///< [experts]; empty: none.
  packed_ffn shared;                  ///< Where the spec has a shared expert.
  std::vector<float> shared_gate;
};

struct model_weights {
  std::vector<layer_weights> layers;
  std::vector<float> final_norm;
  model::matrix_view embedding;  ///< Rows are read as they are needed.
  owned_matrix head;             ///< [vocab, hidden]

  static result<model_weights> pack(const weight_source& source, engine::precision compute, thread_pool& pool);
};

/// An expert's matrices as the source has them.
ffn_source expert_source(const weight_source& source, std::uint32_t layer, std::uint32_t expert);

}  // namespace troupe::cpu
