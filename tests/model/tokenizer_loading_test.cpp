#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model/tokenizer/regex.hpp"
#include "model/tokenizer/regex_dialect.hpp"
#include "tokenizer_golden.hpp"

/// Files that are broken or lie: an error that says where, never a crash.
namespace troupe::model {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// A small sound tokenizer.json with parts to exchange.
struct small_json {
  std::string vocab = R"({"a":0,"b":1,"ab":2})";
  std::string merges = R"(["a b"])";
  std::string added = "[]";
  std::string model_extra{};
  std::string extra{};

  std::string text() const {
    return R"({"version":"1.0","added_tokens":)" + added + R"(,"model":{"type":"BPE","vocab":)" + vocab +
           R"(,"merges":)" + merges + model_extra + "}" + extra + "}";
  }
};

std::string error_of(const std::string& json, std::string_view config = "") {
  const auto out = tokenizer::from_json(json, config, "tokenizer.json");
  return out ? "no error" : out.error().to_string();
}

TEST(TokenizerJson, LoadsASmallFile) {
  const auto text = tokenizer::from_json(small_json().text(), "", "tokenizer.json");
  ASSERT_TRUE(text) << text.error().to_string();
  EXPECT_THAT((*text)->encode("abba", false), testing::ElementsAre(2, 1, 0));
  EXPECT_EQ((*text)->vocab_size(), 3u);
}

TEST(TokenizerJson, NamesTheFieldThatIsWrong) {
  const auto vocab = [](const char* v) { return error_of(small_json{.vocab = v}.text()); };
  EXPECT_THAT(vocab(R"({"a":0,"b":-1,"ab":2})"), HasSubstr("tokenizer.json: model.vocab.b: "));
  EXPECT_THAT(vocab(R"({"a":0,"b":99999999999,"ab":2})"), HasSubstr("model.vocab.b: "));
  EXPECT_THAT(vocab(R"({"a":0,"b":1e300,"ab":2})"), HasSubstr("model.vocab.b: "));
  EXPECT_THAT(vocab(R"({"a":0,"b":"1","ab":2})"), HasSubstr("model.vocab.b: "));
  EXPECT_THAT(vocab(R"({"a":0,"b":0,"ab":2})"), AllOf(HasSubstr("model.vocab.b"), HasSubstr("same id")));
  EXPECT_THAT(vocab("[]"), HasSubstr("model.vocab: this must be an object"));
  const auto merges = [](const char* m) { return error_of(small_json{.merges = m}.text()); };
  EXPECT_THAT(merges(R"(["a b","a c"])"), AllOf(HasSubstr("model.merges[1]"), HasSubstr("'c'")));
  EXPECT_THAT(merges(R"([["a","a"]])"), AllOf(HasSubstr("model.merges[0]"), HasSubstr("'aa'")));
  EXPECT_THAT(merges(R"(["ab"])"), HasSubstr("model.merges[0]"));
  EXPECT_THAT(merges(R"(["a b c"])"), HasSubstr("model.merges[0]"));
  EXPECT_THAT(merges(R"([["a"]])"), HasSubstr("model.merges[0]"));
  EXPECT_THAT(merges(R"([7])"), HasSubstr("model.merges[0]"));
  EXPECT_THAT(merges("null"), HasSubstr("model.merges: the field is missing"));
  const auto added = [](const char* a) { return error_of(small_json{.added = a}.text()); };
  EXPECT_THAT(added(R"([{"id":0}])"), HasSubstr("added_tokens[0].content"));
  EXPECT_THAT(added(R"([{"id":-5,"content":"x"}])"), HasSubstr("added_tokens[0].id"));
  EXPECT_THAT(added(R"([{"id":3,"content":"x","special":1}])"), HasSubstr("added_tokens[0].special"));
  EXPECT_THAT(added(R"({})"), HasSubstr("added_tokens: this must be a list"));
  EXPECT_THAT(error_of(small_json{.vocab = R"({"a":0,"b":3,"ab":2})", .added = R"([{"id":3,"content":"x"}])"}.text()),
              HasSubstr("added_tokens[0].id: the token would get id 3"));
  const auto model = [](const char* m) { return error_of(small_json{.model_extra = m}.text()); };
  EXPECT_THAT(model(R"(,"unk_token":"z")"), HasSubstr("model.unk_token"));
  EXPECT_THAT(model(R"(,"dropout":0.1)"), HasSubstr("model.dropout"));
  EXPECT_THAT(model(R"(,"byte_fallback":"yes")"), HasSubstr("model.byte_fallback"));
  const auto extra = [](const char* e) { return error_of(small_json{.extra = e}.text()); };
  EXPECT_THAT(extra(R"(,"normalizer":{"type":"Precompiled"})"), HasSubstr("normalizer.type: normalizer 'Precompiled'"));
  EXPECT_THAT(extra(R"(,"normalizer":{"type":"Sequence","normalizers":[{"type":"Replace","content":"x"}]})"),
              HasSubstr("normalizer.normalizers[0].pattern: the field is missing"));
  EXPECT_THAT(extra(R"(,"pre_tokenizer":{"type":"Split","pattern":{"Regex":"(a"},"behavior":"Isolated"})"),
              AllOf(HasSubstr("pre_tokenizer.pattern.Regex"), HasSubstr("does not compile")));
  EXPECT_THAT(extra(R"(,"pre_tokenizer":{"type":"Split","pattern":{"Regex":"[a&&[b]]"},"behavior":"Isolated"})"),
              HasSubstr("pre_tokenizer.pattern.Regex"));
  EXPECT_THAT(extra(R"(,"pre_tokenizer":{"type":"Split","pattern":{"String":"a"},"behavior":"Sideways"})"),
              HasSubstr("pre_tokenizer.behavior"));
  EXPECT_THAT(extra(R"(,"pre_tokenizer":{"type":"Metaspace","replacement":"xy"})"),
              HasSubstr("pre_tokenizer.replacement"));
  EXPECT_THAT(extra(R"(,"decoder":{"type":"Strip","content":" ","start":-1,"stop":0})"), HasSubstr("decoder.start"));
  EXPECT_THAT(extra(R"(,"decoder":{"type":"Sequence","decoders":{}})"), HasSubstr("decoder.decoders"));
  EXPECT_THAT(extra(R"(,"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"q"}}],)"
                    R"("special_tokens":{"q":{"ids":[77]}}})"),
              AllOf(HasSubstr("post_processor.special_tokens.q.ids[0]"), HasSubstr("77")));
  EXPECT_THAT(extra(R"(,"post_processor":{"type":"TemplateProcessing","single":[{"Sequence":{"id":"B"}}]})"),
              HasSubstr("post_processor.single[0].Sequence.id"));
  EXPECT_THAT(extra(R"(,"version":"2.0")"), testing::Not(HasSubstr("no error")));
  EXPECT_THAT(error_of(small_json().text(), "{"), HasSubstr("tokenizer_config.json"));
  EXPECT_THAT(error_of(small_json().text(), R"({"add_bos_token":"maybe"})"), HasSubstr("add_bos_token"));
  EXPECT_THAT(error_of("[1]"), HasSubstr("tokenizer.json: this must be an object"));
}

