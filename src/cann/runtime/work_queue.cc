#include "cann/runtime/work_queue.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "acl/acl_base.h"

namespace mlap::cann {
namespace {

thread_local const WorkQueue* queue_of_this_thread = nullptr;

// Without memory there is no text; the code is kept.
TaskResult Failure(aclError code, const char* text, const char* detail = "") noexcept {
  TaskResult failure;
  failure.code = code;
  try {
    failure.text = std::string(text) + detail;
  } catch (...) {
  }
  return failure;
}

TaskResult RunTask(const std::function<TaskResult()>& task) noexcept {
  try {
    return task();
  } catch (const std::bad_alloc&) {
    return Failure(ACL_ERROR_RT_MEMORY_ALLOCATION, "a task on the stream ran out of memory");
  } catch (const std::exception& error) {
    return Failure(ACL_ERROR_RT_INTERNAL_ERROR, "a task on the stream threw: ", error.what());
  } catch (...) {
    return Failure(ACL_ERROR_RT_INTERNAL_ERROR, "a task on the stream threw an exception of unknown type");
  }
}

// While it lives, threads that the calling thread creates start with all signals blocked, except those that report a
// fault of the thread itself: the program's handlers run on the program's threads.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&blocked, fault);
    is_blocked_ = pthread_sigmask(SIG_SETMASK, &blocked, &before_) == 0;
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() {
    if (is_blocked_) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t before_;
  bool is_blocked_ = false;
};

// Gives the calling thread the processors of the main thread: that the thread which queued a stream's first work is
// bound to one must not bind the stream.
void UseProcessorsOfProcess() {
#ifdef __linux__
  cpu_set_t processors;
  if (sched_getaffinity(getpid(), sizeof processors, &processors) == 0) {
    sched_setaffinity(0, sizeof processors, &processors);
  }
#endif
}

std::atomic<bool> threads_are_lost{false};

// From the first thread on, a forked child is one that lacks threads.
void NoteForksFromNowOn() {
  static const int result = pthread_atfork(nullptr, nullptr, [] { threads_are_lost = true; });
  (void)result;
}

}  // namespace

Deadline DeadlineAfter(int32_t timeout_ms) {
  if (timeout_ms < 0) return std::nullopt;
  return std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
}

const WorkQueue* WorkQueue::OfThisThread() { return queue_of_this_thread; }

bool WorkQueue::ThreadsAreLost() { return threads_are_lost; }

WorkQueue::PushStatus WorkQueue::Push(std::function<TaskResult()> task, uint64_t* ticket) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (is_closing_) return PushStatus::kClosed;
  if (!thread_.joinable()) {
    NoteForksFromNowOn();
    const SignalsBlocked signals_blocked;
    try {
      thread_ = std::thread(&WorkQueue::Run, this);
    } catch (const std::system_error&) {
      return PushStatus::kNoThread;
    }
  }
  tasks_.push_back(std::move(task));
  ++num_queued_;
  if (ticket != nullptr) *ticket = num_queued_;
  work_arrived_.notify_one();
  return PushStatus::kQueued;
}

void WorkQueue::Run() {
  queue_of_this_thread = this;
  UseProcessorsOfProcess();
  for (;;) {
    std::function<TaskResult()> task;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      work_arrived_.wait(lock, [this] { return is_closing_ || !tasks_.empty(); });
      if (tasks_.empty() || is_dropping_) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    TaskResult result = RunTask(task);
    // Before the task counts as done, so that whoever synchronises finds everything it held released.
    task = nullptr;
    NoteDone(1, std::move(result));
  }
}

void WorkQueue::NoteDone(uint64_t num_tasks, TaskResult result) {
  const std::lock_guard<std::mutex> lock(mutex_);
  num_done_ += num_tasks;
  if (result.code != 0) {
    if (first_failure_.code == 0) {
      first_failure_ = std::move(result);
    } else {
      ++num_later_failures_;
    }
  }
  work_done_.notify_all();
}

bool WorkQueue::Wait(uint64_t ticket, Deadline deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto is_done = [this, ticket] { return num_done_ >= ticket; };
  if (deadline) return work_done_.wait_until(lock, *deadline, is_done);
  work_done_.wait(lock, is_done);
  return true;
}

bool WorkQueue::WaitForAll(Deadline deadline) {
  uint64_t ticket = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ticket = num_queued_;
  }
  return Wait(ticket, deadline);
}

bool WorkQueue::IsIdle() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return num_done_ == num_queued_;
}

TaskResult WorkQueue::TakeFailure() {
  const std::lock_guard<std::mutex> lock(mutex_);
  TaskResult failure = std::move(first_failure_);
  if (num_later_failures_ > 0) {
    try {
      failure.text += " (" + std::to_string(num_later_failures_) + " later tasks of the stream failed too)";
    } catch (...) {
      // Without memory the number is lost, the failure is not.
    }
  }
  first_failure_ = {};
  num_later_failures_ = 0;
  return failure;
}

void WorkQueue::Close(bool drop_queued) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_closing_ = true;
    is_dropping_ = drop_queued;
    work_arrived_.notify_all();
  }
  // One by one, which takes no memory: the stream is gone from its table, so that nothing may fail from here on.
  uint64_t num_dropped = 0;
  while (drop_queued) {
    // Destroyed outside the lock: that may release whoever waits for an event.
    std::function<TaskResult()> dropped;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (tasks_.empty()) break;
    dropped = std::move(tasks_.front());
    tasks_.pop_front();
    ++num_dropped;
  }
  if (thread_.joinable()) thread_.join();
  // Only now: the task that was running counts before those behind it.
  NoteDone(num_dropped, {});
}

}  // namespace mlap::cann
