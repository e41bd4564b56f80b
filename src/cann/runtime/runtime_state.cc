#include "cann/runtime/runtime_state.h"

#include <utility>

namespace mlap::cann {
namespace {

thread_local aclrtContext current_context = nullptr;

void CloseAll(const std::vector<std::shared_ptr<Stream>>& streams) {
  for (const std::shared_ptr<Stream>& stream : streams) stream->queue.Close(/*drop_queued=*/false);
}

}  // namespace

RuntimeState& RuntimeState::Get() {
  static RuntimeState* const state = new RuntimeState;
  return *state;
}

aclrtContext RuntimeState::CurrentHandle() { return current_context; }

void RuntimeState::SetCurrentHandle(aclrtContext context) { current_context = context; }

std::shared_ptr<Context> RuntimeState::CurrentContext() { return contexts_.Find(current_context); }

aclrtStream RuntimeState::CreateStreamLocked(aclrtContext handle, Context& context, bool is_default) {
  auto stream = std::make_shared<Stream>();
  stream->context = handle;
  stream->is_default = is_default;
  const aclrtStream stream_handle = streams_.Add(std::move(stream));
  context.streams.insert(stream_handle);
  return stream_handle;
}

aclrtContext RuntimeState::CreateContextLocked(bool is_default) {
  auto context = std::make_shared<Context>();
  context->is_default = is_default;
  const aclrtContext handle = contexts_.Add(context);
  context->default_stream = CreateStreamLocked(handle, *context, /*is_default=*/true);
  live_contexts_.insert(handle);
  return handle;
}

void RuntimeState::DetachContextLocked(aclrtContext handle, std::vector<std::shared_ptr<Stream>>* detached) {
  const std::shared_ptr<Context> context = contexts_.Find(handle);
  if (context == nullptr) return;
  // Before the first removal: a stream that is removed must be closed.
  detached->reserve(detached->size() + context->streams.size());
  contexts_.Remove(handle);
  live_contexts_.erase(handle);
  if (handle == default_context_) default_context_ = nullptr;
  for (const aclrtStream stream : context->streams) {
    if (std::shared_ptr<Stream> found = streams_.Remove(stream)) detached->push_back(std::move(found));
  }
}

std::vector<std::shared_ptr<Stream>> RuntimeState::DetachAllLocked() {
  // Room for all streams first, so that without memory none is detached.
  size_t num_streams = 0;
  for (const aclrtContext handle : live_contexts_) {
    if (const std::shared_ptr<Context> context = contexts_.Find(handle)) num_streams += context->streams.size();
  }
  std::vector<std::shared_ptr<Stream>> detached;
  detached.reserve(num_streams);
  while (!live_contexts_.empty()) DetachContextLocked(*live_contexts_.begin(), &detached);
  num_device_users_ = 0;
  return detached;
}

void RuntimeState::SetDevice() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (default_context_ == nullptr) default_context_ = CreateContextLocked(/*is_default=*/true);
  ++num_device_users_;
  current_context = default_context_;
}

bool RuntimeState::ResetDevice(bool force) {
  std::vector<std::shared_ptr<Stream>> detached;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (force ? live_contexts_.empty() : num_device_users_ == 0) return false;
    if (!force && num_device_users_ > 1) {
      --num_device_users_;
      return true;
    }
    detached = DetachAllLocked();
  }
  CloseAll(detached);
  return true;
}

void RuntimeState::ResetEverything() {
  std::vector<std::shared_ptr<Stream>> detached;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    detached = DetachAllLocked();
  }
  CloseAll(detached);
}

aclrtContext RuntimeState::CreateContext() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return CreateContextLocked(/*is_default=*/false);
}

bool RuntimeState::DestroyContext(aclrtContext context) {
  std::vector<std::shared_ptr<Stream>> detached;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (live_contexts_.count(context) == 0) return false;
    DetachContextLocked(context, &detached);
  }
  CloseAll(detached);
  return true;
}

aclrtStream RuntimeState::CreateStream(aclrtContext context) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::shared_ptr<Context> found = contexts_.Find(context);
  return found == nullptr ? nullptr : CreateStreamLocked(context, *found, /*is_default=*/false);
}

bool RuntimeState::DestroyStream(aclrtStream stream, bool drop_queued) {
  std::shared_ptr<Stream> removed;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    removed = streams_.Remove(stream);
    if (removed == nullptr) return false;
    if (const std::shared_ptr<Context> context = contexts_.Find(removed->context)) context->streams.erase(stream);
  }
  removed->queue.Close(drop_queued);
  return true;
}

}  // namespace mlap::cann
