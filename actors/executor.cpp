#include <chrono>

#include "actors/stages.hpp"
#include "actors/step_job.hpp"

namespace troupe::actors {

struct executor_state {
  static inline const char* name = "executor";
  engine::step_output output;  ///< Kept between steps, to save its memory.
};

namespace {

/// An exception ends this life of the executor; the step keeps what it said.
result<void> compute(const house& shared, engine::step_output& output, step_job& job) try {
  return run_step(*shared.backend, shared.model->spec().vocab, output, job);
} catch (const std::exception& failure) {
  job.failure = error{error_kind::internal, std::string("the backend threw: ") + failure.what(), "executor"};
  throw;
} catch (...) {
  job.failure = error{error_kind::internal, "the backend threw what is no exception", "executor"};
  throw;
}

executor_actor::behavior_type run_executor(executor_actor::stateful_pointer<executor_state> self, house_ptr shared) {
  log_exceptions(self);
  return {
      [=](run_atom, const step_job_ptr& job) {
        job->held->begin();
        const auto begin = std::chrono::steady_clock::now();
        auto computed = compute(*shared, self->state.output, *job);
        job->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        shared->executor_stage->moved();
        if (!computed) job->failure = std::move(computed).error();
        return done_atom::value;
      },
  };
}

}  // namespace

executor_actor spawn_executor(caf::actor_system& system, const house_ptr& shared) {
  return spawn_on_thread(system, run_executor, shared);
}

}  // namespace troupe::actors
