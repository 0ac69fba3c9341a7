#include "net/codec/completions.hpp"

#include <cmath>

#include "support.hpp"

namespace troupe::net {
namespace {

using testing::StartsWith;

std::vector<actors::generation_request> requests_of(std::string_view body) {
  auto call = call_of(parse_completion, body);
  EXPECT_TRUE(call) << (call ? "" : call.error().to_string());
  return call ? std::move(call->requests) : std::vector<actors::generation_request>{};
}
std::string refused(std::string_view body) { return refusal(parse_completion, body); }
std::unique_ptr<answer> form_of(std::string_view body) { return std::move(call_of(parse_completion, body)->answer); }

TEST(CompletionPrompts, ComeInFourSpellings) {
  EXPECT_EQ(std::get<std::string>(requests_of(R"({"prompt":"Hi"})")[0].prompt), "Hi");
  EXPECT_EQ(requests_of(R"({"prompt":["a","b"]})").size(), 2U);
  EXPECT_EQ(std::get<std::vector<token_id>>(requests_of(R"({"prompt":[1,2]})")[0].prompt),
            (std::vector<token_id>{1, 2}));
  const auto lists = requests_of(R"({"prompt":[[1],[2,3]]})");
  ASSERT_EQ(lists.size(), 2U);
  EXPECT_EQ(std::get<std::vector<token_id>>(lists[1].prompt), (std::vector<token_id>{2, 3}));
}

TEST(CompletionPrompts, NameThePlaceOfABadOne) {
  EXPECT_THAT(refused("{}"), StartsWith("prompt | is required"));
  EXPECT_THAT(refused(R"({"prompt":[]})"), StartsWith("prompt | must not be empty"));
  EXPECT_THAT(refused(R"({"prompt":[[1],[]]})"), StartsWith("prompt[1] | must not be empty"));
  EXPECT_THAT(refused(R"({"prompt":[1,1099511627776]})"), StartsWith("prompt[1] | must be a token id from 0 to 999"));
  EXPECT_THAT(refused(R"({"prompt":[1000]})"), StartsWith("prompt[0] | "));
  EXPECT_THAT(refused(R"({"prompt":[[-1]]})"), StartsWith("prompt[0][0] | "));
  EXPECT_THAT(refused(R"({"prompt":[1,1.0]})"), StartsWith("prompt[1] | "));
  EXPECT_THAT(refused(R"({"prompt":[1,"1"]})"), StartsWith("prompt[1] | "));
  EXPECT_THAT(refused(R"({"prompt":["a",1]})"), StartsWith("prompt[1] | "));
  EXPECT_THAT(refused(R"({"prompt":[true]})"), StartsWith("prompt[0] | "));
  EXPECT_THAT(refused(R"({"prompt":{}})"), StartsWith("prompt | must be a string or an array"));
  std::string many = R"({"prompt":["a")";
  for (std::size_t i = 0; i < max_prompts; ++i) many += R"(,"a")";
  EXPECT_THAT(refused(many + "]}"), StartsWith("prompt | must have at most 1024"));
}

TEST(Completions, AskForPromptLogprobsToEchoThem) {
  const auto scored = requests_of(R"({"prompt":"Hi","max_tokens":0,"temperature":0,"echo":true,"logprobs":1})")[0];
  EXPECT_TRUE(scored.echo);
  EXPECT_EQ(scored.max_tokens, 0U);
  EXPECT_EQ(scored.prompt_logprobs, 1);
  EXPECT_EQ(scored.sampling.top_logprobs, 1);
  EXPECT_EQ(requests_of(R"({"prompt":"Hi","logprobs":1})")[0].prompt_logprobs, -1);
}

TEST(Completions, GiveWholeAnswersInOpenAisShape) {
  auto form = form_of(R"({"prompt":["a","b"],"n":2})");
  const auto body = whole(*form, {{1, started()},
                                  {0, started()},
                                  {1, delta(1, "four")},
                                  {0, delta(0, "one")},
                                  {0, delta(0, "!")},
                                  {1, delta(0, "three")},
                                  {0, delta(1, "two")},
                                  {0, finished(0)},
                                  {0, finished(1, actors::finish_reason::length)},
                                  {1, finished(0)},
                                  {1, finished(1)},
                                  {0, done(2, 3, 1)},
                                  {1, done(2, 2)}});
  EXPECT_EQ(text_at(body, "/id"), "\"cmpl-1\"");
  EXPECT_EQ(text_at(body, "/object"), "\"text_completion\"");
  EXPECT_EQ(text_at(body, "/created"), "7");
  EXPECT_EQ(text_at(body, "/model"), "\"small\"");
  EXPECT_EQ(text_at(body, "/choices/0/text"), "\"one!\"");
  EXPECT_EQ(text_at(body, "/choices/1/text"), "\"two\"");
  EXPECT_EQ(text_at(body, "/choices/1/finish_reason"), "\"length\"");
  EXPECT_EQ(text_at(body, "/choices/3/text"), "\"four\"");
  EXPECT_EQ(text_at(body, "/choices/3/index"), "3");
  EXPECT_EQ(text_at(body, "/choices/3/logprobs"), "null");
  EXPECT_EQ(text_at(body, "/usage"), R"({"prompt_tokens":4,"completion_tokens":5,"total_tokens":9,)"
                                     R"("prompt_tokens_details":{"cached_tokens":1}})");
}

TEST(Completions, EndEveryStreamedChoiceExactlyOnceWithItsOwnIndex) {
  auto form = form_of(R"({"prompt":"a","n":3,"stream":true,"stream_options":{"include_usage":true}})");
  const auto chunks = streamed(*form, {{0, started()},
                                       {0, delta(2, "x")},
                                       {0, finished(2)},
                                       {0, delta(0, "y")},
                                       {0, delta(1, "z")},
                                       {0, finished(1)},
                                       {0, delta(0, "w")},
                                       {0, finished(0)},
                                       {0, done(2, 4)}});
  std::map<std::string, std::string> texts, ends;
  for (const auto& chunk : chunks) {
    if (at(chunk, "/choices").as_array().empty()) continue;
    EXPECT_EQ(text_at(chunk, "/usage"), "null");
    const std::string index = text_at(chunk, "/choices/0/index");
    texts[index] += std::string(at(chunk, "/choices/0/text").as_string());
    if (!at(chunk, "/choices/0/finish_reason").is_null()) ends[index] += text_at(chunk, "/choices/0/finish_reason");
  }
  EXPECT_EQ(texts, (std::map<std::string, std::string>{{"0", "yw"}, {"1", "z"}, {"2", "x"}}));
  EXPECT_EQ(ends, (std::map<std::string, std::string>{{"0", "\"stop\""}, {"1", "\"stop\""}, {"2", "\"stop\""}}));
  EXPECT_EQ(text_at(chunks.back(), "/usage/total_tokens"), "6");
}

TEST(Completions, EchoThePromptWithItsLogprobs) {
  const std::string body = R"({"prompt":"Hi","echo":true,"logprobs":1,"return_token_ids":true})";
  actors::generation_started start = started({5, 6}, "Hé");
  start.prompt_details = {token(5, "H"), token(6, "é", -0.5F, {{7, "e", "e", -0.25F}})};
  const script events{{0, start},
                      {0, delta(0, "!", {token(8, "!", -1.0F, {{8, "!", "!", -1.0F}})})},
                      {0, finished(0)},
                      {0, done(2, 1)}};
  auto form = form_of(body);
  const auto answer = whole(*form, events);
  EXPECT_EQ(text_at(answer, "/choices/0/text"), "\"Hé!\"");
  EXPECT_EQ(text_at(answer, "/choices/0/logprobs/tokens"), R"(["H","é","!"])");
  EXPECT_EQ(text_at(answer, "/choices/0/logprobs/text_offset"), "[0,1,2]");
  EXPECT_EQ(text_at(answer, "/choices/0/logprobs/token_logprobs"), "[null,-5E-1,-1E0]");
  EXPECT_EQ(text_at(answer, "/choices/0/logprobs/top_logprobs"), R"([null,{"e":-2.5E-1,"é":-5E-1},{"!":-1E0}])");
  EXPECT_EQ(text_at(answer, "/choices/0/prompt_token_ids"), "[5,6]");
  EXPECT_EQ(text_at(answer, "/choices/0/token_ids"), "[8]");

  auto stream = form_of(R"({"prompt":"Hi","echo":true,"logprobs":1,"stream":true})");
  const auto chunks = streamed(*stream, events);
  EXPECT_EQ(text_at(chunks[0], "/choices/0/text"), "\"Hé\"");
  EXPECT_EQ(text_at(chunks[0], "/choices/0/logprobs/text_offset"), "[0,1]");
  EXPECT_EQ(text_at(chunks[1], "/choices/0/logprobs/text_offset"), "[2]");
}

TEST(Completions, NeverWriteNumbersThatJsonLacks) {
  const float infinite = -std::numeric_limits<float>::infinity();
  auto form = form_of(R"({"prompt":"Hi","logprobs":2,"prompt_logprobs":1})");
  actors::generation_started start = started();
  start.prompt_details = {token(5, "a"), token(6, "b", std::nanf(""), {{7, "c", "c", infinite}})};
  const auto answer = whole(*form, {{0, start},
                                    {0, delta(0, "x", {token(8, "x", infinite, {{9, "y", "y", infinite}})})},
                                    {0, finished(0)},
                                    {0, done(1, 1)}});
  EXPECT_EQ(text_at(answer, "/choices/0/logprobs/token_logprobs"), "[-9.999E3]");
  EXPECT_EQ(text_at(answer, "/choices/0/logprobs/top_logprobs"), R"([{"y":-9.999E3,"x":-9.999E3}])");
  EXPECT_EQ(text_at(answer, "/choices/0/prompt_logprobs/1/7/logprob"), "-9.999E3");
  EXPECT_EQ(text_at(answer, "/choices/0/prompt_logprobs/1/7/rank"), "1");
  EXPECT_EQ(text_at(answer, "/choices/0/prompt_logprobs/1/6/rank"), "null");
}

TEST(Completions, SpellPartsOfCharactersByTheirBytes) {
  auto form = form_of(R"({"prompt":"Hi","logprobs":1})");
  actors::token_detail half{.id = 1, .text = "\xEF\xBF\xBD", .bytes = "\xE2\x82", .logprob = -1.0F, .top = {}};
  half.top = {{2, "\xEF\xBF\xBD", "\xE2\x83", -0.5F}};
  actors::token_detail rest{.id = 3, .text = "\xEF\xBF\xBD", .bytes = "\xAC", .logprob = -1.0F, .top = {}};
  const auto answer = whole(
      *form,
      {{0, started()}, {0, delta(0, "€", {half, rest, token(4, "a", -1.0F)})}, {0, finished(0)}, {0, done(1, 3)}});
  EXPECT_EQ(text_at(answer, "/choices/0/logprobs/tokens"), R"(["bytes:\\xe2\\x82","bytes:\\xac","a"])");
  EXPECT_EQ(at(answer, "/choices/0/logprobs/top_logprobs/0").as_object().size(), 2U);
  EXPECT_EQ(text_at(answer, "/choices/0/logprobs/text_offset"), "[0,1,1]");
}

TEST(Completions, ReplaceBytesThatAreNoText) {
  auto form = form_of(R"({"prompt":"Hi"})");
  const auto answer = whole(*form, {{0, started()},
                                    {0, delta(0,
                                              "a\xff"
                                              "b")},
                                    {0, finished(0)},
                                    {0, done(1, 1)}});
  EXPECT_EQ(at(answer, "/choices/0/text").as_string(),
            "a\xEF\xBF\xBD"
            "b");
}

}  // namespace
}  // namespace troupe::net
