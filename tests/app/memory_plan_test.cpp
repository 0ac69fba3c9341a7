#include "app/memory_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::app {
namespace {

using engine::precision;
using model::dtype;

TEST(ChoosePrecision, TakesTheOneThatIsNamed) {
  EXPECT_EQ(choose_precision("fp32", dtype::q4_0), precision::fp32);
  EXPECT_EQ(choose_precision("bf16", dtype::q4_0), precision::bf16);
  EXPECT_EQ(choose_precision("int8", dtype::q4_0), precision::int8);
  EXPECT_EQ(choose_precision("int4", dtype::f32), precision::int4);
}

TEST(ChoosePrecision, StaysCloseToTheFileWhenLeftToItself) {
  EXPECT_EQ(choose_precision("auto", dtype::f32), precision::bf16);
  EXPECT_EQ(choose_precision("auto", dtype::f16), precision::bf16);
  EXPECT_EQ(choose_precision("auto", dtype::q8_0), precision::int8);
  EXPECT_EQ(choose_precision("auto", dtype::q5_1), precision::int8);
  EXPECT_EQ(choose_precision("auto", dtype::q4_1), precision::int4);
}

/// 2 layers of 2 KV heads of 12 values: 256 tokens of context are 16 pages of 3072 bytes in bf16.
class PlanMemory : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = model::opened_model::open(TROUPE_TEST_DATA "/models/mixtral");
    ASSERT_TRUE(opened) << opened.error().to_string();
    model_ = *opened;
    settings_.model.precision = "bf16";
  }

  std::string refusal(std::uint64_t free_bytes) {
    auto plan = plan_memory(*model_, settings_, free_bytes);
    return plan ? "no error" : plan.error().to_string();
  }

  static constexpr std::uint64_t plenty = std::uint64_t{64} << 30;
  std::shared_ptr<const model::opened_model> model_;
  config::settings settings_;
};

TEST_F(PlanMemory, GivesAFullBatchItsPagesAndNoMore) {
  auto plan = plan_memory(*model_, settings_, plenty);
  ASSERT_TRUE(plan) << plan.error().to_string();
  EXPECT_EQ(plan->kv_pages, 16 * settings_.engine.max_batch_size);
  EXPECT_EQ(plan->kv_bytes, std::uint64_t{plan->kv_pages} * 3072);
}

TEST_F(PlanMemory, CountsAShorterContext) {
  settings_.model.max_context = 32;
  auto plan = plan_memory(*model_, settings_, plenty);
  ASSERT_TRUE(plan) << plan.error().to_string();
  EXPECT_EQ(plan->kv_pages, 2 * settings_.engine.max_batch_size);
}

TEST_F(PlanMemory, TakesTwiceAsMuchInFp32) {
  const auto bf16 = plan_memory(*model_, settings_, plenty);
  settings_.model.precision = "fp32";
  const auto fp32 = plan_memory(*model_, settings_, plenty);
  ASSERT_TRUE(bf16 && fp32);
  EXPECT_EQ(fp32->kv_bytes, 2 * bf16->kv_bytes);
  EXPECT_EQ(fp32->weight_bytes, 2 * bf16->weight_bytes);
}

TEST_F(PlanMemory, KeepsToWhatItIsGiven) {
  settings_.engine.kv_cache_bytes = 20 * 3072 + 1;
  auto plan = plan_memory(*model_, settings_, plenty);
  ASSERT_TRUE(plan) << plan.error().to_string();
  EXPECT_EQ(plan->kv_pages, 20U);
}

TEST_F(PlanMemory, RefusesACacheThatHoldsNoFullContext) {
  settings_.engine.kv_cache_bytes = 15 * 3072;
  EXPECT_THAT(refusal(plenty), testing::HasSubstr("--kv-cache-memory"));
  settings_.engine.kv_cache_bytes = 0;
  EXPECT_THAT(refusal(4 * 15 * 3072), testing::HasSubstr("free memory"));
}

TEST_F(PlanMemory, RefusesWeightsThatDoNotFit) {
  settings_.engine.kv_cache_bytes = 16 * 3072;
  EXPECT_THAT(refusal(16 * 3072 + 1000), testing::HasSubstr("weights take about"));
}

TEST_F(PlanMemory, RefusesAContextLongerThanTheModels) {
  settings_.model.max_context = 257;
  EXPECT_THAT(refusal(plenty), testing::HasSubstr("256"));
}

}  // namespace
}  // namespace troupe::app