TEST(TokenizerJson, SurvivesEveryTruncation) {
  const auto json = golden::read_file(golden::folder() / "zoo/tokenizer.json");
  for (std::size_t size = 0; size + 1 < json.size(); size += 97)
    EXPECT_FALSE(tokenizer::from_json(std::string_view(json).substr(0, size), "", "t").has_value()) << size;
}

TEST(TokenizerJson, SurvivesFlippedBits) {
  for (const auto* name : {"zoo_nfd", "zoo", "llama2"}) {
    const auto json = golden::read_file(golden::folder() / name / "tokenizer.json");
    // The small parts, where structure is dense, are before and behind the vocabulary.
    const auto vocab = json.find("\"vocab\"");
    std::uint64_t state = 3;
    for (int round = 0; round < 150; ++round) {
      auto broken = json;
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      const auto at = (state >> 20) % (round % 3 ? vocab : json.size());
      broken[at] = static_cast<char>(broken[at] ^ (1 << (state >> 60) % 8));
      const auto text = tokenizer::from_json(broken, "", "t");
      if (text) (*text)->decode((*text)->encode("Hello, wörld <s> 12\n", true), false);
    }
  }
}

tokenizer::gguf_vocabulary small_gguf() {
  tokenizer::gguf_vocabulary out;
  out.model = "gpt2";
  out.pre = "gpt-2";
  out.tokens = {"a", "b", "ab", "<s>"};
  out.types = {1, 1, 1, 3};
  out.merges = {"a b"};
  return out;
}

std::string gguf_error(const tokenizer::gguf_vocabulary& vocabulary) {
  const auto out = tokenizer::from_gguf(vocabulary, "m.gguf");
  return out ? "no error" : out.error().to_string();
}

