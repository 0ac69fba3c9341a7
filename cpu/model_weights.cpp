#include "cpu/model_weights.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <new>
#include <optional>
#include <string>

namespace troupe::cpu {
namespace {

using model::matrix_view;
using model::tensor_role;

/// Runs body(i) for i in [0, count), on the pool if there is one, and returns the error with the lowest index.
template <class Body>
result<void> run_fallible(thread_pool* pool, std::uint32_t count, Body body) {
  std::mutex mutex;
  std::optional<error> first;
  std::uint32_t first_index = count;
  const auto guarded = [&](std::uint32_t i, unsigned) {
    result<void> done;
    try {
      done = body(i);
    } catch (const std::bad_alloc&) {
      done = error{error_kind::overloaded, "not enough memory to pack weights", "cpu backend"};
    }
    if (done) return;
    const std::lock_guard lock(mutex);
    if (i < first_index) {
      first_index = i;
      first = std::move(done.error());
    }
  };
  if (pool) {
    pool->run(count, guarded);
  } else {
    for (std::uint32_t i = 0; i < count && !first; ++i) guarded(i, 0);
  }
  if (first) return *first;
  return {};
}

result<std::vector<float>> read_vector(const matrix_view& view) {
  std::vector<float> values(round_up(view.cols, group_inputs), 0.0F);
  model::dequantize_row(view, 0, std::span(values).first(view.cols));
  for (const float v : values) {
    if (!std::isfinite(v)) return error{error_kind::corrupt, "holds a weight that is not finite", view.name};
  }
  return values;
}

result<owned_matrix> pack_matrix(weight_format format, const matrix_view& view, thread_pool& pool) {
  owned_matrix owned;
  owned.matrix = packed_shape(format, view.rows, view.cols);
  auto memory = memory_block::allocate(owned.matrix.total_bytes(), "packed weights");
  if (!memory) return memory.error();
  owned.memory = std::move(*memory);
  owned.matrix.bytes = owned.memory.data();
  auto packed = run_fallible(&pool, owned.matrix.panels, [&](std::uint32_t panel) {
    return pack_panel(owned.matrix, view, panel, owned.memory.data() + panel * owned.matrix.panel_bytes());
  });
  if (!packed) return packed.error();
  return owned;
}

/// The head keeps at least 8 bits unless its source has 4: it decides every token alone.
weight_format head_format(engine::precision compute, model::dtype source) {
  const auto format = format_for(compute, source);
  const bool plain = source == model::dtype::f32 || source == model::dtype::f16 || source == model::dtype::bf16;
  return format == weight_format::u4 && plain ? weight_format::s8 : format;
}

result<void> check_rows(const matrix_view& view, thread_pool& pool) {
  constexpr std::uint32_t chunk = 256;
  return run_fallible(&pool, round_up(view.rows, chunk) / chunk, [&](std::uint32_t task) -> result<void> {
    std::vector<float> values(view.cols);
    const std::uint32_t end = std::min(view.rows, (task + 1) * chunk);
    for (std::uint32_t row = task * chunk; row < end; ++row) {
      model::dequantize_row(view, row, values);
      if (!std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); })) {
        return error{error_kind::corrupt, "row " + std::to_string(row) + " holds a weight that is not finite",
                     view.name};
      }
    }
    return {};
  });
}

/// Collects the parts of a model and remembers the first failure, so that packing reads as a list.
class packer {
 public:
  packer(const weight_source& source, engine::precision compute, thread_pool& pool)
      : source_(source), compute_(compute), pool_(pool) {}

  matrix_view view(tensor_role role, std::uint32_t layer = 0) const { return source_.weight(role, layer, 0); }

  void vector(std::vector<float>& out, tensor_role role, std::uint32_t layer = 0) {
    const auto from = view(role, layer);
    take(out, [&] { return read_vector(from); });
    done(source_.done_with(from));
  }
  void matrix(owned_matrix& out, tensor_role role, std::uint32_t layer) {
    const auto from = view(role, layer);
    matrix(out, from, format_for(compute_, from.type));
  }
  void matrix(owned_matrix& out, const matrix_view& from, weight_format format) {
    take(out, [&] { return pack_matrix(format, from, pool_); });
    done(source_.done_with(from));
  }
  void ffn(packed_ffn& out, tensor_role gate, tensor_role up, tensor_role down, std::uint32_t layer) {
    const ffn_source from{view(gate, layer), view(up, layer), view(down, layer)};
    take(out, [&] { return pack_ffn(compute_, from, &pool_); });
    done(from.done(source_));
  }
  void check(const matrix_view& from) {
    if (failure_) return;
    if (auto checked = check_rows(from, pool_); !checked) failure_ = checked.error();
    done(source_.done_with(from));
  }

  const std::optional<error>& failure() const { return failure_; }

 private:
  void done(const result<void>& read) {
    if (!read && !failure_) failure_ = read.error();
  }
  template <class T, class Make>
  void take(T& out, Make make) {
    if (failure_) return;
    result<T> made = make();
    if (made) {
      out = std::move(*made);
    } else {
      failure_ = std::move(made.error());
    }
  }

  const weight_source& source_;
  engine::precision compute_;
  thread_pool& pool_;
  std::optional<error> failure_;
};

