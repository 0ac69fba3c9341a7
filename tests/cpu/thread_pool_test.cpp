#include "cpu/thread_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

namespace troupe::cpu {
namespace {

TEST(ThreadPool, RunsEveryTaskOnceOnThreadsOfItsOwn) {
  for (const unsigned threads : {1U, 2U, 5U}) {
    thread_pool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const std::uint32_t tasks : {0U, 1U, 2U, 7U, 1000U}) {
      std::vector<std::atomic<int>> done(tasks);
      std::atomic<bool> known{true};
      pool.run(tasks, [&](std::uint32_t task, unsigned worker) {
        done[task].fetch_add(1);
        if (worker >= threads) known = false;
      });
      for (const auto& count : done) EXPECT_EQ(count.load(), 1);
      EXPECT_TRUE(known);
    }
  }
}

TEST(ThreadPool, NeverGivesTwoThreadsTheSameWorkerNumberAtOnce) {
  thread_pool pool(4);
  std::vector<std::atomic<int>> inside(4);
  std::atomic<bool> alone{true};
  for (int round = 0; round < 200; ++round) {
    pool.run(16, [&](std::uint32_t, unsigned worker) {
      if (inside[worker].fetch_add(1) != 0) alone = false;
      inside[worker].fetch_sub(1);
    });
  }
  EXPECT_TRUE(alone);
}

TEST(ThreadPool, FinishesALoopBeforeTheNextBegins) {
  thread_pool pool(3);
  // Without the wait at a loop's end, a late worker would add to the next loop's sum.
  for (int round = 1; round <= 3000; ++round) {
    std::atomic<int> sum{0};
    pool.run(5, [&](std::uint32_t, unsigned) { sum.fetch_add(round); });
    ASSERT_EQ(sum.load(), 5 * round);
  }
}

TEST(ThreadPool, ShowsTheCallerWhatItsWorkersWrote) {
  thread_pool pool(4);
  std::vector<int> values(64);
  for (int round = 0; round < 500; ++round) {
    pool.run(64, [&](std::uint32_t task, unsigned) { values[task] += static_cast<int>(task); });
  }
  for (int i = 0; i < 64; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)], 500 * i);
}

TEST(ThreadPool, StopsWhetherItsWorkersSleepOrNeverWorked) {
  for (int i = 0; i < 20; ++i) {
    auto pool = std::make_unique<thread_pool>(3);
    if (i % 2 == 0) pool->run(3, [](std::uint32_t, unsigned) {});
    pool.reset();
  }
}

}  // namespace
}  // namespace troupe::cpu
