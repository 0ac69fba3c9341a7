#include <algorithm>

#include "actors/hand_over.hpp"
#include "actors/stages.hpp"

namespace troupe::actors {

struct gateway_state {
  static inline const char* name = "gateway";
};

namespace {

constexpr std::chrono::milliseconds watch_interval{250};
/// A stage gets this long to notice a deadline and name itself. After that, nobody holds the request any more.
constexpr std::chrono::seconds deadline_grace{1};
/// A request that was at work when so many stages died is taken to be the reason.
constexpr unsigned most_deaths = 3;

/// Ends a request that no stage will end.
void give_up(house& shared, const request_ptr& context, error why) {
  context->fail(std::move(why));
  // The dispatcher may know its text, and the collector that would tell it to forget may be dead.
  caf::anon_send(shared.get(&house::dispatcher), forget_atom::value, context);
}

/// Hands over again what was handed to a stage that has died since.
void recover(house& shared) {
  std::vector<request_ptr> lost;
  bool anyone_worked = false;
  for (const auto& context : shared.requests.all()) {
    if (context->ended() || !shared.lost(context->at.load())) continue;
    anyone_worked |= context->in_work.load() != hop::none;
    lost.push_back(context);
  }
  for (const auto& context : lost) {
    const hop at = context->at.load().stage;
    const hop died_of = context->in_work.exchange(hop::none);
    if (died_of != hop::none || !anyone_worked) ++context->deaths;
    if (context->deaths >= most_deaths) {
      give_up(shared, context,
              {error_kind::internal,
               "the stage that worked on this request died " + std::to_string(context->deaths) + " times",
               to_string(died_of == hop::none ? at : died_of)});
      continue;
    }
    if (at == hop::memory_cache) context->begin_again();  // a kept answer may have gone out in part
    hand_over(shared, context, at);
  }
}

bool passed(steady_time deadline, steady_time now) {
  return deadline != no_deadline && now >= deadline + deadline_grace;
}

/// What no stage answered in time was lost, or lies in front of one that hangs.
void end_what_is_late(house& shared) {
  const steady_time now = shared.clock();
  for (const auto& context : shared.requests.all()) {
    const auto& request = context->request;
    if (passed(request.deadline, now))
      give_up(shared, context,
              {error_kind::deadline_exceeded, "the deadline passed before the answer was complete",
               to_string(context->at.load().stage)});
    else if (!*request.call->begun && passed(request.queue_deadline, now))
      give_up(shared, context, {error_kind::deadline_exceeded, "the request waited too long", "queue"});
  }
}

gateway_actor::behavior_type run_gateway(gateway_actor::stateful_pointer<gateway_state> self, house_ptr shared) {
  log_exceptions(self);
  self->delayed_send(self, watch_interval, tick_atom::value);
  return {
      [=](submit_atom, const request_ptr& context, ticket_ptr& entered) {
        const ticket_ptr held = std::move(entered);
        held->begin();
        const work_mark mark(*context, hop::gateway);
        if (still_wanted(*context, "gateway", shared->clock())) hand_over(*shared, context, hop::admission);
      },
      [=](lost_atom) { recover(*shared); },
      [=](tick_atom) {
        recover(*shared);
        end_what_is_late(*shared);
        self->delayed_send(self, watch_interval, tick_atom::value);
      },
  };
}

}  // namespace

gateway_actor spawn_gateway(caf::actor_system& system, const house_ptr& shared) {
  return system.spawn(run_gateway, shared);
}

}  // namespace troupe::actors