void pack_attention(packer& pack, const model::attention_spec& spec, std::uint32_t layer, layer_weights& out) {
  pack.vector(out.attention_norm, tensor_role::attention_norm, layer);
  pack.matrix(out.query, tensor_role::query, layer);
  pack.matrix(out.key, tensor_role::key, layer);
  pack.matrix(out.value, tensor_role::value, layer);
  pack.matrix(out.output, tensor_role::attention_output, layer);
  if (spec.qkv_bias) {
    pack.vector(out.query_bias, tensor_role::query_bias, layer);
    pack.vector(out.key_bias, tensor_role::key_bias, layer);
    pack.vector(out.value_bias, tensor_role::value_bias, layer);
  }
  if (spec.output_bias) pack.vector(out.output_bias, tensor_role::attention_output_bias, layer);
  if (spec.qk_norm != model::qk_norm_kind::none) {
    pack.vector(out.query_norm, tensor_role::query_norm, layer);
    pack.vector(out.key_norm, tensor_role::key_norm, layer);
  }
}

void pack_feed_forward(packer& pack, const model::model_spec& spec, std::uint32_t layer, layer_weights& out) {
  pack.vector(out.ffn_norm, tensor_role::ffn_norm, layer);
  if (!spec.layers[layer].sparse) {
    pack.ffn(out.dense, tensor_role::ffn_gate, tensor_role::ffn_up, tensor_role::ffn_down, layer);
    return;
  }
  pack.matrix(out.router, pack.view(tensor_role::router, layer), weight_format::f32);
  if (spec.moe.selection_bias) pack.vector(out.selection_bias, tensor_role::router_selection_bias, layer);
  if (spec.moe.shared_ffn == 0) return;
  pack.ffn(out.shared, tensor_role::shared_gate_proj, tensor_role::shared_up, tensor_role::shared_down, layer);
  if (spec.moe.shared_gate) pack.vector(out.shared_gate, tensor_role::shared_expert_gate, layer);
}

}  // namespace

packed_ffn ffn_shape(engine::precision compute, const ffn_source& source) {
  packed_ffn ffn;
  ffn.width = source.gate.rows;
  auto format = format_for(compute, source.gate.type);
  // Gate and up share panels: where their sources differ, the format with more bits holds both.
  if (const auto other = format_for(compute, source.up.type); other != format) format = weight_format::s8;
  const auto one = packed_shape(format, source.gate.rows, source.gate.cols);
  ffn.gate_up = packed_shape(format, 2 * one.panels * panel_columns, source.gate.cols);
  ffn.down = packed_shape(format_for(compute, source.down.type), source.down.rows, source.down.cols);
  return ffn;
}

result<packed_ffn> pack_ffn(engine::precision compute, const ffn_source& source, thread_pool* pool) {
  packed_ffn ffn = ffn_shape(compute, source);
  auto memory = memory_block::allocate(ffn.bytes(), "packed weights");
  if (!memory) return memory.error();
  ffn.memory = std::move(*memory);
  ffn.gate_up.bytes = ffn.memory.data();
  ffn.down.bytes = ffn.memory.data() + ffn.gate_up.total_bytes();
  std::byte* const base = ffn.memory.data();
  const auto half = packed_shape(ffn.gate_up.format, ffn.width, ffn.gate_up.inputs);
  auto packed = run_fallible(pool, ffn.gate_up.panels + ffn.down.panels, [&](std::uint32_t task) {
    if (task < ffn.gate_up.panels) {
      return pack_panel(half, task % 2 == 0 ? source.gate : source.up, task / 2,
                        base + task * ffn.gate_up.panel_bytes());
    }
    const std::uint32_t panel = task - ffn.gate_up.panels;
    return pack_panel(ffn.down, source.down, panel, base + ffn.gate_up.total_bytes() + panel * ffn.down.panel_bytes());
  });
  if (!packed) return packed.error();
  return ffn;
}

result<model_weights> model_weights::pack(const weight_source& source, engine::precision compute, thread_pool& pool) {
  const auto& spec = source.spec;
  packer pack(source, compute, pool);
  model_weights weights;
  weights.layers.resize(spec.layers.size());
  for (std::uint32_t layer = 0; layer < spec.layers.size(); ++layer) {
    pack_attention(pack, spec.attention, layer, weights.layers[layer]);
    pack_feed_forward(pack, spec, layer, weights.layers[layer]);
  }
  pack.vector(weights.final_norm, tensor_role::final_norm);
  weights.embedding = pack.view(tensor_role::embedding);
  // Packing the head looks at every weight; an embedding of its own needs a look too.
  if (!spec.tied_embeddings) pack.check(weights.embedding);
  const auto head = spec.tied_embeddings ? weights.embedding : pack.view(tensor_role::lm_head);
  pack.matrix(weights.head, head, head_format(compute, head.type));
  if (pack.failure()) return *pack.failure();
  return weights;
}

ffn_source expert_source(const weight_source& source, std::uint32_t layer, std::uint32_t expert) {
  return {source.weight(tensor_role::expert_gate, layer, expert), source.weight(tensor_role::expert_up, layer, expert),
          source.weight(tensor_role::expert_down, layer, expert)};
}

}  // namespace troupe::cpu
