#include <algorithm>
#include <cmath>

#include "model/architectures/architecture.hpp"

namespace troupe::model {
namespace {

using enum tensor_role;

constexpr tensor_name hf_table[] = {
    {embedding, "model.embed_tokens.weight"},
    {final_norm, "model.norm.weight"},
    {lm_head, "lm_head.weight"},
    {attention_norm, "model.layers.{l}.input_layernorm.weight"},
    {query, "model.layers.{l}.self_attn.q_proj.weight"},
    {key, "model.layers.{l}.self_attn.k_proj.weight"},
    {value, "model.layers.{l}.self_attn.v_proj.weight"},
    {attention_output, "model.layers.{l}.self_attn.o_proj.weight"},
    {query_bias, "model.layers.{l}.self_attn.q_proj.bias"},
    {key_bias, "model.layers.{l}.self_attn.k_proj.bias"},
    {value_bias, "model.layers.{l}.self_attn.v_proj.bias"},
    {attention_output_bias, "model.layers.{l}.self_attn.o_proj.bias"},
    {query_norm, "model.layers.{l}.self_attn.q_norm.weight"},
    {key_norm, "model.layers.{l}.self_attn.k_norm.weight"},
    {ffn_norm, "model.layers.{l}.post_attention_layernorm.weight"},
    {ffn_gate, "model.layers.{l}.mlp.gate_proj.weight"},
    {ffn_up, "model.layers.{l}.mlp.up_proj.weight"},
    {ffn_down, "model.layers.{l}.mlp.down_proj.weight"},
    {router, "model.layers.{l}.mlp.gate.weight"},
    {router_selection_bias, "model.layers.{l}.mlp.gate.e_score_correction_bias"},
    {expert_gate, "model.layers.{l}.mlp.experts.{e}.gate_proj.weight"},
    {expert_up, "model.layers.{l}.mlp.experts.{e}.up_proj.weight"},
    {expert_down, "model.layers.{l}.mlp.experts.{e}.down_proj.weight"},
    {expert_gate, "model.layers.{l}.mlp.experts.gate_up_proj", tensor_part::expert_first_half},
    {expert_up, "model.layers.{l}.mlp.experts.gate_up_proj", tensor_part::expert_second_half},
    {expert_down, "model.layers.{l}.mlp.experts.down_proj", tensor_part::expert},
};

constexpr tensor_name gguf_table[] = {
    {embedding, "token_embd.weight"},
    {final_norm, "output_norm.weight"},
    {lm_head, "output.weight"},
    {attention_norm, "blk.{l}.attn_norm.weight"},
    {query, "blk.{l}.attn_q.weight"},
    {key, "blk.{l}.attn_k.weight"},
    {value, "blk.{l}.attn_v.weight"},
    {attention_output, "blk.{l}.attn_output.weight"},
    {query_bias, "blk.{l}.attn_q.bias"},
    {key_bias, "blk.{l}.attn_k.bias"},
    {value_bias, "blk.{l}.attn_v.bias"},
    {attention_output_bias, "blk.{l}.attn_output.bias"},
    {query_norm, "blk.{l}.attn_q_norm.weight"},
    {key_norm, "blk.{l}.attn_k_norm.weight"},
    {ffn_norm, "blk.{l}.ffn_norm.weight"},
    {ffn_gate, "blk.{l}.ffn_gate.weight"},
    {ffn_up, "blk.{l}.ffn_up.weight"},
    {ffn_down, "blk.{l}.ffn_down.weight"},
    {router, "blk.{l}.ffn_gate_inp.weight"},
    {router_selection_bias, "blk.{l}.exp_probs_b.bias"},
    {expert_gate, "blk.{l}.ffn_gate_exps.weight", tensor_part::expert},
    {expert_up, "blk.{l}.ffn_up_exps.weight", tensor_part::expert},
    {expert_down, "blk.{l}.ffn_down_exps.weight", tensor_part::expert},
    {expert_gate, "blk.{l}.ffn_gate.{e}.weight"},  // files from before experts were fused
    {expert_up, "blk.{l}.ffn_up.{e}.weight"},
    {expert_down, "blk.{l}.ffn_down.{e}.weight"},
    {shared_gate_proj, "blk.{l}.ffn_gate_shexp.weight"},
    {shared_up, "blk.{l}.ffn_up_shexp.weight"},
    {shared_down, "blk.{l}.ffn_down_shexp.weight"},
    {shared_expert_gate, "blk.{l}.ffn_gate_inp_shexp.weight"},
};

constexpr std::uint32_t max_layers = 4096;

}  // namespace

std::span<const tensor_name> common_hf_tensors() { return hf_table; }
std::span<const tensor_name> common_gguf_tensors() { return gguf_table; }

void read_common_config(const config_reader& config, const config_defaults& defaults, model_spec& spec) {
  spec.vocab = config.size({"vocab_size"});
  spec.hidden = config.size({"hidden_size"});
  spec.ffn = config.size({"intermediate_size"}, 0);
  spec.max_context = config.size({"max_position_embeddings"}, defaults.max_context);
  spec.norm_epsilon = static_cast<float>(config.number({"rms_norm_eps"}, defaults.norm_epsilon));
  spec.tied_embeddings = config.flag({"tie_word_embeddings"}, false);
  const std::string activation = config.text({"hidden_act"}, "silu");
  if (activation != "silu")
    config.fail(error_kind::unsupported, "hidden_act", "'" + activation + "' is not supported; 'silu' is");
  if (config.flag({"mlp_bias"}, false))
    config.fail(error_kind::unsupported, "mlp_bias", "biases in the FFN are not supported");

  const std::uint32_t layers = config.size({"num_hidden_layers"});
  if (layers == 0 || layers > max_layers)
    config.fail(error_kind::corrupt, "num_hidden_layers", "must be from 1 to " + std::to_string(max_layers));
  spec.layers.resize(std::min(layers, max_layers));

  auto& attention = spec.attention;
  attention.heads = config.size({"num_attention_heads"});
  attention.kv_heads =
      config.size({"num_key_value_heads"}, defaults.kv_heads != 0 ? defaults.kv_heads : attention.heads);
  const bool derived = !config.has("head_dim") && defaults.head_dim == 0;
  const std::uint32_t even_share = attention.heads == 0 ? 0 : spec.hidden / attention.heads;
  attention.head_dim = config.size({"head_dim"}, derived ? even_share : defaults.head_dim);
  if (derived && attention.heads != 0 && spec.hidden % attention.heads != 0)
    config.fail(error_kind::corrupt, "num_attention_heads",
                std::to_string(attention.heads) + " heads do not divide hidden_size " + std::to_string(spec.hidden));
  attention.scale = 1.0F / std::sqrt(static_cast<float>(attention.head_dim));
  read_rope_config(config, defaults, spec);
}

void read_attention_bias(const config_reader& config, model_spec& spec) {
  spec.attention.qkv_bias = spec.attention.output_bias = config.flag({"attention_bias"}, false);
}

void read_uniform_window(const config_reader& config, std::uint32_t fallback, model_spec& spec) {
  const std::uint32_t window = config.size({"sliding_window"}, config.json().contains("sliding_window") ? 0 : fallback);
  for (auto& layer : spec.layers) layer.sliding_window = window;
}

void read_qwen_windows(const config_reader& config, model_spec& spec) {
  if (!config.flag({"use_sliding_window"}, false)) return;
  const std::uint32_t window = config.size({"sliding_window"}, 4096);
  const auto types = config.texts("layer_types");
  if (!types.empty() && types.size() != spec.layers.size())
    return config.fail(error_kind::corrupt, "layer_types", "must name the type of each of the layers");
  const std::uint32_t first = config.size({"max_window_layers"}, 28);
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    const bool slides = types.empty() ? i >= first : types[i] == "sliding_attention";
    if (slides) spec.layers[i].sliding_window = window;
  }
}

