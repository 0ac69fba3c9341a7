#include "cpu/cpu_backend.hpp"

#include <algorithm>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "cpu/attention.hpp"
#include "cpu/compute.hpp"
#include "cpu/expert_store.hpp"
#include "cpu/feed_forward.hpp"
#include "cpu/isa.hpp"
#include "cpu/kv_cache.hpp"
#include "cpu/memory_block.hpp"
#include "cpu/model_weights.hpp"
#include "cpu/step_plan.hpp"
#include "cpu/thread_pool.hpp"
#include "cpu/weight_source.hpp"
#include "model/model.hpp"
#include "model/weights.hpp"

namespace troupe::cpu {
namespace {

bool is_quantized(engine::precision p) { return p == engine::precision::int8 || p == engine::precision::int4; }

class cpu_backend final : public engine::backend {
 public:
  cpu_backend(weight_source source, const cpu_options& options, isa tier, std::unique_ptr<thread_pool> pool,
              model_weights weights, kv_cache cache)
      : source_(std::move(source)),
        precision_(options.common.precision),
        pool_(std::move(pool)),
        compute_(kernels_of(tier), *pool_),
        weights_(std::move(weights)),
        cache_(std::move(cache)),
        experts_(source_, precision_),
        attention_(compute_, source_.spec, is_quantized(precision_)),
        feed_forward_(compute_, source_.spec, is_quantized(precision_)),
        normed_(source_.spec.hidden, is_quantized(precision_)),
        hidden_padded_(normed_.padded()) {}

  result<void> step(std::span<const engine::step_sequence> batch, engine::step_output& output) override {
    try {
      return compute_step(batch, output);
    } catch (const std::bad_alloc&) {
      return error{error_kind::overloaded, "not enough memory for a step of this size", "cpu backend"};
    }
  }

  std::uint32_t page_count() const override { return cache_.pages(); }
  result<void> load_expert(expert_id id) override { return experts_.load(id); }
  void unload_expert(expert_id id) override { experts_.unload(id); }
  bool expert_resident(expert_id id) const override { return experts_.resident(id); }
  std::uint64_t expert_bytes(expert_id id) const override { return experts_.bytes(id); }
  engine::expert_totals resident_experts() const override { return experts_.totals(); }

  std::string description() const override {
    const unsigned threads = pool_->threads();
    return "cpu: " + std::string(to_string(compute_.kernel().tier)) + ", " + std::to_string(threads) +
           (threads == 1 ? " thread, " : " threads, ") + std::string(engine::to_string(precision_));
  }

 private:
  const model::model_spec& spec() const { return source_.spec; }
  float* hidden(std::uint32_t row) { return hidden_.data() + std::size_t{row} * hidden_padded_; }

  result<void> compute_step(std::span<const engine::step_sequence> batch, engine::step_output& output) {
    if (auto built = plan_.build(batch, spec(), cache_.pages()); !built) return built;
    const auto rows = static_cast<std::uint32_t>(plan_.rows.size());
    output.expert_tokens.assign(spec().layers.size() * spec().moe.experts, 0);
    compute_.reserve_rows(rows * std::max(1U, spec().moe.top_k));
    hidden_.resize(std::max(hidden_.size(), std::size_t{rows} * hidden_padded_));
    normed_.reserve(rows);
    embed(rows);
    for (const auto& bytes : {weights_.embedding.bytes, weights_.embedding.scale.bytes})
      if (auto read = model::check_readable(bytes); !read) return read;
    attention_.begin(batch, plan_);
    for (std::uint32_t layer = 0; layer < spec().layers.size(); ++layer) {
      const auto& weights = weights_.layers[layer];
      normalize(rows, weights.attention_norm);
      attention_.add(layer, weights, cache_, normed_, hidden_.data(), hidden_padded_);
      normalize(rows, weights.ffn_norm);
      const auto counts =
          std::span(output.expert_tokens).subspan(layer * std::size_t{spec().moe.experts}, spec().moe.experts);
      auto added = feed_forward_.add(layer, weights, experts_, normed_, rows, hidden_.data(), hidden_padded_, counts);
      if (!added) return added;
    }
    write_logits(output);
    return {};
  }

  void embed(std::uint32_t rows) {
    compute_.for_rows(rows, [&](std::uint32_t r) {
      float* row = hidden(r);
      std::fill(row, row + hidden_padded_, 0.0F);
      model::dequantize_row(weights_.embedding, static_cast<std::uint32_t>(plan_.rows[r].token), {row, spec().hidden});
      if (spec().embedding_multiplier != 1.0F)
        compute_.kernel().scale(row, spec().embedding_multiplier, hidden_padded_);
    });
  }

