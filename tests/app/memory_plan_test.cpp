#include "app/memory_plan.hpp"

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

}  // namespace
}  // namespace troupe::app
