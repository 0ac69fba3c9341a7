#include "cache/memory_tier.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "cache/request_key.hpp"

namespace troupe::cache {
namespace {

using std::chrono::seconds;

const steady_time start{std::chrono::hours(1)};

answer text(const std::string& bytes) { return std::make_shared<const std::string>(bytes); }

TEST(MemoryTier, GivesBackWhatItKeepsWithItsAge) {
  memory_tier tier({});
  tier.store("a", text("one"), start);
  const auto found = tier.find("a", start + seconds(7));
  ASSERT_TRUE(found);
  EXPECT_EQ(*found->value, "one");
  EXPECT_EQ(found->age, seconds(7));
  EXPECT_FALSE(tier.find("b", start));
}

TEST(MemoryTier, ForgetsWhatIsTooOld) {
  memory_tier tier({.ttl = seconds(10)});
  tier.store("a", text("one"), start);
  EXPECT_FALSE(tier.find("a", start + seconds(10)));
  EXPECT_EQ(tier.entries(), 0U);
  EXPECT_EQ(tier.bytes(), 0U);
}

TEST(MemoryTier, KeepsTheMostRecentlyUsedWithinItsEntries) {
  memory_tier tier({.entries = 2});
  tier.store("a", text("1"), start);
  tier.store("b", text("2"), start);
  EXPECT_TRUE(tier.find("a", start));
  tier.store("c", text("3"), start);
  EXPECT_TRUE(tier.find("a", start));
  EXPECT_FALSE(tier.find("b", start));
}

TEST(MemoryTier, StaysWithinItsBytes) {
  memory_tier tier({.bytes = 4000});
  for (int i = 0; i < 100; ++i) {
    tier.store(std::to_string(i), text(std::string(500, 'x')), start);
    EXPECT_LE(tier.bytes(), 4000U);
  }
  EXPECT_TRUE(tier.find("99", start));
  tier.store("huge", text(std::string(5000, 'x')), start);
  EXPECT_FALSE(tier.find("huge", start));
  EXPECT_TRUE(tier.find("99", start));
}

TEST(RequestKey, IgnoresOrderSpacesAndSpellingOfNumbers) {
  const auto key = [](const char* json) { return request_key(boost::json::parse(json)); };
  EXPECT_EQ(key(R"({"a":1,"b":[1,2]})"), key(R"({ "b" : [1.0, 2], "a" : 1.0 })"));
  EXPECT_NE(key(R"({"a":1})"), key(R"({"a":2})"));
  EXPECT_NE(key(R"({"a":"1"})"), key(R"({"a":1})"));
  EXPECT_NE(key(R"({"a":[1,2]})"), key(R"({"a":[2,1]})"));
}

// SHA-256 of {"a":1}, as sha256sum prints it.
TEST(RequestKey, IsTheSha256OfTheCanonicalText) {
  EXPECT_EQ(canonical(boost::json::parse(R"({ "a" : 1 })")), R"({"a":1})");
  EXPECT_EQ(request_key(boost::json::parse(R"({"a":1})")),
            "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862");
}

}  // namespace
}  // namespace troupe::cache
