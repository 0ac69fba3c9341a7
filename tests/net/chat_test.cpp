#include "net/codec/chat.hpp"

#include "support.hpp"

namespace troupe::net {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string refused(std::string_view body) { return refusal(parse_chat, body); }
std::string refused_messages(std::string_view messages) {
  return refused(R"({"messages":)" + std::string(messages) + "}");
}
std::unique_ptr<answer> form_of(std::string_view body) { return std::move(call_of(parse_chat, body)->answer); }

/// What the template sees, as JSON.
json::object variables_of(std::string_view body) {
  auto call = call_of(parse_chat, body);
  EXPECT_TRUE(call) << (call ? "" : call.error().to_string());
  return call ? std::get<actors::chat_prompt>(call->requests.front().prompt).variables : json::object{};
}

constexpr auto hi = R"([{"role":"user","content":"Hi"}])";
std::string chat_with(std::string_view fields) {
  return R"({"messages":)" + std::string(hi) + "," + std::string(fields) + "}";
}

TEST(ChatMessages, NeverShowATemplateNullsOrEmptyCalls) {
  const auto answered = R"({"role":"assistant",CONTENT"tool_calls":[{"id":"c","type":"function","function":
      {"name":"add","arguments":"{\"a\":1}"}}]},{"role":"tool","tool_call_id":"c","content":"3"}])";
  std::vector<std::string> seen;
  for (const std::string content : {"", "\"content\":null,", "\"content\":\"\","}) {
    std::string messages = R"([{"role":"user","content":"Hi"},)" + std::string(answered);
    messages.replace(messages.find("CONTENT"), 7, content);
    seen.push_back(json::serialize(variables_of(R"({"messages":)" + messages + "}")));
    EXPECT_THAT(seen.back(), Not(HasSubstr("null")));
  }
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[0], seen[2]);
  EXPECT_THAT(seen[0], HasSubstr(R"("arguments":{"a":1})"));

  const auto plain = variables_of(R"({"messages":[{"role":"assistant","content":"Yes","name":null,"tool_calls":[]}]})");
  EXPECT_EQ(text_at(plain, "/messages/0"), R"({"role":"assistant","content":"Yes"})");
}

TEST(ChatMessages, KeepArgumentsThatAreNoObjectAsText) {
  const auto seen = variables_of(
      R"({"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"not json"}}]}]})");
  EXPECT_EQ(text_at(seen, "/messages/0/tool_calls/0/function/arguments"), "\"not json\"");
}

TEST(ChatMessages, JoinTextPartsInOrder) {
  for (const std::string role : {"system", "developer", "user", "assistant", "tool"}) {
    const auto seen =
        variables_of(R"({"messages":[{"role":")" + role + R"(","content":[{"type":"text","text":"ALPHA "},)" +
                     R"({"type":"text","text":"BETA "},{"type":"text","text":"GAMMA"}]}]})");
    EXPECT_EQ(text_at(seen, "/messages/0/content"), "\"ALPHA BETA GAMMA\"") << role;
  }
  EXPECT_EQ(text_at(variables_of(R"({"messages":[{"role":"user","content":[]}]})"), "/messages/0/content"), "\"\"");
}

TEST(ChatMessages, NameThePlaceOfAFault) {
  EXPECT_THAT(refused("{}"), StartsWith("messages | is required"));
  EXPECT_THAT(refused_messages("[]"), StartsWith("messages | must not be empty"));
  EXPECT_THAT(refused_messages("5"), StartsWith("messages | must be an array"));
  EXPECT_THAT(refused_messages("[5]"), StartsWith("messages[0] | must be an object"));
  EXPECT_THAT(refused_messages(R"([{"content":"a"}])"), StartsWith("messages[0].role | is required"));
  EXPECT_THAT(refused_messages(R"([{"role":"admin","content":"a"}])"), StartsWith("messages[0].role | "));
  EXPECT_THAT(refused_messages(R"([{"role":5,"content":"a"}])"), StartsWith("messages[0].role | must be a string"));
  EXPECT_THAT(refused_messages(R"([{"role":"user"}])"), StartsWith("messages[0].content | is required"));
  EXPECT_THAT(refused_messages(R"([{"role":"user","content":null}])"), StartsWith("messages[0].content | is required"));
  EXPECT_THAT(refused_messages(R"([{"role":"user","content":5}])"), StartsWith("messages[0].content | must be"));
  EXPECT_THAT(refused_messages(R"([{"role":"user","content":[{"type":"smell"}]}])"),
              StartsWith("messages[0].content[0].type | must be \"text\""));
  EXPECT_THAT(refused_messages(R"([{"role":"user","content":[{"type":"text"}]}])"),
              StartsWith("messages[0].content[0].text | is required"));
  EXPECT_THAT(refused_messages(R"([{"role":"user","content":["a"]}])"),
              StartsWith("messages[0].content[0] | must be an object"));
  EXPECT_THAT(refused_messages(R"([{"role":"assistant","tool_calls":[{}]}])"),
              StartsWith("messages[0].tool_calls[0].function | is required"));
  EXPECT_THAT(refused_messages(R"([{"role":"assistant","tool_calls":[{"function":{"name":5}}]}])"),
              StartsWith("messages[0].tool_calls[0].function.name | must be a string"));
  EXPECT_THAT(refused_messages(R"([{"role":"user","content":"\udc00"}])"), StartsWith("messages[0].content | half"));
}

