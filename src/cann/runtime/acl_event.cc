// Events.
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "acl/acl_rt.h"
#include "cann/runtime/event_record.h"
#include "cann/runtime/recent_error.h"
#include "cann/runtime/runtime_state.h"

namespace mlap::cann {
namespace {

constexpr uint32_t kKnownFlags = ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE |
                                 ACL_EVENT_DEVICE_USE_ONLY | ACL_EVENT_EXTERNAL | ACL_EVENT_IPC;

aclError CreateEvent(const char* function, aclrtEvent* event, uint32_t flag, bool is_complete_before_record) {
  if (const aclError code = RequirePointer(function, "event", event)) return code;
  if ((flag & ~kKnownFlags) != 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                RefusalText(function, "flag", "a combination of the ACL_EVENT_ flags", std::to_string(flag), ""));
  }
  if ((flag & ACL_EVENT_IPC) != 0) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                RefusalText(function, "flag", "flags without ACL_EVENT_IPC", std::to_string(flag),
                            "events are not shared between processes here"));
  }
  std::shared_ptr<Context> context;
  if (const aclError code = FindCurrentContext(function, &context)) return code;
  auto created = std::make_shared<Event>();
  created->is_complete_before_record = is_complete_before_record;
  *event = EventTable().Add(std::move(created));
  return 0;
}

aclError FindEvent(const char* function, const char* parameter, aclrtEvent event, std::shared_ptr<Event>* out) {
  if (const aclError code = RequirePointer(function, parameter, event)) return code;
  *out = EventTable().Find(event);
  return *out != nullptr ? 0 : RefuseHandle(function, parameter, event, HandleKind::kEvent);
}

std::shared_ptr<EventRecord> LatestRecord(Event& event) {
  const std::lock_guard<std::mutex> lock(event.mutex);
  return event.latest;
}

bool IsComplete(Event& event) {
  const std::shared_ptr<EventRecord> record = LatestRecord(event);
  return record == nullptr ? event.is_complete_before_record : record->state() != EventRecord::State::kPending;
}

// Ends the record also when the task that should reach it is dropped: others wait for it.
struct RecordGuard {
  explicit RecordGuard(std::shared_ptr<EventRecord> guarded) : record(std::move(guarded)) {}
  RecordGuard(const RecordGuard&) = delete;
  RecordGuard& operator=(const RecordGuard&) = delete;
  ~RecordGuard() { record->End(EventRecord::State::kDropped); }

  const std::shared_ptr<EventRecord> record;
};

// Counts one wait for as long as it lives.
struct WaitCount {
  explicit WaitCount(std::shared_ptr<std::atomic<int>> counter) : num_waits(std::move(counter)) { ++*num_waits; }
  WaitCount(const WaitCount&) = delete;
  WaitCount& operator=(const WaitCount&) = delete;
  ~WaitCount() { --*num_waits; }

  const std::shared_ptr<std::atomic<int>> num_waits;
};

aclError RecordEvent(aclrtEvent event, aclrtStream stream) {
  std::shared_ptr<Event> found;
  if (const aclError code = FindEvent("aclrtRecordEvent", "event", event, &found)) return code;
  std::shared_ptr<Stream> target;
  if (const aclError code = FindStream("aclrtRecordEvent", stream, &target)) return code;
  auto record = std::make_shared<EventRecord>(&target->queue);
  auto guard = std::make_shared<RecordGuard>(record);
  // Held while queueing, so that two threads that record one event agree on which record is the latest.
  const std::lock_guard<std::mutex> lock(found->mutex);
  const aclError code = PushOnStream("aclrtRecordEvent", stream, [guard = std::move(guard)] {
    guard->record->End(EventRecord::State::kReached);
    return TaskResult{};
  });
  if (code == 0) found->latest = std::move(record);
  return code;
}

aclError ResetEvent(aclrtEvent event, aclrtStream stream) {
  std::shared_ptr<Event> found;
  if (const aclError code = FindEvent("aclrtResetEvent", "event", event, &found)) return code;
  return PushOnStream("aclrtResetEvent", stream, [found, record = LatestRecord(*found)] {
    const std::lock_guard<std::mutex> lock(found->mutex);
    if (found->latest == record) found->latest = nullptr;
    return TaskResult{};
  });
}

aclError StreamWaitEvent(aclrtStream stream, aclrtEvent event) {
  std::shared_ptr<Event> found;
  if (const aclError code = FindEvent("aclrtStreamWaitEvent", "event", event, &found)) return code;
  const std::shared_ptr<EventRecord> record = LatestRecord(*found);
  if (record == nullptr) {
    std::shared_ptr<Stream> checked;
    return FindStream("aclrtStreamWaitEvent", stream, &checked);
  }
  // The record was queued before this wait, so waits cannot form a circle.
  auto count = std::make_shared<WaitCount>(found->num_pending_waits);
  return PushOnStream("aclrtStreamWaitEvent", stream, [record, count = std::move(count)] {
    record->Wait(std::nullopt);
    return TaskResult{};
  });
}

