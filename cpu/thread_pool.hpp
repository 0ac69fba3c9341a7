#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace troupe::cpu {

/// Runs one step's loops on all cores. Loops are short (some are microseconds), so idle workers spin briefly before
/// they sleep; they never spin on, because the threads that serve clients share the cores. A loop never waits for a
/// worker that the system has not scheduled: who comes late finds the gate closed.
class thread_pool {
 public:
  /// `threads` counts the caller of `run`: the pool starts `threads - 1` workers. 0 means one per core.
  explicit thread_pool(unsigned threads);
  ~thread_pool();
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;

  unsigned threads() const { return static_cast<unsigned>(workers_.size()) + 1; }

  /// Calls body(task, worker) for every task in [0, tasks), each once, in any order and on any thread of the pool, and
  /// returns when all are done. `worker` is below `threads()` and names the calling thread, for scratch memory. One
  /// caller at a time; `body` must not throw or call `run`.
  template <class Body>
  void run(std::uint32_t tasks, Body&& body) {
    if (tasks == 0) return;
    if (tasks == 1 || workers_.empty()) {
      for (std::uint32_t task = 0; task < tasks; ++task) body(task, 0U);
      return;
    }
    using plain = std::remove_reference_t<Body>;
    run_shared(tasks,
               {[](void* object, std::uint32_t task, unsigned worker) { (*static_cast<plain*>(object))(task, worker); },
                const_cast<void*>(static_cast<const void*>(&body))});
  }

 private:
  struct job {
    void (*call)(void*, std::uint32_t, unsigned) = nullptr;
    void* object = nullptr;
  };

  void run_shared(std::uint32_t tasks, job work);
  void work_loop(unsigned worker);
  void end_workers();
  bool enter();
  void take_tasks(unsigned worker);

  job job_;
  std::uint32_t tasks_ = 0;
  alignas(64) std::atomic<std::uint32_t> next_task_{0};
  alignas(64) std::atomic<std::uint32_t> round_{0};  ///< Changes when a loop starts or the pool stops.
  alignas(64) std::atomic<std::uint32_t> gate_{0};   ///< `gate_open` while a loop can be joined, plus workers inside.
  std::atomic<std::uint32_t> asleep_{0};
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> workers_;
};

}  // namespace troupe::cpu
