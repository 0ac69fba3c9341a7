#include "actors/stage.hpp"

#include <gtest/gtest.h>

#include "actors/metrics.hpp"

namespace troupe::actors {
namespace {

using std::chrono::seconds;

/// A stage in virtual time.
struct timed_stage {
  explicit timed_stage(std::int64_t bound) : in(std::make_shared<stage>("stage", bound, all, [this] { return now; })) {}

  metrics all;
  steady_time now = steady_time{} + std::chrono::hours(1);
  std::shared_ptr<stage> in;
};

TEST(Stage, RefusesAtItsBoundAndTakesAgainWhenATicketIsDropped) {
  timed_stage s(2);
  auto first = enter(s.in);
  const auto second = enter(s.in);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(enter(s.in), nullptr);
  EXPECT_NE(enter_admitted(s.in), nullptr) << "what was admitted is never refused";
  first.reset();
  EXPECT_NE(enter(s.in), nullptr);
  EXPECT_EQ(s.in->depth(), 1);
}

TEST(Stage, ComputesRetryAfterFromTheRateAtWhichItDrains) {
  timed_stage s(4);
  auto kept = enter(s.in);
  for (int i = 0; i < 3; ++i) {
    s.now += seconds(8);
    enter(s.in).reset();
  }
  // Three in 16 s: one more place is free after about five.
  EXPECT_EQ(s.in->retry_after(), seconds(6));
  for (int i = 0; i < 100; ++i) enter(s.in).reset();
  EXPECT_EQ(s.in->retry_after(), seconds(1)) << "at least one second";
}

TEST(Stage, SendsClientsAwayForLongerTheLongerNothingLeavesIt) {
  timed_stage s(1);
  const auto kept = enter(s.in);
  EXPECT_EQ(s.in->retry_after(), seconds(1));
  s.now += seconds(20);
  EXPECT_EQ(s.in->retry_after(), seconds(20));
  s.now += seconds(200);
  EXPECT_EQ(s.in->retry_after(), seconds(60)) << "never more than a minute";
}

TEST(Stage, StallsOnlyWhileItHoldsWorkThatDoesNotMove) {
  timed_stage s(4);
  const auto limit = std::chrono::milliseconds(30'000);
  s.now += seconds(100);
  EXPECT_FALSE(s.in->progress().stalled(s.now, limit)) << "idle is not stalled";
  const auto kept = enter(s.in);
  s.now += seconds(31);
  EXPECT_TRUE(s.in->progress().stalled(s.now, limit));
  s.in->moved();
  EXPECT_FALSE(s.in->progress().stalled(s.now, limit));
}

}  // namespace
}  // namespace troupe::actors
