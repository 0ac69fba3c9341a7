#include "model/weights.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_set>

namespace troupe::model {
namespace {

using enum tensor_role;

std::string fill_in(std::string_view pattern, std::uint32_t layer, std::uint32_t expert) {
  std::string name(pattern);
  const auto replace = [&](std::string_view mark, std::uint32_t number) {
    if (const auto at = name.find(mark); at != name.npos) name.replace(at, mark.size(), std::to_string(number));
  };
  replace("{l}", layer);
  replace("{e}", expert);
  return name;
}

struct matrix_shape {
  std::uint64_t rows = 0;
  std::uint64_t cols = 0;
};

matrix_shape shape_of(const model_spec& spec, tensor_role role) {
  const auto& a = spec.attention;
  const std::uint64_t query_width = std::uint64_t{a.heads} * a.head_dim;
  const std::uint64_t kv_width = std::uint64_t{a.kv_heads} * a.head_dim;
  switch (role) {
    case embedding:
    case lm_head:
      return {spec.vocab, spec.hidden};
    case final_norm:
    case attention_norm:
    case ffn_norm:
    case attention_output_bias:
    case shared_expert_gate:
      return {1, spec.hidden};
    case query:
      return {query_width, spec.hidden};
    case key:
    case value:
      return {kv_width, spec.hidden};
    case attention_output:
      return {spec.hidden, query_width};
    case query_bias:
      return {1, query_width};
    case key_bias:
    case value_bias:
      return {1, kv_width};
    case query_norm:
      return {1, a.qk_norm == qk_norm_kind::full ? query_width : a.head_dim};
    case key_norm:
      return {1, a.qk_norm == qk_norm_kind::full ? kv_width : a.head_dim};
    case ffn_gate:
    case ffn_up:
      return {spec.ffn, spec.hidden};
    case ffn_down:
      return {spec.hidden, spec.ffn};
    case router:
      return {spec.moe.experts, spec.hidden};
    case router_selection_bias:
      return {1, spec.moe.experts};
    case expert_gate:
    case expert_up:
      return {spec.moe.ffn, spec.hidden};
    case expert_down:
      return {spec.hidden, spec.moe.ffn};
    case shared_gate_proj:
    case shared_up:
      return {spec.moe.shared_ffn, spec.hidden};
    case shared_down:
      return {spec.hidden, spec.moe.shared_ffn};
  }
  return {};
}

/// Roles that a layer of this kind needs, experts' aside.
std::vector<tensor_role> layer_roles(const model_spec& spec, const layer_spec& layer) {
  std::vector<tensor_role> roles{attention_norm, query, key, value, attention_output, ffn_norm};
  const auto& a = spec.attention;
  if (a.qkv_bias) roles.insert(roles.end(), {query_bias, key_bias, value_bias});
  if (a.output_bias) roles.push_back(attention_output_bias);
  if (a.qk_norm != qk_norm_kind::none) roles.insert(roles.end(), {query_norm, key_norm});
  if (!layer.sparse) {
    roles.insert(roles.end(), {ffn_gate, ffn_up, ffn_down});
  } else {
    roles.push_back(router);
    if (spec.moe.selection_bias) roles.push_back(router_selection_bias);
    if (spec.moe.shared_ffn != 0) roles.insert(roles.end(), {shared_gate_proj, shared_up, shared_down});
    if (spec.moe.shared_gate) roles.push_back(shared_expert_gate);
  }
  return roles;
}

/// What would be wrong silently if no role took it: a bias, a layer's weight (a norm or a shared expert that the
/// architecture does not know, a layer past the configured number), the zero points of an asymmetric quantisation.
/// Layers that predict further ahead are stored past the last one and change nothing.
bool changes_answers(std::string_view name, const model_spec& spec) {
  std::string_view rest = name;
  for (const std::string_view prefix : {"model.layers.", "blk."})
    if (rest.starts_with(prefix)) rest.remove_prefix(prefix.size());
  const bool in_layer = rest.size() != name.size();
  std::uint64_t layer = 0;
  if (in_layer && std::from_chars(rest.data(), rest.data() + rest.size(), layer).ec == std::errc() &&
      layer >= spec.layers.size() && layer < spec.layers.size() + std::uint64_t{spec.draft_layers})
    return false;
  if (name.ends_with(".bias") || name.ends_with("_bias") || name.ends_with("_zero_point")) return true;
  return in_layer && name.ends_with(".weight");
}

error wrong_tensor(const std::string& name, const stored_tensor& tensor, error_kind kind, const std::string& message) {
  return error{kind, "tensor '" + name + "': " + message, tensor.file};
}

}  // namespace

std::optional<weight_finder::found_tensor> weight_finder::look_up(tensor_role role, std::uint32_t layer,
                                                                  std::uint32_t expert, std::string& first_name) const {
  for (const auto& names : name_lists_) {
    for (const auto& candidate : names) {
      if (candidate.role != role) continue;
      std::string name = fill_in(candidate.pattern, layer, expert);
      if (const auto it = tensors_->find(name); it != tensors_->end())
        return found_tensor{std::move(name), &it->second, candidate.part};
      if (first_name.empty()) first_name = std::move(name);
    }
  }
  return std::nullopt;
}

result<matrix_view> weight_finder::find(tensor_role role, std::uint32_t layer, std::uint32_t expert) const {
  std::string first_name;
  const auto found = look_up(role, layer, expert, first_name);
  if (!found) return error{error_kind::not_found, first_name, {}};
  return slice(*found, role, expert);
}

result<matrix_view> weight_finder::slice(const found_tensor& found, tensor_role role, std::uint32_t expert) const {
  const stored_tensor& tensor = *found.tensor;
  if (!tensor.readable)
    return wrong_tensor(found.name, tensor, error_kind::unsupported,
                        "weights of type " + tensor.type_name + " are not supported");
  const auto [rows, cols] = shape_of(*spec_, role);

  std::vector<std::uint64_t> wanted;
  if (found.part != tensor_part::whole) wanted.push_back(spec_->moe.experts);
  const bool half = found.part == tensor_part::expert_first_half || found.part == tensor_part::expert_second_half;
  if (rows != 1 || found.part != tensor_part::whole || tensor.shape.size() > 1)
    wanted.push_back(half ? 2 * rows : rows);
  wanted.push_back(cols);
  if (tensor.shape != wanted)
    return wrong_tensor(found.name, tensor, error_kind::corrupt,
                        "has shape " + shape_text(tensor.shape) + "; the configuration implies " + shape_text(wanted));

  const auto row_bytes = bytes_of(tensor.type, cols);
  if (!row_bytes)
    return wrong_tensor(found.name, tensor, error_kind::corrupt, "its rows are no whole blocks of " + tensor.type_name);
  std::uint64_t first_row = 0;
  if (found.part != tensor_part::whole) first_row = expert * (half ? 2 * rows : rows);
  if (found.part == tensor_part::expert_second_half) first_row += rows;

  matrix_view matrix;
  matrix.type = tensor.type;
  matrix.rows = static_cast<std::uint32_t>(rows);
  matrix.cols = static_cast<std::uint32_t>(cols);
  matrix.bytes = tensor.bytes.subspan(first_row * *row_bytes, rows * *row_bytes);
  matrix.name = found.name;
  if (tensor.type == dtype::i8 || tensor.type == dtype::f8_e4m3)
    if (auto scaled = attach_scale(found, matrix); !scaled) return std::move(scaled).error();
  return matrix;
}

/// Scales lie beside the weights: "x.weight_scale_inv" for blocks (DeepSeek's FP8), "x.weight_scale" for a tensor, a
/// channel or a group (compressed-tensors).
result<void> weight_finder::attach_scale(const found_tensor& found, matrix_view& matrix) const {
  auto it = tensors_->find(found.name + "_scale_inv");
  const bool blocks = it != tensors_->end();
  if (!blocks) it = tensors_->find(found.name + "_scale");
  if (it == tensors_->end()) {
    if (matrix.type == dtype::f8_e4m3) return {};
    return wrong_tensor(found.name, *found.tensor, error_kind::corrupt,
                        "I8 weights need a tensor '" + found.name + "_scale'");
  }
  const stored_tensor& scale = it->second;
  if (found.part != tensor_part::whole)
    return wrong_tensor(found.name, *found.tensor, error_kind::unsupported,
                        "scaled weights of fused experts are not supported");
  if (!scale.readable || scale.type > dtype::bf16)
    return wrong_tensor(it->first, scale, error_kind::unsupported, "scales must be F32, F16 or BF16");

  const std::uint64_t scale_rows = scale.shape.empty() ? 1 : scale.shape[0];
  const std::uint64_t scale_cols = scale.shape.size() < 2 ? 1 : scale.shape[1];
  const auto step = [](std::uint64_t size, std::uint64_t parts) { return parts == 0 ? 0 : (size + parts - 1) / parts; };
  matrix.scale.block_rows =
      static_cast<std::uint32_t>(blocks && fp8_block_rows_ != 0 ? fp8_block_rows_ : step(matrix.rows, scale_rows));
  matrix.scale.block_cols =
      static_cast<std::uint32_t>(blocks && fp8_block_cols_ != 0 ? fp8_block_cols_ : step(matrix.cols, scale_cols));
  // A size that nobody stated can be told from the numbers only where the parts are equal.
  const auto equal = [](std::uint64_t size, std::uint64_t parts) { return parts != 0 && size % parts == 0; };
  const bool known = blocks && fp8_block_rows_ != 0 && fp8_block_cols_ != 0;
  const bool covers = (known || (equal(matrix.rows, scale_rows) && equal(matrix.cols, scale_cols))) &&
                      scale.shape.size() <= 2 && matrix.scale.block_rows != 0 && matrix.scale.block_cols != 0 &&
                      step(matrix.rows, matrix.scale.block_rows) == scale_rows &&
                      step(matrix.cols, matrix.scale.block_cols) == scale_cols;
  if (!covers)
    return wrong_tensor(
        it->first, scale, error_kind::corrupt,
        "shape " + shape_text(scale.shape) + " does not fit the weights' " + shape_text(found.tensor->shape));
  matrix.scale.type = scale.type;
  matrix.scale.bytes = scale.bytes;
  return {};
}

result<void> weight_finder::check_all() const {
  constexpr std::size_t shown = 5;
  constexpr std::size_t most_missing = 10'000;  // a lying configuration may ask for hundreds of millions
  std::string list;
  std::size_t missing = 0;
  std::optional<error> failure;
  std::unordered_set<const stored_tensor*> used;
  const auto check = [&](tensor_role role, std::uint32_t layer, std::uint32_t expert) {
    if (failure || missing == most_missing) return;
    std::string first_name;
    const auto found = look_up(role, layer, expert, first_name);
    if (found) used.insert(found->tensor);
    auto weight = found ? slice(*found, role, expert) : error{error_kind::not_found, first_name, {}};
    if (weight) {
      const bool vector = weight->rows == 1 || role == router;
      if (vector && !all_finite(*weight))
        failure = error{error_kind::corrupt, "tensor '" + weight->name + "' holds NaN or infinite values", {}};
      return;
    }
    if (weight.error().kind != error_kind::not_found)
      failure = std::move(weight).error();
    else if (++missing <= shown)
      list += (missing == 1 ? "" : ", ") + weight.error().message;
  };

  check(embedding, 0, 0);
  check(final_norm, 0, 0);
  if (!spec_->tied_embeddings) check(lm_head, 0, 0);
  for (std::uint32_t l = 0; l < spec_->layers.size(); ++l) {
    for (const auto role : layer_roles(*spec_, spec_->layers[l])) check(role, l, 0);
    if (failure || missing == most_missing) break;
    if (!spec_->layers[l].sparse) continue;
    for (std::uint32_t e = 0; e < spec_->moe.experts; ++e)
      for (const auto role : {expert_gate, expert_up, expert_down}) check(role, l, e);
  }
  if (failure) return std::move(*failure);
  if (missing == 0) {
    for (const auto& [name, tensor] : *tensors_)
      if (changes_answers(name, *spec_) && !used.contains(&tensor))
        return wrong_tensor(name, tensor, error_kind::unsupported,
                            "this architecture has no use for it here, and without it the answers would be wrong");
    return {};
  }
  if (missing == most_missing)
    list += " and at least " + std::to_string(missing - shown) + " more";
  else if (missing > shown)
    list += " and " + std::to_string(missing - shown) + " more";
  return error{error_kind::not_found, "these tensors are missing: " + list, {}};
}

namespace {

/// The scalings divide by differences and logarithms of their settings, which must not be zero or negative.
result<void> check_rope(const rope_spec& rope, const std::string& place) {
  const auto fail = [&](const std::string& message) { return error{error_kind::corrupt, message, place}; };
  if (rope.rotary_dim % 2 != 0) return fail("the rotary size (head_dim, rope.dimension_count) must be even");
  switch (rope.kind) {
    case rope_kind::none:
    case rope_kind::linear:
      break;
    case rope_kind::dynamic:
      if (rope.rotary_dim < 4) return fail("dynamic RoPE scaling needs a rotary size (head_dim) of at least 4");
      break;
    case rope_kind::llama3:
      if (!(rope.low_freq_factor > 0.0 && rope.high_freq_factor > rope.low_freq_factor))
        return fail("llama3 RoPE scaling needs 0 < low_freq_factor < high_freq_factor");
      break;
    case rope_kind::yarn:
      if (!(rope.beta_slow > 0.0 && rope.beta_fast > 0.0 && rope.theta > 1.0 && rope.attention_factor >= 0.0))
        return fail("yarn RoPE scaling needs beta_fast and beta_slow above 0 and a base (rope_theta) above 1");
      break;
  }
  for (const float factor : rope.frequency_factors)
    if (!(std::isfinite(factor) && factor > 0.0F)) return fail("tensor 'rope_freqs.weight' must hold numbers above 0");
  return {};
}

}  // namespace

result<void> check_routing(const moe_spec& moe, const std::string& place) {
  const auto fail = [&](const std::string& message) { return error{error_kind::corrupt, message, place}; };
  if (!(std::isfinite(moe.routed_scale) && moe.routed_scale > 0.0F))
    return fail("the factor of the gates (routed_scaling_factor, expert_weights_scale) must be above 0");
  const std::string groups = std::to_string(moe.groups) + " groups of experts (n_group, expert_group_count)";
  if (moe.groups == 0 || moe.experts % moe.groups != 0)
    return fail(groups + " do not divide " + std::to_string(moe.experts) + " experts");
  if (moe.top_groups == 0 || moe.top_groups > moe.groups)
    return fail(std::to_string(moe.top_groups) + " groups to choose from (topk_group, expert_group_used_count) of " +
                groups + " cannot be");
  const std::uint32_t size = moe.experts / moe.groups;
  if (moe.groups > 1 && moe.group_score == group_scoring::two_best && size < 2)
    return fail(groups + " leave one expert each, where the two best of a group are compared");
  if (moe.top_k > std::uint64_t{moe.top_groups} * size)
    return fail(std::to_string(moe.top_k) +
                " experts per token (num_experts_per_tok, expert_used_count) are more than " +
                std::to_string(moe.top_groups) + " groups (topk_group, expert_group_used_count) hold");
  return {};
}

result<void> check_spec(const model_spec& spec, const std::string& place) {
  const auto& a = spec.attention;
  const auto fail = [&](const std::string& message) { return error{error_kind::corrupt, message, place}; };
  struct bound {
    const char* what;
    std::uint64_t value;
    std::uint64_t low;
    std::uint64_t high;
  };
  const bound bounds[] = {
      {"the vocabulary size (vocab_size)", spec.vocab, 1, 1 << 24},
      {"the hidden size (hidden_size, embedding_length)", spec.hidden, 1, 1 << 20},
      {"the context length (max_position_embeddings, context_length)", spec.max_context, 1, 1 << 28},
      {"the number of heads (num_attention_heads, attention.head_count)", a.heads, 1, 1 << 16},
      {"the number of key-value heads (num_key_value_heads, attention.head_count_kv)", a.kv_heads, 1, 1 << 16},
      {"the head size (head_dim, attention.key_length)", a.head_dim, 2, 1 << 16},
      {"the rotary size (partial_rotary_factor, rope.dimension_count)", spec.rope.rotary_dim, 0, a.head_dim},
      {"the width of the queries (heads x head size)", std::uint64_t{a.heads} * a.head_dim, 2, 1 << 24},
      {"the number of experts (num_experts, expert_count)", spec.moe.experts, 0, 65535},
      {"the shared expert's width (shared_expert_intermediate_size)", spec.moe.shared_ffn, 0, 1 << 24},
  };
  for (const auto& b : bounds)
    if (b.value < b.low || b.value > b.high)
      return fail(std::string(b.what) + " is " + std::to_string(b.value) + "; it must be from " +
                  std::to_string(b.low) + " to " + std::to_string(b.high));
  if (a.heads % a.kv_heads != 0)
    return fail(std::to_string(a.kv_heads) +
                " key-value heads (num_key_value_heads, attention.head_count_kv) do not divide " +
                std::to_string(a.heads) + " heads");
  if (auto sound = check_rope(spec.rope, place); !sound) return sound;
  if (!(spec.norm_epsilon >= 0.0F && spec.norm_epsilon < 1.0F))
    return fail("the norm's epsilon (rms_norm_eps) must be from 0 to 1");
  if (!std::isfinite(spec.embedding_multiplier) || !std::isfinite(spec.residual_multiplier) ||
      !std::isfinite(a.scale) || !std::isfinite(spec.logits_divisor) || spec.logits_divisor == 0.0F)
    return fail("a multiplier (embedding, residual, attention, logits_scaling) is not a usable number");
  const bool any_sparse = std::any_of(spec.layers.begin(), spec.layers.end(), [](const auto& l) { return l.sparse; });
  const bool any_dense = std::any_of(spec.layers.begin(), spec.layers.end(), [](const auto& l) { return !l.sparse; });
  if (any_dense && (spec.ffn == 0 || spec.ffn > 1 << 24))
    return fail("the FFN's width (intermediate_size, feed_forward_length) is " + std::to_string(spec.ffn));
  if ((any_sparse && spec.moe.top_k == 0) || spec.moe.top_k > spec.moe.experts)
    return fail(std::to_string(spec.moe.top_k) + " experts per token (num_experts_per_tok, expert_used_count) of " +
                std::to_string(spec.moe.experts) + " (num_experts, expert_count) cannot be");
  if (auto sound = check_routing(spec.moe, place); any_sparse && !sound) return sound;
  if (any_sparse && (spec.moe.ffn == 0 || spec.moe.ffn > 1 << 24))
    return fail("the experts' width (moe_intermediate_size, expert_feed_forward_length) is " +
                std::to_string(spec.moe.ffn));
  return {};
}

bool all_finite(const matrix_view& matrix) {
  std::vector<float> row(matrix.cols);
  for (std::uint32_t r = 0; r < matrix.rows; ++r) {
    dequantize_row(matrix, r, row);
    if (!std::all_of(row.begin(), row.end(), [](float v) { return std::isfinite(v); })) return false;
  }
  return true;
}

}  // namespace troupe::model