TEST(ChatMessages, PassToolsDocumentsAndTemplateArguments) {
  const auto seen =
      variables_of(chat_with(R"("tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"auto",
      "documents":[{"title":"t","text":"x"}],"chat_template_kwargs":{"enable_thinking":false},"reasoning_effort":"low")"));
  EXPECT_EQ(text_at(seen, "/tools/0/function/name"), "\"f\"");
  EXPECT_EQ(text_at(seen, "/documents/0/title"), "\"t\"");
  EXPECT_EQ(text_at(seen, "/enable_thinking"), "false");
  EXPECT_EQ(text_at(seen, "/reasoning_effort"), "\"low\"");
  EXPECT_FALSE(variables_of(chat_with(R"("tools":[])")).contains("tools"));
  EXPECT_FALSE(
      variables_of(chat_with(R"("tools":[{"function":{"name":"f"}}],"tool_choice":"none")")).contains("tools"));
  EXPECT_THAT(refused(chat_with(R"("tools":[5])")), StartsWith("tools[0] | "));
  EXPECT_THAT(refused(chat_with(R"("tools":[{"type":"function","function":{}}])")),
              StartsWith("tools[0].function.name | "));
  EXPECT_THAT(refused(chat_with(R"("tool_choice":"required")")), StartsWith("tool_choice | "));
  EXPECT_THAT(refused(chat_with(R"("chat_template_kwargs":{"messages":[]})")), StartsWith("chat_template_kwargs | "));
  EXPECT_THAT(refused(chat_with(R"("chat_template":"{{ x }}")")), StartsWith("chat_template | "));
}

TEST(Chat, NeedsAModelWithATemplate) {
  model_facts model = small_model();
  model.has_chat_template = false;
  auto call = call_of(parse_chat, chat_with(R"("n":1)"), model);
  ASSERT_FALSE(call);
  EXPECT_THAT(call.error().message, HasSubstr("no chat template"));
}

TEST(Chat, ReadsTheLengthUnderBothNames) {
  const auto length = [](std::string_view fields) {
    return call_of(parse_chat, chat_with(fields))->requests[0].max_tokens;
  };
  EXPECT_EQ(length(R"("max_tokens":5)"), 5U);
  EXPECT_EQ(length(R"("max_completion_tokens":6)"), 6U);
  EXPECT_EQ(length(R"("max_tokens":5,"max_completion_tokens":6)"), 6U);
  EXPECT_FALSE(length(R"("n":1)"));
  EXPECT_THAT(refused(chat_with(R"("max_tokens":0)")), StartsWith("max_tokens | "));
  EXPECT_THAT(refused(chat_with(R"("max_completion_tokens":0)")), StartsWith("max_completion_tokens | "));
}

TEST(Chat, ReadsLogprobsAsAFlagAndACount) {
  const auto top = [](std::string_view fields) {
    return call_of(parse_chat, chat_with(fields))->requests[0].sampling.top_logprobs;
  };
  EXPECT_EQ(top(R"("logprobs":true,"top_logprobs":5)"), 5);
  EXPECT_EQ(top(R"("logprobs":true)"), 0);
  EXPECT_EQ(top(R"("logprobs":false)"), -1);
  EXPECT_THAT(refused(chat_with(R"("top_logprobs":5)")), StartsWith("top_logprobs | "));
  EXPECT_THAT(refused(chat_with(R"("logprobs":1)")), StartsWith("logprobs | "));
}

TEST(Chat, StreamsInOpenAisShape) {
  auto form = form_of(chat_with(R"("n":2,"stream":true,"stream_options":{"include_usage":true})"));
  const auto chunks = streamed(*form, {{0, started()},
                                       {0, delta(1, "b")},
                                       {0, delta(0, "a")},
                                       {0, delta(0, "", {token(3, "")})},
                                       {0, finished(0)},
                                       {0, finished(1, actors::finish_reason::length)},
                                       {0, done(2, 3, 1)}});
  ASSERT_EQ(chunks.size(), 7U);
  EXPECT_EQ(text_at(chunks[0], "/object"), "\"chat.completion.chunk\"");
  EXPECT_EQ(text_at(chunks[0], "/id"), "\"chatcmpl-1\"");
  EXPECT_EQ(text_at(chunks[0], "/choices/0"),
            R"({"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null})");
  EXPECT_EQ(text_at(chunks[1], "/choices/0/index"), "1");
  EXPECT_EQ(text_at(chunks[2], "/choices/0/delta"), R"({"content":"b"})");
  EXPECT_EQ(text_at(chunks[2], "/usage"), "null");
  EXPECT_EQ(text_at(chunks[4], "/choices/0/delta"), "{}");
  EXPECT_EQ(text_at(chunks[4], "/choices/0/finish_reason"), "\"stop\"");
  EXPECT_EQ(text_at(chunks[5], "/choices/0/finish_reason"), "\"length\"");
  EXPECT_EQ(text_at(chunks[6], "/choices"), "[]");
  EXPECT_EQ(text_at(chunks[6], "/usage/completion_tokens"), "3");
}

