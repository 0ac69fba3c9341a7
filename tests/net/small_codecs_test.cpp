#include "net/codec/generate.hpp"
#include "net/codec/reports.hpp"
#include "net/codec/stream.hpp"
#include "net/codec/tokenize.hpp"
#include "net/codec/wire_error.hpp"
#include "support.hpp"

namespace troupe::net {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Generate, TakesAPromptAndGivesText) {
  auto call = call_of(parse_generate, R"({"prompt":"Hi"})");
  ASSERT_TRUE(call);
  EXPECT_EQ(call->requests[0].max_tokens, 200U);
  const auto body = whole(*call->answer, {{0, started()}, {0, delta(0, "yo")}, {0, finished(0)}, {0, done(2, 1)}});
  EXPECT_EQ(
      json::serialize(body),
      R"({"id":"gen-1","model":"small","text":"yo","finish_reason":"stop","stop_reason":null,"usage":{"prompt_tokens":2,)"
      R"("completion_tokens":1,"total_tokens":3,"prompt_tokens_details":{"cached_tokens":0}}})");
}

TEST(Generate, StreamsTextAndEndsWithTheUsage) {
  auto call = call_of(parse_generate, R"({"prompt":[1,2],"stream":true,"max_tokens":3})");
  ASSERT_TRUE(call);
  const auto chunks = streamed(
      *call->answer, {{0, started()}, {0, delta(0, "a")}, {0, delta(0, "b")}, {0, finished(0)}, {0, done(2, 2)}});
  ASSERT_EQ(chunks.size(), 3U);
  EXPECT_EQ(text_at(chunks[1], "/text"), "\"b\"");
  EXPECT_EQ(text_at(chunks[2], "/finish_reason"), "\"stop\"");
  EXPECT_EQ(text_at(chunks[2], "/usage/completion_tokens"), "2");
}

TEST(Generate, RefusesSeveralPromptsOrChoices) {
  EXPECT_THAT(refusal(parse_generate, R"({"prompt":["a","b"]})"), StartsWith("prompt | must be one prompt"));
  EXPECT_THAT(refusal(parse_generate, R"({"prompt":"a","n":2})"), StartsWith("n | must be 1"));
  EXPECT_THAT(refusal(parse_generate, "{}"), StartsWith("prompt | is required"));
}

TEST(Tokenize, ReadsTextOrMessages) {
  const model_facts model = small_model();
  const config::server_settings limits;
  const codec_context context{model, limits};
  const auto text = parse_tokenize(object_of(R"({"prompt":"Hi","return_token_strs":true})"), context);
  ASSERT_TRUE(text);
  EXPECT_TRUE(text->request.add_special_tokens);
  EXPECT_TRUE(text->return_token_strs);
  const auto chat = parse_tokenize(
      object_of(R"({"messages":[{"role":"user","content":"Hi"}],"add_generation_prompt":false})"), context);
  ASSERT_TRUE(chat);
  EXPECT_FALSE(chat->request.add_special_tokens);
  EXPECT_FALSE(std::get<actors::chat_prompt>(chat->request.prompt).add_generation_prompt);
  EXPECT_FALSE(parse_tokenize(object_of("{}"), context));
  EXPECT_FALSE(parse_tokenize(object_of(R"({"prompt":"a","messages":[{"role":"user","content":"a"}]})"), context));
  EXPECT_FALSE(parse_tokenize(object_of(R"({"prompt":5})"), context));
}

TEST(Tokenize, AnswersAsVllmDoes) {
  EXPECT_EQ(json::serialize(tokenize_answer({1, 2}, 64, nullptr)),
            R"({"count":2,"max_model_len":64,"tokens":[1,2],"token_strs":null})");
  const std::vector<std::string> texts{"a", "\xff"};
  EXPECT_EQ(text_at(tokenize_answer({1, 2}, 64, &texts), "/token_strs"), "[\"a\",\"\xEF\xBF\xBD\"]");
}

TEST(Detokenize, ChecksIds) {
  const model_facts model = small_model();
  const config::server_settings limits;
  const codec_context context{model, limits};
  EXPECT_EQ(*parse_detokenize(object_of(R"({"tokens":[1,999]})"), context), (std::vector<token_id>{1, 999}));
  EXPECT_EQ(parse_detokenize(object_of(R"({"tokens":[1,1000]})"), context).error().place, "tokens[1]");
  EXPECT_EQ(parse_detokenize(object_of("{}"), context).error().place, "tokens");
}

TEST(WireError, MapsKindsToOpenAisErrors) {
  const auto bad = to_wire({error_kind::invalid, "must be x", "messages[2].content"});
  EXPECT_EQ(
      json::serialize(error_body(bad)),
      R"({"error":{"message":"messages[2].content: must be x","type":"invalid_request_error","param":"messages[2].content","code":"invalid_request"}})");
  EXPECT_EQ(bad.status, 400U);
  EXPECT_EQ(to_wire({error_kind::not_found, "no", "model"}).code, "model_not_found");
  EXPECT_EQ(to_wire({error_kind::too_large, "prompt of 70", "prompt"}).code, "context_length_exceeded");
  EXPECT_EQ(to_wire({error_kind::internal, "broken", ""}).status, 500U);
}

