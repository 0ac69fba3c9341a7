#include "model/architectures/architecture.hpp"

/// Qwen3-MoE: queries and keys normalised head by head, routed experts only; some layers may be dense.
namespace troupe::model {

constinit const architecture qwen3_moe{
    .hf_name = "Qwen3MoeForCausalLM",
    .gguf_name = "qwen3moe",
    .read_config =
        [](const config_reader& config, model_spec& spec) {
          read_attention_bias(config, spec);
          spec.attention.qk_norm = qk_norm_kind::per_head;
          spec.moe.experts = config.size({"num_experts", "num_local_experts"}, 128);
          spec.moe.top_k = config.size({"num_experts_per_tok"}, 8);
          spec.moe.ffn = config.size({"moe_intermediate_size"}, 768);
          spec.moe.normalize_top_k = config.flag({"norm_topk_prob"}, false);
          read_sparse_layers(config, spec);
          if (config.flag({"use_sliding_window"}, false)) read_uniform_window(config, 4096, spec);
        },
    .read_gguf =
        [](const gguf_settings& settings, model_spec& spec) {
          spec.attention.qk_norm = qk_norm_kind::per_head;
          read_gguf_experts(settings, spec);
        },
    .hf_tensors = {},
    .hf_defaults = {.max_context = 32768, .kv_heads = 4},
};

}  // namespace troupe::model
