#include <gtest/gtest.h>

#include <stdexcept>

#include "running_service.hpp"

/// Whatever happens to a step, a client gets the bytes that it would have had without: alone, batched, preempted,
/// cached, after the executor failed or died.
namespace troupe::actors::test {
namespace {

constexpr std::uint32_t clients = 12;

/// Each request alone, in a service where nothing goes wrong.
const std::vector<std::string>& undisturbed() {
  static const std::vector<std::string> answers = [] {
    running_service service;
    std::vector<std::string> out;
    for (std::uint32_t i = 0; i < clients; ++i) out.push_back(service.ask(request_for(i)).answer());
    return out;
  }();
  return answers;
}

void expect_undisturbed(running_service& service) {
  std::vector<client*> all;
  for (std::uint32_t i = 0; i < clients; ++i) all.push_back(&service.ask(request_for(i)));
  for (std::uint32_t i = 0; i < clients; ++i) {
    EXPECT_EQ(all[i]->answer(), undisturbed()[i]) << "client " << i;
    EXPECT_EQ(all[i]->starts(), 1U);
  }
  service.expect_empty();
}

TEST(SameBytes, HoldForTheReference) {
  for (const auto& answer : undisturbed()) EXPECT_GT(answer.size(), 5U);
  EXPECT_NE(undisturbed()[0], undisturbed()[1]);
}

TEST(SameBytes, WhenManyShareTheBatch) {
  running_service service;
  expect_undisturbed(service);
}

TEST(SameBytes, WhenPagesAreScarceAndSequencesArePreempted) {
  running_service service({}, 9);
  expect_undisturbed(service);
  EXPECT_GT(counter(*service, "num_preemptions_total"), 0.0);
}

TEST(SameBytes, WhenOneStepFails) {
  for (const std::uint64_t failing : {0U, 1U, 2U, 5U, 13U}) {
    running_service service([failing](std::uint64_t step, auto) -> result<void> {
      if (step == failing) return error{error_kind::internal, "a step fails", "backend"};
      return {};
    });
    expect_undisturbed(service);
  }
}

TEST(SameBytes, WhenTheExecutorDiesInAStep) {
  for (const std::uint64_t dying : {0U, 1U, 2U, 5U, 13U}) {
    running_service service([dying](std::uint64_t step, auto) -> result<void> {
      if (step == dying) throw std::runtime_error("the executor dies");
      return {};
    });
    expect_undisturbed(service);
  }
}

TEST(SameBytes, WhenTheExecutorDiesAgainAndAgain) {
  running_service service([](std::uint64_t step, auto) -> result<void> {
    if (step % 10 == 3 && step < 40) throw std::runtime_error("the executor dies");
    return {};
  });
  expect_undisturbed(service);
}

/// Token 9 stands in one prompt only.
generation_request poisoned() {
  generation_request out = request_for(1);
  out.prompt = std::vector<token_id>{5, 9, 6};
  return out;
}
bool holds_poison(std::span<const engine::step_sequence> batch) {
  for (const auto& s : batch)
    if (s.first_position == 0 && s.tokens.size() >= 2 && s.tokens[0] == 5 && s.tokens[1] == 9) return true;
  return false;
}

/// Greedy, and never token 9.
generation_request plain(std::uint32_t seed) {
  auto out = request_for(seed);
  out.sampling.logit_bias = {{9, -100.0F}};
  return out;
}

TEST(Faults, OneSequenceThatAlwaysFailsFailsAlone) {
  running_service service([](std::uint64_t, auto batch) -> result<void> {
    if (holds_poison(batch)) return error{error_kind::corrupt, "an expert cannot be read", "model.gguf"};
    return {};
  });
  client& ill = service.ask(poisoned());
  std::vector<client*> well;
  for (std::uint32_t i = 0; i < clients; ++i) well.push_back(&service.ask(request_for(i)));
  for (std::uint32_t i = 0; i < clients; ++i) EXPECT_EQ(well[i]->answer(), undisturbed()[i]);
  ASSERT_TRUE(ill.failed());
  EXPECT_NE(ill.failed()->failure.to_string().find("an expert cannot be read"), std::string::npos);
  service.expect_empty();
}

TEST(Faults, TheLaterPartOfALongPromptIsFoundOutToo) {
  const auto far_in = [](std::span<const engine::step_sequence> batch) {
    for (const auto& s : batch)
      for (const token_id id : s.tokens)
        if (id == 9) return true;
    return false;
  };
  for (const bool throws : {false, true}) {
    running_service service([&](std::uint64_t, auto batch) -> result<void> {
      if (far_in(batch) && throws) throw std::runtime_error("the executor dies");
      if (far_in(batch)) return error{error_kind::corrupt, "an expert cannot be read", "model.gguf"};
      return {};
    });
    auto request = request_for(1);
    std::vector<token_id> prompt(100, 5);
    prompt[90] = 9;
    request.prompt = prompt;
    client& ill = service.ask(std::move(request));
    std::vector<client*> well;
    for (std::uint32_t i = 0; i < clients; ++i) well.push_back(&service.ask(plain(i)));
    for (client* c : well) EXPECT_TRUE(c->done());
    ASSERT_TRUE(ill.failed());
    service.expect_empty();
  }
}

TEST(SameBytes, WhenTheAnswerComesFromTheCache) {
  auto settings = quick_settings();
  settings.cache.enabled = true;
  running_service service({}, 512, settings);
  for (std::uint32_t i = 0; i < clients; ++i) {
    auto request = request_for(i);
    request.sampling.top_logprobs = 2;
    client& first = service.ask(request);
    client& second = service.ask((first.wait_until_ended(), request));
    EXPECT_EQ(first.answer(), second.answer());
    EXPECT_EQ(first.tokens(), second.tokens());
    EXPECT_EQ(first.finished().size(), second.finished().size());
  }
  service.expect_empty();
}

/// A client whose window counts events: it takes one whenever the test lets it.
TEST(FlowControl, BoundsWhatACachedAnswerSendsAhead) {
  constexpr std::int64_t capacity = 3;
  auto settings = quick_settings();
  settings.cache.enabled = true;
  running_service service({}, 512, settings);
  const auto request = request_for(1, 60);
  const std::string expected = service.ask(request).answer();
  client* kept = nullptr;
  ASSERT_TRUE(yield_until([&] {  // it is stored after its end
    kept = &service.ask(request);
    return kept->started().cache == "memory";
  }));

  auto slow = request;
  slow.id = request_id{1'000'000};
  slow.window = std::make_shared<flow_window>(capacity);
  client seen;
  std::atomic<std::int64_t> most{0};
  service->generate(slow, [&, window = slow.window, sink = seen.sink()](generation_event event) {
    window->add(1);
    most = std::max(most.load(), window->held());
    sink(std::move(event));
  });
  std::size_t read = 0;
  const auto read_one = [&] {
    slow.window->release(1);
    ++read;
  };
  while (seen.wait_for_events(read + 1)) read_one();
  EXPECT_EQ(seen.answer(), expected);
  EXPECT_EQ(seen.started().cache, "memory");
  EXPECT_LE(most.load(), capacity);
  service.expect_empty();
}

TEST(FlowControl, ForgetsAKeptAnswerThatNobodyReads) {
  auto settings = quick_settings();
  settings.cache.enabled = true;
  running_service service({}, 512, settings);
  client* kept = nullptr;
  ASSERT_TRUE(yield_until([&] {
    kept = &service.ask(request_for(1));
    return kept->started().cache == "memory";
  }));
  auto unread = request_for(1);
  unread.window = std::make_shared<flow_window>(1);
  unread.window->add(1);
  client& gone = service.ask(unread);
  client& other = service.ask(request_for(1));
  EXPECT_EQ(other.answer(), kept->answer()) << "nobody else waits for it";
  unread.cancel.cancel();
  ASSERT_TRUE(gone.failed());
  EXPECT_EQ(gone.failed()->failure.kind, error_kind::cancelled);
  EXPECT_EQ(gone.tokens(), 0U);
  service.expect_empty();
}

}  // namespace
}  // namespace troupe::actors::test
