#include "model/architectures/architecture.hpp"

/// Granite 3 MoE: Llama's attention, every layer sparse, and four multipliers on embeddings, attention, residuals,
/// logits.
namespace troupe::model {
namespace {

using enum tensor_role;

constexpr tensor_name tensors[] = {
    {router, "model.layers.{l}.block_sparse_moe.router.layer.weight"},
    {router, "model.layers.{l}.block_sparse_moe.router.weight"},
    {expert_gate, "model.layers.{l}.block_sparse_moe.input_linear.weight", tensor_part::expert_first_half},
    {expert_up, "model.layers.{l}.block_sparse_moe.input_linear.weight", tensor_part::expert_second_half},
    {expert_down, "model.layers.{l}.block_sparse_moe.output_linear.weight", tensor_part::expert},
    {expert_gate, "model.layers.{l}.block_sparse_moe.experts.gate_up_proj", tensor_part::expert_first_half},
    {expert_up, "model.layers.{l}.block_sparse_moe.experts.gate_up_proj", tensor_part::expert_second_half},
    {expert_down, "model.layers.{l}.block_sparse_moe.experts.down_proj", tensor_part::expert},
};

void read(const config_reader& config, model_spec& spec) {
  read_attention_bias(config, spec);
  spec.attention.scale = static_cast<float>(config.number({"attention_multiplier"}, 1.0));
  spec.embedding_multiplier = static_cast<float>(config.number({"embedding_multiplier"}, 1.0));
  spec.residual_multiplier = static_cast<float>(config.number({"residual_multiplier"}, 1.0));
  spec.logits_divisor = static_cast<float>(config.number({"logits_scaling"}, 1.0));
  spec.moe.experts = config.size({"num_local_experts", "num_experts"}, 8);
  spec.moe.top_k = config.size({"num_experts_per_tok"}, 2);
  spec.moe.ffn = spec.ffn;
  make_all_layers_sparse(spec);
}

void read_metadata(const gguf_settings& settings, model_spec& spec) {
  spec.rope.interleaved = true;
  spec.attention.scale = static_cast<float>(settings.number("attention.scale", spec.attention.scale));
  spec.embedding_multiplier = static_cast<float>(settings.number("embedding_scale", 1.0));
  spec.residual_multiplier = static_cast<float>(settings.number("residual_scale", 1.0));
  spec.logits_divisor = static_cast<float>(settings.number("logit_scale", 1.0));
  read_gguf_experts(settings, spec);
}

}  // namespace

constinit const architecture granite_moe{
    .hf_name = "GraniteMoeForCausalLM",
    .gguf_name = "granitemoe",
    .read_config = read,
    .read_gguf = read_metadata,
    .hf_tensors = tensors,
    .hf_defaults = {},
};

}  // namespace troupe::model
