#include "cann/runtime/event_record.h"

namespace mlap::cann {

void EventRecord::End(State state) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (state_ != State::kPending) return;
  state_ = state;
  time_ = std::chrono::steady_clock::now();
  ended_.notify_all();
}

bool EventRecord::Wait(Deadline deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto has_ended = [this] { return state_ != State::kPending; };
  if (deadline) return ended_.wait_until(lock, *deadline, has_ended);
  ended_.wait(lock, has_ended);
  return true;
}

EventRecord::State EventRecord::state() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return state_;
}

EventRecord::Time EventRecord::time() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return time_;
}

bool EventRecord::IsBehindThisThread() { return queue_ == WorkQueue::OfThisThread() && state() == State::kPending; }

HandleTable<Event>& EventTable() {
  static HandleTable<Event>* const table = new HandleTable<Event>(HandleKind::kEvent);
  return *table;
}

}  // namespace mlap::cann
