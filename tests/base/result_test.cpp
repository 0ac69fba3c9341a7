#include "base/result.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace troupe {
namespace {

result<std::unique_ptr<int>> half(int value) {
  if (value % 2 != 0) return error{error_kind::invalid, "odd", "value"};
  return std::make_unique<int>(value / 2);
}

TEST(Result, HoldsAValueThatCanOnlyBeMoved) {
  auto r = half(4);
  ASSERT_TRUE(r);
  std::unique_ptr<int> owned = *std::move(r);
  EXPECT_EQ(*owned, 2);
}

TEST(Result, HoldsAnErrorWithItsPlace) {
  auto r = half(3);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().kind, error_kind::invalid);
  EXPECT_EQ(r.error().to_string(), "value: odd");
}

TEST(Result, OfNothingIsSuccessByDefault) {
  result<void> fine;
  EXPECT_TRUE(fine);
  result<void> broken = error{error_kind::io, "disk gone", ""};
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().to_string(), "disk gone");
}

}  // namespace
}  // namespace troupe
