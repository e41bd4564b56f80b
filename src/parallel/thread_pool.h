// A persistent pool of threads that runs one parallel region at a time.
//
// pthreadpool would do the same work; this pool exists because a library without a run-time dependency can be dropped
// in for CANN's, and because the thread sanitizer has to see the synchronisation of the tasks.
#ifndef MLAP_PARALLEL_THREAD_POOL_H_
#define MLAP_PARALLEL_THREAD_POOL_H_

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "parallel/executor.h"

namespace mlap {

// The calling thread is worker 0; num_workers - 1 threads are started on construction. Threads that wait spin for some
// microseconds, then sleep; more threads than processors yield them as they spin. Concurrent callers take turns, so
// that two streams do not oversubscribe the machine.
class ThreadPool final : public Executor {
 public:
  // Starts as many of the num_workers - 1 threads as the system allows.
  explicit ThreadPool(int num_workers);
  ~ThreadPool() override;
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_workers() const override { return static_cast<int>(threads_.size()) + 1; }
  void ParallelFor(int64_t num_tasks, TaskBody body) override;

  // In a child process, which has none of the pool's threads: tasks run on the calling thread, and the pool must not be
  // destroyed, as that would wait for them.
  bool IsFromBeforeFork() const;

 private:
  void WorkerLoop(int worker);
  void RunTasks(int worker);
  bool AwaitRegion(uint64_t seen);
  void KeepWorkersOffThisCpu();

  const pid_t process_;
  const bool is_crowded_;
  std::mutex region_owner_;  // held by the caller for the whole of its region

  // The region, written by its owner before `region_` is advanced.
  const TaskBody* body_ = nullptr;
  int64_t num_tasks_ = 0;
  std::atomic<int64_t> next_task_{0};
  std::atomic<int> workers_busy_{0};
  std::atomic<uint64_t> region_{0};

  std::atomic<bool> stop_{false};
  std::atomic<int> sleepers_{0};
  std::mutex sleep_mutex_;
  std::condition_variable wake_;
  std::vector<std::thread> threads_;
};

}  // namespace mlap

#endif  // MLAP_PARALLEL_THREAD_POOL_H_
