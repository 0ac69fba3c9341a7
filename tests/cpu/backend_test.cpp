#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "cpu/isa.hpp"
#include "runner.hpp"

namespace troupe::cpu {
namespace {

using engine::precision;

std::size_t differing_rows(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
  std::size_t count = 0;
  for (std::size_t r = 0; r < a.size(); ++r) count += a[r] != b[r] ? 1 : 0;
  return count;
}

class CpuBackend : public testing::Test {
 protected:
  std::shared_ptr<test::synthetic_model> model_ = test::make_model(test::small_sparse_spec(), 7);
  weight_source source_ = test::source(model_);
  std::uint32_t vocab_ = source_.spec.vocab;

  result<void> step(engine::backend& backend, const engine::step_sequence& s) {
    engine::step_output output;
    return backend.step(std::span(&s, 1), output);
  }
};

TEST_F(CpuBackend, GoesOnFromASharedPrefix) {
  auto backend = test::make_backend(source_, precision::int4, best_isa(), 2);
  auto whole = test::make_sequence(70, 0, 1, vocab_);
  const auto expected = test::run_alone(*backend, whole, 70, vocab_);
  // Another sequence with the same first 64 tokens reads their pages and writes its own.
  auto second = whole;
  second.pages.back() = page_index{9};
  second.done = 64;
  const auto rest = test::run_alone(*backend, second, 6, vocab_);
  ASSERT_EQ(rest.size(), 6U);
  for (std::size_t i = 0; i < rest.size(); ++i) EXPECT_EQ(rest[i], expected[64 + i]);
}

TEST_F(CpuBackend, LooksBackNoFurtherThanTheWindow) {
  auto spec = test::small_sparse_spec();
  for (auto& layer : spec.layers) layer.sliding_window = 20;
  const auto windowed = test::source(test::make_model(spec, 7));
  auto backend = test::make_backend(windowed, precision::fp32, best_isa());
  auto s = test::make_sequence(400, 0, 3, vocab_);
  const auto expected = test::run_alone(*backend, s, 50, vocab_);
  // Three layers of 20 keys see 58 tokens back: the first token matters for rows 0 to 57 only.
  s.tokens[0] = (s.tokens[0] + 1) % static_cast<token_id>(vocab_);
  const auto changed = test::run_alone(*backend, s, 50, vocab_);
  for (std::size_t r = 0; r < expected.size(); ++r) EXPECT_EQ(expected[r] == changed[r], r > 57) << "row " << r;
}

TEST_F(CpuBackend, CountsTheTokensOfEachExpert) {
  auto backend = test::make_backend(source_, precision::int8, best_isa());
  const auto s = test::make_sequence(40, 0, 1, vocab_);
  engine::step_output output;
  const engine::step_sequence step_input{s.tokens, 0, 40, s.pages, {}};
  ASSERT_TRUE(backend->step(std::span(&step_input, 1), output));
  EXPECT_TRUE(output.logits.empty());
  const auto experts = source_.spec.moe.experts;
  ASSERT_EQ(output.expert_tokens.size(), source_.spec.layers.size() * experts);
  for (std::size_t layer = 0; layer < source_.spec.layers.size(); ++layer) {
    const auto counts = std::span(output.expert_tokens).subspan(layer * experts, experts);
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0U), source_.spec.layers[layer].sparse ? 80U : 0U);
  }
}

TEST_F(CpuBackend, LoadsExpertsOnFirstUseAndFreesThem) {
  auto backend = test::make_backend(source_, precision::int4, best_isa());
  const expert_id id{0, 3};
  EXPECT_FALSE(backend->expert_resident(id));
  EXPECT_GT(backend->expert_bytes(id), 0U);
  EXPECT_EQ(backend->expert_bytes({1, 0}), 0U) << "layer 1 is dense";
  ASSERT_TRUE(backend->load_expert(id));
  ASSERT_TRUE(backend->load_expert(id));
  EXPECT_TRUE(backend->expert_resident(id));
  EXPECT_EQ(backend->resident_experts().count, 1U);
  EXPECT_EQ(backend->resident_experts().bytes, backend->expert_bytes(id));
  backend->unload_expert(id);
  backend->unload_expert(id);
  EXPECT_FALSE(backend->expert_resident(id));
  EXPECT_EQ(backend->resident_experts().count, 0U);
  EXPECT_EQ(backend->resident_experts().bytes, 0U);
  EXPECT_FALSE(backend->load_expert({0, 99}));
  EXPECT_FALSE(backend->load_expert({77, 0}));

  const auto s = test::make_sequence(40, 0, 1, vocab_);
  const auto expected = test::run_alone(*backend, s, 40, vocab_);
  EXPECT_TRUE(backend->expert_resident(id));
  backend->unload_expert(id);
  EXPECT_EQ(test::run_alone(*backend, s, 40, vocab_), expected);
}

