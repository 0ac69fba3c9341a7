#include "perplexity.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <numeric>
#include <span>
#include <stdexcept>

#include "runner.hpp"

namespace troupe::conformance {
namespace {

constexpr std::size_t chunk = 128;  ///< Tokens a step: bounds the logits held at once to 25 MB.

/// -log softmax(logits)[target], in double.
double loss_of(std::span<const float> logits, token_id target) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  return most + std::log(sum) - static_cast<double>(logits[static_cast<std::size_t>(target)]);
}

result<double> window_loss(runner& model, std::span<const token_id> ids) {
  double loss = 0.0;
  auto done = model.for_each_position(ids, chunk, [&](std::size_t position, std::span<const float> logits) {
    if (position + 1 < ids.size()) loss += loss_of(logits, ids[position + 1]);
  });
  if (!done) return done.error();
  return loss;
}

}  // namespace

perplexity_reference read_perplexity_reference() {
  std::ifstream in(TROUPE_TEST_DATA "/text/perplexity.json");
  const auto data = boost::json::parse(std::string(std::istreambuf_iterator<char>(in), {}));
  perplexity_reference reference;
  reference.window = data.at("window").to_number<std::size_t>();
  reference.ids = boost::json::value_to<std::vector<token_id>>(data.at("ids"));
  reference.losses = boost::json::value_to<std::vector<double>>(data.at("losses"));
  if (reference.window < 2 || reference.ids.size() != reference.window * reference.losses.size()) {
    throw std::runtime_error("perplexity.json: not a whole number of windows");
  }
  return reference;
}

double perplexity_bound(engine::precision precision) {
  switch (precision) {
    case engine::precision::fp32:
      return 1e-4;
    case engine::precision::bf16:
      return 0.002;
    case engine::precision::int8:
      return 0.01;
    case engine::precision::int4:
      return 0.05;
  }
  return 0.0;
}

std::filesystem::path default_model() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): read once, before any thread starts
  const char* named = std::getenv("TROUPE_DEFAULT_MODEL");
  return named != nullptr ? named : TROUPE_SOURCE_DIR "/models/SmolLM2-135M-Instruct.Q4_1.gguf";
}

result<perplexity_result> measure_perplexity(const std::filesystem::path& model, engine::precision precision,
                                             const perplexity_reference& reference, std::size_t windows,
                                             const std::function<void(const perplexity_result&)>& progress) {
  auto opened = runner::open(model, precision, static_cast<std::uint32_t>(reference.window));
  if (!opened) return opened.error();
  perplexity_result seen;
  double loss = 0.0;
  double expected = 0.0;
  for (std::size_t w = 0; w < std::min(windows, reference.losses.size()); ++w) {
    const auto ids = std::span(reference.ids).subspan(w * reference.window, reference.window);
    const auto window = window_loss(*opened, ids);
    if (!window) return window.error();
    loss += *window;
    expected += reference.losses[w];
    seen.tokens += ids.size();
    const auto predicted = static_cast<double>((w + 1) * (reference.window - 1));
    seen.perplexity = std::exp(loss / predicted);
    seen.reference = std::exp(expected / predicted);
    seen.worst_window = std::max(seen.worst_window, std::abs(*window / reference.losses[w] - 1.0));
    if (progress) progress(seen);
  }
  return seen;
}

}  // namespace troupe::conformance
