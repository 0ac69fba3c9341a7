#include "model/architectures/architecture.hpp"

/// Qwen2 and Qwen2.5 (dense): Llama with biases on Q, K and V.
namespace troupe::model {

constinit const architecture qwen2{
    .hf_name = "Qwen2ForCausalLM",
    .gguf_name = "qwen2",
    .read_config =
        [](const config_reader& config, model_spec& spec) {
          spec.attention.qkv_bias = true;
          read_qwen_windows(config, spec);
        },
    .read_gguf = [](const gguf_settings&, model_spec&) {},
    .hf_tensors = {},
    .hf_defaults = {.max_context = 32768, .kv_heads = 32},
};

}  // namespace troupe::model