TEST_F(CpuBackend, ComputesTheSameWhileExpertsComeAndGo) {
  auto backend = test::make_backend(source_, precision::int4, best_isa(), 2);
  const auto s = test::make_sequence(60, 0, 1, vocab_);
  const auto expected = test::run_alone(*backend, s, 4, vocab_);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    for (std::uint16_t i = 0; !stop.load(); ++i) {
      const expert_id id{static_cast<std::uint16_t>(i / 5 % 2 * 2), static_cast<std::uint16_t>(i % 5)};
      backend->unload_expert(id);
      const bool loaded = i % 3 != 0 || backend->load_expert(id);
      EXPECT_TRUE(loaded);
    }
  });
  for (int round = 0; round < 10; ++round) EXPECT_EQ(test::run_alone(*backend, s, 4, vocab_), expected);
  stop = true;
  other.join();
}

TEST_F(CpuBackend, RefusesStepsThatReachOutside) {
  auto backend = test::make_backend(source_, precision::fp32);
  const std::vector<token_id> tokens{1, 2, 3};
  const std::vector<page_index> pages{page_index{0}};
  const std::vector<std::uint32_t> last{2};
  ASSERT_TRUE(step(*backend, {tokens, 0, 3, pages, last}));
  ASSERT_TRUE(step(*backend, {tokens, 13, 16, pages, last}));

  const std::vector<token_id> unknown{1, static_cast<token_id>(vocab_)};
  const std::vector<token_id> negative{-1};
  const std::vector<page_index> beyond{page_index{256}};
  const std::vector<std::uint32_t> falling{2, 1};
  const std::vector<std::uint32_t> past{3};
  const std::vector<engine::step_sequence> bad{
      {{}, 0, 0, pages, {}},         {unknown, 0, 2, pages, {}},         {negative, 0, 1, pages, {}},
      {tokens, 14, 17, pages, last}, {tokens, UINT32_MAX, 3, pages, {}}, {tokens, 0, 3, {}, last},
      {tokens, 0, 3, beyond, last},  {tokens, 0, 3, pages, falling},     {tokens, 0, 3, pages, past},
  };
  for (std::size_t i = 0; i < bad.size(); ++i) {
    const auto refused = step(*backend, bad[i]);
    ASSERT_FALSE(refused) << i;
    EXPECT_EQ(refused.error().kind, error_kind::invalid);
    EXPECT_EQ(refused.error().place, "step sequence 0");
  }
  const std::vector<engine::step_sequence> same_page{{tokens, 0, 3, pages, last}, {tokens, 0, 3, pages, last}};
  engine::step_output output;
  const auto refused = backend->step(same_page, output);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().place, "step sequence 1");
  ASSERT_TRUE(step(*backend, {tokens, 0, 3, pages, last}));
  EXPECT_TRUE(backend->step({}, output));
}

TEST_F(CpuBackend, NamesTheTensorThatIsNotFinite) {
  using model::tensor_role;
  const std::vector<test::synthetic_model::key> broken{{tensor_role::query, 1, 0},      {tensor_role::ffn_down, 1, 0},
                                                       {tensor_role::embedding, 0, 0},  {tensor_role::lm_head, 0, 0},
                                                       {tensor_role::final_norm, 0, 0}, {tensor_role::key_bias, 2, 0}};
  for (const auto p : {precision::fp32, precision::bf16, precision::int8, precision::int4}) {
    for (const auto& key : broken) {
      auto copy = std::make_shared<test::synthetic_model>(*model_);
      auto& matrix = copy->weights.at(key);
      matrix.values[matrix.values.size() / 2] = p == precision::int8 ? INFINITY : NAN;
      const auto made = make_cpu_backend(test::source(copy),
                                         {.common = {.precision = p, .kv_pages = 4, .threads = 2}, .instructions = {}});
      ASSERT_FALSE(made) << matrix.name;
      EXPECT_EQ(made.error().kind, error_kind::corrupt);
      EXPECT_EQ(made.error().place, matrix.name);
    }
  }
}

TEST_F(CpuBackend, FailsTheStepThatNeedsABrokenExpert) {
  auto copy = std::make_shared<test::synthetic_model>(*model_);
  for (std::uint32_t e = 0; e < 5; ++e) copy->weights.at({model::tensor_role::expert_up, 2, e}).values[5] = NAN;
  auto backend = test::make_backend(test::source(copy), precision::int4, best_isa(), 2);
  const auto s = test::make_sequence(8, 0, 1, vocab_);
  const auto failed = step(*backend, {s.tokens, 0, 8, s.pages, {}});
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().place.find(std::string(model::to_string(model::tensor_role::expert_up))), std::string::npos);
  EXPECT_FALSE(backend->load_expert({2, 0}));
  EXPECT_TRUE(backend->load_expert({0, 0}));
}

