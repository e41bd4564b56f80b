// Events: points of streams that others wait for.
#ifndef MLAP_CANN_RUNTIME_EVENT_RECORD_H_
#define MLAP_CANN_RUNTIME_EVENT_RECORD_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "cann/runtime/handle_table.h"
#include "cann/runtime/work_queue.h"

namespace mlap::cann {

// One aclrtRecordEvent: pending until its stream reaches it or drops it. Whoever waits holds the record, not the event,
// so that events can be recorded again or destroyed at any time. Thread-safe.
class EventRecord {
 public:
  enum class State { kPending, kReached, kDropped };
  using Time = std::chrono::steady_clock::time_point;

  explicit EventRecord(const WorkQueue* queue) : queue_(queue) {}

  // Ends the pending state; without effect afterwards.
  void End(State state);

  // Waits for the end of the pending state; false: the deadline has passed.
  bool Wait(Deadline deadline);

  State state();
  // Of the moment the stream reached the record.
  Time time();

  // True if waiting on the calling thread would keep the record's own stream from reaching it.
  bool IsBehindThisThread();

 private:
  const WorkQueue* const queue_;  // compared, never used
  std::mutex mutex_;
  std::condition_variable ended_;
  State state_ = State::kPending;
  Time time_{};
};

struct Event {
  bool is_complete_before_record = false;
  // Waits that streams have not got through yet; shared with the queued waits, which may outlive the event.
  std::shared_ptr<std::atomic<int>> num_pending_waits = std::make_shared<std::atomic<int>>(0);

  std::mutex mutex;
  std::shared_ptr<EventRecord> latest;  // guarded by mutex; null: not recorded, or reset
};

HandleTable<Event>& EventTable();

}  // namespace mlap::cann

#endif  // MLAP_CANN_RUNTIME_EVENT_RECORD_H_