void read_sparse_layers(const config_reader& config, model_spec& spec) {
  const std::uint32_t step = config.size({"decoder_sparse_step"}, 1);
  const auto dense = config.sizes("mlp_only_layers");
  if (step == 0) return config.fail(error_kind::corrupt, "decoder_sparse_step", "must be at least 1");
  for (std::uint32_t i = 0; i < spec.layers.size(); ++i)
    spec.layers[i].sparse = (i + 1) % step == 0 && std::find(dense.begin(), dense.end(), i) == dense.end();
}

void make_all_layers_sparse(model_spec& spec) {
  for (auto& layer : spec.layers) layer.sparse = true;
}

void read_common_gguf(const gguf_settings& settings, model_spec& spec) {
  spec.hidden = settings.size("embedding_length");
  spec.ffn = settings.size("feed_forward_length", 0);
  spec.max_context = settings.size("context_length");
  spec.norm_epsilon = static_cast<float>(settings.number("attention.layer_norm_rms_epsilon"));
  spec.tied_embeddings = !settings.has_tensor("output.weight");
  const auto embedding_rows = settings.file().tensors().find("token_embd.weight");
  if (embedding_rows != settings.file().tensors().end() && embedding_rows->second.shape.size() == 2)
    spec.vocab = static_cast<std::uint32_t>(std::min<std::uint64_t>(embedding_rows->second.shape[0], max_setting));

  const std::uint32_t layers = settings.size("block_count");
  if (layers == 0 || layers > max_layers)
    settings.fail(error_kind::corrupt, "block_count", "must be from 1 to " + std::to_string(max_layers));
  spec.layers.resize(std::min(layers, max_layers));
  const std::uint32_t window = settings.size("attention.sliding_window", 0);
  for (auto& layer : spec.layers) layer.sliding_window = window;

  auto& attention = spec.attention;
  attention.heads = settings.size("attention.head_count");
  attention.kv_heads = settings.size("attention.head_count_kv", attention.heads);
  if (attention.heads == 0) return settings.fail(error_kind::corrupt, "attention.head_count", "must be at least 1");
  attention.head_dim = settings.size("attention.key_length", spec.hidden / attention.heads);
  if (settings.size("attention.value_length", attention.head_dim) != attention.head_dim)
    settings.fail(error_kind::unsupported, "attention.value_length", "differs from attention.key_length");
  if (attention.head_dim == spec.hidden / attention.heads && spec.hidden % attention.heads != 0)
    settings.fail(error_kind::corrupt, "attention.head_count",
                  "is " + std::to_string(attention.heads) + ", which does not divide the embedding length " +
                      std::to_string(spec.hidden));
  attention.scale = 1.0F / std::sqrt(static_cast<float>(attention.head_dim));
  attention.qkv_bias = settings.has_tensor("blk.0.attn_q.bias");
  attention.output_bias = settings.has_tensor("blk.0.attn_output.bias");
  read_rope_gguf(settings, spec);
}

void read_gguf_experts(const gguf_settings& settings, model_spec& spec) {
  auto& moe = spec.moe;
  moe.experts = settings.size("expert_count", 0);
  if (moe.experts == 0) return;
  moe.top_k = settings.size("expert_used_count");
  moe.ffn = settings.size("expert_feed_forward_length", spec.ffn);
  moe.normalize_top_k = settings.flag("expert_weights_norm", moe.normalize_top_k);
  for (std::size_t i = 0; i < spec.layers.size(); ++i)
    spec.layers[i].sparse = settings.has_tensor("blk." + std::to_string(i) + ".ffn_gate_inp.weight");
}

}  // namespace troupe::model
