#pragma once

#include <prometheus/registry.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "net/upstream.hpp"
#include "support.hpp"

namespace troupe::net {

/// Stands in for the actors: records every request and lets a test send its events, from the test's thread as the
/// actors would from theirs. With `answer_at_once` a request gets the words of `words`, one token each.
class scripted_upstream {
 public:
  struct running {
    actors::generation_request request;
    actors::event_sink sink;
  };

  bool answer_at_once = false;
  std::vector<std::string> words{"Hello", " world"};
  bool loaded = true;
  actors::health_report health;
  prometheus::Registry registry;

  scripted_upstream() { health.state = actors::health_report::state_kind::ready; }

  upstream calls() {
    return {.generate = [this](auto request, auto sink) { generate(std::move(request), std::move(sink)); },
            .tokenize =
                [](auto request, auto, auto done) {
                  const auto* text = std::get_if<std::string>(&request.prompt);
                  done(std::vector<token_id>(text ? text->size() : 3, 7));
                },
            .detokenize = [](auto ids, auto, auto done) { done(std::string(ids.size(), 'x')); },
            .facts = [this] { return loaded ? std::optional(small_model()) : std::nullopt; },
            .served_name = [] { return std::string("small"); },
            .token_texts = [](const auto& ids) { return std::vector<std::string>(ids.size(), "t"); },
            .health = [this] { return health; },
            .experts = [] { return actors::expert_report{}; },
            .metrics = &registry};
  }

  /// Waits for request number `index` since the start.
  running& wait_for(std::size_t index) {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return requests_.size() > index; });
    return *requests_[index];
  }
  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return requests_.size();
  }

 private:
  void generate(actors::generation_request request, actors::event_sink sink) {
    if (answer_at_once) return answer(request, sink);
    const std::lock_guard lock(mutex_);
    requests_.push_back(std::make_unique<running>(running{std::move(request), std::move(sink)}));
    arrived_.notify_all();
  }

  void answer(const actors::generation_request& request, const actors::event_sink& sink) const {
    const auto most = std::min<std::size_t>(request.max_tokens.value_or(1000), words.size());
    sink(started());
    for (std::uint32_t choice = 0; choice < request.n; ++choice) {
      for (std::size_t i = 0; i < most; ++i) sink(delta(choice, words[i], {token(1, words[i], -0.5F)}));
      sink(finished(choice));
    }
    sink(done(2, static_cast<std::uint32_t>(most) * request.n));
  }

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<std::unique_ptr<running>> requests_;
};

}  // namespace troupe::net
