#include <gtest/gtest.h>

#include <future>
#include <stdexcept>

#include "running_service.hpp"

/// A stage that dies takes nobody's answer with it: what it held is computed again, and what was sent is not sent
/// twice. Here stages die of clients whose sinks throw, each where its event comes from.
namespace troupe::actors::test {
namespace {

constexpr std::uint32_t clients = 8;
constexpr std::uint32_t answer_tokens = 40;

/// Throws at each event that `at` chooses, after `seen` took it.
template <class Choice>
event_sink throwing(client& seen, Choice at) {
  return [sink = seen.sink(), at](generation_event event) {
    const bool throws = at(event);
    sink(std::move(event));
    if (throws) throw std::runtime_error("a sink throws");
  };
}
bool is_failure(const generation_event& event) { return std::holds_alternative<generation_failed>(event); }
bool is_any(const generation_event&) { return true; }

/// Runs clients before and after the one that kills a stage, and compares with answers of an undisturbed service.
class deaths : public testing::Test {
 protected:
  explicit deaths(config::settings settings = quick_settings()) : service_({}, 512, settings) {}

  void ask_half() {
    for (std::uint32_t i = 0; i < clients / 2; ++i) asked_.push_back(&service_.ask(request()));
  }
  void kill(generation_request request, event_sink sink) {
    request.id = request_id{1'000'000 + kills_++};
    service_->generate(std::move(request), std::move(sink));
  }
  void expect_all_answered(const std::string& dead_stage) {
    killer_.wait_until_ended();
    ask_half();
    running_service undisturbed;
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      const auto seed = static_cast<std::uint32_t>(i);
      EXPECT_EQ(asked_[i]->answer(), undisturbed.ask(request_for(seed, answer_tokens)).answer()) << "client " << i;
      EXPECT_EQ(asked_[i]->starts(), 1U);
      EXPECT_EQ(asked_[i]->tokens(), answer_tokens);
      EXPECT_EQ(asked_[i]->finished().size(), 1U);
    }
    service_.expect_empty();
    EXPECT_GE(counter(*service_, "stage_restarts_total", dead_stage), 1.0);
  }

  running_service service_;
  client killer_;

 private:
  generation_request request() { return request_for(next_++, answer_tokens); }

