#include "model/architectures/architecture.hpp"

/// Mixtral: Mistral whose FFNs are MoE blocks. Its GGUF files call themselves "llama".
namespace troupe::model {
namespace {

using enum tensor_role;

constexpr tensor_name tensors[] = {
    {router, "model.layers.{l}.block_sparse_moe.gate.weight"},
    {expert_gate, "model.layers.{l}.block_sparse_moe.experts.{e}.w1.weight"},
    {expert_up, "model.layers.{l}.block_sparse_moe.experts.{e}.w3.weight"},
    {expert_down, "model.layers.{l}.block_sparse_moe.experts.{e}.w2.weight"},
};

void read(const config_reader& config, model_spec& spec) {
  spec.moe.experts = config.size({"num_local_experts", "num_experts"}, 8);
  spec.moe.top_k = config.size({"num_experts_per_tok"}, 2);
  spec.moe.ffn = spec.ffn;
  make_all_layers_sparse(spec);
  read_uniform_window(config, 0, spec);
}

}  // namespace

constinit const architecture mixtral{
    .hf_name = "MixtralForCausalLM",
    .gguf_name = {},
    .read_config = read,
    .read_gguf = nullptr,
    .hf_tensors = tensors,
    .hf_defaults = {.norm_epsilon = 1e-5, .rope_theta = 1e6, .max_context = 131072, .kv_heads = 8},
};

}  // namespace troupe::model
