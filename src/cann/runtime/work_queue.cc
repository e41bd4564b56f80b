#include "cann/runtime/work_queue.h"

#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "acl/acl_base.h"

namespace mlap::cann {
namespace {

thread_local const WorkQueue* queue_of_this_thread = nullptr;

TaskResult RunTask(const std::function<TaskResult()>& task) {
  try {
    return task();
  } catch (const std::bad_alloc&) {
    return {ACL_ERROR_RT_MEMORY_ALLOCATION, "a task on the stream ran out of memory"};
  } catch (const std::exception& error) {
    return {ACL_ERROR_RT_INTERNAL_ERROR, std::string("a task on the stream threw: ") + error.what()};
  } catch (...) {
    return {ACL_ERROR_RT_INTERNAL_ERROR, "a task on the stream threw an exception of unknown type"};
  }
}

}  // namespace

Deadline DeadlineAfter(int32_t timeout_ms) {
  if (timeout_ms < 0) return std::nullopt;
  return std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
}

const WorkQueue* WorkQueue::OfThisThread() { return queue_of_this_thread; }

WorkQueue::PushStatus WorkQueue::Push(std::function<TaskResult()> task, uint64_t* ticket) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (is_closing_) return PushStatus::kClosed;
  if (!thread_.joinable()) {
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
  for (;;) {
    std::function<TaskResult()> task;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      work_arrived_.wait(lock, [this] { return is_closing_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
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
    failure.text += " (" + std::to_string(num_later_failures_) + " later tasks of the stream failed too)";
  }
  first_failure_ = {};
  num_later_failures_ = 0;
  return failure;
}

void WorkQueue::Close(bool drop_queued) {
  std::deque<std::function<TaskResult()>> dropped;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_closing_ = true;
    if (drop_queued) dropped.swap(tasks_);
    work_arrived_.notify_all();
  }
  // Outside the lock: destroying a task may release whoever waits for an event.
  const uint64_t num_dropped = dropped.size();
  dropped.clear();
  if (thread_.joinable()) thread_.join();
  // Only now: the task that was running counts before those behind it.
  NoteDone(num_dropped, {});
}

}  // namespace mlap::cann
