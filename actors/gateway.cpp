#include "actors/gateway.hpp"

#include "actors/stages.hpp"

namespace troupe::actors {

void request_table::fail_all(const std::string& stage_name, const error& why) {
  const auto copy = inside_;  // failing a request may take it out of the table
  for (const auto& [id, context] : copy)
    if (stage_name.empty() || stage_name == context->at.load()) context->fail(why);
}

struct gateway_state {
  static inline const char* name = "gateway";
  request_table table;
  bool draining = false;
};

namespace {

gateway_actor::behavior_type run_gateway(gateway_actor::stateful_pointer<gateway_state> self, house_ptr shared) {
  return {
      [=](submit_atom, request_ptr& context, ticket_ptr& entered) {
        const ticket_ptr held = std::move(entered);
        held->begin();
        if (self->state.draining)
          return context->fail({error_kind::unavailable, "the server is shutting down", "gateway"});
        if (!still_wanted(*context, "gateway", shared->clock())) return;
        auto next = enter(shared->admission_stage);
        if (!next)
          return context->fail({error_kind::overloaded, "too many requests are waiting", "admission"},
                               std::chrono::seconds(1));
        self->state.table.add(context);
        context->at = "admission";
        self->send(shared->get(&house::admission), enter_atom::value, context, next);
      },
      [=](ended_atom, const request_ptr& context) { self->state.table.remove(context->request.id); },
      [=](drain_atom) { self->state.draining = true; },
      [=](fail_all_atom, const std::string& why) {
        self->state.table.fail_all("", {error_kind::unavailable, why, "gateway"});
      },
      [=](lost_atom, const std::string& stage_name) {
        self->state.table.fail_all(
            stage_name,
            {error_kind::internal, "the stage that worked on this request died and was restarted", stage_name});
      },
  };
}

}  // namespace

gateway_actor spawn_gateway(caf::actor_system& system, const house_ptr& shared) {
  return system.spawn(run_gateway, shared);
}

}  // namespace troupe::actors
