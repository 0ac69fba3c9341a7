#include "model/architectures/architecture.hpp"

/// Mistral (dense): Llama with a sliding window. Its GGUF files call themselves "llama".
namespace troupe::model {

constinit const architecture mistral{
    .hf_name = "MistralForCausalLM",
    .gguf_name = {},
    .read_config = [](const config_reader& config, model_spec& spec) { read_uniform_window(config, 4096, spec); },
    .read_gguf = nullptr,
    .hf_tensors = {},
    .hf_defaults = {.max_context = 131072, .kv_heads = 8},
};

}  // namespace troupe::model