TEST(TokenizerGguf, NamesTheKeyThatIsWrong) {
  EXPECT_EQ(gguf_error(small_gguf()), "no error");
  const auto with = [](auto change) {
    auto vocabulary = small_gguf();
    change(vocabulary);
    return gguf_error(vocabulary);
  };
  EXPECT_THAT(with([](auto& v) { v.model = "t5"; }), HasSubstr("m.gguf: tokenizer.ggml.model"));
  EXPECT_THAT(with([](auto& v) { v.pre = "no-such"; }), HasSubstr("tokenizer.ggml.pre: pre-tokenizer 'no-such'"));
  EXPECT_THAT(with([](auto& v) { v.tokens.clear(); }), HasSubstr("tokenizer.ggml.tokens"));
  EXPECT_THAT(with([](auto& v) { v.tokens[1] = "a"; }), HasSubstr("tokenizer.ggml.tokens[1]: the token occurs twice"));
  EXPECT_THAT(with([](auto& v) { v.tokens[1] = "\xFF"; }),
              HasSubstr("tokenizer.ggml.tokens[1]: the token is not UTF-8"));
  EXPECT_THAT(with([](auto& v) { v.types.pop_back(); }), HasSubstr("tokenizer.ggml.token_type"));
  EXPECT_THAT(with([](auto& v) { v.merges[0] = "a c"; }), HasSubstr("tokenizer.ggml.merges[0]"));
  EXPECT_THAT(with([](auto& v) { v.merges[0] = "ab"; }), HasSubstr("tokenizer.ggml.merges[0]"));
  EXPECT_EQ(with([](auto& v) { v.merges.clear(); }), "no error");  // bytes alone are a vocabulary too
  EXPECT_THAT(with([](auto& v) { v.model = "llama"; }), HasSubstr("tokenizer.ggml.scores"));
  EXPECT_THAT(with([](auto& v) {
                v.model = "llama";
                v.scores = {0, NAN, 0, 0};
              }),
              HasSubstr("tokenizer.ggml.scores[1]"));
}

TEST(TokenizerGguf, ToleratesSpecialIdsThatAreNoTokens) {
  auto vocabulary = small_gguf();
  vocabulary.bos = 77;
  vocabulary.unknown = -3;
  vocabulary.add_bos = true;
  const auto text = tokenizer::from_gguf(vocabulary, "m.gguf");
  ASSERT_TRUE(text);
  EXPECT_EQ((*text)->bos(), std::nullopt);
  EXPECT_THAT((*text)->encode("ab", true), testing::ElementsAre(2));
}

TEST(Regex, EndsEvenWhenAnExpressionExplodes) {
  const auto expression = regex::compile(R"((?:x+x+)+y)", "t");
  ASSERT_TRUE(expression);
  std::vector<text_range> matches;
  expression->find_all(std::string(5000, 'x'), matches);
  EXPECT_TRUE(matches.empty());
  const auto nested = regex::compile(R"((?:(?:a|b)*c?)*d)", "t");
  ASSERT_TRUE(nested);
  nested->find_all(std::string(200'000, 'a'), matches);
  EXPECT_TRUE(matches.empty());
}

TEST(Regex, ReadsOnigurumasDialect) {
  const auto found = [](std::string_view pattern, std::string_view text) {
    std::vector<text_range> ranges;
    const auto compiled = regex::compile(pattern, "t");
    if (!compiled) return std::vector<std::string>{compiled.error().to_string()};
    compiled->find_all(text, ranges);
    std::vector<std::string> out;
    for (const auto& range : ranges) out.emplace_back(text.substr(range.begin, range.end - range.begin));
    return out;
  };
  using testing::ElementsAre;
  EXPECT_THAT(found(R"(\s+)", "a\u180Eb\u0085c"), ElementsAre("\u0085"));
  EXPECT_THAT(found(R"([^\S\n]+)", "a \n\tb"), ElementsAre(" ", "\t"));
  EXPECT_THAT(found(R"(\h+)", "xyz0Af"), ElementsAre("0Af"));
  EXPECT_THAT(found(R"(\w+)", "e\u0301² x"), ElementsAre("e\u0301²", "x"));
  EXPECT_THAT(found(R"(\d{1,2}+)", "12345 1"), ElementsAre("12345", "1"));
  EXPECT_THAT(found(R"(a++b)", "aaab"), ElementsAre("aaab"));
  EXPECT_THAT(found(R"((?m:a.b))", "a\nb"), ElementsAre("a\nb"));
  EXPECT_THAT(found(R"(^a$)", "a\na"), ElementsAre("a", "a"));
  EXPECT_THAT(found(R"(\u0041)", "A"), ElementsAre("A"));
  EXPECT_THAT(found(R"(\bfoo\b)", "foo foo\u0301"), ElementsAre("foo"));
  EXPECT_THAT(found(R"(\p{^L}+)", "ab12"), ElementsAre("12"));
  EXPECT_THAT(found(R"(x*)", "axb"), ElementsAre("", "x", ""));
}

}  // namespace
}  // namespace troupe::model
