#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "engine/backend.hpp"
#include "model/spec.hpp"

namespace troupe::cpu {

/// One token of a step: the backend computes rows and never again asks what they were batched with.
struct step_row {
  std::uint32_t sequence = 0;  ///< Index into the batch.
  std::uint32_t position = 0;
  token_id token = 0;
};

/// A step, checked and flattened to rows.
struct step_plan {
  std::vector<step_row> rows;
  std::vector<std::uint32_t> wanted;  ///< Rows whose logits are wanted, in order.

  /// Refuses what would read or write outside the model or the cache: unknown tokens, pages that do not cover the
  /// positions, pages that do not exist, wanted indices out of order, two sequences that write one page.
  result<void> build(std::span<const engine::step_sequence> batch, const model::model_spec& spec,
                     std::uint32_t page_count);

 private:
  std::vector<std::uint32_t> writer_;  ///< [pages]: 1 + the sequence that writes it in this step, else 0.
  std::vector<page_index> written_;
};

}  // namespace troupe::cpu