  std::vector<client*> asked_;
  std::uint32_t next_ = 0;
  std::uint64_t kills_ = 0;
};

TEST_F(deaths, OfTheGatewayAreNotNoticed) {
  ask_half();
  auto request = request_for(99);
  request.cancel.cancel();
  kill(request, throwing(killer_, is_failure));
  expect_all_answered("gateway");
}

class deaths_of_admission : public deaths {
 protected:
  static config::settings limited() {
    auto settings = quick_settings();
    settings.limits.max_queued_tokens = 2000;
    return settings;
  }
  deaths_of_admission() : deaths(limited()) {}
};

TEST_F(deaths_of_admission, AreNotNoticedAndWhatWasInsideIsCountedAgain) {
  client first;
  auto occupied = request_for(98, 150);
  occupied.window = std::make_shared<flow_window>(1);
  occupied.window->add(1);
  kill(occupied, first.sink());
  ask_half();
  auto too_many = request_for(99, 100);
  too_many.n = 100;
  kill(too_many, throwing(killer_, is_failure));
  EXPECT_EQ(killer_.failed()->failure.kind, error_kind::overloaded);
  client again;  // waits until admission lives again: the paused one is still counted
  kill(too_many, again.sink());
  ASSERT_TRUE(again.failed());
  EXPECT_EQ(again.failed()->failure.kind, error_kind::overloaded);
  occupied.window->release(1);
  EXPECT_TRUE(first.done());
  expect_all_answered("admission");
}

class deaths_of_the_cache : public deaths {
 protected:
  static config::settings cached() {
    auto settings = quick_settings();
    settings.cache.enabled = true;
    return settings;
  }
  deaths_of_the_cache() : deaths(cached()) {}
};

TEST_F(deaths_of_the_cache, InTheMiddleOfAKeptAnswerLetItBeComputedOn) {
  client* kept = nullptr;
  ASSERT_TRUE(yield_until([&] {  // it is stored after its end
    kept = &service_.ask(request_for(99));
    return kept->started().cache == "memory";
  }));
  ask_half();
  auto thrown = std::make_shared<int>(0);
  kill(request_for(99), throwing(killer_, [thrown](const generation_event&) { return ++*thrown == 3; }));
  EXPECT_EQ(killer_.answer(), kept->answer());
  EXPECT_EQ(killer_.tokens(), kept->tokens());
  EXPECT_EQ(killer_.starts(), 1U);
  expect_all_answered("memory_cache");
}

TEST_F(deaths, OfAPreparerAreNotNoticed) {
  ask_half();
  auto request = request_for(99);
  request.prompt = std::vector<token_id>{};  // refused where it is prepared
  kill(request, throwing(killer_, is_failure));
  expect_all_answered("preparer");
}

TEST_F(deaths, OfAPreparerAnswerTheCallersOfTokenize) {
  std::promise<bool> answered;
  service_->detokenize({1}, {}, [&](const result<std::string>& text) {
    answered.set_value(static_cast<bool>(text));
    throw std::runtime_error("a caller throws");
  });
  EXPECT_TRUE(answered.get_future().get());
  killer_.sink()(generation_done{});
  expect_all_answered("preparer");
}

TEST_F(deaths, OfTheCollectorRepeatNothing) {
  ask_half();
  auto request = request_for(99, 100);
  const auto cancel = request.cancel;
  kill(request, throwing(killer_, [cancel](const generation_event& event) {
         if (std::holds_alternative<generation_delta>(event)) cancel.cancel();
         return is_failure(event);
       }));
  EXPECT_EQ(killer_.failed()->failure.kind, error_kind::cancelled);
  expect_all_answered("batch_collector");
}

TEST_F(deaths, OfTheDispatcherRepeatNothing) {
  ask_half();
  auto thrown = std::make_shared<int>(0);
  auto request = request_for(99);
  request.n = 3;
  kill(request, throwing(killer_, [thrown](const generation_event&) { return ++*thrown == 20; }));
  EXPECT_TRUE(killer_.done());
  EXPECT_EQ(killer_.tokens(), 60U);
  EXPECT_EQ(killer_.finished().size(), 3U);
  expect_all_answered("dispatcher");
}

TEST_F(deaths, AreEndedByFailingTheRequestThatCausesThem) {
  ask_half();
  kill(request_for(99), throwing(killer_, is_any));
  ASSERT_TRUE(killer_.failed());
  EXPECT_EQ(killer_.failed()->failure.kind, error_kind::internal);
  EXPECT_EQ(killer_.failed()->failure.place, "dispatcher");
  expect_all_answered("dispatcher");
}

TEST(Faults, OneSequenceThatAlwaysKillsTheExecutorFailsAlone) {
  // Its fault comes late in a prompt of several chunks, so that its first step alone is no proof of innocence.
  auto ill_request = request_for(1);
  std::vector<token_id> prompt(100, 7);
  prompt[90] = 9;
  ill_request.prompt = prompt;
  running_service service([](std::uint64_t, auto batch) -> result<void> {
    for (const auto& s : batch)
      for (std::size_t i = 0; i < s.tokens.size(); ++i)
        if (s.first_position + i == 90 && s.tokens[i] == 9 && s.prompt_tokens == 100)
          throw std::runtime_error("poison");
    return {};
  });
  client& ill = service.ask(ill_request);
  std::vector<client*> well;
  for (std::uint32_t i = 0; i < clients; ++i) well.push_back(&service.ask(request_for(i)));
  ASSERT_TRUE(ill.failed());
  EXPECT_NE(ill.failed()->failure.message.find("poison"), std::string::npos);
  running_service undisturbed;
  for (std::uint32_t i = 0; i < clients; ++i) EXPECT_EQ(well[i]->answer(), undisturbed.ask(request_for(i)).answer());
  service.expect_empty();
}

}  // namespace
}  // namespace troupe::actors::test
