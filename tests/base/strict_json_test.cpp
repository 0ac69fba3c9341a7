#include "base/json/strict_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// "place | message" of a refused text, or the value.
std::string read(std::string_view text, std::size_t depth = 64) {
  auto value = parse_json(text, depth);
  return value ? boost::json::serialize(*value) : value.error().place + " | " + value.error().message;
}

TEST(StrictJson, ReadsWhatRfc8259Allows) {
  EXPECT_EQ(read(R"( {"a":[1,-2,0.5,true,false,null,"é\u00e9\ud83d\ude00"]} )"),
            "{\"a\":[1,-2,5E-1,true,false,null,\"éé\xF0\x9F\x98\x80\"]}");
  EXPECT_EQ(read(R"("a\u0000b")"), R"("a\u0000b")");
  EXPECT_EQ(read("18446744073709551615"), "18446744073709551615");
}

TEST(StrictJson, KeepsTheOrderOfMembers) { EXPECT_EQ(read(R"({"z":1,"a":2,"m":3})"), R"({"z":1,"a":2,"m":3})"); }

TEST(StrictJson, RefusesDuplicateKeysAndNamesThem) {
  EXPECT_EQ(read(R"({"a":1,"a":2})"), "a | the key appears twice");
  EXPECT_EQ(read(R"({"m":[{"b":1},{"b":1,"\u0062":2}]})"), "m[1].b | the key appears twice");
  EXPECT_EQ(read(R"({"a":{"b":1},"c":{"b":1}})"), R"({"a":{"b":1},"c":{"b":1}})");
}

TEST(StrictJson, RefusesTextThatIsNoUnicode) {
  EXPECT_THAT(read("{\"a\":\"\xff\"}"), StartsWith("a | the text is not valid UTF-8 at byte 6"));
  EXPECT_THAT(read("{\"a\":\"\xC0\x80\"}"), StartsWith("a | the text is not valid UTF-8"));
  EXPECT_THAT(read("{\"a\":\"\xED\xA0\x80\"}"), StartsWith("a | the text is not valid UTF-8"));
  EXPECT_THAT(read("{\"\xff\":1}"), HasSubstr("not valid UTF-8"));
  for (const auto* half : {R"({"a":"\ud800"})", R"({"a":"\udc00"})", R"({"a":"\ud800x"})", R"({"a":"\ud800\u0041"})"})
    EXPECT_THAT(read(half), StartsWith("a | half of a surrogate pair")) << half;
}

TEST(StrictJson, RefusesNumbersThatJsonOrADoubleLacks) {
  EXPECT_THAT(read(R"({"a":1e400})"), StartsWith("a | the number is too large"));
  EXPECT_THAT(read(R"([0,-1e999])"), StartsWith("[1] | the number is too large"));
  for (const auto* bad : {"NaN", "Infinity", "-Infinity", "01", "1.", ".5", "+1", "0x10", "1e", "--1"})
    EXPECT_THAT(read(bad), HasSubstr(" | ")) << bad;
}

TEST(StrictJson, RefusesDepthBeyondTheLimit) {
  const auto nested = [](int levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  EXPECT_EQ(read(nested(64)), nested(64));
  EXPECT_THAT(read(nested(65)), HasSubstr("nested deeper than 64 levels"));
  EXPECT_THAT(read(std::string(1 << 20, '[')), HasSubstr("nested deeper"));
  EXPECT_LT(read(std::string(1 << 20, '[')).size(), 400U);
}

TEST(StrictJson, RefusesWhatIsAroundAValue) {
  EXPECT_THAT(read(""), HasSubstr("ends too early"));
  EXPECT_THAT(read("{\"a\":"), StartsWith(" | the JSON text ends too early"));
  EXPECT_THAT(read("{} x"), HasSubstr("something after"));
  EXPECT_THAT(read("{}{}"), HasSubstr("something after"));
  EXPECT_THAT(read("1e-99999999999"), HasSubstr("too large an exponent"));
  EXPECT_THAT(read("[1,]"), HasSubstr("not valid JSON at byte 3"));
  EXPECT_THAT(read("/* c */ {}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(read("\xEF\xBB\xBF{}"), HasSubstr("not valid"));
}

TEST(StrictJson, BoundsTheMembersOfAnObject) {
  std::string many = "{\"k\":0";
  for (int i = 0; i < 5000; ++i) many += ",\"" + std::to_string(i) + "\":0";
  EXPECT_THAT(read(many + "}"), HasSubstr("more than 4096 members"));
}

}  // namespace
}  // namespace troupe
