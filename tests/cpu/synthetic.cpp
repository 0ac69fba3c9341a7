#include "synthetic.hpp"

#include <cmath>

namespace troupe::cpu::test {
namespace {

using model::tensor_role;

class filler {
 public:
  filler(synthetic_model& model, std::uint32_t seed) : model_(model), seed_(seed) {}

  void matrix(tensor_role role, std::uint32_t rows, std::uint32_t cols, std::uint32_t layer = 0,
              std::uint32_t expert = 0) {
    add(role, layer, expert, random_matrix(rows, cols, next(), 1.0F / std::sqrt(static_cast<float>(cols))));
  }
  void norm(tensor_role role, std::uint32_t size, std::uint32_t layer = 0) {
    auto made = random_matrix(1, size, next(), 0.1F);
    for (float& v : made.values) v += 1.0F;
    add(role, layer, 0, std::move(made));
  }
  void bias(tensor_role role, std::uint32_t size, std::uint32_t layer) {
    add(role, layer, 0, random_matrix(1, size, next(), 0.3F));
  }

 private:
  std::uint32_t next() { return seed_ = seed_ * 1664525U + 1013904223U; }
  void add(tensor_role role, std::uint32_t layer, std::uint32_t expert, test::matrix made) {
    made.name = std::string(model::to_string(role)) + "." + std::to_string(layer) + "." + std::to_string(expert);
    model_.weights.emplace(synthetic_model::key{role, layer, expert}, std::move(made));
  }

  synthetic_model& model_;
  std::uint32_t seed_;
};

void fill_attention(filler& fill, const model::model_spec& spec, std::uint32_t layer) {
  const auto& a = spec.attention;
  fill.norm(tensor_role::attention_norm, spec.hidden, layer);
  fill.matrix(tensor_role::query, a.heads * a.head_dim, spec.hidden, layer);
  fill.matrix(tensor_role::key, a.kv_heads * a.head_dim, spec.hidden, layer);
  fill.matrix(tensor_role::value, a.kv_heads * a.head_dim, spec.hidden, layer);
  fill.matrix(tensor_role::attention_output, spec.hidden, a.heads * a.head_dim, layer);
  if (a.qkv_bias) {
    fill.bias(tensor_role::query_bias, a.heads * a.head_dim, layer);
    fill.bias(tensor_role::key_bias, a.kv_heads * a.head_dim, layer);
    fill.bias(tensor_role::value_bias, a.kv_heads * a.head_dim, layer);
  }
  if (a.output_bias) fill.bias(tensor_role::attention_output_bias, spec.hidden, layer);
  if (a.qk_norm == model::qk_norm_kind::none) return;
  const bool full = a.qk_norm == model::qk_norm_kind::full;
  fill.norm(tensor_role::query_norm, full ? a.heads * a.head_dim : a.head_dim, layer);
  fill.norm(tensor_role::key_norm, full ? a.kv_heads * a.head_dim : a.head_dim, layer);
}

void fill_feed_forward(filler& fill, const model::model_spec& spec, std::uint32_t layer) {
  fill.norm(tensor_role::ffn_norm, spec.hidden, layer);
  if (!spec.layers[layer].sparse) {
    fill.matrix(tensor_role::ffn_gate, spec.ffn, spec.hidden, layer);
    fill.matrix(tensor_role::ffn_up, spec.ffn, spec.hidden, layer);
    fill.matrix(tensor_role::ffn_down, spec.hidden, spec.ffn, layer);
    return;
  }
  const auto& moe = spec.moe;
  fill.matrix(tensor_role::router, moe.experts, spec.hidden, layer);
  if (moe.selection_bias) fill.bias(tensor_role::router_selection_bias, moe.experts, layer);
  for (std::uint32_t e = 0; e < moe.experts; ++e) {
    fill.matrix(tensor_role::expert_gate, moe.ffn, spec.hidden, layer, e);
    fill.matrix(tensor_role::expert_up, moe.ffn, spec.hidden, layer, e);
    fill.matrix(tensor_role::expert_down, spec.hidden, moe.ffn, layer, e);
  }
  if (moe.shared_ffn == 0) return;
  fill.matrix(tensor_role::shared_gate_proj, moe.shared_ffn, spec.hidden, layer);
  fill.matrix(tensor_role::shared_up, moe.shared_ffn, spec.hidden, layer);
  fill.matrix(tensor_role::shared_down, spec.hidden, moe.shared_ffn, layer);
  if (moe.shared_gate) fill.matrix(tensor_role::shared_expert_gate, 1, spec.hidden, layer);
}

}  // namespace

std::shared_ptr<synthetic_model> make_model(const model::model_spec& spec, std::uint32_t seed) {
  auto made = std::make_shared<synthetic_model>();
  made->spec = spec;
  filler fill(*made, seed);
  fill.matrix(tensor_role::embedding, spec.vocab, spec.hidden);
  fill.norm(tensor_role::final_norm, spec.hidden);
  if (!spec.tied_embeddings) fill.matrix(tensor_role::lm_head, spec.vocab, spec.hidden);
  for (std::uint32_t layer = 0; layer < spec.layers.size(); ++layer) {
    fill_attention(fill, spec, layer);
    fill_feed_forward(fill, spec, layer);
  }
  return made;
}

weight_source source(std::shared_ptr<const synthetic_model> made) {
  return {.spec = made->spec,
          .weight =
              [model = made.get()](model::tensor_role role, std::uint32_t layer, std::uint32_t expert) {
                return model->weights.at({role, layer, expert}).view();
              },
          .owner = made};
}

model::model_spec small_sparse_spec() {
  model::model_spec spec;
  spec.architecture = "SyntheticForCausalLM";
  spec.vocab = 91;
  spec.hidden = 72;
  spec.ffn = 150;
  spec.max_context = 4096;
  spec.attention = {.heads = 6, .kv_heads = 2, .head_dim = 12, .qkv_bias = true, .scale = 0.2886751F};
  spec.rope.rotary_dim = 12;
  spec.moe = {.experts = 5, .top_k = 2, .ffn = 40, .shared_ffn = 50, .shared_gate = true};
  spec.layers = {{.sparse = true}, {.sparse = false, .sliding_window = 20}, {.sparse = true}};
  return spec;
}

}  // namespace troupe::cpu::test