TEST(WireError, AlwaysAsksForAWaitOfAtLeastASecond) {
  const auto full = to_wire({error_kind::overloaded, "full", ""}, std::chrono::seconds{0});
  EXPECT_EQ(full.status, 503U);
  EXPECT_EQ(full.code, "server_is_overloaded");
  EXPECT_EQ(full.retry_after, std::chrono::seconds{1});
  EXPECT_EQ(to_wire({error_kind::overloaded, "full", ""}, std::chrono::seconds{9}).retry_after,
            std::chrono::seconds{9});
  EXPECT_EQ(to_wire({error_kind::unavailable, "loading", ""}).retry_after, std::chrono::seconds{1});
}

TEST(WireError, NamesTheStageWhereTimeRanOut) {
  const auto late = to_wire({error_kind::deadline_exceeded, "waited 5 s", "queue"});
  EXPECT_EQ(late.status, 504U);
  EXPECT_EQ(text_at(error_body(late), "/error/stage"), "\"queue\"");
  EXPECT_THAT(text_at(error_body(late), "/error/message"), HasSubstr("queue"));
  EXPECT_TRUE(late.retry_after) << "a wait that was too long is overload";
  EXPECT_FALSE(to_wire({error_kind::deadline_exceeded, "too slow", "executor"}).retry_after);
}

TEST(Health, IsAliveWhileLoadingAndNotWhenAStageIsStalled) {
  actors::health_report report;
  EXPECT_TRUE(is_alive(report));
  EXPECT_EQ(text_at(health_json(report), "/state"), "\"loading\"");
  report.stages.push_back({"executor", true, std::chrono::milliseconds{31'000}, true});
  report.healthy = false;
  EXPECT_FALSE(is_alive(report));
  EXPECT_EQ(text_at(health_json(report), "/stages/0"),
            R"({"stage":"executor","working":true,"ms_since_progress":31000,"stalled":true})");
  report.healthy = true;
  report.state = actors::health_report::state_kind::failed;
  EXPECT_FALSE(is_alive(report));
}

TEST(Experts, AreListedByLayer) {
  actors::expert_report report{.precision = "int8", .layers = {{}, {{10, 0.5, true, 100}}}};
  const auto body = experts_json(report);
  EXPECT_EQ(text_at(body, "/layers/0/experts"), "[]");
  EXPECT_EQ(text_at(body, "/layers/1/experts/0/tokens"), "10");
}

TEST(StreamProtocol, ReadsItsMessages) {
  auto message = stream::parse(R"({"type":"chat","id":"a","messages":[],"temperature":0})", 64);
  auto* start = std::get_if<stream::start>(&message);
  ASSERT_TRUE(start);
  EXPECT_EQ(start->id, "a");
  EXPECT_EQ(json::serialize(start->body), R"({"messages":[],"temperature":0,"stream":true})");
  message = stream::parse(R"({"type":"generate","id":"a","stream":false})", 64);
  EXPECT_EQ(text_at(std::get<stream::start>(message).body, "/stream"), "false");
  message = stream::parse(R"({"type":"cancel","id":"b"})", 64);
  EXPECT_EQ(std::get<stream::cancel>(message).id, "b");
  message = stream::parse(R"({"type":"ping"})", 64);
  EXPECT_TRUE(std::holds_alternative<stream::ping>(message));
}

TEST(StreamProtocol, TellsFaultsWithTheIdWhereThereIsOne) {
  const auto fault_of = [](std::string_view text) {
    auto message = stream::parse(text, 64);
    auto* fault = std::get_if<stream::fault>(&message);
    return fault ? fault->id + " | " + fault->failure.to_string() : "accepted";
  };
  EXPECT_THAT(fault_of("{"), StartsWith(" | the JSON text ends too early"));
  EXPECT_THAT(fault_of("[]"), HasSubstr("must be a JSON object"));
  EXPECT_THAT(fault_of(R"({"id":"a"})"), StartsWith("a | type: is required"));
  EXPECT_THAT(fault_of(R"({"type":"sing","id":"a"})"), StartsWith("a | type: 'sing' is none of"));
  EXPECT_THAT(fault_of(R"({"type":"chat"})"), StartsWith(" | id: must be"));
  EXPECT_THAT(fault_of(R"({"type":"chat","id":5})"), StartsWith(" | id: must be a string"));
  EXPECT_THAT(fault_of(R"({"type":"chat","id":"a\nb"})"), StartsWith(" | id: must be"));
  EXPECT_THAT(fault_of(R"({"type":"chat","id":")" + std::string(129, 'x') + "\"}"), StartsWith(" | id: must be"));
}

TEST(StreamProtocol, WritesEvents) {
  EXPECT_EQ(stream::chunk_event("a\"b", R"({"x":1})"), R"({"type":"chunk","id":"a\"b","data":{"x":1}})");
  EXPECT_EQ(stream::done_event("a"), R"({"type":"done","id":"a"})");
  const auto error = object_of(stream::error_event("", to_wire({error_kind::overloaded, "full", ""})));
  EXPECT_EQ(text_at(error, "/id"), "null");
  EXPECT_EQ(text_at(error, "/status"), "503");
  EXPECT_EQ(text_at(error, "/retry_after"), "1");
  EXPECT_EQ(text_at(error, "/error/code"), "\"server_is_overloaded\"");
}

}  // namespace
}  // namespace troupe::net
