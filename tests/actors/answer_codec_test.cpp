#include "actors/answer_codec.hpp"

#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>
#include <functional>

#include "cache/request_key.hpp"

namespace troupe::actors {
namespace {

std::vector<generation_event> some_answer() {
  token_detail detail{7, "\xEF\xBF\xBD", "\xC3", -0.5F, {{9, "b", std::string("b\0", 2), -1.25F}}};
  generation_started started;
  started.prompt_ids = {1, 2, 3};
  started.prompt_details = {token_detail{1, "a", "a", {}, {}}, detail};
  started.prompt_text = "a \"quoted\" line\n";
  return {started,
          generation_delta{0, "", {detail}},
          generation_delta{1, "text \xC3\xA9", {}},
          generation_finished{0, finish_reason::stop, std::string("END"), 4},
          generation_finished{1, finish_reason::stop, token_id{2}, 5},
          generation_finished{2, finish_reason::length, {}, 6},
          generation_done{3, 15, 0}};
}

TEST(AnswerCodec, GivesBackEveryEvent) {
  const auto text = encode_answer(some_answer());
  const auto again = decode_answer(text);
  ASSERT_TRUE(again) << again.error().to_string();
  ASSERT_EQ(again->size(), some_answer().size());
  EXPECT_EQ(encode_answer(*again), text);
  const auto& started = std::get<generation_started>(again->at(0));
  EXPECT_EQ(started.prompt_ids, (std::vector<token_id>{1, 2, 3}));
  EXPECT_FALSE(started.prompt_details.at(0).logprob);
  const auto& detail = std::get<generation_delta>(again->at(1)).tokens.at(0);
  EXPECT_EQ(detail.bytes, "\xC3");
  EXPECT_EQ(detail.logprob, -0.5F);
  EXPECT_EQ(detail.top.at(0).bytes, std::string("b\0", 2));
  EXPECT_EQ(std::get<std::string>(std::get<generation_finished>(again->at(3)).stop_reason), "END");
  EXPECT_EQ(std::get<token_id>(std::get<generation_finished>(again->at(4)).stop_reason), 2);
  EXPECT_EQ(std::get<generation_finished>(again->at(5)).reason, finish_reason::length);
  EXPECT_EQ(std::get<generation_done>(again->at(6)).completion_tokens, 15U);
}

TEST(AnswerCodec, NeverTrustsADamagedText) {
  const auto text = encode_answer(some_answer());
  for (std::size_t length = 0; length < text.size(); ++length)
    EXPECT_FALSE(decode_answer(text.substr(0, length))) << "cut at " << length;
  for (const char* wrong :
       {"{}", "[1]", "[null]", "[{}]", R"([{"delta":"x"}])", R"([{"delta":-1,"text":"","tokens":[]}])",
        R"([{"started":true,"ids":["1"],"details":[],"text":""}])"})
    EXPECT_FALSE(decode_answer(wrong)) << wrong;
  for (std::size_t at = 0; at < text.size(); ++at) {  // any byte may be wrong: an error or an answer, never a crash
    std::string flipped = text;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    (void)decode_answer(flipped);
  }
}

std::string key_of(const generation_request& request) {
  return cache::request_key(normalized_request(request, "digest", "int8"));
}

TEST(NormalizedRequest, DiffersInAllThatDeterminesTheAnswer) {
  generation_request base;
  base.prompt = std::string("a prompt");
  base.sampling.temperature = 0.7F;
  const auto differs = [&](const char* what, const std::function<void(generation_request&)>& change) {
    generation_request other = base;
    change(other);
    EXPECT_NE(key_of(base), key_of(other)) << what;
  };
  differs("prompt", [](auto& r) { r.prompt = std::string("another"); });
  differs("ids", [](auto& r) { r.prompt = std::vector<token_id>{1}; });
  differs("tenant", [](auto& r) { r.tenant = "another"; });
  differs("seed", [](auto& r) { r.sampling.seed += 1; });
  differs("temperature", [](auto& r) { r.sampling.temperature = 0.8F; });
  differs("top_p", [](auto& r) { r.sampling.top_p = 0.5F; });
  differs("top_k", [](auto& r) { r.sampling.top_k = 3; });
  differs("min_tokens", [](auto& r) { r.sampling.min_tokens = 3; });
  differs("ignore_eos", [](auto& r) { r.sampling.ignore_eos = true; });
  differs("logprobs", [](auto& r) { r.sampling.top_logprobs = 3; });
  differs("max_tokens", [](auto& r) { r.max_tokens = 3; });
  differs("stop", [](auto& r) { r.stop = {"x"}; });
  differs("stop ids", [](auto& r) { r.stop_token_ids = {3}; });
  differs("n", [](auto& r) { r.n = 2; });
  differs("echo", [](auto& r) { r.echo = true; });
  differs("prompt_logprobs", [](auto& r) { r.prompt_logprobs = 0; });
  differs("special tokens added", [](auto& r) { r.add_special_tokens = false; });
  differs("special tokens parsed", [](auto& r) { r.parse_special_tokens = false; });
  differs("special tokens skipped", [](auto& r) { r.skip_special_tokens = false; });
  EXPECT_NE(key_of(base), cache::request_key(normalized_request(base, "another model", "int8")));
  EXPECT_NE(key_of(base), cache::request_key(normalized_request(base, "digest", "fp32")));
}

TEST(NormalizedRequest, TellsConversationsApartThatATemplateCould) {
  const auto chat = [](const char* variables) {
    generation_request request;
    request.prompt = chat_prompt{boost::json::parse(variables).as_object()};
    return key_of(request);
  };
  EXPECT_EQ(chat(R"({"tools": [{"a": 1, "b": 2}]})"), chat(R"({"tools":[{"a":1,"b":2}]})"));
  EXPECT_NE(chat(R"({"tools": [{"a": 1, "b": 2}]})"), chat(R"({"tools": [{"b": 2, "a": 1}]})"));
  EXPECT_NE(chat(R"({"tools": [{"a": 2}]})"), chat(R"({"tools": [{"a": 2.0}]})"));
}

TEST(NormalizedRequest, IsTheSameForWhatDoesNot) {
  generation_request base;
  base.prompt = std::string("a prompt");
  base.sampling.temperature = 0.0F;
  generation_request other = base;
  other.id = request_id{5};
  other.external_id = "x";
  other.deadline = steady_time{};
  other.queue_deadline = steady_time{};
  other.window = std::make_shared<flow_window>(1);
  other.use_cache = false;
  other.sampling.seed = 99;  // greedy draws nothing
  EXPECT_EQ(key_of(base), key_of(other));

  chat_prompt first, second;
  first.variables = {{"messages", "m"}, {"tools", 1}};
  second.variables = {{"tools", 1}, {"messages", "m"}};
  base.prompt = first;
  other.prompt = second;
  EXPECT_EQ(key_of(base), key_of(other)) << "the order of members means nothing";
}

}  // namespace
}  // namespace troupe::actors
