#include "app/memory_plan.hpp"

#include <algorithm>

namespace troupe::app {
namespace {

using engine::precision;

constexpr std::uint64_t mebibyte = 1U << 20;

std::uint64_t ceil_div(std::uint64_t value, std::uint64_t divisor) { return (value + divisor - 1) / divisor; }

/// Bits a weight takes in compute layout, block scales included.
double bits_per_weight(precision p) {
  switch (p) {
    case precision::fp32:
      return 32;
    case precision::bf16:
      return 16;
    case precision::int8:
      return 9;
    case precision::int4:
      return 5;
  }
  return 32;
}

std::uint64_t count_weights(const model::model_spec& spec) {
  const std::uint64_t hidden = spec.hidden;
  const auto& attention = spec.attention;
  const std::uint64_t projections = 2 * hidden * attention.head_dim * (attention.heads + attention.kv_heads);
  std::uint64_t total = hidden * spec.vocab;
  for (const auto& layer : spec.layers) {
    total += projections;
    total += layer.sparse ? 3 * hidden * (std::uint64_t{spec.moe.experts} * spec.moe.ffn + spec.moe.shared_ffn)
                          : 3 * hidden * spec.ffn;
  }
  return total;
}

/// The format of the tensors that hold most of the weights.
model::dtype stored_type(const model::opened_model& model) {
  const auto& layers = model.spec().layers;
  const auto sparse = std::find_if(layers.begin(), layers.end(), [](const auto& layer) { return layer.sparse; });
  if (sparse == layers.end()) return model.weight(model::tensor_role::ffn_up, 0).type;
  return model.weight(model::tensor_role::expert_up, static_cast<std::uint32_t>(sparse - layers.begin())).type;
}

std::string mebibytes(std::uint64_t bytes) { return std::to_string(ceil_div(bytes, mebibyte)) + " MiB"; }

}  // namespace

precision choose_precision(std::string_view wanted, model::dtype stored) {
  for (precision p : {precision::fp32, precision::bf16, precision::int8, precision::int4})
    if (wanted == engine::to_string(p)) return p;
  switch (stored) {
    case model::dtype::f32:
    case model::dtype::f16:
    case model::dtype::bf16:
      return precision::bf16;
    case model::dtype::q4_0:
    case model::dtype::q4_1:
    case model::dtype::q4_k:
      return precision::int4;
    default:
      return precision::int8;
  }
}

result<memory_plan> plan_memory(const model::opened_model& model, const config::settings& settings,
                                std::uint64_t free_bytes) {
  const auto& spec = model.spec();
  if (settings.model.max_context > spec.max_context)
    return error{error_kind::invalid,
                 "the model's context is " + std::to_string(spec.max_context) + " tokens, less than the " +
                     std::to_string(settings.model.max_context) + " asked for",
                 "model.max_context"};
  const std::uint64_t context = settings.model.max_context > 0 ? settings.model.max_context : spec.max_context;

  memory_plan plan;
  plan.precision = choose_precision(settings.model.precision, stored_type(model));
  plan.weight_bytes =
      static_cast<std::uint64_t>(static_cast<double>(count_weights(spec)) * bits_per_weight(plan.precision) / 8.0);
  const std::uint64_t value_bytes = plan.precision == precision::fp32 ? 4 : 2;
  const std::uint64_t page_bytes =
      value_bytes * 2 * engine::page_tokens * spec.layers.size() * spec.attention.kv_heads * spec.attention.head_dim;
  const std::uint64_t one_context = ceil_div(context, engine::page_tokens);
  const std::uint64_t asked = settings.engine.kv_cache_bytes;
  const std::uint64_t budget = (asked > 0 ? asked : free_bytes / 4) / page_bytes;
  const std::uint64_t pages = std::min(budget, one_context * settings.engine.max_batch_size);
  plan.kv_bytes = pages * page_bytes;

  if (pages < one_context)
    return error{asked > 0 ? error_kind::invalid : error_kind::unsupported,
                 "keys and values of one full context of " + std::to_string(context) + " tokens take " +
                     mebibytes(one_context * page_bytes) + ", and there are " + mebibytes(budget * page_bytes) +
                     " for them: raise --kv-cache-memory, lower --max-model-len, or free memory",
                 "engine.kv_cache_bytes"};
  if (plan.weight_bytes + plan.kv_bytes > free_bytes)
    return error{error_kind::unsupported,
                 "the model's weights take about " + mebibytes(plan.weight_bytes) + " as " +
                     std::string(engine::to_string(plan.precision)) + ", keys and values " + mebibytes(plan.kv_bytes) +
                     ", and this machine has " + mebibytes(free_bytes) +
                     " free: lower --precision or --kv-cache-memory, or free memory",
                 "memory"};
  constexpr std::uint64_t most_pages = 0xFFFF'FFFF;
  plan.kv_pages = static_cast<std::uint32_t>(std::min(pages, most_pages));
  return plan;
}

}  // namespace troupe::app
