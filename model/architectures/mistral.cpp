#include "model/architectures/architecture.hpp"

/// Mistral (dense): Llama with a sliding window. Its GGUF files call themselves "llama".
namespace troupe::model {

constinit const architecture mistral{
    .hf_name = "MistralForCausalLM",
    .gguf_name = {},
    .read_config = read_uniform_window,
    .read_gguf = nullptr,
    .hf_tensors = {},
};

}  // namespace troupe::model
