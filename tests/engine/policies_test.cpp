#include <gtest/gtest.h>

#include "engine/admission.hpp"
#include "engine/expert_residency.hpp"
#include "engine/expert_stats.hpp"
#include "engine/page_pool.hpp"
#include "engine/progress.hpp"
#include "engine/text_state.hpp"

namespace troupe::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const steady_time start{std::chrono::hours(1)};

TEST(PagePool, GivesAllOrNothingAndCountsReferences) {
  page_pool pool(3);
  EXPECT_FALSE(pool.allocate(4));
  EXPECT_EQ(pool.free(), 3U);
  auto pages = pool.allocate(2);
  ASSERT_TRUE(pages);
  pool.share((*pages)[0]);
  pool.release_all(*pages);
  EXPECT_EQ(pool.free(), 2U);  // one is shared still
}

TEST(Admission, RefusesBeyondEitherBoundAndLetsInAgain) {
  admission_policy policy({2, 100});
  EXPECT_TRUE(policy.fits({1, 40}));
  policy.enter({1, 40});
  EXPECT_FALSE(policy.fits({1, 61}));
  EXPECT_FALSE(policy.fits({2, 10}));
  EXPECT_TRUE(policy.fits({1, 60}));
  policy.enter({1, 60});
  EXPECT_FALSE(policy.fits({1, 1}));
  policy.leave({1, 40}, start);
  EXPECT_TRUE(policy.fits({1, 40}));
}

TEST(Admission, LetsOneTooLargeRequestInWhenAlone) {
  admission_policy policy({8, 100});
  EXPECT_TRUE(policy.fits({1, 500}));
  EXPECT_TRUE(policy.fits({9, 50}));
  policy.enter({1, 500});
  EXPECT_FALSE(policy.fits({1, 1}));
}

TEST(Admission, TellsWhenToComeBackFromTheRateAtWhichWorkLeaves) {
  admission_policy policy({10, 1000});
  for (int i = 0; i < 10; ++i) policy.enter({1, 100});
  for (int i = 0; i < 10; ++i) {
    policy.leave({1, 100}, start + seconds(i));  // 100 tokens a second
    policy.enter({1, 100});
  }
  EXPECT_EQ(policy.retry_after({1, 500}, start + seconds(9)), seconds(5)) << "by tokens";
  EXPECT_EQ(policy.retry_after({7, 10}, start + seconds(9)), seconds(7)) << "by count";
  EXPECT_GE(policy.retry_after({1, 1}, start + seconds(9)), seconds(1));
}

TEST(StopMatcher, NeverGivesOutAPartOfAStop) {
  stop_matcher matcher({"STOP"});
  EXPECT_EQ(matcher.push("ab S"), "ab ");
  EXPECT_EQ(matcher.push("TO"), "");
  EXPECT_EQ(matcher.push("X"), "STOX");
  EXPECT_EQ(matcher.push(" STOP and more"), " ");
  EXPECT_EQ(matcher.matched(), "STOP");
  EXPECT_EQ(matcher.push("ignored"), "");
}

TEST(StopMatcher, TakesTheEarliestOfSeveral) {
  stop_matcher matcher({"cde", "bc"});
  EXPECT_EQ(matcher.push("abcdef"), "a");
  EXPECT_EQ(matcher.matched(), "bc");
}

TEST(StopMatcher, WaitsForALongerStopThatBeganEarlier) {
  stop_matcher matcher({"abcd", "bc"});
  EXPECT_EQ(matcher.push("xabc"), "x");
  EXPECT_FALSE(matcher.matched());
  EXPECT_EQ(matcher.push("d"), "");
  EXPECT_EQ(matcher.matched(), "abcd");
}

TEST(StopMatcher, CountsTheShorterStopWhenTheLongerOneNeverComes) {
  stop_matcher matcher({"abcd", "bc"});
  EXPECT_EQ(matcher.push("xabc"), "x");
  EXPECT_EQ(matcher.finish(), "a");
  EXPECT_EQ(matcher.matched(), "bc");
}

