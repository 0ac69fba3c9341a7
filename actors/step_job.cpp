#include "actors/step_job.hpp"

#include <span>

namespace troupe::actors {
namespace {

/// Rows of the chunk whose logits are wanted: the scored positions, and the last one when it samples.
std::vector<std::uint32_t> wanted_rows(const engine::step_item& item) {
  std::vector<std::uint32_t> rows;
  for (std::uint32_t position = item.score_from; position < item.score_to; ++position)
    rows.push_back(position - item.first);
  if (item.samples && (rows.empty() || rows.back() != item.count - 1)) rows.push_back(item.count - 1);
  return rows;
}

}  // namespace

result<void> run_step(engine::backend& backend, std::size_t vocabulary, engine::step_output& output, step_job& job) {
  std::vector<std::vector<std::uint32_t>> wanted;
  std::vector<engine::step_sequence> batch;
  wanted.reserve(job.entries.size());
  for (const auto& entry : job.entries) {
    wanted.push_back(wanted_rows(entry.item));
    batch.push_back({entry.tokens, entry.item.first, entry.prompt_tokens, entry.pages, wanted.back()});
  }
  if (auto computed = backend.step(batch, output); !computed) return computed;
  std::size_t rows = 0;
  for (const auto& list : wanted) rows += list.size();
  if (output.logits.size() != rows * vocabulary)
    return error{error_kind::internal,
                 "the backend returned " + std::to_string(output.logits.size()) + " logits for " +
                     std::to_string(rows) + " rows",
                 "executor"};

  job.expert_tokens = output.expert_tokens;
  const float* row = output.logits.data();
  for (std::size_t i = 0; i < job.entries.size(); ++i) {
    auto& entry = job.entries[i];
    step_outcome outcome{entry.item.id, std::nullopt, {}};
    for (std::size_t r = 0; r < wanted[i].size(); ++r, row += vocabulary) {
      const std::span<const float> logits(row, vocabulary);
      if (r < entry.score_targets.size())
        outcome.scores.push_back(model::score(logits, entry.score_targets[r], entry.score_alternatives));
      if (entry.item.samples && r + 1 == wanted[i].size()) outcome.token = entry.sampler->sample(logits);
    }
    job.outcomes.push_back(std::move(outcome));
  }
  return {};
}

}  // namespace troupe::actors