  void normalize(std::uint32_t rows, const std::vector<float>& weight) {
    compute_.for_rows(rows, [&](std::uint32_t r) { normalize_row(hidden(r), weight, r); });
  }
  void normalize_row(const float* x, const std::vector<float>& weight, std::uint32_t target) {
    compute_.kernel().rms_norm(x, weight.data(), spec().hidden, hidden_padded_, spec().norm_epsilon,
                               normed_.row(target));
    normed_.quantize(compute_.kernel(), target);
  }

  void write_logits(engine::step_output& output) {
    const auto wanted = static_cast<std::uint32_t>(plan_.wanted.size());
    output.logits.resize(std::size_t{wanted} * spec().vocab);
    if (wanted == 0) return;
    compute_.for_rows(wanted, [&](std::uint32_t i) { normalize_row(hidden(plan_.wanted[i]), weights_.final_norm, i); });
    const product head{&weights_.head.matrix, output.logits.data(), spec().vocab};
    compute_.multiply(std::span(&head, 1), normed_.view(), compute_.all_rows(wanted));
    if (spec().logits_divisor == 1.0F) return;
    for (float& logit : output.logits) logit /= spec().logits_divisor;
  }

  const weight_source source_;
  const engine::precision precision_;
  std::unique_ptr<thread_pool> pool_;
  compute compute_;
  model_weights weights_;
  kv_cache cache_;
  expert_store experts_;
  attention attention_;
  feed_forward feed_forward_;
  activation_buffer normed_;
  std::uint32_t hidden_padded_;
  std::vector<float> hidden_;  ///< [rows, hidden padded]: the residual stream.
  step_plan plan_;
};

result<void> check_spec(const model::model_spec& spec) {
  const auto refuse = [&](const std::string& what) { return error{error_kind::unsupported, what, spec.architecture}; };
  const auto& a = spec.attention;
  if (a.kind != model::attention_kind::grouped_query)
    return refuse("the CPU backend knows grouped-query attention only");
  if (spec.ffn_bias) return refuse("the CPU backend knows no biases in feed-forward layers");
  if (a.heads == 0 || a.kv_heads == 0 || a.heads % a.kv_heads != 0 || a.head_dim == 0) {
    return refuse("the number of heads must be a multiple of the number of key/value heads");
  }
  if (spec.rope.rotary_dim > a.head_dim || spec.rope.rotary_dim % 2 != 0) {
    return refuse("the rotary dimension must be even and at most the head's");
  }
  if (spec.rope.kind == model::rope_kind::dynamic && spec.rope.rotary_dim <= 2) {
    return refuse("dynamic RoPE scaling needs a rotary dimension above 2");
  }
  const bool sparse = std::any_of(spec.layers.begin(), spec.layers.end(), [](const auto& l) { return l.sparse; });
  if (sparse && (spec.moe.top_k == 0 || spec.moe.top_k > spec.moe.experts)) {
    return refuse("the number of experts per token must be between 1 and the number of experts");
  }
  if (sparse) {
    if (auto sound = model::check_routing(spec.moe, spec.architecture); !sound) return sound;
  }
  if (spec.vocab == 0 || spec.hidden == 0 || spec.layers.empty()) return refuse("the model is empty");
  return {};
}

}  // namespace

result<std::unique_ptr<engine::backend>> make_cpu_backend(weight_source source, const cpu_options& options) {
  const auto& spec = source.spec;
  if (auto checked = check_spec(spec); !checked) return checked.error();
  if (options.common.kv_pages == 0) {
    return error{error_kind::invalid, "the KV cache needs at least one page", "kv_pages"};
  }
  const auto tier = choose_isa(options.instructions);
  if (!tier) return tier.error();
  auto cache = kv_cache::create({.pages = options.common.kv_pages,
                                 .layers = static_cast<std::uint32_t>(spec.layers.size()),
                                 .kv_heads = spec.attention.kv_heads,
                                 .head_dim = spec.attention.head_dim,
                                 .bf16 = options.common.precision != engine::precision::fp32});
  if (!cache) return cache.error();
  auto pool = std::make_unique<thread_pool>(options.common.threads);
  auto weights = model_weights::pack(source, options.common.precision, *pool);
  if (!weights) return weights.error();
  return std::unique_ptr<engine::backend>(std::make_unique<cpu_backend>(
      std::move(source), options, *tier, std::move(pool), std::move(*weights), std::move(*cache)));
}

result<std::unique_ptr<engine::backend>> make_cpu_backend(std::shared_ptr<const model::opened_model> model,
                                                          const cpu_options& options) {
  return make_cpu_backend(
      weight_source{
          .spec = model->spec(),
          .weight = [weights = model.get()](model::tensor_role role, std::uint32_t layer,
                                            std::uint32_t expert) { return weights->weight(role, layer, expert); },
          .owner = model,
          .release = [](const model::matrix_view& view) { release_mapped(view.bytes); }},
      options);
}

}  // namespace troupe::cpu
