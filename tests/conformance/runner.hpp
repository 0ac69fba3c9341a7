#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "engine/backend.hpp"
#include "model/model.hpp"

/// Runs one sequence at a time on a backend, as plainly as can be: no scheduler, no cache, pages in order.
namespace troupe::conformance {

class runner {
 public:
  /// Opens the model and makes a CPU backend with room for `max_tokens` positions.
  static result<runner> open(const std::filesystem::path& path, engine::precision precision, std::uint32_t max_tokens);

  const model::opened_model& model() const { return *model_; }
  const engine::step_output& last_step() const { return output_; }

  /// Logits at every position of `prompt`, [prompt.size(), vocab], prefilled `chunk` tokens a step (0: all at once).
  result<std::vector<float>> logits(std::span<const token_id> prompt, std::size_t chunk = 0);

  /// The same, given to `use(position, logits [vocab])` as they come, so that long prompts need no memory for all.
  result<void> for_each_position(std::span<const token_id> prompt, std::size_t chunk,
                                 const std::function<void(std::size_t, std::span<const float>)>& use);

  /// The `count` tokens that follow `prompt` greedily: the highest logit, of equals the lowest id.
  result<std::vector<token_id>> continue_greedily(std::span<const token_id> prompt, std::size_t count);

 private:
  runner(std::shared_ptr<const model::opened_model> model, std::unique_ptr<engine::backend> backend);
  result<void> step(std::span<const token_id> tokens, std::size_t first_position, std::size_t prompt_tokens,
                    std::span<const std::uint32_t> wanted);

  std::shared_ptr<const model::opened_model> model_;
  std::unique_ptr<engine::backend> backend_;
  std::vector<page_index> pages_;  ///< All pages of the backend, in order.
  engine::step_output output_;
};

/// max |a - b|; infinity where sizes differ or a value is not a number.
float max_difference(std::span<const float> a, std::span<const float> b);

/// mean |a - b| of two ranges of one size.
double mean_difference(std::span<const float> a, std::span<const float> b);

}  // namespace troupe::conformance
