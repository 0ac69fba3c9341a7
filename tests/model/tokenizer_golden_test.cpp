#include "tokenizer_golden.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::model {
namespace {

using golden::hash_of;

std::string streamed(const tokenizer& text, std::span<const token_id> ids, bool skip_special) {
  text_stream stream(text, skip_special);
  std::string out;
  for (const auto id : ids) out += stream.push(id);
  return out += stream.finish();
}

/// As tools/make_golden_tokenizers.py makes them.
std::string random_letters(std::uint64_t count) {
  std::string out;
  std::uint64_t state = 5;
  for (; count > 0; --count) {
    state = (state * 1103515245 + 12345) & 0x7FFFFFFF;
    out += static_cast<char>('a' + (state >> 16) % 26);
  }
  return out;
}

/// Every family against Hugging Face `tokenizers`, id for id.
class TokenizerGolden : public testing::TestWithParam<const char*> {
 protected:
  static const std::vector<std::string>& strings() {
    static const auto all = golden::strings();
    return all;
  }
};

TEST_P(TokenizerGolden, EncodesAndDecodesEveryStringAsTheReferenceDoes) {
  const auto text = golden::open(GetParam());
  const auto suite = golden::read_suite(GetParam(), strings().size());
  ASSERT_GE(strings().size(), 20'000u);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < strings().size() && wrong < 10; ++i) {
    const auto& input = strings()[i];
    const auto& want = suite.cases[i];
    const auto ids = text->encode(input, false);
    bool good = ids.size() == want.count && hash_of(ids) == want.hash;
    EXPECT_TRUE(good) << "string " << i << ": " << testing::PrintToString(input) << " became "
                      << testing::PrintToString(ids) << ", expected " << want.count << ": "
                      << testing::PrintToString(want.ids);
    EXPECT_TRUE(want.ids.empty() || ids == want.ids) << "string " << i;
    if (!good) {
      ++wrong;
      continue;
    }
    auto surrounded = suite.before;
    surrounded.insert(surrounded.end(), ids.begin(), ids.end());
    surrounded.insert(surrounded.end(), suite.after.begin(), suite.after.end());
    const auto plain = text->decode(ids, false), skipped = text->decode(ids, true);
    good = text->encode(input, true) == surrounded && want.plain.matches(plain, input, "") &&
           want.skipped.matches(skipped, input, plain) && streamed(*text, ids, false) == plain &&
           streamed(*text, ids, true) == skipped;
    EXPECT_EQ(text->encode(input, true), surrounded) << "string " << i;
    EXPECT_TRUE(want.plain.matches(plain, input, ""))
        << "string " << i << ": " << testing::PrintToString(input) << " came back as " << testing::PrintToString(plain);
    EXPECT_TRUE(want.skipped.matches(skipped, input, plain)) << "string " << i << ": " << testing::PrintToString(input)
                                                             << " came back as " << testing::PrintToString(skipped);
    EXPECT_EQ(streamed(*text, ids, false), plain) << "string " << i;
    EXPECT_EQ(streamed(*text, ids, true), skipped) << "string " << i;
    wrong += good ? 0 : 1;
  }
}

TEST_P(TokenizerGolden, EncodesLongRunsAsTheReferenceDoes) {
  const auto text = golden::open(GetParam());
  golden::reader in(golden::read_file(golden::folder() / GetParam() / "long.bin"));
  for (auto cases = in.varint(); cases > 0; --cases) {
    const auto unit = in.text();
    const auto times = in.varint(), count = in.varint(), hash = in.hash();
    std::string input = unit.empty() ? random_letters(times) : std::string();
    for (std::uint64_t i = 0; i < times; ++i) input += unit;
    const auto ids = text->encode(input, false);
    EXPECT_EQ(ids.size(), count) << times << " times " << unit.substr(0, 20);
    EXPECT_EQ(hash_of(ids), hash) << times << " times " << unit.substr(0, 20);
  }
  EXPECT_TRUE(in.done());
}

TEST_P(TokenizerGolden, DecodesAnyTokensAsTheReferenceDoes) {
  const auto text = golden::open(GetParam());
  golden::reader in(golden::read_file(golden::folder() / GetParam() / "decode.bin"));
  for (auto cases = in.varint(); cases > 0; --cases) {
    const auto ids = in.ids();
    for (const bool skip : {false, true}) {
      const auto want = in.text();
      EXPECT_EQ(text->decode(ids, skip), want) << testing::PrintToString(ids);
      EXPECT_EQ(streamed(*text, ids, skip), want) << testing::PrintToString(ids);
    }
  }
  EXPECT_TRUE(in.done());
}

TEST_P(TokenizerGolden, EncodesSpansOfAPromptAsOneText) {
  const auto text = golden::open(GetParam());
  for (std::size_t i = 0; i + 3 < strings().size(); i += 41) {
    // The second is a user's, and spells no special token by itself nor across a seam.
    const auto &a = strings()[i], &b = strings()[i + 1], &c = strings()[i + 2];
    if ((b + c).find_first_of("<[") != std::string::npos || b.find_first_of(">]|_") != std::string::npos) continue;
    const prompt_span spans[] = {{a, false}, {b, true}, {c, false}};
    ASSERT_EQ(text->encode_spans(spans, false), text->encode(a + b + c, false)) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, TokenizerGolden,
                         testing::Values("smollm2", "gpt2", "roberta", "llama3", "qwen2", "deepseek", "gpt4o", "llama2",
                                         "mistral", "zoo", "zoo_nfd", "zoo_nfkd"),
                         [](const auto& family) { return std::string(family.param); });

}  // namespace
}  // namespace troupe::model
