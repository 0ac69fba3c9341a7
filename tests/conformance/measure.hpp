#pragma once

#include <array>
#include <iosfwd>

#include "base/result.hpp"
#include "engine/backend.hpp"
#include "golden.hpp"

/// What the conformance table in docs/conformance.md says of a model, measured.
namespace troupe::conformance {

inline constexpr float max_logit_difference = 1e-3F;  ///< fp32 against transformers, at every position.

/// Bounds on mean |logit difference| for logits that span about 15; unrelated logits differ by 2.3. They catch a broken
/// kernel, not a lossy one: these models have random weights, whose rounding errors cancel less than a trained model's,
/// and a token whose routing flips counts in full. Quality is judged by perplexity.
struct lossy_bound {
  engine::precision precision;
  double mean_difference;
};
inline constexpr std::array lossy_bounds{lossy_bound{engine::precision::bf16, 0.1},
                                         lossy_bound{engine::precision::int8, 0.35},
                                         lossy_bound{engine::precision::int4, 1.5}};

struct measurement {
  float max_difference = 0.0F;   ///< fp32, over all positions of all prompts.
  std::size_t greedy_equal = 0;  ///< Continuation tokens equal to the reference's, of `greedy_total`.
  std::size_t greedy_total = 0;
};

/// fp32 against the reference. `model` has its logits.
result<measurement> measure_fp32(const golden_model& model);

/// mean |logit difference| of `precision` against the reference over all positions.
result<double> measure_lossy(const golden_model& model, engine::precision precision);

/// Measures every golden model and writes the table as Markdown.
result<void> write_table(std::ostream& out);

}  // namespace troupe::conformance
