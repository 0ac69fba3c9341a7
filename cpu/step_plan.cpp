#include "cpu/step_plan.hpp"

#include <string>

namespace troupe::cpu {
namespace {

error bad_input(std::size_t sequence, const std::string& what) {
  return error{error_kind::invalid, what, "step sequence " + std::to_string(sequence)};
}

result<void> check(const engine::step_sequence& s, std::size_t index, const model::model_spec& spec,
                   std::uint32_t page_count) {
  if (s.tokens.empty()) return bad_input(index, "has no tokens");
  const std::uint64_t end = std::uint64_t{s.first_position} + s.tokens.size();
  if (end > UINT32_MAX) return bad_input(index, "has positions beyond 32 bits");
  if (end > std::uint64_t{s.pages.size()} * engine::page_tokens) {
    return bad_input(index, "has pages for " + std::to_string(s.pages.size() * engine::page_tokens) +
                                " positions but needs " + std::to_string(end));
  }
  for (const token_id token : s.tokens) {
    if (token < 0 || static_cast<std::uint32_t>(token) >= spec.vocab) {
      return bad_input(
          index, "has token " + std::to_string(token) + " outside the vocabulary of " + std::to_string(spec.vocab));
    }
  }
  const std::size_t used = (end + engine::page_tokens - 1) / engine::page_tokens;
  for (const page_index page : s.pages.first(used)) {
    if (static_cast<std::uint32_t>(page) >= page_count) {
      return bad_input(index, "names page " + std::to_string(static_cast<std::uint32_t>(page)) + " of " +
                                  std::to_string(page_count));
    }
  }
  for (std::size_t i = 0; i < s.wanted.size(); ++i) {
    if (s.wanted[i] >= s.tokens.size() || (i > 0 && s.wanted[i] <= s.wanted[i - 1])) {
      return bad_input(index, "wants logits out of order or beyond its tokens");
    }
  }
  return {};
}

}  // namespace

result<void> step_plan::build(std::span<const engine::step_sequence> batch, const model::model_spec& spec,
                              std::uint32_t page_count) {
  rows.clear();
  wanted.clear();
  writer_.resize(page_count, 0);
  for (const page_index page : written_) writer_[static_cast<std::uint32_t>(page)] = 0;
  written_.clear();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto& s = batch[i];
    if (auto checked = check(s, i, spec, page_count); !checked) return checked;
    const auto sequence = static_cast<std::uint32_t>(i);
    const std::uint32_t last = s.first_position + static_cast<std::uint32_t>(s.tokens.size()) - 1;
    for (std::uint32_t p = s.first_position / engine::page_tokens; p <= last / engine::page_tokens; ++p) {
      auto& writer = writer_[static_cast<std::uint32_t>(s.pages[p])];
      if (writer != 0) {
        return bad_input(i, "writes page " + std::to_string(static_cast<std::uint32_t>(s.pages[p])) +
                                ", which step sequence " + std::to_string(writer - 1) + " writes too");
      }
      writer = sequence + 1;
      written_.push_back(s.pages[p]);
    }
    for (const std::uint32_t w : s.wanted) wanted.push_back(static_cast<std::uint32_t>(rows.size()) + w);
    for (std::uint32_t t = 0; t < s.tokens.size(); ++t) {
      rows.push_back({.sequence = sequence, .position = s.first_position + t, .token = s.tokens[t]});
    }
  }
  return {};
}

}  // namespace troupe::cpu
