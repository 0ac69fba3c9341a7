#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.hpp"
#include "config/settings.hpp"
#include "engine/backend.hpp"
#include "model/model.hpp"

/// Decides before anything big is allocated what a model will take: in which precision it computes, how many KV pages
/// there are, and whether the machine has room for both. Pure: the free memory is an argument.
namespace troupe::app {

struct memory_plan {
  engine::precision precision = engine::precision::int8;
  std::uint32_t kv_pages = 0;
  std::uint64_t weight_bytes = 0;  ///< All weights in compute layout, every expert resident.
  std::uint64_t kv_bytes = 0;
};

/// `wanted` is model.precision. "auto" takes what costs the file's weights least: 4-bit formats compute as int4, other
/// quantised ones as int8, plain ones as bf16.
engine::precision choose_precision(std::string_view wanted, model::dtype stored);

/// Too little memory is `unsupported` and says what would fit.
result<memory_plan> plan_memory(const model::opened_model& model, const config::settings& settings,
                                std::uint64_t free_bytes);

}  // namespace troupe::app
