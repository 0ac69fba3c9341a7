#pragma once

#include <functional>
#include <random>
#include <span>
#include <vector>

#include "engine/backend.hpp"

/// A backend for tests of what is around it. It keeps in each page the tokens that a real one would compute keys and
/// values from, and its logits are a function of the tokens that it finds there: a wrong page, a lost token or a step
/// counted twice changes every byte that follows. A script can make any step fail, throw or wait.
namespace troupe::actors::test {

class scripted_backend : public engine::backend {
 public:
  /// What happens before a step: `step` counts from 0. It may return an error, throw, or block.
  using script = std::function<result<void>(std::uint64_t step, std::span<const engine::step_sequence> batch)>;

  scripted_backend(std::uint32_t pages, std::uint32_t vocab, std::vector<token_id> never, script before = {})
      : slots_(std::size_t{pages} * engine::page_tokens, -1),
        vocab_(vocab),
        never_(std::move(never)),
        before_(std::move(before)) {}

  result<void> step(std::span<const engine::step_sequence> batch, engine::step_output& output) override {
    const std::uint64_t index = steps_++;
    output.logits.clear();
    output.expert_tokens.clear();
    for (const auto& s : batch)
      for (std::size_t i = 0; i < s.tokens.size(); ++i) slot(s, s.first_position + i) = s.tokens[i];
    if (before_)
      if (auto allowed = before_(index, batch); !allowed) return allowed;
    for (const auto& s : batch)
      for (const std::uint32_t row : s.wanted) append_logits(s, s.first_position + row, output.logits);
    return {};
  }

  std::uint32_t page_count() const override { return static_cast<std::uint32_t>(slots_.size() / engine::page_tokens); }
  result<void> load_expert(expert_id) override { return {}; }
  void unload_expert(expert_id) override {}
  bool expert_resident(expert_id) const override { return true; }
  engine::expert_totals resident_experts() const override { return {}; }
  std::uint64_t expert_bytes(expert_id) const override { return 1; }
  std::string description() const override { return "scripted"; }

 private:
  token_id& slot(const engine::step_sequence& s, std::size_t position) {
    const auto page = static_cast<std::size_t>(s.pages[position / engine::page_tokens]);
    return slots_[page * engine::page_tokens + position % engine::page_tokens];
  }

  void append_logits(const engine::step_sequence& s, std::size_t position, std::vector<float>& logits) {
    std::uint64_t hash = 1469598103934665603U;  // FNV-1a over the history
    for (std::size_t p = 0; p <= position; ++p)
      hash = (hash ^ static_cast<std::uint64_t>(slot(s, p) + 1)) * 1099511628211U;
    std::mt19937_64 random(hash);
    const std::size_t begin = logits.size();
    for (std::uint32_t v = 0; v < vocab_; ++v) logits.push_back(static_cast<float>(random() % 8000) / 1000.0F);
    for (const token_id id : never_) logits[begin + static_cast<std::size_t>(id)] = -30.0F;
  }

  std::vector<token_id> slots_;  ///< [pages, page_tokens]
  std::uint32_t vocab_;
  std::vector<token_id> never_;
  script before_;
  std::uint64_t steps_ = 0;
};

}  // namespace troupe::actors::test