TEST(Chat, SendsNoUsageUnlessAskedTo) {
  auto form = form_of(chat_with(R"("stream":true)"));
  const auto chunks = streamed(*form, {{0, started()}, {0, delta(0, "a")}, {0, finished(0)}, {0, done(2, 1)}});
  ASSERT_EQ(chunks.size(), 3U);
  for (const auto& chunk : chunks) EXPECT_FALSE(chunk.contains("usage"));
}

TEST(Chat, CountsTokensWhileStreamingWhenAskedTo) {
  auto form = form_of(chat_with(R"("stream":true,"stream_options":{"continuous_usage_stats":true})"));
  const auto chunks = streamed(
      *form, {{0, started({1, 2, 3})}, {0, delta(0, "a")}, {0, delta(0, "b")}, {0, finished(0)}, {0, done(3, 2)}});
  EXPECT_EQ(text_at(chunks[0], "/usage/total_tokens"), "3");
  EXPECT_EQ(text_at(chunks[2], "/usage/total_tokens"), "5");
}

TEST(Chat, AnswersWholeWithLogprobsAndIds) {
  auto form = form_of(chat_with(R"("logprobs":true,"top_logprobs":1,"return_token_ids":true,"stop":"END")"));
  actors::generation_finished end = finished(0);
  end.stop_reason = std::string("END");
  const auto body = whole(*form, {{0, started({5, 6})},
                                  {0, delta(0, "é", {token(8, "é", -0.5F, {{9, "e", "e", -0.25F}})})},
                                  {0, end},
                                  {0, done(2, 1)}});
  EXPECT_EQ(text_at(body, "/object"), "\"chat.completion\"");
  EXPECT_EQ(text_at(body, "/choices/0/message"), R"({"role":"assistant","content":"é","refusal":null})");
  EXPECT_EQ(text_at(body, "/choices/0/finish_reason"), "\"stop\"");
  EXPECT_EQ(text_at(body, "/choices/0/stop_reason"), "\"END\"");
  EXPECT_EQ(text_at(body, "/choices/0/logprobs/content/0/bytes"), "[195,169]");
  EXPECT_EQ(text_at(body, "/choices/0/logprobs/content/0/top_logprobs/0/token"), "\"e\"");
  EXPECT_EQ(text_at(body, "/choices/0/token_ids"), "[8]");
  EXPECT_EQ(text_at(body, "/prompt_token_ids"), "[5,6]");
}

TEST(Chat, AnswersWithNothingWhenNothingWasSaid) {
  auto form = form_of(chat_with(R"("n":2)"));
  const auto body = whole(*form, {{0, started()}, {0, finished(0)}, {0, finished(1)}, {0, done(2, 0)}});
  EXPECT_EQ(text_at(body, "/choices/1/message/content"), "\"\"");
}

}  // namespace
}  // namespace troupe::net
