#include "cache/memory_tier.hpp"

#include "actors/answer_codec.hpp"
#include "actors/hand_over.hpp"
#include "actors/stages.hpp"
#include "cache/request_key.hpp"

namespace troupe::actors {

struct memory_cache_state {
  static inline const char* name = "memory_cache";
  std::unique_ptr<cache::memory_tier> tier;
};

namespace {

/// Sends a kept answer as if it were being made now.
void replay(request_context& context, std::vector<generation_event> events, std::chrono::seconds age) {
  for (auto& event : events) {
    if (auto* started = std::get_if<generation_started>(&event)) {
      started->cache = "memory";
      started->cache_age = age;
    }
    if (auto* done = std::get_if<generation_done>(&event)) {
      done->cached_tokens = done->prompt_tokens;
      context.finish(*done);
    } else {
      context.emit(std::move(event));
    }
  }
}

memory_cache_actor::behavior_type run_memory_cache(memory_cache_actor::stateful_pointer<memory_cache_state> self,
                                                   house_ptr shared) {
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
            if (auto events = decode_answer(*found->value)) {
              shared->measured.cache_lookups.Add({{"tier", "memory"}, {"result", "hit"}}).Increment();
              return replay(*context, *std::move(events), found->age);
            }
          }
          shared->measured.cache_lookups.Add({{"tier", "memory"}, {"result", "miss"}}).Increment();
        }
        if (!context->request.store_in_cache || !context->record_events(limits.memory_bytes))
          context->cache_key.clear();
        hand_over(*shared, context, hop::preparer);
      },
      [=](store_atom, const request_ptr& context) {
        if (context->failure || context->cache_key.empty() || context->recorded().empty()) return;
        self->state.tier->store(context->cache_key,
                                std::make_shared<const std::string>(encode_answer(context->recorded())),
                                shared->clock());
      },
  };
}

}  // namespace

memory_cache_actor spawn_memory_cache(caf::actor_system& system, const house_ptr& shared) {
  return system.spawn(run_memory_cache, shared);
}

}  // namespace troupe::actors
