#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "golden.hpp"
#include "measure.hpp"
#include "model/tokenizer/tokenizer.hpp"
#include "runner.hpp"

namespace troupe::conformance {
namespace {

std::string test_name(const testing::TestParamInfo<golden_model>& info) {
  std::string name = info.param.name;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

class EveryArchitecture : public testing::TestWithParam<golden_model> {
 protected:
  EveryArchitecture() : model_(GetParam()) { read_logits(model_); }
  golden_model model_;
};

INSTANTIATE_TEST_SUITE_P(Conformance, EveryArchitecture, testing::ValuesIn(golden_models()), test_name);

TEST_P(EveryArchitecture, GivesTheReferenceLogitsAndGreedyTokensInFp32) {
  const auto seen = measure_fp32(model_);
  ASSERT_TRUE(seen) << seen.error().to_string();
  EXPECT_LE(seen->max_difference, max_logit_difference);
  EXPECT_EQ(seen->greedy_total, 3U * 32U);
  EXPECT_EQ(seen->greedy_equal, seen->greedy_total);
}

TEST_P(EveryArchitecture, GivesTheReferenceLogitsWhenPrefilledInChunks) {
  auto opened = runner::open(model_.path, engine::precision::fp32, 128);
  ASSERT_TRUE(opened) << opened.error().to_string();
  const auto& longest = model_.prompts.back();
  for (const std::size_t chunk : {1U, 19U}) {
    const auto logits = opened->logits(longest.ids, chunk);
    ASSERT_TRUE(logits) << logits.error().to_string();
    EXPECT_LE(max_difference(*logits, longest.logits), max_logit_difference) << "chunks of " << chunk;
  }
}

TEST_P(EveryArchitecture, StaysNearTheReferenceInLowerPrecision) {
  for (const auto& bound : lossy_bounds) {
    const auto mean = measure_lossy(model_, bound.precision);
    ASSERT_TRUE(mean) << mean.error().to_string();
    EXPECT_LE(*mean, bound.mean_difference) << engine::to_string(bound.precision);
  }
}

TEST_P(EveryArchitecture, HasATokenizerThatFitsTheModel) {
  const auto opened = model::opened_model::open(model_.path);
  ASSERT_TRUE(opened) << opened.error().to_string();
  const auto& text = (*opened)->text();
  EXPECT_EQ((*opened)->spec().vocab, model_.vocab);
  EXPECT_EQ(text.vocab_size(), model_.vocab);
  const auto ids = text.encode("the cat and the hat", false);
  EXPECT_EQ(text.decode(ids, false), "the cat and the hat");
}

/// Rows of the Markdown table in docs/conformance.md: model name to stated maximum difference.
std::map<std::string, double> documented_differences() {
  std::ifstream in(TROUPE_SOURCE_DIR "/docs/conformance.md");
  std::map<std::string, double> rows;
  for (std::string line; std::getline(in, line);) {
    std::vector<std::string> cells;
    std::istringstream fields(line);
    for (std::string cell; std::getline(fields, cell, '|');) cells.push_back(cell);
    if (cells.size() < 7 || cells[1].size() < 3 || cells[5].find("e-") == std::string::npos) continue;
    rows[cells[1].substr(1, cells[1].size() - 2)] = std::stod(cells[5]);
  }
  return rows;
}

TEST(ConformanceTable, ListsEveryModelWithTheDifferenceThatIsMeasured) {
  const auto rows = documented_differences();
  auto models = golden_models();
  EXPECT_EQ(rows.size(), models.size());
  for (auto& model : models) {
    const auto row = rows.find(model.name);
    ASSERT_NE(row, rows.end()) << model.name << " is missing in docs/conformance.md";
    read_logits(model);
    const auto seen = measure_fp32(model);
    ASSERT_TRUE(seen) << seen.error().to_string();
    // Another libm may round exp and cos differently: the order of magnitude must hold.
    EXPECT_LE(seen->max_difference, 4 * row->second + 1e-5) << model.name;
  }
}

}  // namespace
}  // namespace troupe::conformance
