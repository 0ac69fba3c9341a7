#include <cmath>

#include "model/architectures/architecture.hpp"

/// Readers of routing that goes beyond "the softmax's largest": groups of experts, sigmoid scores, selection biases.
namespace troupe::model {
namespace {

float positive_scale(double scale) { return std::isfinite(scale) && scale > 0.0 ? static_cast<float>(scale) : 0.0F; }

}  // namespace

void make_layers_sparse_from(std::uint32_t first, model_spec& spec) {
  for (std::uint32_t i = 0; i < spec.layers.size(); ++i) spec.layers[i].sparse = i >= first;
}

void choose_by_biased_sigmoid(model_spec& spec) {
  spec.moe.scoring = router_scoring::sigmoid;
  spec.moe.selection_bias = true;
  spec.moe.group_score = group_scoring::two_best;
}

void read_routed_experts(const config_reader& config, const routed_defaults& defaults, model_spec& spec) {
  auto& moe = spec.moe;
  moe.experts = config.size({"n_routed_experts", "num_local_experts", "num_experts"}, defaults.experts);
  moe.top_k = config.size({"num_experts_per_tok"}, defaults.top_k);
  moe.ffn = config.size({"moe_intermediate_size"}, defaults.ffn);
  moe.groups = config.size({"n_group"}, defaults.groups);
  moe.top_groups = config.size({"topk_group"}, defaults.top_groups);
  moe.normalize_top_k = config.flag({"norm_topk_prob"}, defaults.normalize);
  moe.routed_scale = positive_scale(config.number({"routed_scaling_factor"}, defaults.scale));
  if (moe.routed_scale == 0.0F) config.fail(error_kind::corrupt, "routed_scaling_factor", "must be above 0");
  const std::uint64_t shared = std::uint64_t{config.size({"n_shared_experts"}, defaults.shared)} * moe.ffn;
  if (shared > max_setting)
    config.fail(error_kind::corrupt, "n_shared_experts", "makes the shared experts too wide");
  else
    moe.shared_ffn = static_cast<std::uint32_t>(shared);
  if (config.size({"moe_layer_freq"}, 1) != 1)
    config.fail(error_kind::unsupported, "moe_layer_freq", "other than 1 is not supported");
  make_layers_sparse_from(config.size({"first_k_dense_replace"}, defaults.first_sparse), spec);
  spec.draft_layers = config.size({"num_nextn_predict_layers", "num_mtp_layers"}, defaults.draft_layers);
}

void read_gguf_routing(const gguf_settings& settings, router_scoring fallback, model_spec& spec) {
  spec.draft_layers = settings.size("nextn_predict_layers", 0);
  if (spec.draft_layers >= spec.layers.size())
    return settings.fail(error_kind::corrupt, "nextn_predict_layers", "leaves no layer of the block_count");
  spec.layers.resize(spec.layers.size() - spec.draft_layers);

  auto& moe = spec.moe;
  moe.normalize_top_k = false;
  read_gguf_experts(settings, spec);
  const std::uint32_t first_sparse = settings.size("leading_dense_block_count", 0);
  make_layers_sparse_from(moe.experts == 0 ? static_cast<std::uint32_t>(spec.layers.size()) : first_sparse, spec);
  switch (settings.size("expert_gating_func", 0)) {
    case 0:  // older files name none
      moe.scoring = fallback;
      break;
    case 1:
      moe.scoring = router_scoring::softmax;
      break;
    case 2:
      moe.scoring = router_scoring::sigmoid;
      break;
    default:
      settings.fail(error_kind::unsupported, "expert_gating_func",
                    "names a scoring that is not supported; 1 (softmax) and 2 (sigmoid) are");
  }
  moe.group_score = moe.scoring == router_scoring::sigmoid ? group_scoring::two_best : group_scoring::best;
  moe.selection_bias = settings.has_tensor("blk." + std::to_string(first_sparse) + ".exp_probs_b.bias");
  moe.groups = settings.size("expert_group_count", 1);
  moe.top_groups = settings.size("expert_group_used_count", moe.groups);
  moe.routed_scale = positive_scale(settings.number("expert_weights_scale", 1.0));
  if (moe.routed_scale == 0.0F) settings.fail(error_kind::corrupt, "expert_weights_scale", "must be above 0");
  const std::uint64_t shared = std::uint64_t{settings.size("expert_shared_count", 0)} * moe.ffn;
  if (shared > max_setting) return settings.fail(error_kind::corrupt, "expert_shared_count", "is too large");
  moe.shared_ffn = settings.size("expert_shared_feed_forward_length", static_cast<std::uint32_t>(shared));
}

}  // namespace troupe::model
