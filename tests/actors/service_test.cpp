#include <gtest/gtest.h>

#include <future>
#include <stdexcept>
#include <thread>

#include "running_service.hpp"

/// The service under trouble that its clients and its operator make: too many requests, deadlines, cancellation,
/// clients that do not read, and a stop at any time.
namespace troupe::actors::test {
namespace {

using testing::Test;
using namespace std::chrono_literals;

/// Holds every step until it is opened.
class gate {
 public:
  scripted_backend::script script() {
    return [this](std::uint64_t, auto) -> result<void> {
      state_.change([&] { ++arrived_; });
      if (!state_.wait([&] { return open_ || allowed_ >= arrived_; })) ADD_FAILURE() << "nobody opened the gate";
      return {};
    };
  }
  void wait_for_step(std::uint64_t count) {
    ASSERT_TRUE(state_.wait([&] { return arrived_ >= count; }));
  }
  void allow(std::uint64_t steps) {
    state_.change([&] { allowed_ += steps; });
  }
  void open() {
    state_.change([&] { open_ = true; });
  }

 private:
  monitor state_;
  std::uint64_t arrived_ = 0, allowed_ = 0;
  bool open_ = false;
};

TEST(Admission, RefusesWhatIsOverItsBoundAndSaysWhenToComeBack) {
  auto settings = quick_settings();
  settings.limits.max_queued_requests = 4;
  gate held;
  running_service service(held.script(), 512, settings);
  std::vector<client*> in;
  for (std::uint32_t i = 0; i < 4; ++i) in.push_back(&service.ask(request_for(i)));
  held.wait_for_step(1);
  client& refused = service.ask(request_for(9));
  ASSERT_TRUE(refused.failed());
  EXPECT_EQ(refused.failed()->failure.kind, error_kind::overloaded);
  ASSERT_TRUE(refused.failed()->retry_after);
  EXPECT_GE(*refused.failed()->retry_after, 1s);
  held.open();
  for (client* c : in) EXPECT_TRUE(c->done()) << "what was admitted is kept";
  EXPECT_TRUE(service.ask(request_for(9)).done()) << "credits came back";
  service.expect_empty();
}

TEST(Admission, CountsWhatATemplateWritesBesidesMessages) {
  auto settings = quick_settings();
  settings.limits.max_queued_tokens = 1000;
  gate held;
  running_service service(held.script(), 512, settings);
  client& inside = service.ask(request_for(1));
  held.wait_for_step(1);
  chat_prompt chat;
  chat.variables["messages"] = boost::json::array{{{"role", "user"}, {"content", "Hi"}}};
  chat.variables["tools"] = boost::json::array{{{"function", {{"description", std::string(10'000, 'x')}}}}};
  auto request = request_for(2);
  request.prompt = chat;
  client& refused = service.ask(request);
  ASSERT_TRUE(refused.failed());
  EXPECT_EQ(refused.failed()->failure.kind, error_kind::overloaded);
  held.open();
  EXPECT_TRUE(inside.done());
  service.expect_empty();
}

TEST(Deadlines, NameTheStageThatHeldTheRequest) {
  gate held;
  running_service service(held.script());
  auto running = request_for(1);
  running.deadline = std::chrono::steady_clock::now() + 500ms;  // enough to reach the first step on a slow machine
  client& late = service.ask(running);
  held.wait_for_step(1);
  auto queued = request_for(2);
  queued.queue_deadline = std::chrono::steady_clock::now();
  client& waited = service.ask(queued);
  ASSERT_TRUE(waited.failed());
  EXPECT_EQ(waited.failed()->failure.kind, error_kind::deadline_exceeded);
  EXPECT_EQ(waited.failed()->failure.place, "queue");
  while (std::chrono::steady_clock::now() < running.deadline) std::this_thread::yield();
  held.open();
  ASSERT_TRUE(late.failed());
  EXPECT_EQ(late.failed()->failure.kind, error_kind::deadline_exceeded);
  EXPECT_EQ(late.failed()->failure.place, "executor");
  EXPECT_LE(late.tokens(), 1U) << "nothing is computed after the deadline";
  service.expect_empty();
}

/// The time of a request that waits for a place is over, and so is that of the one whose step killed the executor.
TEST(Deadlines, HoldForWhatWaitsForADeadExecutor) {
  auto settings = quick_settings();
  settings.supervision.restart_backoff = 1h;
  running_service service([](std::uint64_t, auto) -> result<void> { throw std::runtime_error("the executor dies"); },
                          512, settings);
  auto killer = request_for(1);
  killer.deadline = std::chrono::steady_clock::now() + 2s;
  client& killed = service.ask(killer);
  ASSERT_TRUE(yield_until([&] { return counter(*service, "stage_restarts_total", "executor") == 1.0; }));
  auto queued = request_for(2);
  queued.queue_deadline = std::chrono::steady_clock::now() + 50ms;
  client& waited = service.ask(queued);
  ASSERT_TRUE(waited.failed());
  EXPECT_EQ(waited.failed()->failure.place, "queue");
  EXPECT_FALSE(*queued.call->begun);
  ASSERT_TRUE(killed.failed());
  EXPECT_EQ(killed.failed()->failure.kind, error_kind::deadline_exceeded);
  service.expect_empty();
}

TEST(Deadlines, HoldForWhatWaitsForADeadPreparer) {
  auto settings = quick_settings();
  settings.limits.preparers = 1;
  settings.supervision.restart_backoff = 1h;
  running_service service({}, 512, settings);
  auto empty = request_for(1);
  empty.prompt = std::vector<token_id>{};  // refused where it is prepared
  empty.id = request_id{1'000'000};
  service->generate(empty, [](const generation_event&) { throw std::runtime_error("a sink throws"); });
  ASSERT_TRUE(yield_until([&] { return counter(*service, "stage_restarts_total", "preparer") == 1.0; }));
  auto queued = request_for(2);
  queued.queue_deadline = std::chrono::steady_clock::now() + 300ms;
  client& waited = service.ask(queued);
  ASSERT_TRUE(waited.failed());
  EXPECT_EQ(waited.failed()->failure.kind, error_kind::deadline_exceeded);
  service.expect_empty();
}

TEST(FlowControl, ComputesNoFurtherThanTheDispatcherCanFollow) {
  constexpr std::uint64_t most_ahead = 64;
  monitor steps;
  std::uint64_t computed = 0;
  running_service service([&](std::uint64_t, auto) -> result<void> {
    steps.change([&] { ++computed; });
    return {};
  });
  auto request = request_for(1, 200);
  request.id = request_id{1'000'000};
  client seen;
  bool held = false;
  service->generate(request, [&, sink = seen.sink()](generation_event event) {
    if (!std::exchange(held, true)) {
      // How long it waits decides only how surely it would see too many.
      const auto limit = std::chrono::steady_clock::now() + 300ms;
      const auto done = [&] {
        bool too_many = false;
        steps.change([&] { too_many = computed > most_ahead + 10; });
        return too_many;
      };
      while (!done() && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
      EXPECT_FALSE(done());
    }
    sink(std::move(event));
  });
  EXPECT_EQ(seen.tokens(), 200U);
  service.expect_empty();
}

TEST(Cancelling, DropsARequestWithinOneStep) {
  gate held;
  running_service service(held.script());
  auto request = request_for(1, 100);
  client& gone = service.ask(request);
  held.wait_for_step(1);
  held.allow(1);
  held.wait_for_step(2);
  request.cancel.cancel();
  held.open();
  ASSERT_TRUE(gone.failed());
  EXPECT_EQ(gone.failed()->failure.kind, error_kind::cancelled);
  EXPECT_LE(gone.tokens(), 2U);
  EXPECT_TRUE(service.ask(request_for(2)).done());
  service.expect_empty();
}

TEST(Cancelling, TakesAWaitingRequestOutOfTheQueue) {
  auto settings = quick_settings();
  settings.engine.max_batch_size = 1;
  gate held;
  running_service service(held.script(), 512, settings);
  client& first = service.ask(request_for(1));
  held.wait_for_step(1);
  auto request = request_for(2);
  client& second = service.ask(request);
  request.cancel.cancel();
  held.open();
  EXPECT_TRUE(first.done());
  ASSERT_TRUE(second.failed());
  EXPECT_EQ(second.failed()->failure.kind, error_kind::cancelled);
  EXPECT_EQ(second.tokens(), 0U);
  service.expect_empty();
}

TEST(FlowControl, PausesTheUnreadAndServesTheOthers) {
  auto settings = quick_settings();
  settings.engine.max_batch_size = 2;
  running_service service({}, 512, settings);
  const auto window = std::make_shared<flow_window>(1);
  window->add(1);
  std::vector<client*> unread;
  for (std::uint32_t i = 0; i < 4; ++i) {
    auto request = request_for(i);
    request.window = window;
    unread.push_back(&service.ask(std::move(request)));
  }
  for (std::uint32_t i = 4; i < 8; ++i) EXPECT_TRUE(service.ask(request_for(i)).done());
  window->release(1);
  for (client* c : unread) EXPECT_TRUE(c->done());
  service.expect_empty();
}

TEST(Stopping, LetsRunningAnswersEndAndRefusesNewOnes) {
  gate held;
  running_service service(held.script());
  client& inside = service.ask(request_for(1));
  held.wait_for_step(1);
  auto stopping = std::async(std::launch::async, [&] { service->stop(); });
  while (service->health().state != health_report::state_kind::draining) std::this_thread::yield();
  client& late = service.ask(request_for(2));
  ASSERT_TRUE(late.failed());
  EXPECT_EQ(late.failed()->failure.kind, error_kind::unavailable);
  held.open();
  EXPECT_TRUE(inside.done());
  stopping.get();
  service.expect_empty();
}

TEST(Stopping, FailsWhatIsInsideAfterItsLimit) {
  auto settings = quick_settings();
  settings.supervision.drain_limit = 1ms;
  const auto never_read = std::make_shared<flow_window>(1);
  never_read->add(1);
  running_service service({}, 512, settings);
  auto request = request_for(1);
  request.window = never_read;
  client& unread = service.ask(std::move(request));
  service->stop();
  ASSERT_TRUE(unread.failed());
  EXPECT_EQ(unread.failed()->failure.kind, error_kind::unavailable);
  service.expect_empty();
}

TEST(Stopping, WhileTheModelLoads) {
  std::promise<void> loading;
  auto service = service::start(quick_settings(), [&]() -> result<loaded_model> {
    loading.get_future().wait();
    return error{error_kind::io, "the disk is gone", "model.gguf"};
  });
  EXPECT_EQ(service->health().state, health_report::state_kind::loading);
  client early;
  service->generate(request_for(1), early.sink());
  ASSERT_TRUE(early.failed());
  EXPECT_EQ(early.failed()->failure.kind, error_kind::unavailable);
  loading.set_value();
  service->stop();
}

TEST(Loading, ReportsWhyItFailed) {
  auto service = service::start(quick_settings(), []() -> result<loaded_model> {
    return error{error_kind::corrupt, "the header is cut short", "model.gguf: byte 8"};
  });
  const auto loaded = service->wait_until_loaded();
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().place, "model.gguf: byte 8");
  EXPECT_EQ(service->health().state, health_report::state_kind::failed);
  EXPECT_FALSE(service->health().healthy);
}

TEST(Loading, ContainsAnException) {
  auto service = service::start(quick_settings(), []() -> result<loaded_model> { throw std::bad_alloc(); });
  ASSERT_FALSE(service->wait_until_loaded());
}

/// The first expert of each layer throws, the second is an error.
struct picky_backend : scripted_backend {
  using scripted_backend::scripted_backend;
  result<void> load_expert(expert_id id) override {
    if (id.index == 0) throw std::runtime_error("the loader's thread");
    if (id.index == 1) return error{error_kind::corrupt, "not finite", "model.gguf"};
    return {};
  }
};

TEST(Loading, GoesOnAfterAnExpertThatCannotBeLoaded) {
  const auto service = service::start(quick_settings(), []() -> result<loaded_model> {
    auto opened = tiny_model();
    const std::uint32_t vocab = opened->spec().vocab;
    auto never = opened->defaults().eos;
    return loaded_model{opened, std::make_unique<picky_backend>(512, vocab, std::move(never))};
  });
  ASSERT_TRUE(service->wait_until_loaded());
  const double expected = 2.0 * static_cast<double>(tiny_model()->spec().layers.size());
  ASSERT_TRUE(yield_until([&] {
    return counter(*service, "expert_load_failures_total") == expected && service->health().loading_progress == 1.0;
  }));
  EXPECT_EQ(counter(*service, "expert_load_failures_total"), expected);
  EXPECT_EQ(counter(*service, "stage_restarts_total"), 0.0);
}

TEST(Choices, AreComputedFromTheirOwnRandomNumbers) {
  running_service service;
  auto request = request_for(1);
  request.n = 3;
  client& several = service.ask(request);
  const std::string all = several.answer();
  EXPECT_EQ(several.finished().size(), 3U);
  EXPECT_EQ(several.done()->completion_tokens, 60U);
  client& one = service.ask(request_for(1));
  EXPECT_EQ(all.substr(0, all.find('|')), one.answer());
  service.expect_empty();
}

TEST(Scoring, GivesThePromptsLogprobsWithoutGenerating) {
  running_service service;
  auto request = request_for(3, 0);
  request.prompt_logprobs = 2;
  client& scored = service.ask(request);
  ASSERT_TRUE(scored.done());
  const auto& details = scored.started().prompt_details;
  ASSERT_EQ(details.size(), std::get<std::vector<token_id>>(request.prompt).size());
  EXPECT_FALSE(details[0].logprob);
  for (std::size_t i = 1; i < details.size(); ++i) EXPECT_TRUE(details[i].logprob);
  EXPECT_EQ(scored.done()->completion_tokens, 0U);
  service.expect_empty();
}

}  // namespace
}  // namespace troupe::actors::test
