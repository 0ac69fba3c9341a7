#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "engine/backend.hpp"

/// Perplexity of the default model on public-domain prose, by precision, against transformers' fp32 result on the same
/// token ids (tools/make_perplexity.py).
namespace troupe::conformance {

/// tests/data/text/perplexity.json. A window is `window` tokens read from an empty context.
struct perplexity_reference {
  std::size_t window = 0;
  std::vector<token_id> ids;
  std::vector<double> losses;  ///< Per window: sum of -log p over all its tokens but the first.
};
perplexity_reference read_perplexity_reference();  ///< Throws where the file is not as the script writes it.

/// How far perplexity may lie from the fp32 reference, relative to it.
double perplexity_bound(engine::precision precision);

/// The default model's file: TROUPE_DEFAULT_MODEL, else where ./run and ./test fetch it to.
std::filesystem::path default_model();

struct perplexity_result {
  std::size_t tokens = 0;
  double perplexity = 0.0;
  double reference = 0.0;     ///< Of the same windows.
  double worst_window = 0.0;  ///< Largest |loss - reference loss| / reference loss of a window.
  double change() const { return perplexity / reference - 1.0; }
};

/// Computes the first `windows` windows. `progress`, if any, is called after each with the result so far.
result<perplexity_result> measure_perplexity(const std::filesystem::path& model, engine::precision precision,
                                             const perplexity_reference& reference, std::size_t windows,
                                             const std::function<void(const perplexity_result&)>& progress = {});

}  // namespace troupe::conformance
