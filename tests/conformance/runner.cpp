#include "runner.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "cpu/cpu_backend.hpp"

namespace troupe::conformance {

result<runner> runner::open(const std::filesystem::path& path, engine::precision precision, std::uint32_t max_tokens) {
  auto model = model::opened_model::open(path);
  if (!model) return model.error();
  cpu::cpu_options options;
  options.common.precision = precision;
  options.common.kv_pages = (max_tokens + engine::page_tokens - 1) / engine::page_tokens;
  auto backend = cpu::make_cpu_backend(*model, options);
  if (!backend) return backend.error();
  return runner(std::move(*model), std::move(*backend));
}

runner::runner(std::shared_ptr<const model::opened_model> model, std::unique_ptr<engine::backend> backend)
    : model_(std::move(model)), backend_(std::move(backend)) {
  for (std::uint32_t page = 0; page < backend_->page_count(); ++page) pages_.push_back(page_index{page});
}

result<void> runner::step(std::span<const token_id> tokens, std::size_t first_position, std::size_t prompt_tokens,
                          std::span<const std::uint32_t> wanted) {
  engine::step_sequence sequence;
  sequence.tokens = tokens;
  sequence.first_position = static_cast<std::uint32_t>(first_position);
  sequence.prompt_tokens = static_cast<std::uint32_t>(prompt_tokens);
  const std::size_t used = (first_position + tokens.size() + engine::page_tokens - 1) / engine::page_tokens;
  sequence.pages = std::span(pages_).first(used);
  sequence.wanted = wanted;
  return backend_->step(std::span(&sequence, 1), output_);
}

result<void> runner::for_each_position(std::span<const token_id> prompt, std::size_t chunk,
                                       const std::function<void(std::size_t, std::span<const float>)>& use) {
  std::vector<std::uint32_t> every(chunk);
  std::iota(every.begin(), every.end(), 0U);
  const std::size_t vocab = model_->spec().vocab;
  for (std::size_t at = 0; at < prompt.size(); at += chunk) {
    const auto tokens = prompt.subspan(at, std::min(chunk, prompt.size() - at));
    auto done = step(tokens, at, prompt.size(), std::span(every).first(tokens.size()));
    if (!done) return done;
    for (std::size_t i = 0; i < tokens.size(); ++i) use(at + i, std::span(output_.logits).subspan(i * vocab, vocab));
  }
  return {};
}

result<std::vector<float>> runner::logits(std::span<const token_id> prompt, std::size_t chunk) {
  std::vector<float> all;
  auto done = for_each_position(
      prompt, chunk == 0 ? prompt.size() : chunk,
      [&](std::size_t, std::span<const float> row) { all.insert(all.end(), row.begin(), row.end()); });
  if (!done) return done.error();
  return all;
}

result<std::vector<token_id>> runner::continue_greedily(std::span<const token_id> prompt, std::size_t count) {
  std::vector<token_id> answer;
  auto wanted = static_cast<std::uint32_t>(prompt.size() - 1);
  auto tokens = prompt;
  std::size_t position = 0;
  while (answer.size() < count) {
    auto done = step(tokens, position, prompt.size(), std::span(&wanted, 1));
    if (!done) return done.error();
    position += tokens.size();
    const auto best = std::max_element(output_.logits.begin(), output_.logits.end());
    answer.push_back(static_cast<token_id>(best - output_.logits.begin()));
    tokens = std::span(answer).last(1);
    wanted = 0;
  }
  return answer;
}

float max_difference(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return std::numeric_limits<float>::infinity();
  float most = 0.0F;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float difference = std::abs(a[i] - b[i]);
    if (!(difference <= std::numeric_limits<float>::max())) return std::numeric_limits<float>::infinity();
    most = std::max(most, difference);
  }
  return most;
}

double mean_difference(std::span<const float> a, std::span<const float> b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
  return sum / static_cast<double>(a.size());
}

}  // namespace troupe::conformance
