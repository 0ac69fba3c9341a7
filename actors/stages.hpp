#pragma once

#include <spdlog/spdlog.h>

#include <thread>
#include <utility>

#include "actors/house.hpp"

/// Starts the stages, one file each. The supervisor calls these and watches what they return. The executor and the
/// expert loader get threads of their own, since they compute and wait.
namespace troupe::actors {

class prompt_maker;

/// Writes what an exception says to the log before the stage dies of it.
template <class Actor>
void log_exceptions(Actor* self) {
  self->set_exception_handler([self](std::exception_ptr& thrown) -> caf::error {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& failure) {
      spdlog::error("stage {} threw: {}", self->name(), failure.what());
    } catch (...) {
      spdlog::error("stage {} threw something that is no exception", self->name());
    }
    return caf::sec::runtime_error;
  });
}

/// Starts an actor that computes or waits, on a thread of its own. CAF counts it before that thread exists and would
/// wait for it for ever: whether a thread can start is found out first. Throws when it cannot.
template <class Function, class... Arguments>
auto spawn_on_thread(caf::actor_system& system, Function run, Arguments&&... arguments) {
  std::thread([] {}).join();
  return system.spawn<caf::detached>(run, std::forward<Arguments>(arguments)...);
}

gateway_actor spawn_gateway(caf::actor_system& system, const house_ptr& shared);
admission_actor spawn_admission(caf::actor_system& system, const house_ptr& shared);
memory_cache_actor spawn_memory_cache(caf::actor_system& system, const house_ptr& shared);
preparer_actor spawn_preparer(caf::actor_system& system, const house_ptr& shared,
                              const std::shared_ptr<prompt_maker>& maker);
batch_collector_actor spawn_batch_collector(caf::actor_system& system, const house_ptr& shared);
executor_actor spawn_executor(caf::actor_system& system, const house_ptr& shared);
dispatcher_actor spawn_dispatcher(caf::actor_system& system, const house_ptr& shared);
expert_loader_actor spawn_expert_loader(caf::actor_system& system, const house_ptr& shared);

}  // namespace troupe::actors
