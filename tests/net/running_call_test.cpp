#include "net/running_call.hpp"

#include "net/codec/completions.hpp"
#include "scripted_upstream.hpp"

namespace troupe::net {
namespace {

/// What a connection would get of a call, all on the test's thread.
struct outcome {
  std::vector<std::string> chunks;
  std::optional<boost::json::object> whole;
  std::optional<wire_error> failure;
  bool started = false;

  call_output output() {
    return {.started = [this](const auto&) { started = true; },
            .chunks =
                [this](const auto& texts, const auto& written) {
                  chunks.insert(chunks.end(), texts.begin(), texts.end());
                  written();
                },
            .whole = [this](auto object) { whole = std::move(object); },
            .done = [] {},
            .failed = [this](const wire_error& why) { failure = why; }};
  }
};

/// Two scored prompt tokens with one alternative each, then two words.
outcome run(std::string_view body, std::int64_t max_bytes) {
  outcome seen;
  scripted_upstream actors;
  call_terms terms;
  terms.max_bytes = max_bytes;
  terms.window = std::make_shared<flow_window>(1);
  auto call = call_of(parse_completion, body);
  const std::uint32_t choices = call->requests[0].n;
  const auto running = running_call::start(
      actors.calls(), *std::move(call), terms, [](auto task) { task(); }, seen.output());
  auto start = started();
  start.prompt_text = "Hi";
  start.prompt_details = {token(1, "H", -1.0F), token(2, "i", -1.0F)};
  auto& sink = actors.wait_for(0).sink;
  sink(start);
  for (std::uint32_t i = 0; i < choices; ++i) {
    for (const char* word : {"Hello", " world"}) sink(delta(i, word, {token(3, word, -0.5F)}));
    sink(finished(i));
  }
  sink(done(2, 2 * choices));
  EXPECT_EQ(terms.window->held(), 0);
  EXPECT_EQ(seen.failure.has_value(), actors.wait_for(0).request.cancel.cancelled()) << "no more is computed";
  return seen;
}

constexpr std::string_view scored = R"({"prompt":"Hi","logprobs":0,"echo":true,"n":4})";
constexpr std::string_view scored_stream = R"({"prompt":"Hi","logprobs":0,"echo":true,"n":4,"stream":true})";

TEST(RunningCall, RefusesAWholeAnswerThatGrowsTooLarge) {
  EXPECT_TRUE(run(scored, 2000).whole);
  const auto refused = run(scored, 900);
  ASSERT_TRUE(refused.failure);
  EXPECT_EQ(refused.failure->status, 400U);
  EXPECT_EQ(refused.failure->code, "answer_too_large");
  EXPECT_FALSE(refused.whole);
}

TEST(RunningCall, BoundsEachPieceOfAStreamAndNotTheirSum) {
  const auto seen = run(scored_stream, 900);
  EXPECT_FALSE(seen.failure);
  EXPECT_EQ(seen.chunks.size(), 16U);
}

TEST(RunningCall, CountsTheIdsOfTokens) {
  EXPECT_FALSE(run(R"({"prompt":"Hi","n":4})", 1050).failure);
  EXPECT_TRUE(run(R"({"prompt":"Hi","n":4,"return_token_ids":true})", 1050).failure);
}

TEST(RunningCall, DoesNotTellAStreamToStream) {
  const std::string_view hint = "stream it";
  EXPECT_NE(run(scored, 900).failure->message.find(hint), std::string::npos);
  EXPECT_EQ(run(scored_stream, 300).failure->message.find(hint), std::string::npos);
}

TEST(RunningCall, CountsAPromptOnceForEachChoiceThatRepeatsIt) {
  const auto refused = run(scored_stream, 300);
  ASSERT_TRUE(refused.failure);
  EXPECT_FALSE(refused.started) << "the status line is not sent yet";
  EXPECT_TRUE(refused.chunks.empty());
  EXPECT_FALSE(run(R"({"prompt":"Hi","logprobs":0,"echo":true,"stream":true})", 300).failure);
}

}  // namespace
}  // namespace troupe::net