/// Finite weights, but activations that overflow: the answer is useless and nothing else may happen.
TEST_F(CpuBackend, SurvivesLogitsThatOverflow) {
  auto copy = std::make_shared<test::synthetic_model>(*model_);
  for (float& v : copy->weights.at({model::tensor_role::attention_norm, 0, 0}).values) v *= 1e38F;
  for (float& v : copy->weights.at({model::tensor_role::ffn_norm, 2, 0}).values) v *= 3e37F;
  for (const auto p : {precision::fp32, precision::bf16, precision::int8}) {
    auto backend = test::make_backend(test::source(copy), p, best_isa(), 2);
    const auto s = test::make_sequence(40, 0, 1, vocab_);
    EXPECT_EQ(test::run_alone(*backend, s, 40, vocab_).size(), 40U);
  }
}

TEST_F(CpuBackend, RefusesWhatItDoesNotKnow) {
  const auto refuse = [&](auto change) {
    auto copy = source_;
    change(copy.spec);
    return !make_cpu_backend(
        copy, {.common = {.precision = precision::fp32, .kv_pages = 4, .threads = 1}, .instructions = {}});
  };
  EXPECT_TRUE(refuse([](auto& s) { s.ffn_bias = true; }));
  EXPECT_TRUE(refuse([](auto& s) { s.attention.kv_heads = 4; }));
  EXPECT_TRUE(refuse([](auto& s) { s.moe.top_k = 6; }));
  EXPECT_TRUE(refuse([](auto& s) { s.rope.rotary_dim = 14; }));
  EXPECT_FALSE(make_cpu_backend(
      source_, {.common = {.precision = precision::fp32, .kv_pages = 0, .threads = 1}, .instructions = {}}));
}

/// Experts that all equal a dense network, with weights that sum to one, are that network (sparse upcycling).
TEST_F(CpuBackend, ComputesTheDenseNetworkWithEqualExperts) {
  auto sparse = test::small_sparse_spec();
  sparse.moe = {.experts = 4, .top_k = 2, .ffn = 40};
  sparse.layers = {{.sparse = true}, {.sparse = true}};
  auto dense = sparse;
  dense.ffn = 40;
  dense.moe = {};
  dense.layers = {{}, {}};
  const auto dense_model = test::make_model(dense, 5);
  auto sparse_model = test::make_model(sparse, 5);
  using model::tensor_role;
  for (auto& [key, matrix] : sparse_model->weights) {
    auto [role, layer, expert] = key;
    if (role == tensor_role::router) continue;
    if (role == tensor_role::expert_gate) role = tensor_role::ffn_gate;
    if (role == tensor_role::expert_up) role = tensor_role::ffn_up;
    if (role == tensor_role::expert_down) role = tensor_role::ffn_down;
    matrix = dense_model->weights.at({role, layer, 0});
  }
  const auto s = test::make_sequence(30, 0, 1, vocab_);
  auto a = test::make_backend(test::source(dense_model), precision::fp32, best_isa());
  auto b = test::make_backend(test::source(sparse_model), precision::fp32, best_isa());
  const auto expected = test::run_alone(*a, s, 30, vocab_);
  const auto actual = test::run_alone(*b, s, 30, vocab_);
  for (std::size_t r = 0; r < expected.size(); ++r) {
    for (std::size_t v = 0; v < expected[r].size(); ++v) ASSERT_NEAR(actual[r][v], expected[r][v], 1e-4F);
  }
}

TEST_F(CpuBackend, ComesCloseToFp32AtEveryPrecision) {
  const auto s = test::make_sequence(50, 0, 2, vocab_);
  const auto exact = test::run_alone(*test::make_backend(source_, precision::fp32, best_isa()), s, 50, vocab_);
  const std::vector<std::pair<precision, double>> bounds{
      {precision::bf16, 0.02}, {precision::int8, 0.05}, {precision::int4, 0.3}};
  for (const auto& [p, bound] : bounds) {
    const auto rows = test::run_alone(*test::make_backend(source_, p, best_isa()), s, 50, vocab_);
    double miss = 0, size = 0;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      for (std::size_t v = 0; v < rows[r].size(); ++v) {
        miss += std::pow(rows[r][v] - exact[r][v], 2);
        size += std::pow(exact[r][v], 2);
      }
    }
    EXPECT_LT(std::sqrt(miss / size), bound) << engine::to_string(p);
    EXPECT_GT(differing_rows(rows, exact), 0U) << engine::to_string(p);
  }
}

TEST_F(CpuBackend, DescribesItself) {
  EXPECT_EQ(test::make_backend(source_, precision::int4, isa::scalar, 2)->description(),
            "cpu: scalar, 2 threads, int4");
}

}  // namespace
}  // namespace troupe::cpu
