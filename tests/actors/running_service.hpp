#pragma once

#include <gtest/gtest.h>
#include <prometheus/registry.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "actors/service.hpp"
#include "scripted_backend.hpp"

namespace troupe::actors::test {

/// Waits for a condition on what other threads do. A minute is for ever: then the test fails instead of hanging.
class monitor {
 public:
  template <class Change>
  void change(Change&& make) {
    const std::lock_guard lock(guard_);
    make();
    changed_.notify_all();
  }
  template <class Condition>
  bool wait(Condition&& holds) {
    std::unique_lock lock(guard_);
    return changed_.wait_for(lock, std::chrono::minutes(1), holds);
  }

 private:
  std::mutex guard_;
  std::condition_variable changed_;
};

/// For states that tell nobody when they change. A minute is for ever here too.
template <class Condition>
bool yield_until(Condition&& holds) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::yield();
  }
  return true;
}

/// The sum over all labels, or over those with the value `label`.
inline double counter(service& of, const std::string& name, const std::string& label = {}) {
  double sum = 0.0;
  for (const auto& family : of.metrics().Collect()) {
    if (!family.name.ends_with(name)) continue;
    for (const auto& metric : family.metric)
      if (label.empty() || metric.label.at(0).value == label) sum += metric.counter.value + metric.gauge.value;
  }
  return sum;
}

/// What one client received.
class client {
 public:
  event_sink sink() {
    return [this](generation_event event) { seen_.change([&] { take(std::move(event)); }); };
  }

  void wait_until_ended() {
    ASSERT_TRUE(seen_.wait([&] { return done_ || failed_; })) << "no end after " << events_ << " events";
  }
  /// False: it ended before.
  bool wait_for_events(std::size_t count) {
    bool ended = false;
    EXPECT_TRUE(seen_.wait([&] {
      ended = done_ || failed_;
      return ended || events_ >= count;
    }));
    return !ended;
  }
  void wait_for_tokens(std::size_t count) {
    ASSERT_TRUE(seen_.wait([&] { return tokens_ >= count || failed_; }));
  }
  /// Waits for the answer: choices' texts, "|" between them; or the failure in brackets.
  std::string answer() {
    wait_until_ended();
    if (failed_) return "[" + failed_->failure.to_string() + "]";
    std::string out;
    for (const auto& [choice, text] : texts_) out += (choice == 0 ? "" : "|") + text;
    return out;
  }
  const std::optional<generation_failed>& failed() { return wait_until_ended(), failed_; }
  const std::optional<generation_done>& done() { return wait_until_ended(), done_; }
  const std::vector<generation_finished>& finished() { return wait_until_ended(), finished_; }
  const generation_started& started() { return wait_until_ended(), started_; }
  std::size_t starts() { return wait_until_ended(), starts_; }
  std::size_t tokens() { return wait_until_ended(), tokens_; }

 private:
  void take(generation_event event) {
    EXPECT_FALSE(done_ || failed_) << "an event after the last one";
    ++events_;
    if (auto* e = std::get_if<generation_started>(&event)) {
      ++starts_;
      started_ = std::move(*e);
    } else if (auto* delta = std::get_if<generation_delta>(&event)) {
      tokens_ += delta->tokens.size();
      texts_[delta->choice] += delta->text;
    } else if (auto* end = std::get_if<generation_finished>(&event)) {
      finished_.push_back(std::move(*end));
    } else if (auto* all = std::get_if<generation_done>(&event)) {
      done_ = *all;
    } else {
      failed_ = std::get<generation_failed>(std::move(event));
    }
  }

  monitor seen_;
  std::size_t events_ = 0, starts_ = 0, tokens_ = 0;
  std::map<std::uint32_t, std::string> texts_;
  generation_started started_;
  std::vector<generation_finished> finished_;
  std::optional<generation_done> done_;
  std::optional<generation_failed> failed_;
};

/// A small model with a real tokenizer; its weights are never computed here.
inline std::shared_ptr<const model::opened_model> tiny_model() {
  static const auto opened = model::opened_model::open(TROUPE_TEST_DATA "/models/mixtral");
  return opened ? *opened : nullptr;
}

inline config::settings quick_settings() {
  config::settings out;
  out.engine.max_wait = std::chrono::milliseconds(0);
  out.engine.step_tokens = 32;
  out.limits.queue_deadline = std::chrono::minutes(1);
  out.cache.enabled = false;
  out.supervision.restart_backoff = std::chrono::milliseconds(1);
  out.supervision.drain_limit = std::chrono::minutes(1);
  return out;
}

/// The real service with the real actors around a scripted backend.
class running_service {
 public:
  explicit running_service(scripted_backend::script before = {}, std::uint32_t pages = 512,
                           const config::settings& configured = quick_settings())
      : service_(service::start(configured, [pages, before = std::move(before)]() -> result<loaded_model> {
          auto opened = tiny_model();
          if (!opened) return error{error_kind::not_found, "no model for this test", {}};
          // No end tokens: every answer has the length asked for.
          const std::uint32_t vocab = opened->spec().vocab;
          auto never = opened->defaults().eos;
          return loaded_model{opened, std::make_unique<scripted_backend>(pages, vocab, std::move(never), before)};
        })) {
    const auto loaded = service_->wait_until_loaded();
    EXPECT_TRUE(loaded) << loaded.error().to_string();
  }

  service& operator*() { return *service_; }
  service* operator->() { return service_.get(); }

  client& ask(generation_request request) {
    auto& out = *clients_.emplace_back(std::make_unique<client>());
    request.id = request_id{next_++};
    service_->generate(std::move(request), out.sink());
    return out;
  }

  /// After the end: nothing is left in any mailbox.
  void expect_empty() {
    service_->stop();
    for (const auto& stage : service_->health().stages) EXPECT_FALSE(stage.working) << stage.stage << " holds a credit";
  }

 private:
  std::vector<std::unique_ptr<client>> clients_;  // outlive the service, which calls their sinks
  std::unique_ptr<service> service_;
  std::uint64_t next_ = 1;
};

/// A request whose prompt depends on `seed`; sampled, so that random numbers count as well.
inline generation_request request_for(std::uint32_t seed, std::uint32_t answer = 20) {
  generation_request out;
  std::vector<token_id> prompt(3 + seed * 7 % 40);
  for (std::size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<token_id>(10 + (seed * 31 + i * 7) % 100);
  out.prompt = prompt;
  out.max_tokens = answer;
  out.sampling.temperature = seed % 3 == 0 ? 0.0 : 1.0;
  out.sampling.seed = seed;
  return out;
}

}  // namespace troupe::actors::test
