#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "cpu/model_weights.hpp"

/// The experts that are in compute layout. Any thread may load and unload while a step runs: who computes holds a
/// reference, and memory goes when the last reference does.
namespace troupe::cpu {

class expert_store {
 public:
  using expert = std::shared_ptr<const packed_ffn>;

  expert_store(const weight_source& source, engine::precision compute);

  result<void> load(expert_id id);
  void unload(expert_id id);
  bool resident(expert_id id) const;
  std::uint64_t bytes(expert_id id) const;
  engine::expert_totals totals() const;

  /// The wanted experts of one layer, in the given order; absent ones are packed first, side by side on `pool`.
  result<void> acquire(std::uint32_t layer, std::span<const std::uint32_t> experts, thread_pool& pool,
                       std::vector<expert>& out);

 private:
  bool valid(expert_id id) const;
  std::size_t slot(expert_id id) const { return std::size_t{id.layer} * experts_ + id.index; }
  result<expert> find_or_pack(expert_id id);

  const weight_source& source_;
  engine::precision compute_;
  std::size_t experts_ = 0;
  mutable std::mutex mutex_;   ///< Guards `slots_` and `resident_`; held for moments.
  std::vector<expert> slots_;  ///< [layers, experts]
  engine::expert_totals resident_;
  std::array<std::mutex, 64> packing_;  ///< By slot: two callers do not pack the same expert twice.
};

}  // namespace troupe::cpu
