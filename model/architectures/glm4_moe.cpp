#include "model/architectures/architecture.hpp"

/// GLM-4.5 (2025): grouped queries that are rotated in part, and experts chosen as DeepSeek-V3 does.
namespace troupe::model {
namespace {

using enum tensor_role;

constexpr tensor_name tensors[] = {
    {shared_gate_proj, "model.layers.{l}.mlp.shared_experts.gate_proj.weight"},
    {shared_up, "model.layers.{l}.mlp.shared_experts.up_proj.weight"},
    {shared_down, "model.layers.{l}.mlp.shared_experts.down_proj.weight"},
};

constexpr tensor_name file_tensors[] = {{ffn_norm, "blk.{l}.post_attention_norm.weight"}};

constexpr routed_defaults defaults{.experts = 128, .top_k = 8, .ffn = 1408, .first_sparse = 1, .draft_layers = 1};

void read(const config_reader& config, model_spec& spec) {
  spec.attention.qkv_bias = config.flag({"attention_bias"}, false);
  if (config.flag({"use_qk_norm"}, false)) spec.attention.qk_norm = qk_norm_kind::per_head;
  read_routed_experts(config, defaults, spec);
  choose_by_biased_sigmoid(spec);
}

void read_metadata(const gguf_settings& settings, model_spec& spec) {
  if (settings.has_tensor("blk.0.attn_q_norm.weight")) spec.attention.qk_norm = qk_norm_kind::per_head;
  read_gguf_routing(settings, router_scoring::sigmoid, spec);
}

}  // namespace

constinit const architecture glm4_moe{
    .hf_name = "Glm4MoeForCausalLM",
    .gguf_name = "glm4moe",
    .read_config = read,
    .read_gguf = read_metadata,
    .hf_tensors = tensors,
    .hf_defaults = {.norm_epsilon = 1e-5, .max_context = 131072, .kv_heads = 8, .partial_rotary = 0.5},
    .gguf_tensors = file_tensors,
};

}  // namespace troupe::model
