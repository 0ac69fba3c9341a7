#include "actors/dispatch_table.hpp"
#include "actors/stages.hpp"

namespace troupe::actors {

struct dispatcher_state {
  static inline const char* name = "dispatcher";
  std::unique_ptr<dispatch_table> table;
};

namespace {

dispatcher_actor::behavior_type run_dispatcher(dispatcher_actor::stateful_pointer<dispatcher_state> self,
                                               house_ptr shared, std::uint16_t life) {
  log_exceptions(self);
  self->state.table = std::make_unique<dispatch_table>(shared->model->text(), *shared->model_measured, life);
  return {
      [=](update_atom, const update_batch& updates, ticket_ptr& entered) {
        const ticket_ptr held = std::move(entered);
        held->begin();
        const auto out = self->state.table->take(*updates);
        for (const auto& [context, choice] : out.stopped)
          self->send(shared->get(&house::batch_collector), stop_atom::value, context, choice);
        for (const auto& context : out.complete)
          if (!context->cache_key.empty()) self->send(shared->get(&house::memory_cache), store_atom::value, context);
      },
      [=](forget_atom, const request_ptr& context) { self->state.table->forget(context->request.id); },
  };
}

}  // namespace

dispatcher_actor spawn_dispatcher(caf::actor_system& system, const house_ptr& shared) {
  // The handle is put in place after this, with the next number.
  const auto life = static_cast<std::uint16_t>(shared->at(&house::dispatcher).life + 1);
  return system.spawn(run_dispatcher, shared, life);
}

}  // namespace troupe::actors
