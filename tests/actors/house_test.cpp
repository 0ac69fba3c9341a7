#include "actors/house.hpp"

#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

steady_time standing_clock() { return steady_time{} + std::chrono::hours(1); }

struct two_preparers {
  two_preparers() : shared({}, standing_clock) {
    for (std::size_t i = 0; i < 2; ++i) shared.put_preparer(i, {});
  }
  house shared;
};

TEST(House, HandsPromptsToThePreparerWithTheLeastToDo) {
  two_preparers h;
  ASSERT_EQ(h.shared.preparer_stages.size(), 2U);
  const auto first = enter(h.shared.preparer_stages[0]);
  EXPECT_EQ(h.shared.next_preparer(), 1);
  const auto second = enter(h.shared.preparer_stages[1]);
  const auto third = enter(h.shared.preparer_stages[1]);
  EXPECT_EQ(h.shared.next_preparer(), 0) << "the second hangs or is slow";
}

TEST(House, PassesOverADeadPreparerUntilItLivesAgain) {
  two_preparers h;
  h.shared.preparer_died(0);
  const auto busy = enter(h.shared.preparer_stages[1]);
  EXPECT_EQ(h.shared.next_preparer(), 1);
  h.shared.put_preparer(0, {});
  EXPECT_EQ(h.shared.next_preparer(), 0);
  EXPECT_EQ(h.shared.preparer(0).life, 2U);
}

TEST(House, CountsAllPreparersInOneMetric) {
  two_preparers h;
  const auto first = enter(h.shared.preparer_stages[0]);
  const auto second = enter(h.shared.preparer_stages[1]);
  double depth = 0.0;
  for (const auto& family : h.shared.measured.registry().Collect())
    if (family.name.ends_with("mailbox_depth"))
      for (const auto& metric : family.metric)
        if (metric.label.at(0).value == "preparer") depth += metric.gauge.value;
  EXPECT_EQ(depth, 2.0);
}

}  // namespace
}  // namespace troupe::actors
