#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "model/architectures/settings_reader.hpp"
#include "model/spec.hpp"

/// What Troupe knows about one family of models: how its configuration is spelled and what its tensors are called.
/// Adding a family is one file that defines such a descriptor, and its line in `architectures()`.
namespace troupe::model {

/// Which part of a stored tensor a role is.
enum class tensor_part : std::uint8_t {
  whole,
  expert,              ///< [experts, rows, cols]: the expert's matrix.
  expert_first_half,   ///< [experts, 2 * rows, cols]: the first `rows` rows of the expert's matrix.
  expert_second_half,  ///< The last `rows` rows.
};

/// Where a role's weights may lie. `{l}` and `{e}` stand for layer and expert.
struct tensor_name {
  tensor_role role;
  std::string_view pattern;
  tensor_part part = tensor_part::whole;
};

/// What a key means that config.json leaves out, as the family's configuration class in transformers has it.
struct config_defaults {
  double norm_epsilon = 1e-6;
  double rope_theta = 10000.0;
  std::uint32_t max_context = 2048;
  std::uint32_t kv_heads = 0;  ///< 0: as many as heads.
  std::uint32_t head_dim = 0;  ///< 0: hidden / heads.
};

struct architecture {
  std::string_view hf_name;    ///< In config.json's "architectures".
  std::string_view gguf_name;  ///< In "general.architecture"; empty: none. Several families may share one.

  /// Fills the spec from config.json beyond what `read_common_config` did.
  void (*read_config)(const config_reader& config, model_spec& spec);
  /// Fills the spec from GGUF metadata beyond what `read_common_gguf` did. Null: no GGUF of this family.
  void (*read_gguf)(const gguf_settings& settings, model_spec& spec);

  std::span<const tensor_name> hf_tensors;  ///< Beyond `common_hf_tensors`, which they precede.
  config_defaults hf_defaults;
};

std::span<const architecture* const> architectures();

/// Keys and tensor names that all families share: those of LlamaForCausalLM and of ggml.
void read_common_config(const config_reader& config, const config_defaults& defaults, model_spec& spec);
void read_common_gguf(const gguf_settings& settings, model_spec& spec);
std::span<const tensor_name> common_hf_tensors();
std::span<const tensor_name> gguf_tensors();

/// RoPE from rope_parameters (transformers 5) or rope_theta and rope_scaling (transformers 4).
void read_rope_config(const config_reader& config, double default_theta, model_spec& spec);
void read_rope_gguf(const gguf_settings& settings, model_spec& spec);

/// Pieces that several families share.
void read_attention_bias(const config_reader& config, model_spec& spec);  ///< attention_bias: q, k, v and o.
/// Every layer's window is `sliding_window`; null: none; left out: `fallback` (0: none).
void read_uniform_window(const config_reader& config, std::uint32_t fallback, model_spec& spec);
/// use_sliding_window, layer_types or max_window_layers (Qwen2, Qwen3).
void read_qwen_windows(const config_reader& config, model_spec& spec);
/// decoder_sparse_step and mlp_only_layers (Qwen MoE).
void read_sparse_layers(const config_reader& config, model_spec& spec);
void make_all_layers_sparse(model_spec& spec);
/// expert_count, expert_used_count, widths; layers with a router are sparse.
void read_gguf_experts(const gguf_settings& settings, model_spec& spec);

extern const architecture llama, mistral, qwen2, qwen3, mixtral, olmoe, qwen2_moe, qwen3_moe, granite_moe;

}  // namespace troupe::model
