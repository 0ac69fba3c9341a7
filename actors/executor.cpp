#include <chrono>

#include "actors/stages.hpp"
#include "actors/step_job.hpp"

namespace troupe::actors {

struct executor_state {
  static inline const char* name = "executor";
  engine::step_output output;  ///< Kept between steps, to save its memory.
};

namespace {

executor_actor::behavior_type run_executor(executor_actor::stateful_pointer<executor_state> self, house_ptr shared) {
  return {
      [=](run_atom, const step_job_ptr& job) {
        const auto begin = std::chrono::steady_clock::now();
        auto computed = run_step(*shared->backend, shared->model->spec().vocab, self->state.output, *job);
        job->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        shared->executor_stage->moved();
        if (!computed) job->failure = std::move(computed).error();
        return done_atom::value;
      },
  };
}

}  // namespace

executor_actor spawn_executor(caf::actor_system& system, const house_ptr& shared) {
  return system.spawn<caf::detached>(run_executor, shared);
}

}  // namespace troupe::actors
