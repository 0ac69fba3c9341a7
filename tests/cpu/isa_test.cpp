#include "cpu/isa.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace troupe::cpu {
namespace {

class ChosenIsa : public testing::Test {
 protected:
  void SetUp() override { unsetenv("TROUPE_ISA"); }
  void TearDown() override { unsetenv("TROUPE_ISA"); }
};

TEST_F(ChosenIsa, IsTheBestThatTheMachineHas) {
  const auto chosen = choose_isa({});
  ASSERT_TRUE(chosen);
  EXPECT_EQ(*chosen, best_isa());
  EXPECT_TRUE(supported(*chosen));
}

TEST_F(ChosenIsa, FollowsTheEnvironmentUnlessTheCallerKnowsBetter) {
  setenv("TROUPE_ISA", "scalar", 1);
  EXPECT_EQ(*choose_isa({}), isa::scalar);
  EXPECT_EQ(*choose_isa(best_isa()), best_isa());
}

TEST_F(ChosenIsa, RefusesUnknownNamesAndWhatTheMachineLacks) {
  setenv("TROUPE_ISA", "sse9", 1);
  const auto unknown = choose_isa({});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, error_kind::invalid);
  if (supported(isa::avx512)) GTEST_SKIP() << "this machine has every instruction set";
  const auto lacking = choose_isa(isa::avx512);
  ASSERT_FALSE(lacking);
  EXPECT_EQ(lacking.error().kind, error_kind::unsupported);
}

}  // namespace
}  // namespace troupe::cpu
