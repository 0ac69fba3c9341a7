#include "measure.hpp"

#include <algorithm>
#include <iomanip>
#include <ostream>
#include <span>
#include <sstream>
#include <string>

#include "runner.hpp"

namespace troupe::conformance {
namespace {

constexpr std::uint32_t max_tokens = 128;  ///< The longest prompt and its continuation.

std::string scientific(double value) {
  std::ostringstream out;
  out << std::scientific << std::setprecision(0) << value;
  return out.str();
}

std::string fixed(double value) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(3) << value;
  return out.str();
}

}  // namespace

result<measurement> measure_fp32(const golden_model& model) {
  auto opened = runner::open(model.path, engine::precision::fp32, max_tokens);
  if (!opened) return opened.error();
  measurement seen;
  for (const auto& prompt : model.prompts) {
    auto logits = opened->logits(prompt.ids);
    if (!logits) return logits.error();
    seen.max_difference = std::max(seen.max_difference, max_difference(*logits, prompt.logits));
    auto answer = opened->continue_greedily(prompt.ids, prompt.continuation.size());
    if (!answer) return answer.error();
    seen.greedy_total += answer->size();
    for (std::size_t i = 0; i < answer->size(); ++i) seen.greedy_equal += (*answer)[i] == prompt.continuation[i];
  }
  return seen;
}

result<double> measure_lossy(const golden_model& model, engine::precision precision) {
  auto opened = runner::open(model.path, precision, max_tokens);
  if (!opened) return opened.error();
  double sum = 0.0;
  std::size_t values = 0;
  for (const auto& prompt : model.prompts) {
    auto logits = opened->logits(prompt.ids);
    if (!logits) return logits.error();
    sum += mean_difference(*logits, prompt.logits) * static_cast<double>(logits->size());
    values += logits->size();
  }
  return sum / static_cast<double>(values);
}

result<void> write_table(std::ostream& out) {
  out << "| model | architecture | what it covers | file | max abs difference, fp32 | greedy tokens equal |";
  for (const auto& bound : lossy_bounds) out << " mean, " << engine::to_string(bound.precision) << " |";
  out << "\n|---|---|---|---|---|---|---|---|---|\n";
  for (auto& model : golden_models()) {
    read_logits(model);
    auto seen = measure_fp32(model);
    if (!seen) return seen.error();
    out << "| " << model.name << " | " << model.architecture << " | " << model.features << " | " << model.file << " | "
        << scientific(seen->max_difference) << " | " << seen->greedy_equal << " / " << seen->greedy_total << " |";
    for (const auto& bound : lossy_bounds) {
      auto mean = measure_lossy(model, bound.precision);
      if (!mean) return mean.error();
      out << ' ' << fixed(*mean) << " |";
    }
    out << '\n';
  }
  return {};
}

}  // namespace troupe::conformance
