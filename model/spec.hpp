#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// What a model computes, free of file formats and of any vendor's names: the backends read nothing else about an
/// architecture. Shapes follow the papers' letters: hidden, heads, head_dim, experts, top_k.
namespace troupe::model {

enum class rope_kind { none, linear, dynamic, llama3, yarn };

/// Rotary position embedding (RoFormer, 2021) and its context extensions.
struct rope_spec {
  rope_kind kind = rope_kind::none;
  double theta = 10000.0;
  std::uint32_t rotary_dim = 0;  ///< Leading dimensions of each head that are rotated.
  bool interleaved = false;      ///< Pairs are (2i, 2i+1), as GGUF's llama lays out Q and K; else (i, i + dim/2).
  double factor = 1.0;
  std::uint32_t original_context = 0;  ///< Context before extension; 0: max_context.
  double low_freq_factor = 1.0;        ///< llama3
  double high_freq_factor = 4.0;       ///< llama3
  double beta_fast = 32.0;             ///< yarn
  double beta_slow = 1.0;              ///< yarn
  double attention_factor = 0.0;  ///< yarn: multiplies cos and sin; 0: derived from factor, mscale, mscale_all_dim.
  double mscale = 0.0;            ///< yarn
  double mscale_all_dim = 0.0;    ///< yarn
  bool truncate = true;           ///< yarn: round the correction range outwards to whole dimensions.
  std::vector<float> frequency_factors;  ///< GGUF rope_freqs.weight: divides each inverse frequency; empty: none.
};

/// Attention kinds the engine knows; MLA (DeepSeek) and sinks (gpt-oss) extend this list.
enum class attention_kind { grouped_query };

/// RMS norm of queries and keys before RoPE: over each head (Qwen3) or over the whole projection (OLMoE).
enum class qk_norm_kind { none, per_head, full };

struct attention_spec {
  attention_kind kind = attention_kind::grouped_query;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;
  bool qkv_bias = false;
  bool output_bias = false;
  qk_norm_kind qk_norm = qk_norm_kind::none;
  float clip_qkv = 0.0F;  ///< OLMoE: clamp projections to [-clip, clip]; 0: off.
  float scale = 0.0F;     ///< Multiplies q.k; usually 1/sqrt(head_dim).
};

/// What a router's logits become: probabilities over all experts, or a score of each expert alone.
enum class router_scoring { softmax, sigmoid };

/// What a group of experts counts for when groups are chosen first: its best expert, or the sum of its two best.
enum class group_scoring { best, two_best };

struct moe_spec {
  std::uint32_t experts = 0;  ///< 0: the model is dense.
  std::uint32_t top_k = 0;
  std::uint32_t ffn = 0;  ///< Inner width of an expert.
  router_scoring scoring = router_scoring::softmax;
  bool selection_bias = false;   ///< A bias per expert is added to the scores for the choice, not for the weights.
  std::uint32_t groups = 1;      ///< Experts lie in this many groups of equal size.
  std::uint32_t top_groups = 1;  ///< Only the experts of this many groups may be chosen.
  group_scoring group_score = group_scoring::best;
  bool normalize_top_k = true;   ///< Selected scores are divided by their sum.
  float routed_scale = 1.0F;     ///< Multiplies the selected scores at last.
  std::uint32_t shared_ffn = 0;  ///< Inner width of the shared expert; 0: none.
  bool shared_gate = false;      ///< The shared expert's output is multiplied by sigmoid(gate . x).
};

struct layer_spec {
  bool sparse = false;               ///< MoE block instead of a dense FFN.
  std::uint32_t sliding_window = 0;  ///< Keys visible to a query, itself included; 0: all.
};

/// Pre-norm decoder: x += residual * attn(norm(x)); x += residual * ffn(norm(x)); logits = lm_head(norm(x)) /
/// logits_divisor. The FFN is down(silu(gate(x)) * up(x)).
struct model_spec {
  std::string architecture;  ///< "MixtralForCausalLM"
  std::uint32_t vocab = 0;
  std::uint32_t hidden = 0;
  std::uint32_t ffn = 0;  ///< Inner width of dense FFN layers.
  std::uint32_t max_context = 0;
  float norm_epsilon = 1e-5F;
  bool tied_embeddings = false;
  bool ffn_bias = false;
  float embedding_multiplier = 1.0F;  ///< Granite
  float residual_multiplier = 1.0F;   ///< Granite
  float logits_divisor = 1.0F;        ///< Granite's logits_scaling
  attention_spec attention;
  rope_spec rope;
  moe_spec moe;
  std::vector<layer_spec> layers;
  std::uint32_t draft_layers = 0;  ///< Layers stored past the last, for predicting further ahead; they are not used.
};

/// The weights that a spec asks for, by what they do. Layer roles take a layer, expert roles a layer and an expert.
enum class tensor_role : std::uint8_t {
  embedding,
  final_norm,
  lm_head,
  attention_norm,
  query,
  key,
  value,
  attention_output,
  query_bias,
  key_bias,
  value_bias,
  attention_output_bias,
  query_norm,
  key_norm,
  ffn_norm,
  ffn_gate,
  ffn_up,
  ffn_down,  // dense layers
  router,
  router_selection_bias,
  expert_gate,
  expert_up,
  expert_down,  // sparse layers
  shared_gate_proj,
  shared_up,
  shared_down,
  shared_expert_gate,  // sparse layers with a shared expert
};
std::string_view to_string(tensor_role role);

}  // namespace troupe::model
