#include "actors/batch_core.hpp"
#include "actors/stages.hpp"

namespace troupe::actors {

struct batch_collector_state {
  static inline const char* name = "batch_collector";
  std::unique_ptr<batch_core> core;
  std::optional<steady_time> alarm;  ///< When the next tick is due.
};

namespace {

using self_pointer = batch_collector_actor::stateful_pointer<batch_collector_state>;

/// How soon to look again at sequences whose clients do not read, or whose executor is being restarted.
constexpr std::chrono::milliseconds look_again{10};

/// Steps whose tokens the dispatcher has not yet taken.
constexpr std::int64_t most_updates = 64;

void set_alarm(self_pointer self, const house& shared, steady_time at) {
  const steady_time now = shared.clock();
  if (self->state.alarm && *self->state.alarm <= at && *self->state.alarm > now) return;
  self->state.alarm = at;
  self->delayed_send(self, std::max(at - now, steady_time::duration::zero()), tick_atom::value);
}

void hand_on(self_pointer self, const house& shared) {
  auto& core = *self->state.core;
  auto updates = core.take_updates();
  const auto dispatcher = shared.get(&house::dispatcher);
  if (!updates.empty())
    self->send(dispatcher, update_atom::value,
               update_batch(std::make_shared<const std::vector<choice_update>>(std::move(updates))),
               enter_admitted(shared.dispatcher_stage));
  for (const auto& context : core.take_forgotten()) self->send(dispatcher, forget_atom::value, context);
}

void work(self_pointer self, const house_ptr& shared) {
  auto& core = *self->state.core;
  core.sweep(shared->clock());
  // A step that nobody can run is not planned: its sequences would count as begun. Nor is one whose tokens nobody
  // takes.
  const bool can_run = shared->at(&house::executor).alive && shared->at(&house::dispatcher).alive &&
                       shared->dispatcher_stage->depth() < most_updates;
  const auto job = can_run ? core.next_step(shared->clock()) : nullptr;
  hand_on(self, *shared);
  if (!job) {
    if (core.step_out() || core.idle()) return;
    // Something waits: for the batch to fill, for a client to read, or for pages.
    if (core.waits_for_clients()) shared->collector_stage->moved();
    const steady_time soon = shared->clock() + look_again;
    return set_alarm(self, *shared, can_run ? std::min(core.wake_at().value_or(soon), soon) : soon);
  }
  job->held = enter_admitted(shared->executor_stage);
  self->request(shared->get(&house::executor), caf::infinite, run_atom::value, job)
      .then(
          [=](done_atom) {
            shared->collector_stage->moved();
            if (job->failure) {
              self->state.core->step_failed(*job->failure);
            } else {
              shared->count_experts(job->expert_tokens);
              self->state.core->step_done(*job, shared->clock());
            }
            hand_on(self, *shared);
            work(self, shared);
          },
          [=](const caf::error&) {
            // Without a failure of its own, the step never began: the executor is dead and not yet back.
            if (job->failure)
              self->state.core->step_failed(*job->failure);
            else
              self->state.core->step_lost();
            hand_on(self, *shared);
            set_alarm(self, *shared, shared->clock() + look_again);
          });
}

batch_collector_actor::behavior_type run_batch_collector(self_pointer self, house_ptr shared) {
  log_exceptions(self);
  const auto& configured = shared->settings.engine;
  const engine::scheduler_limits limits{configured.max_batch_size,
                                        std::max(configured.step_tokens, configured.max_batch_size),
                                        configured.max_wait, std::chrono::milliseconds(10'000)};
  self->state.core = std::make_unique<batch_core>(limits, shared->backend->page_count(), shared->model->defaults().eos,
                                                  shared->model->spec().vocab, *shared->model_measured);
  return {
      [=](add_atom, const request_ptr& context, ticket_ptr& entered) {
        entered->begin();
        {
          const work_mark mark(*context, hop::batch_collector);
          self->state.core->add(context, std::move(entered), shared->clock());
        }
        hand_on(self, *shared);
        work(self, shared);
      },
      [=](stop_atom, const request_ptr& context, std::uint32_t choice) {
        self->state.core->stop(context->request.id, choice, shared->clock());
      },
      [=](tick_atom) {
        if (self->state.alarm && *self->state.alarm <= shared->clock()) self->state.alarm.reset();
        work(self, shared);
      },
  };
}

}  // namespace

batch_collector_actor spawn_batch_collector(caf::actor_system& system, const house_ptr& shared) {
  return system.spawn(run_batch_collector, shared);
}

}  // namespace troupe::actors
