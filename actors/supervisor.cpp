#include "actors/supervisor.hpp"

#include <spdlog/spdlog.h>

#include <functional>
#include <map>

#include "actors/prompt_maker.hpp"
#include "actors/stages.hpp"

namespace troupe::actors {

struct role {
  std::function<caf::actor_addr()> start;  ///< Spawns the stage and puts its handle in place.
  std::function<void()> died;              ///< Tells those who would send to it.
};

struct supervisor_state {
  static inline const char* name = "supervisor";
  std::map<std::string, role> stages;
  std::map<caf::actor_addr, std::string> alive;
  std::map<std::string, unsigned> deaths_in_a_row;
  std::map<std::string, steady_time> started;
};

namespace {

using self_pointer = supervisor_actor::stateful_pointer<supervisor_state>;

constexpr unsigned max_doublings = 7;
/// A stage that lived this long counts as healthy again.
constexpr std::chrono::seconds good_life{60};
/// After a start that failed for want of threads or memory.
constexpr std::chrono::seconds retry_start{1};

void start_stage(self_pointer self, const house& shared, const std::string& name) {
  const caf::actor_addr address = self->state.stages.at(name).start();
  self->state.alive[address] = name;
  self->state.started[name] = shared.clock();
  self->monitor(address);
}

template <class Handle>
role single(self_pointer self, const house_ptr& shared, post<Handle> house::*place,
            Handle (*spawn)(caf::actor_system&, const house_ptr&)) {
  return {[=] {
            Handle handle = spawn(self->system(), shared);
            shared->put(place, handle);
            return handle.address();
          },
          [=] { shared->died(place); }};
}

role preparer(self_pointer self, const house_ptr& shared, const std::shared_ptr<prompt_maker>& maker,
              std::size_t index) {
  return {[=] {
            preparer_actor handle = spawn_preparer(self->system(), shared, maker);
            shared->put_preparer(index, handle);
            return handle.address();
          },
          [=] { shared->preparer_died(index); }};
}

supervisor_actor::behavior_type run_supervisor(self_pointer self, house_ptr shared,
                                               std::shared_ptr<prompt_maker> maker) {
  auto& stages = self->state.stages;
  stages["gateway"] = single(self, shared, &house::gateway, spawn_gateway);
  stages["admission"] = single(self, shared, &house::admission, spawn_admission);
  stages["memory_cache"] = single(self, shared, &house::memory_cache, spawn_memory_cache);
  stages["batch_collector"] = single(self, shared, &house::batch_collector, spawn_batch_collector);
  stages["dispatcher"] = single(self, shared, &house::dispatcher, spawn_dispatcher);
  stages["executor"] = single(self, shared, &house::executor, spawn_executor);
  stages["expert_loader"] = single(self, shared, &house::expert_loader, spawn_expert_loader);
  for (std::size_t i = 0; i < shared->preparer_stages.size(); ++i)
    stages[shared->preparer_stages[i]->name()] = preparer(self, shared, maker, i);
  try {
    for (const auto& entry : stages) start_stage(self, *shared, entry.first);
  } catch (const std::exception& failure) {
    shared->start_failure =
        error{error_kind::unavailable, std::string("a stage cannot be started: ") + failure.what(), "supervisor"};
  }
  shared->stages_started.count_down();

  self->set_down_handler([=](caf::down_msg& down) {
    const auto it = self->state.alive.find(down.source);
    if (it == self->state.alive.end()) return;
    const std::string name = it->second;
    self->state.alive.erase(it);
    self->state.stages.at(name).died();
    unsigned& deaths = self->state.deaths_in_a_row[name];
    if (shared->clock() - self->state.started[name] > good_life) deaths = 0;
    const auto backoff = shared->settings.supervision.restart_backoff * (1U << std::min(deaths++, max_doublings));
    spdlog::error("stage {} died: {}; it is restarted in {} ms", name, self->system().render(down.reason),
                  backoff.count());
    shared->measured.stage_restarts.Add({{"actor", role_of(name)}}).Increment();
    self->delayed_send(self, backoff, restart_atom::value, name);
  });

  return {
      [=](restart_atom, const std::string& name) {
        try {
          start_stage(self, *shared, name);
        } catch (const std::exception& failure) {
          spdlog::error("stage {} cannot be started: {}", name, failure.what());
          self->delayed_send(self, retry_start, restart_atom::value, name);
          return;
        }
        self->send(shared->get(&house::gateway), lost_atom::value);
      },
      [=](stop_atom) {
        for (const auto& [address, name] : self->state.alive)
          if (const auto handle = caf::actor_cast<caf::actor>(address))
            self->send_exit(handle, caf::exit_reason::user_shutdown);
        self->quit(caf::exit_reason::user_shutdown);
      },
  };
}

}  // namespace

supervisor_actor spawn_supervisor(caf::actor_system& system, const house_ptr& shared,
                                  const std::shared_ptr<prompt_maker>& maker) {
  return system.spawn(run_supervisor, shared, maker);
}

}  // namespace troupe::actors
