#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "cpu/weight_source.hpp"
#include "synthetic.hpp"

/// Runs sequences through a backend in batches and chunks of the test's choice.
namespace troupe::cpu::test {

inline std::unique_ptr<engine::backend> make_backend(const weight_source& from, engine::precision precision,
                                                     isa tier = isa::scalar, std::uint32_t threads = 1,
                                                     std::uint32_t pages = 256) {
  auto made = make_cpu_backend(
      from, {.common = {.precision = precision, .kv_pages = pages, .threads = threads}, .instructions = tier});
  EXPECT_TRUE(made) << (made ? "" : made.error().to_string());
  return made ? std::move(*made) : nullptr;
}

/// A sequence with pages of its own and a place in them.
struct sequence {
  std::vector<token_id> tokens;
  std::vector<page_index> pages;
  std::uint32_t done = 0;
  std::vector<std::vector<float>> logits;  ///< One row per computed token.
};

inline sequence make_sequence(std::uint32_t length, std::uint32_t first_page, std::uint32_t seed, std::uint32_t vocab) {
  sequence s;
  std::mt19937 engine(seed);
  for (std::uint32_t i = 0; i < length; ++i) s.tokens.push_back(static_cast<token_id>(engine() % vocab));
  for (std::uint32_t p = 0; p < (length + 15) / 16; ++p) s.pages.push_back(page_index{first_page + p});
  return s;
}

/// One step: each sequence computes up to its count of further tokens.
inline void advance(engine::backend& backend, std::span<sequence* const> batch, std::span<const std::uint32_t> counts,
                    std::uint32_t vocab) {
  std::vector<std::uint32_t> all(4096);
  std::iota(all.begin(), all.end(), 0U);
  std::vector<engine::step_sequence> step;
  std::vector<sequence*> rows;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    sequence& s = *batch[i];
    const auto count = std::min<std::size_t>(counts[i], s.tokens.size() - s.done);
    if (count == 0) continue;
    step.push_back({.tokens = std::span(s.tokens).subspan(s.done, count),
                    .first_position = s.done,
                    .prompt_tokens = static_cast<std::uint32_t>(s.tokens.size()),
                    .pages = s.pages,
                    .wanted = std::span(all).first(count)});
    rows.insert(rows.end(), count, &s);
    s.done += static_cast<std::uint32_t>(count);
  }
  engine::step_output output;
  const auto stepped = backend.step(step, output);
  ASSERT_TRUE(stepped) << stepped.error().to_string();
  ASSERT_EQ(output.logits.size(), rows.size() * vocab);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto* row = output.logits.data() + r * vocab;
    rows[r]->logits.emplace_back(row, row + vocab);
  }
}

/// The whole sequence alone, `chunk` tokens at a time.
inline std::vector<std::vector<float>> run_alone(engine::backend& backend, sequence s, std::uint32_t chunk,
                                                 std::uint32_t vocab) {
  sequence* const batch[] = {&s};
  const std::uint32_t counts[] = {chunk};
  while (s.done < s.tokens.size() && !testing::Test::HasFatalFailure()) advance(backend, batch, counts, vocab);
  return s.logits;
}

}  // namespace troupe::cpu::test
