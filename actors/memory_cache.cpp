#include "cache/memory_tier.hpp"

#include "actors/answer_codec.hpp"
#include "actors/hand_over.hpp"
#include "actors/stages.hpp"
#include "cache/request_key.hpp"

namespace troupe::actors {

/// A kept answer on its way to a client. It goes out as if it were being made now: while the client's window is full,
/// it waits. Until its first event it is the text that all readers share; from then on the rest of its events.
struct kept_answer {
  request_ptr context;
  cache::hit found;
  std::vector<generation_event> events{};  ///< Decoded when the client first has room.
  std::size_t sent = 0;
};

struct memory_cache_state {
  static inline const char* name = "memory_cache";
  std::unique_ptr<cache::memory_tier> tier;
  std::vector<kept_answer> waiting;  ///< For their clients to read.
};

namespace {

using self_pointer = memory_cache_actor::stateful_pointer<memory_cache_state>;

/// How soon to look again at clients that do not read.
constexpr std::chrono::milliseconds look_again{10};

bool has_room(const request_context& context) {
  return context.request.window == nullptr || !context.request.window->full();
}

void send_event(const kept_answer& answer, generation_event event) {
  if (auto* started = std::get_if<generation_started>(&event)) {
    started->cache = "memory";
    started->cache_age = answer.found.age;
  }
  if (auto* done = std::get_if<generation_done>(&event)) {
    done->cached_tokens = done->prompt_tokens;
    answer.context->finish(*done);
  } else {
    answer.context->emit(std::move(event));
  }
}

/// The answer is not kept: on to those who compute it.
void miss(house& shared, const request_ptr& context) {
  if (context->request.use_cache)
    shared.measured.cache_lookups.Add({{"tier", "memory"}, {"result", "miss"}}).Increment();
  if (!context->request.store_in_cache || !context->record_events(shared.settings.cache.memory_bytes))
    context->cache_key.clear();
  hand_over(shared, context, hop::preparer);
}

/// Sends what the client has room for. False: there is more.
bool replay(house& shared, kept_answer& answer) {
  const work_mark mark(*answer.context, hop::memory_cache);
  if (!still_wanted(*answer.context, "memory_cache", shared.clock())) return true;
  if (!has_room(*answer.context)) return false;
  if (answer.events.empty()) {
    auto events = decode_answer(*answer.found.value);
    if (!events || events->empty()) return miss(shared, answer.context), true;
    shared.measured.cache_lookups.Add({{"tier", "memory"}, {"result", "hit"}}).Increment();
    answer.events = *std::move(events);
    answer.found.value.reset();
  }
  while (answer.sent < answer.events.size() && has_room(*answer.context))
    send_event(answer, std::move(answer.events[answer.sent++]));
  return answer.sent == answer.events.size();
}

memory_cache_actor::behavior_type run_memory_cache(self_pointer self, house_ptr shared) {
  log_exceptions(self);
  const auto& limits = shared->settings.cache;
  self->state.tier = std::make_unique<cache::memory_tier>(
      cache::memory_limits{limits.memory_bytes, limits.memory_entries, limits.ttl});
  return {
      [=](look_up_atom, const request_ptr& context, ticket_ptr& entered) {
        const ticket_ptr held = std::move(entered);
        held->begin();
        const work_mark mark(*context, hop::memory_cache);
        const steady_time now = shared->clock();
        if (!still_wanted(*context, "memory_cache", now)) return;
        context->cache_key =
            cache::request_key(normalized_request(context->request, shared->model->digest(), shared->precision));
        if (context->request.use_cache) {
          if (auto found = self->state.tier->find(context->cache_key, now)) {
            context->request.call->begun->store(true, std::memory_order_relaxed);
            kept_answer answer{context, *std::move(found)};
            if (replay(*shared, answer)) return;
            if (self->state.waiting.empty()) self->delayed_send(self, look_again, tick_atom::value);
            self->state.waiting.push_back(std::move(answer));
            return;
          }
        }
        miss(*shared, context);
      },
      [=](store_atom, const request_ptr& context) {
        if (context->failure || context->cache_key.empty() || context->recorded().empty()) return;
        self->state.tier->store(context->cache_key,
                                std::make_shared<const std::string>(encode_answer(context->recorded())),
                                shared->clock());
      },
      [=](tick_atom) {
        for (auto& answer : std::exchange(self->state.waiting, {}))
          if (!replay(*shared, answer)) self->state.waiting.push_back(std::move(answer));
        if (!self->state.waiting.empty()) self->delayed_send(self, look_again, tick_atom::value);
      },
  };
}

}  // namespace

memory_cache_actor spawn_memory_cache(caf::actor_system& system, const house_ptr& shared) {
  return system.spawn(run_memory_cache, shared);
}

}  // namespace troupe::actors
