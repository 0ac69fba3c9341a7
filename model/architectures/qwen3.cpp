#include "model/architectures/architecture.hpp"

/// Qwen3 (dense): queries and keys normalised head by head.
namespace troupe::model {

constinit const architecture qwen3{
    .hf_name = "Qwen3ForCausalLM",
    .gguf_name = "qwen3",
    .read_config =
        [](const config_reader& config, model_spec& spec) {
          read_attention_bias(config, spec);
          spec.attention.qk_norm = qk_norm_kind::per_head;
          read_qwen_windows(config, spec);
        },
    .read_gguf = [](const gguf_settings&, model_spec& spec) { spec.attention.qk_norm = qk_norm_kind::per_head; },
    .hf_tensors = {},
    .hf_defaults = {.max_context = 32768, .kv_heads = 32, .head_dim = 128},
};

}  // namespace troupe::model