aclError SynchronizeEvent(const char* function, aclrtEvent event, int32_t timeout_ms) {
  if (const aclError code = RequireTimeout(function, timeout_ms)) return code;
  if (const aclError code = RefuseAfterFork(function)) return code;
  std::shared_ptr<Event> found;
  if (const aclError code = FindEvent(function, "event", event, &found)) return code;
  const std::shared_ptr<EventRecord> record = LatestRecord(*found);
  if (record == nullptr) return 0;
  if (record->IsBehindThisThread()) return RefuseOnQueueThread(function);
  if (record->Wait(DeadlineAfter(timeout_ms))) return 0;
  return Fail(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT,
              RefusalText(function, "timeout", "the event complete within " + std::to_string(timeout_ms) + " ms",
                          "its stream still on the way", "call again to go on waiting"));
}

aclError FindTime(const char* function, const char* parameter, aclrtEvent event, EventRecord::Time* out) {
  std::shared_ptr<Event> found;
  if (const aclError code = FindEvent(function, parameter, event, &found)) return code;
  const std::shared_ptr<EventRecord> record = LatestRecord(*found);
  if (record != nullptr && record->state() == EventRecord::State::kReached) {
    *out = record->time();
    return 0;
  }
  return Fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID,
              RefusalText(function, parameter, "a recorded and complete event",
                          record == nullptr ? "one without a record" : "one whose stream has not reached the record",
                          "synchronise with the event first"));
}

}  // namespace
}  // namespace mlap::cann

using namespace mlap::cann;

aclError aclrtCreateEvent(aclrtEvent* event) {
  return Guarded("aclrtCreateEvent", [&] { return CreateEvent("aclrtCreateEvent", event, 0, false); });
}

aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag) {
  return Guarded("aclrtCreateEventWithFlag",
                 [&] { return CreateEvent("aclrtCreateEventWithFlag", event, flag, false); });
}

aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag) {
  return Guarded("aclrtCreateEventExWithFlag",
                 [&] { return CreateEvent("aclrtCreateEventExWithFlag", event, flag, true); });
}

aclError aclrtDestroyEvent(aclrtEvent event) {
  return Guarded("aclrtDestroyEvent", [&] {
    if (const aclError code = RequirePointer("aclrtDestroyEvent", "event", event)) return code;
    if (EventTable().Remove(event) != nullptr) return 0;
    return RefuseHandle("aclrtDestroyEvent", "event", event, HandleKind::kEvent);
  });
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  return Guarded("aclrtRecordEvent", [&] { return RecordEvent(event, stream); });
}

aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
  return Guarded("aclrtResetEvent", [&] { return ResetEvent(event, stream); });
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
  return Guarded("aclrtStreamWaitEvent", [&] { return StreamWaitEvent(stream, event); });
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status) {
  return Guarded("aclrtQueryEventStatus", [&] {
    if (const aclError code = RequirePointer("aclrtQueryEventStatus", "status", status)) return code;
    std::shared_ptr<Event> found;
    if (const aclError code = FindEvent("aclrtQueryEventStatus", "event", event, &found)) return code;
    *status = IsComplete(*found) ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
    return 0;
  });
}

aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status) {
  return Guarded("aclrtQueryEvent", [&] {
    if (const aclError code = RequirePointer("aclrtQueryEvent", "status", status)) return code;
    std::shared_ptr<Event> found;
    if (const aclError code = FindEvent("aclrtQueryEvent", "event", event, &found)) return code;
    *status = IsComplete(*found) ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY;
    return 0;
  });
}

aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus* status) {
  return Guarded("aclrtQueryEventWaitStatus", [&] {
    if (const aclError code = RequirePointer("aclrtQueryEventWaitStatus", "status", status)) return code;
    std::shared_ptr<Event> found;
    if (const aclError code = FindEvent("aclrtQueryEventWaitStatus", "event", event, &found)) return code;
    *status = *found->num_pending_waits == 0 ? ACL_EVENT_WAIT_STATUS_COMPLETE : ACL_EVENT_WAIT_STATUS_NOT_READY;
    return 0;
  });
}

aclError aclrtSynchronizeEvent(aclrtEvent event) {
  return Guarded("aclrtSynchronizeEvent", [&] { return SynchronizeEvent("aclrtSynchronizeEvent", event, -1); });
}

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) {
  return Guarded("aclrtSynchronizeEventWithTimeout",
                 [&] { return SynchronizeEvent("aclrtSynchronizeEventWithTimeout", event, timeout); });
}

aclError aclrtEventElapsedTime(float* ms, aclrtEvent startEvent, aclrtEvent endEvent) {
  return Guarded("aclrtEventElapsedTime", [&] {
    constexpr const char* kFunction = "aclrtEventElapsedTime";
    if (const aclError code = RequirePointer(kFunction, "ms", ms)) return code;
    EventRecord::Time start;
    EventRecord::Time end;
    if (const aclError code = FindTime(kFunction, "startEvent", startEvent, &start)) return code;
    if (const aclError code = FindTime(kFunction, "endEvent", endEvent, &end)) return code;
    if (end < start) {
      return Fail(ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL,
                  RefusalText(kFunction, "endEvent", "an event reached after startEvent", "one reached before it",
                              "exchange the two"));
    }
    *ms = std::chrono::duration<float, std::milli>(end - start).count();
    return 0;
  });
}

aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t* timestamp) {
  return Guarded("aclrtEventGetTimestamp", [&] {
    if (const aclError code = RequirePointer("aclrtEventGetTimestamp", "timestamp", timestamp)) return code;
    EventRecord::Time time;
    if (const aclError code = FindTime("aclrtEventGetTimestamp", "event", event, &time)) return code;
    const auto since_epoch = std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch());
    *timestamp = static_cast<uint64_t>(since_epoch.count());
    return 0;
  });
}
