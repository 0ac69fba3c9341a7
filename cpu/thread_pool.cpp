#include "cpu/thread_pool.hpp"

#include <algorithm>
#include <chrono>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace troupe::cpu {
namespace {

constexpr std::uint32_t gate_open = 1U << 31;
constexpr auto spin_time = std::chrono::microseconds(40);

void pause_core() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

/// Waits until `value` differs from `old`: spins for `spin_time`, then sleeps in the kernel.
void wait_while_equal(std::atomic<std::uint32_t>& value, std::uint32_t old, std::atomic<std::uint32_t>* asleep) {
  const auto give_up = std::chrono::steady_clock::now() + spin_time;
  do {
    for (int i = 0; i < 64; ++i) {
      if (value.load(std::memory_order_acquire) != old) return;
      pause_core();
    }
  } while (std::chrono::steady_clock::now() < give_up);
  if (asleep) asleep->fetch_add(1, std::memory_order_seq_cst);
  while (value.load(std::memory_order_seq_cst) == old) value.wait(old, std::memory_order_seq_cst);
  if (asleep) asleep->fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace

thread_pool::thread_pool(unsigned threads) {
  if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
  workers_.reserve(threads - 1);
  try {
    for (unsigned worker = 1; worker < threads; ++worker) workers_.emplace_back([this, worker] { work_loop(worker); });
  } catch (...) {
    end_workers();
    throw;
  }
}

thread_pool::~thread_pool() { end_workers(); }

void thread_pool::end_workers() {
  stopping_.store(true, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_seq_cst);
  round_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void thread_pool::run_shared(std::uint32_t tasks, job work) {
  job_ = work;
  tasks_ = tasks;
  next_task_.store(0, std::memory_order_relaxed);
  gate_.store(gate_open, std::memory_order_release);
  round_.fetch_add(1, std::memory_order_seq_cst);
  if (asleep_.load(std::memory_order_seq_cst) != 0) round_.notify_all();
  take_tasks(0);
  auto inside = gate_.fetch_and(~gate_open, std::memory_order_acq_rel) & ~gate_open;
  while (inside != 0) {
    wait_while_equal(gate_, inside, nullptr);
    inside = gate_.load(std::memory_order_acquire);
  }
}

void thread_pool::take_tasks(unsigned worker) {
  for (;;) {
    const auto task = next_task_.fetch_add(1, std::memory_order_relaxed);
    if (task >= tasks_) return;
    job_.call(job_.object, task, worker);
  }
}

bool thread_pool::enter() {
  auto gate = gate_.load(std::memory_order_acquire);
  while (gate & gate_open) {
    if (gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acq_rel, std::memory_order_acquire)) return true;
  }
  return false;
}

void thread_pool::work_loop(unsigned worker) {
  std::uint32_t seen = 0;
  for (;;) {
    wait_while_equal(round_, seen, &asleep_);
    seen = round_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed)) return;
    if (!enter()) continue;
    take_tasks(worker);
    if (gate_.fetch_sub(1, std::memory_order_acq_rel) == 1) gate_.notify_one();
  }
}

}  // namespace troupe::cpu
