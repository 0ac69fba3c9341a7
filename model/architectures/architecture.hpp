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
  double partial_rotary = 1.0;
};

/// The same for the settings of routed experts.
struct routed_defaults {
  std::uint32_t experts = 0;
  std::uint32_t top_k = 0;
  std::uint32_t ffn = 0;
  std::uint32_t shared = 1;
  std::uint32_t groups = 1;
  std::uint32_t top_groups = 1;
  std::uint32_t first_sparse = 0;
  std::uint32_t draft_layers = 0;
  double scale = 1.0;
  bool normalize = true;
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
  std::span<const tensor_name> gguf_tensors = {};  ///< Beyond `common_gguf_tensors`, which they precede.
};

std::span<const architecture* const> architectures();

/// Keys and tensor names that all families share: those of LlamaForCausalLM and of ggml.
void read_common_config(const config_reader& config, const config_defaults& defaults, model_spec& spec);
void read_common_gguf(const gguf_settings& settings, model_spec& spec);
std::span<const tensor_name> common_hf_tensors();
std::span<const tensor_name> common_gguf_tensors();

/// RoPE from rope_parameters (transformers 5) or rope_theta and rope_scaling (transformers 4).
void read_rope_config(const config_reader& config, const config_defaults& defaults, model_spec& spec);
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
/// Layers from the given one on are sparse (first_k_dense_replace, leading_dense_block_count).
void make_layers_sparse_from(std::uint32_t first, model_spec& spec);
/// n_routed_experts and the settings beside it (DeepSeek, GLM-4-MoE), apart from how scores come about.
void read_routed_experts(const config_reader& config, const routed_defaults& defaults, model_spec& spec);
/// Sigmoid scores, chosen with a bias among the groups whose two best experts sum to most (DeepSeek-V3, section 2.1.2).
void choose_by_biased_sigmoid(model_spec& spec);
/// expert_count, expert_used_count, widths; layers with a router are sparse.
void read_gguf_experts(const gguf_settings& settings, model_spec& spec);
/// Beyond them expert_gating_func, expert_group_count, expert_weights_scale, shared experts and layers that predict
/// further ahead. `fallback`: the scoring of files that name none.
void read_gguf_routing(const gguf_settings& settings, router_scoring fallback, model_spec& spec);

extern const architecture llama, mistral, qwen2, qwen3, mixtral, olmoe, qwen2_moe, qwen3_moe, granite_moe, glm4_moe;

}  // namespace troupe::model
