#include "actors/dispatch_table.hpp"

#include <gtest/gtest.h>

#include "running_service.hpp"

namespace troupe::actors::test {
namespace {

/// A request whose updates a test makes by hand.
class answering {
 public:
  explicit answering(generation_request request = {}, std::uint16_t life = 0)
      : table_(tiny_model()->text(), measured_, life) {
    request.id = request_id{1};
    context_ =
        std::make_shared<request_context>(std::move(request), client_.sink(), steady_time{}, [](request_context&) {});
    context_->prompt_ids = {1, 2, 3};
  }

  static token_id token_of(char letter) {
    const auto ids = tiny_model()->text().encode(std::string(1, letter), false, model::special_tokens::as_text);
    return ids.size() == 1 ? ids[0] : token_id{-1};
  }
  choice_update update(std::uint32_t position, char letter, std::uint32_t choice = 0) const {
    choice_update out;
    out.context = context_;
    out.choice = choice;
    out.position = position;
    out.token = model::sampled_token{token_of(letter), -1.0F, {}};
    return out;
  }
  static choice_update ending(choice_update update, bool hidden = false) {
    update.end = generation_finished{update.choice, hidden ? finish_reason::stop : finish_reason::length, {}, 0};
    update.hidden = hidden;
    return update;
  }
  dispatch_table::outcome take(std::vector<choice_update> updates) { return table_.take(updates); }
  client& heard() { return client_; }
  const dispatch_table& table() const { return table_; }
  const request_ptr& context() const { return context_; }

 private:
  metrics all_;
  model_metrics measured_{all_, "model"};
  dispatch_table table_;
  client client_;
  request_ptr context_;
};

TEST(DispatchTable, GivesOutTextAndEndsTheAnswer) {
  answering a;
  EXPECT_TRUE(a.take({a.update(0, 'a'), a.update(1, 'b')}).complete.empty());
  const auto out = a.take({a.ending(a.update(2, 'c'))});
  EXPECT_EQ(out.complete.size(), 1U);
  EXPECT_EQ(a.heard().answer(), "abc");
  EXPECT_EQ(a.heard().done()->prompt_tokens, 3U);
  EXPECT_EQ(a.heard().done()->completion_tokens, 3U);
  EXPECT_EQ(a.table().size(), 0U);
}

TEST(DispatchTable, StopsAtAStringThatSpansTokensAndTellsTheCollector) {
  generation_request request;
  request.stop = {"bcd"};
  answering a(request);
  EXPECT_TRUE(a.take({a.update(0, 'a'), a.update(1, 'b'), a.update(2, 'c')}).stopped.empty());
  const auto out = a.take({a.update(3, 'd'), a.update(4, 'e')});
  EXPECT_EQ(out.stopped.size(), 1U);
  EXPECT_EQ(a.heard().answer(), "a");
  const auto finished = a.heard().finished();
  ASSERT_EQ(finished.size(), 1U);
  EXPECT_EQ(std::get<std::string>(finished[0].stop_reason), "bcd");
  EXPECT_EQ(finished[0].completion_tokens, 4U);
}

TEST(DispatchTable, LetsNoStopStringEndAnAnswerBeforeItsMinimum) {
  generation_request request;
  request.stop = {"b"};
  request.sampling.min_tokens = 3;
  answering a(request);
  EXPECT_TRUE(a.take({a.update(0, 'a'), a.update(1, 'b')}).stopped.empty());
  EXPECT_EQ(a.take({a.update(2, 'b')}).stopped.size(), 1U);
  EXPECT_EQ(a.heard().answer(), "ab");
  EXPECT_EQ(a.heard().finished().at(0).completion_tokens, 3U);
}

TEST(DispatchTable, GivesOutWhatNoStopStringBecame) {
  generation_request request;
  request.stop = {"bcd"};
  answering a(request);
  a.take({a.update(0, 'a'), a.update(1, 'b'), a.ending(a.update(2, 'c'))});
  EXPECT_EQ(a.heard().answer(), "abc");
}

TEST(DispatchTable, HidesTheTokenThatEndsAnAnswer) {
  answering a;
  a.take({a.update(0, 'a'), a.ending(a.update(1, 'b'), true)});
  EXPECT_EQ(a.heard().answer(), "a");
  EXPECT_EQ(a.heard().done()->completion_tokens, 2U) << "it was computed all the same";
}

TEST(DispatchTable, IsDoneWhenAllChoicesAre) {
  generation_request request;
  request.n = 2;
  answering a(request);
  EXPECT_TRUE(a.take({a.update(0, 'a', 0), a.ending(a.update(0, 'b', 1))}).complete.empty());
  EXPECT_EQ(a.take({a.ending(a.update(1, 'c', 0))}).complete.size(), 1U);
  EXPECT_EQ(a.heard().answer(), "ac|b");
}

TEST(DispatchTable, GivesOutThePromptAsText) {
  generation_request request;
  request.echo = true;
  answering a(request);
  a.context()->prompt_ids = {answering::token_of('x'), answering::token_of('y')};
  a.take({a.ending(a.update(0, 'z'))});
  EXPECT_EQ(a.heard().started().prompt_text, "xy");
}

TEST(DispatchTable, LeavesOutWhatANewCollectorComputesAgain) {
  answering a;
  a.take({a.update(0, 'a'), a.update(1, 'b')});
  a.take({a.update(0, 'a')});
  a.take({a.update(1, 'b'), a.update(2, 'c'), a.ending(a.update(3, 'd'))});
  EXPECT_EQ(a.heard().answer(), "abcd");
  EXPECT_EQ(a.heard().tokens(), 4U);
}

TEST(DispatchTable, TellsANewCollectorOfAStopStringOnceMore) {
  generation_request request;
  request.n = 2;
  request.stop = {"b"};
  answering a(request);
  EXPECT_EQ(a.take({a.update(0, 'a', 0), a.update(1, 'b', 0), a.update(0, 'c', 1)}).stopped.size(), 1U);
  EXPECT_EQ(a.take({a.update(0, 'a', 0)}).stopped.size(), 1U);
  a.take({a.update(0, 'c', 1), a.ending(a.update(1, 'd', 1))});
  EXPECT_EQ(a.heard().answer(), "a|cd");
}

TEST(DispatchTable, IgnoresWhatWasMeantForAnotherLife) {
  answering a({}, 2);
  auto old = a.update(0, 'a');
  old.dispatcher_life = 1;
  a.take({old});
  EXPECT_EQ(a.table().size(), 0U);
  auto mine = a.ending(a.update(0, 'b'));
  mine.dispatcher_life = 2;
  a.take({mine});
  EXPECT_EQ(a.heard().answer(), "b");
}

TEST(DispatchTable, ForgetsARequestThatEndedElsewhere) {
  answering a;
  a.take({a.update(0, 'a')});
  a.context()->fail({error_kind::cancelled, "the client went away", {}});
  a.take({a.update(1, 'b')});
  EXPECT_EQ(a.table().size(), 0U);
}

}  // namespace
}  // namespace troupe::actors::test