TEST(StopMatcher, IsTheSameHoweverTheTextArrives) {
  const std::string text = "one two ENENDE three EN END four";
  stop_matcher whole({"END", "ENDE", "END four"});
  const std::string expected = whole.push(text) + whole.finish();
  for (std::size_t size = 1; size < 8; ++size) {
    stop_matcher pieces({"END", "ENDE", "END four"});
    std::string out;
    for (std::size_t at = 0; at < text.size(); at += size) out += pieces.push(text.substr(at, size));
    out += pieces.finish();
    EXPECT_EQ(out, expected) << size;
    EXPECT_EQ(pieces.matched(), whole.matched()) << size;
  }
}

TEST(StopMatcher, LeavesAStopThatEndsInTextThatDoesNotCount) {
  stop_matcher matcher({"abcd", "bc"});
  EXPECT_EQ(matcher.push("bc", false), "bc");
  EXPECT_EQ(matcher.push("xabc", false), "x") << "abcd may still come";
  EXPECT_EQ(matcher.push("e"), "abce") << "bc ended before it counted";
  EXPECT_FALSE(matcher.matched());
  EXPECT_EQ(matcher.push("xb", false), "x");
  EXPECT_EQ(matcher.push("c"), "") << "ends where it counts";
  EXPECT_EQ(matcher.matched(), "bc");
}

TEST(StopMatcher, GivesEverythingBackWhenNothingMatched) {
  stop_matcher matcher({"END"});
  EXPECT_EQ(matcher.push("the EN"), "the ");
  EXPECT_EQ(matcher.finish(), "EN");
  EXPECT_FALSE(matcher.matched());
}

TEST(ExpertResidency, GivesUpTheLeastRecentlyUsedWithinItsBudget) {
  expert_residency residency(300);
  const expert_id a{0, 0}, b{0, 1}, c{0, 2}, d{1, 0};
  EXPECT_TRUE(residency.touch(a, 100).empty());
  EXPECT_TRUE(residency.touch(b, 100).empty());
  EXPECT_TRUE(residency.touch(c, 100).empty());
  residency.touch(a, 100);
  EXPECT_EQ(residency.touch(d, 100), std::vector<expert_id>{b});
  EXPECT_EQ(residency.bytes(), 300U);
  EXPECT_FALSE(residency.resident(b));
}

TEST(PreloadOrder, GoesLayerByLayerThroughSparseLayersOnly) {
  preload_order order({1, 3}, 2);
  std::vector<expert_id> seen;
  while (const auto next = order.next()) seen.push_back(*next);
  EXPECT_EQ(seen, (std::vector<expert_id>{{1, 0}, {1, 1}, {3, 0}, {3, 1}}));
}

TEST(ExpertStats, CountsSharesAndImbalance) {
  expert_stats stats(2, 2);
  const std::uint32_t step[] = {3, 1, 2, 2};
  stats.add(step);
  stats.add({});
  EXPECT_EQ(stats.tokens(0, 0), 3U);
  EXPECT_DOUBLE_EQ(stats.share(0, 0), 0.75);
  EXPECT_DOUBLE_EQ(stats.imbalance(0), 1.5);
  EXPECT_DOUBLE_EQ(stats.imbalance(1), 1.0);
}

TEST(Progress, IsStalledOnlyWithWorkThatDoesNotMove) {
  progress p;
  EXPECT_FALSE(p.stalled(start + seconds(100), seconds(1)));
  p.enter(start);
  EXPECT_FALSE(p.stalled(start + milliseconds(900), seconds(1)));
  EXPECT_TRUE(p.stalled(start + milliseconds(1100), seconds(1)));
  p.moved(start + milliseconds(1100));
  EXPECT_FALSE(p.stalled(start + milliseconds(1200), seconds(1)));
  p.leave(start + milliseconds(1300));
  EXPECT_FALSE(p.stalled(start + seconds(100), seconds(1)));
}

}  // namespace
}  // namespace troupe::engine
