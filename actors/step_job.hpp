#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "actors/stage.hpp"
#include "base/ids.hpp"
#include "engine/backend.hpp"
#include "engine/step_scheduler.hpp"
#include "model/sampling/sampler.hpp"

namespace troupe::actors {

/// What the executor does for one sequence in a step. It holds copies, so that the collector may change its sequences
/// meanwhile; the sampler is the executor's alone while the step runs.
struct step_entry {
  engine::step_item item;
  std::vector<token_id> tokens;  ///< The rows to compute.
  std::vector<page_index> pages;
  std::uint32_t prompt_tokens = 0;
  std::vector<token_id> score_targets;  ///< The prompt tokens that follow the scored positions.
  int score_alternatives = 0;
  std::shared_ptr<model::sampler> sampler;  ///< Null unless item.samples.
};

struct step_outcome {
  sequence_id id;
  std::optional<model::sampled_token> token;
  std::vector<model::sampled_token> scores;  ///< One for each of score_targets.
};

/// One step: the collector fills `entries`, the executor the rest.
struct step_job {
  std::vector<step_entry> entries;
  ticket_ptr held;  ///< The executor's credit.
  std::vector<step_outcome> outcomes;
  std::vector<std::uint32_t> expert_tokens;
  double seconds = 0.0;
  std::optional<error> failure;  ///< Nothing of the step may be used. Empty in a step that never began.
};
using step_job_ptr = std::shared_ptr<step_job>;

/// Computes a job: runs the backend, scores prompts and draws tokens. `output` keeps its memory between steps.
result<void> run_step(engine::backend& backend, std::size_t vocabulary, engine::step_output& output, step_job& job);

}  // namespace troupe::actors
