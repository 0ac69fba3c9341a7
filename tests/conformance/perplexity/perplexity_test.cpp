#include "perplexity.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "model/model.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe::conformance {
namespace {

/// Windows computed here; the program `perplexity` computes all of them.
constexpr std::size_t test_windows = TROUPE_PERPLEXITY_WINDOWS;

class DefaultModel : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(default_model())) {
      GTEST_SKIP() << "the default model is not at " << default_model()
                   << "; ./test fetches it, or set TROUPE_DEFAULT_MODEL to its file";
    }
  }
  const perplexity_reference reference_ = read_perplexity_reference();
};

class DefaultModelIn : public DefaultModel, public testing::WithParamInterface<engine::precision> {};

INSTANTIATE_TEST_SUITE_P(Perplexity, DefaultModelIn,
                         testing::Values(engine::precision::fp32, engine::precision::bf16, engine::precision::int8,
                                         engine::precision::int4),
                         [](const auto& test) { return std::string(engine::to_string(test.param)); });

TEST_P(DefaultModelIn, HasThePerplexityOfTheReferenceWithinItsBound) {
  const auto seen = measure_perplexity(default_model(), GetParam(), reference_, test_windows);
  ASSERT_TRUE(seen) << seen.error().to_string();
  EXPECT_EQ(seen->tokens, test_windows * reference_.window);
  EXPECT_LE(std::abs(seen->change()), perplexity_bound(GetParam())) << seen->perplexity << " " << seen->reference;
}

TEST_F(DefaultModel, KeepsItsPerplexityWhenUpcycledToExperts) {
  const auto sparse = default_model().parent_path() / "SmolLM2-135M-Instruct-8x2.gguf";
  if (!std::filesystem::exists(sparse)) GTEST_SKIP() << sparse << " is not there; ./test makes it";
  const auto seen = measure_perplexity(sparse, engine::precision::fp32, reference_, 1);
  ASSERT_TRUE(seen) << seen.error().to_string();
  EXPECT_LE(std::abs(seen->change()), perplexity_bound(engine::precision::fp32));
}

TEST_F(DefaultModel, TokenizesTheTextAsHuggingFaceDoes) {
  std::ifstream in(TROUPE_TEST_DATA "/text/devils-dictionary.txt");
  const std::string text(std::istreambuf_iterator<char>(in), {});
  const auto model = model::opened_model::open(default_model());
  ASSERT_TRUE(model) << model.error().to_string();
  auto ids = (*model)->text().encode(text, false);
  ASSERT_GE(ids.size(), reference_.ids.size());
  ids.resize(reference_.ids.size());
  EXPECT_EQ(ids, reference_.ids);
}

}  // namespace
}  // namespace troupe::conformance
