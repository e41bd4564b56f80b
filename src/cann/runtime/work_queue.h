// The queue behind a stream: tasks run one after the other on a thread that starts with the first of them.
#ifndef MLAP_CANN_RUNTIME_WORK_QUEUE_H_
#define MLAP_CANN_RUNTIME_WORK_QUEUE_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "cann/runtime/stream_queue.h"

namespace mlap::cann {

// When to stop waiting; nothing: never.
using Deadline = std::optional<std::chrono::steady_clock::time_point>;

// `timeout_ms` as in the C functions: -1 for ever, otherwise not negative.
Deadline DeadlineAfter(int32_t timeout_ms);

// Thread-safe. Close must have returned before the destructor runs.
class WorkQueue {
 public:
  enum class PushStatus { kQueued, kClosed, kNoThread };

  WorkQueue() = default;
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // Queues `task`. Writes the number of tasks queued so far to `ticket` if it is given: see Wait.
  PushStatus Push(std::function<TaskResult()> task, uint64_t* ticket = nullptr);

  // Waits until as many tasks as `ticket` are done, or all that are queued now. False: the deadline has passed.
  bool Wait(uint64_t ticket, Deadline deadline);
  bool WaitForAll(Deadline deadline);

  bool IsIdle();

  // The first failure since the last call, its text extended by the number of later ones; code 0 if there is none.
  TaskResult TakeFailure();

  // Refuses further tasks, lets those that are queued run or drops those that have not started, and ends the thread.
  // Called once, and not by the queue's own thread. Takes no memory and does not throw.
  void Close(bool drop_queued);

  // True in a process that was forked after a queue had started its thread: the threads stayed with the parent, and
  // whatever they had locked stays locked.
  static bool ThreadsAreLost();

  // The queue whose thread is the calling one; null on all other threads.
  static const WorkQueue* OfThisThread();

 private:
  void Run();
  void NoteDone(uint64_t num_tasks, TaskResult result);

  std::mutex mutex_;
  std::condition_variable work_arrived_;
  std::condition_variable work_done_;
  std::deque<std::function<TaskResult()>> tasks_;
  uint64_t num_queued_ = 0;
  uint64_t num_done_ = 0;
  TaskResult first_failure_;
  size_t num_later_failures_ = 0;
  bool is_closing_ = false;
  bool is_dropping_ = false;  // the thread starts no further task
  std::thread thread_;
};

}  // namespace mlap::cann

#endif  // MLAP_CANN_RUNTIME_WORK_QUEUE_H_
