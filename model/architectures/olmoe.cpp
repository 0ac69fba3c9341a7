#include "model/architectures/architecture.hpp"

/// OLMoE (2024): every layer sparse, queries and keys normalised over their whole width, optional clipping.
namespace troupe::model {

constinit const architecture olmoe{
    .hf_name = "OlmoeForCausalLM",
    .gguf_name = "olmoe",
    .read_config =
        [](const config_reader& config, model_spec& spec) {
          read_attention_bias(config, spec);
          spec.attention.qk_norm = qk_norm_kind::full;
          spec.attention.clip_qkv = static_cast<float>(config.number({"clip_qkv"}, 0.0));
          spec.moe.experts = config.size({"num_experts", "num_local_experts"}, 64);
          spec.moe.top_k = config.size({"num_experts_per_tok"}, 8);
          spec.moe.ffn = spec.ffn;
          spec.moe.normalize_top_k = config.flag({"norm_topk_prob"}, false);
          make_all_layers_sparse(spec);
        },
    .read_gguf =
        [](const gguf_settings& settings, model_spec& spec) {
          spec.attention.qk_norm = qk_norm_kind::full;
          spec.attention.clip_qkv = static_cast<float>(settings.number("attention.clamp_kqv", 0.0));
          spec.moe.normalize_top_k = false;
          read_gguf_experts(settings, spec);
        },
    .hf_tensors = {},
    .hf_defaults = {.norm_epsilon = 1e-5, .max_context = 4096},
};

}  // namespace troupe::model
