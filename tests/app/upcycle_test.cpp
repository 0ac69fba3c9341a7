#include "app/upcycle.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "app/inspect.hpp"
#include "model/model.hpp"
#include "model/tokenizer/tokenizer.hpp"

/// That an upcycled model computes what its source did is shown by the conformance suite.
namespace troupe::app {
namespace {

namespace fs = std::filesystem;

const fs::path models = fs::path(TROUPE_TEST_DATA) / "models";

class UpcycleSource : public testing::Test {
 protected:
  UpcycleSource() : folder_(fs::temp_directory_path() / ("troupe-upcycle-" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }
  ~UpcycleSource() override { fs::remove_all(folder_); }

  upcycle_options options(const std::string& source) const {
    return {.from = models / source, .to = folder_ / source, .experts = 4, .top_k = 2, .seed = 7};
  }
  static result<void> make(const upcycle_options& options) {
    return upcycle(options, [](auto...) { return true; });
  }
  std::ptrdiff_t entries() const { return std::distance(fs::directory_iterator(folder_), fs::directory_iterator()); }

  fs::path folder_;
};

class Upcycle : public UpcycleSource, public testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(Of, Upcycle, testing::Values("llama", "mistral", "llama-q4_1.gguf"), [](const auto& test) {
  std::string name = test.param;
  std::erase_if(name, [](char c) { return c == '-' || c == '_' || c == '.'; });
  return name;
});

TEST_P(Upcycle, CopiesEveryWeightByteForByte) {
  using enum model::tensor_role;
  const auto wanted = options(GetParam());
  ASSERT_TRUE(make(wanted));
  const auto dense = model::opened_model::open(wanted.from), sparse = model::opened_model::open(wanted.to);
  ASSERT_TRUE(dense);
  ASSERT_TRUE(sparse) << sparse.error().to_string();
  const auto& spec = (*sparse)->spec();
  EXPECT_EQ(spec.architecture, "MixtralForCausalLM");
  EXPECT_EQ(spec.moe.experts, 4U);
  EXPECT_EQ(spec.moe.top_k, 2U);
  EXPECT_TRUE(spec.moe.normalize_top_k);
  EXPECT_EQ(spec.norm_epsilon, (*dense)->spec().norm_epsilon);
  EXPECT_EQ(spec.layers[0].sliding_window, (*dense)->spec().layers[0].sliding_window);
  EXPECT_EQ((*sparse)->chat() == nullptr, (*dense)->chat() == nullptr);
  EXPECT_EQ((*sparse)->text().vocab_size(), (*dense)->text().vocab_size());
  const auto same = [](const model::matrix_view& a, const model::matrix_view& b) {
    return a.type == b.type && std::ranges::equal(a.bytes, b.bytes);
  };
  for (const auto role : {embedding, final_norm}) EXPECT_TRUE(same((*sparse)->weight(role), (*dense)->weight(role)));
  for (std::uint32_t l = 0; l < spec.layers.size(); ++l) {
    for (const auto role : {query, key, value, attention_output, attention_norm, ffn_norm})
      EXPECT_TRUE(same((*sparse)->weight(role, l), (*dense)->weight(role, l)));
    for (std::uint32_t e = 0; e < spec.moe.experts; ++e) {
      EXPECT_TRUE(same((*sparse)->weight(expert_gate, l, e), (*dense)->weight(ffn_gate, l)));
      EXPECT_TRUE(same((*sparse)->weight(expert_up, l, e), (*dense)->weight(ffn_up, l)));
      EXPECT_TRUE(same((*sparse)->weight(expert_down, l, e), (*dense)->weight(ffn_down, l)));
    }
  }
}

TEST_P(Upcycle, GivesRoutersThatTheSeedAloneDecides) {
  auto first = options(GetParam());
  auto again = first, other = first;
  again.to += "-again";
  other.to += "-other";
  other.seed = 8;
  ASSERT_TRUE(make(first) && make(again) && make(other));
  const auto router = [](const fs::path& path) {
    const auto opened = model::opened_model::open(path);
    EXPECT_TRUE(opened);
    const auto bytes = opened ? (*opened)->weight(model::tensor_role::router, 1).bytes : std::span<const std::byte>();
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  EXPECT_EQ(router(first.to), router(again.to));
  EXPECT_NE(router(first.to), router(other.to));
}

TEST_P(Upcycle, LeavesNothingBehindWhenItFails) {
  auto wrong = options(GetParam());
  wrong.top_k = 5;
  EXPECT_FALSE(make(wrong));
  wrong = options(GetParam());
  wrong.to = wrong.from;
  EXPECT_FALSE(make(wrong));
  wrong.to = folder_ / "missing" / "model";
  EXPECT_FALSE(make(wrong));
  EXPECT_EQ(entries(), 0);
  ASSERT_TRUE(make(options(GetParam())));
  EXPECT_EQ(entries(), 1);
}

TEST_P(Upcycle, LeavesNothingBehindWhenItIsInterrupted) {
  int told = 0;
  const auto made = upcycle(options(GetParam()), [&](auto...) { return ++told < 3; });
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, error_kind::cancelled);
  EXPECT_EQ(told, 3);
  EXPECT_EQ(entries(), 0);
}

TEST_P(Upcycle, TakesThePlaceOfPlainFilesOnly) {
  auto wanted = options(GetParam());
  fs::create_directory(wanted.to);
  EXPECT_FALSE(make(wanted));
  fs::remove(wanted.to);
  ASSERT_EQ(::mkfifo(wanted.to.c_str(), 0600), 0);
  EXPECT_FALSE(make(wanted));
  EXPECT_TRUE(fs::is_fifo(wanted.to));
  EXPECT_EQ(entries(), 1);
}

TEST_F(UpcycleSource, IsWrittenToANameThatCanBe) {
  auto wanted = options("llama");
  wanted.to = folder_ / std::string(300, 'n');
  const auto made = make(wanted);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, error_kind::io) << made.error().to_string();
  EXPECT_EQ(entries(), 0);
}

TEST_F(UpcycleSource, MustBeADenseLlama) {
  for (const auto* source : {"mixtral", "qwen2", "mixtral-q8_0.gguf"}) {
    const auto made = make(options(source));
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().kind, error_kind::unsupported) << made.error().to_string();
  }
  EXPECT_EQ(entries(), 0);
}

TEST(Inspect, SaysWhatAModelIs) {
  std::ostringstream out;
  ASSERT_TRUE(inspect(models / "mixtral-q8_0.gguf", out));
  for (const auto* fact : {"MixtralForCausalLM", "6 in each of 2 layers, 2 per token", "Q8_0", "tokens", "digest"})
    EXPECT_NE(out.str().find(fact), std::string::npos) << fact << " in:\n" << out.str();
}

TEST(Inspect, SaysWhatAModelsPathMustBe) {
  std::ostringstream out;
  for (const auto& path : {models, models / "none"}) {
    const auto refused = inspect(path, out);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, error_kind::not_found);
    EXPECT_NE(refused.error().message.find("config.json, or a .gguf file"), std::string::npos);
  }
}

TEST(Inspect, SaysWhatIsWrongWithAFile) {
  std::ostringstream out;
  const auto refused = inspect(fs::path(TROUPE_TEST_DATA) / "faults" / "B28-version-99.gguf", out);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().to_string().find("version 99"), std::string::npos);
  EXPECT_TRUE(out.str().empty());
}

}  // namespace
}  // namespace troupe::app
