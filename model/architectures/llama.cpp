#include "model/architectures/architecture.hpp"

/// Llama (dense), and GGUF's "llama", which with experts is Mixtral: its converter interleaves the rotary pairs of Q
/// and K.
namespace troupe::model {

constinit const architecture llama{
    .hf_name = "LlamaForCausalLM",
    .gguf_name = "llama",
    .read_config = read_attention_bias,
    .read_gguf =
        [](const gguf_settings& settings, model_spec& spec) {
          spec.rope.interleaved = true;
          read_gguf_experts(settings, spec);
          if (spec.moe.experts != 0) spec.architecture = "MixtralForCausalLM";
        },
    .hf_tensors = {},
    .hf_defaults = {},
};

}  // namespace troupe::model
