#include "app/upcycle.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <span>
#include <string>

#include "golden.hpp"
#include "runner.hpp"

namespace troupe::conformance {
namespace {

constexpr std::uint32_t experts = 8;
constexpr std::uint32_t top_k = 2;

/// A dense golden model and a folder of its own that is removed with the test.
class UpcycledModel : public testing::TestWithParam<const char*> {
 protected:
  UpcycledModel() : dense_(golden_model_named(GetParam())) {
    std::string pattern = (std::filesystem::temp_directory_path() / "troupe-upcycle-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~UpcycledModel() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path sparse_path() const { return folder_ / dense_.name; }

  result<void> make() const {
    return app::upcycle({.from = dense_.path, .to = sparse_path(), .experts = experts, .top_k = top_k, .seed = 7},
                        [](auto...) { return true; });
  }

  golden_model dense_;
  std::filesystem::path folder_;
};

INSTANTIATE_TEST_SUITE_P(Conformance, UpcycledModel,
                         testing::Values("llama", "mistral", "llama-yarn", "llama-f16.gguf", "llama-q4_1.gguf",
                                         "llama-yarn-q5_0.gguf"),
                         [](const auto& test) {
                           std::string name = test.param;
                           for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
                           return name;
                         });

TEST_P(UpcycledModel, EqualsTheDenseModel) {
  const auto made = make();
  ASSERT_TRUE(made) << made.error().to_string();
  auto dense = runner::open(dense_.path, engine::precision::fp32, 128);
  auto sparse = runner::open(sparse_path(), engine::precision::fp32, 128);
  ASSERT_TRUE(dense) << dense.error().to_string();
  ASSERT_TRUE(sparse) << sparse.error().to_string();
  EXPECT_EQ(sparse->model().spec().architecture, "MixtralForCausalLM");
  EXPECT_EQ(sparse->model().spec().moe.experts, experts);
  for (const auto& prompt : dense_.prompts) {
    const auto expected = dense->logits(prompt.ids);
    const auto logits = sparse->logits(prompt.ids);
    ASSERT_TRUE(expected && logits);
    EXPECT_LE(max_difference(*expected, *logits), 1e-4F);
    const auto answer = sparse->continue_greedily(prompt.ids, prompt.continuation.size());
    ASSERT_TRUE(answer);
    EXPECT_EQ(*answer, prompt.continuation);
  }
}

TEST_P(UpcycledModel, SpreadsItsTokensOverTheExperts) {
  const auto made = make();
  ASSERT_TRUE(made) << made.error().to_string();
  auto sparse = runner::open(sparse_path(), engine::precision::fp32, 128);
  ASSERT_TRUE(sparse) << sparse.error().to_string();
  const auto& prompt = dense_.prompts.back().ids;
  ASSERT_TRUE(sparse->logits(prompt));
  const auto& routed = sparse->last_step().expert_tokens;
  const std::size_t layers = sparse->model().spec().layers.size();
  ASSERT_EQ(routed.size(), layers * experts);
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const auto row = std::span(routed).subspan(layer * experts, experts);
    EXPECT_EQ(std::accumulate(row.begin(), row.end(), 0U), prompt.size() * top_k);
    EXPECT_GE(experts - std::count(row.begin(), row.end(), 0U), experts - 2) << "layer " << layer;
  }
}

}  // namespace
}  // namespace troupe::conformance
