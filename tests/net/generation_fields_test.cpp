#include "net/codec/generation_fields.hpp"

#include "net/codec/completions.hpp"
#include "support.hpp"

namespace troupe::net {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string with(std::string_view field) { return R"({"prompt":"Hi",)" + std::string(field) + "}"; }
std::string refused(std::string_view field) { return refusal(parse_completion, with(field)); }

actors::generation_request request_with(std::string_view field, const model_facts& model = small_model()) {
  auto call = call_of(parse_completion, with(field), model);
  EXPECT_TRUE(call) << (call ? "" : call.error().to_string());
  return call ? call->requests.front() : actors::generation_request{};
}

TEST(GenerationFields, TakeTheModelsDefaultsForWhatIsLeftOut) {
  model_facts model = small_model();
  model.defaults.temperature = 0.2;
  model.defaults.top_k = 20;
  model.defaults.top_p = 0.8;
  model.defaults.repetition_penalty = 1.1;
  const auto request = request_with(R"("top_k":5)", model);
  EXPECT_EQ(request.sampling.temperature, 0.2);
  EXPECT_EQ(request.sampling.top_k, 5);
  EXPECT_EQ(request.sampling.top_p, 0.8);
  EXPECT_EQ(request.sampling.repetition_penalty, 1.1);
  EXPECT_FALSE(request.max_tokens);
  EXPECT_EQ(request_with(R"("temperature":null)").sampling.temperature, 1.0);
}

TEST(GenerationFields, RefuseNumbersOfTheWrongTypeOrRangeByName) {
  EXPECT_THAT(refused(R"("temperature":"0.5")"),
              StartsWith("temperature | must be a number from 0 to 2, but is a string"));
  EXPECT_THAT(refused(R"("temperature":true)"), StartsWith("temperature | "));
  EXPECT_THAT(refused(R"("temperature":2.1)"), StartsWith("temperature | "));
  EXPECT_THAT(refused(R"("temperature":-0.1)"), StartsWith("temperature | "));
  EXPECT_THAT(refused(R"("temperature":1e400)"), StartsWith("temperature | the number is too large"));
  EXPECT_THAT(refused(R"("temperature":NaN)"), StartsWith("temperature | not valid JSON"));
  EXPECT_THAT(refused(R"("top_p":1.01)"), StartsWith("top_p | "));
  EXPECT_THAT(refused(R"("top_k":1.5)"), StartsWith("top_k | "));
  EXPECT_THAT(refused(R"("top_k":-2)"), StartsWith("top_k | "));
  EXPECT_THAT(refused(R"("max_tokens":-1)"), StartsWith("max_tokens | "));
  EXPECT_THAT(refused(R"("max_tokens":1.5)"), StartsWith("max_tokens | "));
  EXPECT_THAT(refused(R"("max_tokens":"5")"), StartsWith("max_tokens | "));
  EXPECT_THAT(refused(R"("max_tokens":true)"), StartsWith("max_tokens | "));
  EXPECT_THAT(refused(R"("max_tokens":1.0)"), StartsWith("max_tokens | "));
  EXPECT_THAT(refused(R"("max_tokens":18446744073709551615)"), StartsWith("max_tokens | "));
  EXPECT_THAT(refused(R"("n":0)"), StartsWith("n | must be an integer from 1 to 128"));
  EXPECT_EQ(refused(R"("n":18446744073709551616)"), refused(R"("n":0)")) << "a whole number beyond 64 bits";
  EXPECT_THAT(refused(R"("n":129)"), StartsWith("n | "));
  EXPECT_THAT(refused(R"("seed":1.5)"), StartsWith("seed | "));
  EXPECT_THAT(refused(R"("logprobs":21)"), StartsWith("logprobs | "));
  EXPECT_THAT(refused(R"("logprobs":true)"), StartsWith("logprobs | "));
  EXPECT_THAT(refused(R"("stream":"true")"), StartsWith("stream | must be true or false, but is a string"));
  EXPECT_THAT(refused(R"("min_tokens":5,"max_tokens":4)"), StartsWith("min_tokens | "));
}

TEST(GenerationFields, AcceptTheEdgesOfRanges) {
  for (const auto* field :
       {R"("temperature":0)", R"("temperature":2)", R"("temperature":2.0)", R"("temperature":1e-9)", R"("top_p":0)",
        R"("top_p":1)", R"("top_k":-1)", R"("top_k":0)", R"("min_p":1)", R"("n":128)", R"("max_tokens":0)",
        R"("seed":-9223372036854775808)", R"("seed":9223372036854775807)", R"("stream_options":null)",
        R"("unknown_field":{"a":[1]})", R"("user":"someone")"})
    EXPECT_EQ(refused(field), "accepted") << field;
}

TEST(GenerationFields, ReadStopsAndRefuseDegenerateOnes) {
  EXPECT_TRUE(request_with(R"("stop":null)").stop.empty());
  EXPECT_TRUE(request_with(R"("stop":[])").stop.empty());
  EXPECT_EQ(request_with(R"("stop":"END")").stop, std::vector<std::string>{"END"});
  EXPECT_EQ(request_with(R"("stop":["a","ab"])").stop, (std::vector<std::string>{"a", "ab"}));
  EXPECT_THAT(refused(R"("stop":["","END"])"), StartsWith("stop[0] | "));
  EXPECT_THAT(refused(R"("stop":"")"), StartsWith("stop | "));
  EXPECT_THAT(refused(R"("stop":[null])"), StartsWith("stop[0] | "));
  EXPECT_THAT(refused(R"("stop":[1])"), StartsWith("stop[0] | "));
  EXPECT_THAT(refused(R"("stop":5)"), StartsWith("stop | "));
  EXPECT_THAT(refused(R"("stop":")" + std::string(1 << 20, 'x') + "\""), StartsWith("stop | must have at most 4096"));
  std::string many = R"("stop":["x")";
  for (int i = 0; i < 10'000; ++i) many += R"(,"x")";
  EXPECT_THAT(refused(many + "]"), StartsWith("stop | must have at most 16 entries"));
}

TEST(GenerationFields, ReadBiasByTokenIdInPlainDecimal) {
  const auto request = request_with(R"("logit_bias":{"5":-100,"999":1.5})");
  EXPECT_EQ(request.sampling.logit_bias, (std::vector<std::pair<token_id, float>>{{5, -100.0F}, {999, 1.5F}}));
  EXPECT_TRUE(request_with(R"("logit_bias":{})").sampling.logit_bias.empty());
  for (const auto* key : {"Hi", "1000", "-1", "05", "5 ", "+5", "", "1e2", "99999999999999999999"})
    EXPECT_THAT(refused(R"("logit_bias":{")" + std::string(key) + R"(":1})"), StartsWith("logit_bias | the key"))
        << key;
  EXPECT_THAT(refused(R"("logit_bias":{"5":101})"), StartsWith("logit_bias.5 | "));
  EXPECT_THAT(refused(R"("logit_bias":{"5":null})"), StartsWith("logit_bias.5 | "));
  EXPECT_THAT(refused(R"("logit_bias":[5])"), StartsWith("logit_bias | must be an object"));
}

TEST(GenerationFields, KeepAnswersOutOfTheCacheWhenTheyAreMeantToDiffer) {
  EXPECT_FALSE(request_with(R"("temperature":1)").use_cache);
  EXPECT_TRUE(request_with(R"("temperature":1,"seed":3)").use_cache);
  EXPECT_TRUE(request_with(R"("temperature":0)").use_cache);
  EXPECT_NE(request_with(R"("temperature":1)").sampling.seed, request_with(R"("temperature":1)").sampling.seed);
}

TEST(GenerationFields, NameTheServedModelOrFail) {
  EXPECT_EQ(refused(R"("model":"small")"), "accepted");
  EXPECT_EQ(refused(R"("model":"default")"), "accepted");
  EXPECT_EQ(refused(R"("model":"")"), "accepted");
  EXPECT_EQ(refused(R"("model":null)"), "accepted");
  auto call = call_of(parse_completion, with(R"("model":"gpt-4")"));
  ASSERT_FALSE(call);
  EXPECT_EQ(call.error().kind, error_kind::not_found);
  EXPECT_EQ(call.error().place, "model");
  EXPECT_THAT(refused(R"("model":5)"), StartsWith("model | must be a string"));
}

TEST(GenerationFields, RefuseWhatWouldChangeTheAnswerAndIsNotThere) {
  EXPECT_THAT(refused(R"("response_format":{"type":"json_object"})"), StartsWith("response_format.type | only"));
  EXPECT_EQ(refused(R"("response_format":{"type":"text"})"), "accepted");
  EXPECT_THAT(refused(R"("guided_json":{})"), StartsWith("guided_json | "));
  EXPECT_THAT(refused(R"("suffix":"x")"), StartsWith("suffix | "));
  EXPECT_EQ(refused(R"("suffix":null)"), "accepted");
  EXPECT_THAT(refused(R"("include_stop_str_in_output":true)"), StartsWith("include_stop_str_in_output | "));
  EXPECT_EQ(refused(R"("include_stop_str_in_output":false,"use_beam_search":false,"detokenize":true)"), "accepted");
  EXPECT_THAT(refused(R"("detokenize":false)"), StartsWith("detokenize | "));
  EXPECT_THAT(refused(R"("best_of":3)"), StartsWith("best_of | "));
}

TEST(GenerationFields, ReadStreamOptionsOnlyWithAStream) {
  EXPECT_THAT(refused(R"("stream_options":{"include_usage":true})"), StartsWith("stream_options | "));
  EXPECT_EQ(refused(R"("stream":true,"stream_options":{"include_usage":true})"), "accepted");
  EXPECT_THAT(refused(R"("stream":true,"stream_options":{"include_usage":1})"),
              StartsWith("stream_options.include_usage | "));
}

TEST(ParseBody, RefusesWhatIsNoStrictJsonObject) {
  EXPECT_THAT(refusal(parse_completion, "[]"), HasSubstr("must be a JSON object"));
  EXPECT_THAT(refusal(parse_completion, ""), HasSubstr("ends too early"));
  EXPECT_THAT(refusal(parse_completion, R"({"prompt":"a","prompt":"b"})"),
              StartsWith("prompt | the key appears twice"));
  EXPECT_THAT(refusal(parse_completion, "{\"prompt\":\"a\xff\"}"), StartsWith("prompt | the text is not valid UTF-8"));
  EXPECT_THAT(refusal(parse_completion, R"({"prompt":"\ud800"})"), StartsWith("prompt | half of a surrogate pair"));
  EXPECT_THAT(refusal(parse_completion, R"({"prompt":)" + std::string(100, '[') + std::string(100, ']') + "}"),
              HasSubstr("nested deeper than 64 levels"));
}

}  // namespace
}  // namespace troupe::net
