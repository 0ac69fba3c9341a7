#include "model/architectures/architecture.hpp"

/// Qwen1.5-MoE and Qwen2-MoE: routed experts beside a shared one behind a sigmoid gate; some layers may be dense.
namespace troupe::model {
namespace {

using enum tensor_role;

constexpr tensor_name tensors[] = {
    {shared_gate_proj, "model.layers.{l}.mlp.shared_expert.gate_proj.weight"},
    {shared_up, "model.layers.{l}.mlp.shared_expert.up_proj.weight"},
    {shared_down, "model.layers.{l}.mlp.shared_expert.down_proj.weight"},
    {shared_expert_gate, "model.layers.{l}.mlp.shared_expert_gate.weight"},
};

/// Without layer_types, the layers with an even index below max_window_layers slide (as transformers 5 has it).
void read_windows(const config_reader& config, model_spec& spec) {
  if (config.has("layer_types")) return read_qwen_windows(config, spec);
  if (!config.flag({"use_sliding_window"}, false)) return;
  const std::uint32_t window = config.size({"sliding_window"}, 4096);
  const std::uint32_t end = config.size({"max_window_layers"}, 28);
  for (std::uint32_t i = 0; i < spec.layers.size() && i < end; i += 2) spec.layers[i].sliding_window = window;
}

void read(const config_reader& config, model_spec& spec) {
  spec.attention.qkv_bias = config.flag({"qkv_bias"}, true);
  spec.moe.experts = config.size({"num_experts", "num_local_experts"}, 60);
  spec.moe.top_k = config.size({"num_experts_per_tok"}, 4);
  spec.moe.ffn = config.size({"moe_intermediate_size"}, 1408);
  spec.moe.normalize_top_k = config.flag({"norm_topk_prob"}, false);
  spec.moe.shared_ffn = config.size({"shared_expert_intermediate_size"}, 5632);
  spec.moe.shared_gate = spec.moe.shared_ffn != 0;
  read_sparse_layers(config, spec);
  read_windows(config, spec);
}

}  // namespace

constinit const architecture qwen2_moe{
    .hf_name = "Qwen2MoeForCausalLM",
    .gguf_name = "qwen2moe",
    .read_config = read,
    .read_gguf =
        [](const gguf_settings& settings, model_spec& spec) {
          spec.moe.normalize_top_k = false;
          read_gguf_experts(settings, spec);
          spec.moe.shared_ffn = settings.size("expert_shared_feed_forward_length", 0);
          spec.moe.shared_gate = spec.moe.shared_ffn != 0;
        },
    .hf_tensors = tensors,
    .hf_defaults = {.max_context = 32768, .kv_heads = 16},
};

}  // namespace troupe::model
