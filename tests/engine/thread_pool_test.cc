// Every task runs exactly once, workers are distinct at any moment, and concurrent callers do not mix.
#include "parallel/thread_pool.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace mlap {
namespace {

TEST(ThreadPool, RunsEveryTaskOnce) {
  for (const int workers : {1, 2, 3, 7}) {
    ThreadPool pool(workers);
    EXPECT_EQ(pool.num_workers(), workers);
    for (const int64_t tasks : {0, 1, 2, 5, 64, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(tasks));
      std::vector<std::atomic<int>> busy(static_cast<size_t>(workers));
      pool.ParallelFor(tasks, [&](int64_t task, int worker) {
        EXPECT_EQ(busy[static_cast<size_t>(worker)].fetch_add(1), 0);
        runs[static_cast<size_t>(task)].fetch_add(1);
        busy[static_cast<size_t>(worker)].fetch_sub(1);
      });
      for (const auto& run : runs) EXPECT_EQ(run.load(), 1);
    }
  }
}

TEST(ThreadPool, ResultsAreVisibleToTheCallerAndToTheNextRegion) {
  ThreadPool pool(4);
  std::vector<int64_t> values(257, 0);
  for (int round = 0; round < 200; ++round) {
    pool.ParallelFor(257, [&](int64_t task, int) { values[static_cast<size_t>(task)] += task; });
  }
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], 200 * static_cast<int64_t>(i));
}

TEST(ThreadPool, ConcurrentCallersTakeTurns) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  std::atomic<int64_t> total{0};
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        int64_t sum = 0;
        std::vector<int64_t> part(16, 0);
        pool.ParallelFor(16, [&](int64_t task, int) { part[static_cast<size_t>(task)] = task; });
        for (const int64_t value : part) sum += value;
        total.fetch_add(sum);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total.load(), 4 * 50 * 120);
}

TEST(ThreadPool, WakesAfterSleeping) {
  ThreadPool pool(3);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::atomic<int> runs{0};
    pool.ParallelFor(9, [&](int64_t, int) { runs.fetch_add(1); });
    EXPECT_EQ(runs.load(), 9);
  }
}

TEST(ThreadPool, IdleThreadsUseNoCpu) {
  ThreadPool pool(4);
  pool.ParallelFor(8, [](int64_t, int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const double used = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  // Three spinning threads would use 0.2 s of each CPU.
  EXPECT_LT(used, 0.1);
}

}  // namespace
}  // namespace mlap
