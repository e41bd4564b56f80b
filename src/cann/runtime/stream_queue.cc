// What the functions of the runtime share: finding streams and contexts, pushing work, reporting.
#include "cann/runtime/stream_queue.h"

#include <string>
#include <utility>

#include "cann/runtime/recent_error.h"
#include "cann/runtime/runtime_state.h"

namespace mlap::cann {

aclError RequirePointer(const char* function, const char* parameter, const void* pointer) {
  if (pointer != nullptr) return 0;
  return Fail(ACL_ERROR_INVALID_PARAM, NullPointerText(function, parameter));
}

aclError RequireTimeout(const char* function, int32_t timeout_ms) {
  if (timeout_ms >= -1) return 0;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, RefusalText(function, "timeout", "-1 (no limit), or milliseconds from 0 on",
                                                      std::to_string(timeout_ms), ""));
}

aclError RefuseHandle(const char* function, const char* parameter, const void* handle, HandleKind expected) {
  return Fail(ACL_ERROR_RT_INVALID_HANDLE,
              RefusalText(function, parameter, std::string("a live ") + HandleTypeName(expected),
                          DescribeNonHandle(handle, expected), "use each handle between its creation and destruction"));
}

aclError RefuseOnQueueThread(const char* function) {
  if (WorkQueue::OfThisThread() == nullptr) return 0;
  return Fail(ACL_ERROR_RT_PARAM_INVALID,
              RefusalText(function, "calling thread", "a thread of the program", "a host function on a stream's thread",
                          "the call would wait for its own caller; make it after the stream is synchronised"));
}

aclError RefuseAfterFork(const char* function) {
  if (!WorkQueue::ThreadsAreLost()) return 0;
  return Fail(ACL_ERROR_RT_DRV_INTERNAL_ERROR,
              RefusalText(function, "calling process", "the process that started the streams' threads",
                          "one that was forked afterwards",
                          "threads do not survive fork: call exec in the child, or use streams only after the fork"));
}

aclError FindCurrentContext(const char* function, std::shared_ptr<Context>* out) {
  *out = RuntimeState::Get().CurrentContext();
  if (*out != nullptr) return 0;
  const std::string found =
      RuntimeState::CurrentHandle() == nullptr ? "none" : "one that was destroyed, as by aclrtResetDevice";
  return Fail(ACL_ERROR_RT_CONTEXT_NULL, RefusalText(function, "the thread's context", "a current context", found,
                                                     "call aclrtSetDevice(0) on this thread first"));
}

aclError FindStream(const char* function, aclrtStream stream, std::shared_ptr<Stream>* out) {
  if (const aclError code = RefuseAfterFork(function)) return code;
  std::shared_ptr<Context> context;
  if (const aclError code = FindCurrentContext(function, &context)) return code;
  *out = RuntimeState::Get().streams().Find(stream == nullptr ? context->default_stream : stream);
  if (*out == nullptr) return RefuseHandle(function, "stream", stream, HandleKind::kStream);
  if ((*out)->context != RuntimeState::CurrentHandle()) {
    return Fail(ACL_ERROR_RT_STREAM_CONTEXT,
                RefusalText(function, "stream", "a stream of the thread's current context", "one of another context",
                            "make the stream's context current with aclrtSetCurrentContext"));
  }
  return 0;
}

aclError PushOnStream(const char* function, aclrtStream stream, std::function<TaskResult()> task,
                      std::shared_ptr<Stream>* found, uint64_t* ticket) {
  std::shared_ptr<Stream> local;
  std::shared_ptr<Stream>& target = found == nullptr ? local : *found;
  if (const aclError code = FindStream(function, stream, &target)) return code;
  switch (target->queue.Push(std::move(task), ticket)) {
    case WorkQueue::PushStatus::kQueued:
      return 0;
    case WorkQueue::PushStatus::kClosed:
      return Fail(ACL_ERROR_RT_INVALID_HANDLE,
                  RefusalText(function, "stream", "a live aclrtStream", "one that another thread is destroying", ""));
    case WorkQueue::PushStatus::kNoThread:
      break;
  }
  return Fail(ACL_ERROR_RT_NO_STREAM_RESOURCE,
              RefusalText(function, "stream", "a thread for the stream's first work", "no more threads to be had",
                          "destroy streams or raise the limit on threads (ulimit -u)"));
}

aclError EnqueueOnStream(aclrtStream stream, std::function<TaskResult()> task) {
  return Guarded("aclrtStream queue", [&] { return PushOnStream("operator launch", stream, std::move(task)); });
}

aclError RequireLaunchStream(aclrtStream stream) {
  return Guarded("aclrtStream queue", [&] {
    std::shared_ptr<Stream> found;
    return FindStream("operator launch", stream, &found);
  });
}

aclError ReportFailure(const char* function, Stream& stream) {
  TaskResult failure = stream.queue.TakeFailure();
  if (failure.code == 0) return 0;
  try {
    return Fail(failure.code, std::string(function) + ": a task on the stream failed: " + failure.text);
  } catch (...) {
    // Without memory the text is lost; the code is not.
    return Fail(failure.code, {});
  }
}

aclError SynchronizeAll(const char* function, int32_t timeout_ms) {
  if (const aclError code = RequireTimeout(function, timeout_ms)) return code;
  if (const aclError code = RefuseAfterFork(function)) return code;
  std::shared_ptr<Context> context;
  if (const aclError code = FindCurrentContext(function, &context)) return code;
  if (const aclError code = RefuseOnQueueThread(function)) return code;
  const Deadline deadline = DeadlineAfter(timeout_ms);
  const std::vector<std::shared_ptr<Stream>> streams = RuntimeState::Get().streams().All();
  for (const std::shared_ptr<Stream>& stream : streams) {
    if (stream->queue.WaitForAll(deadline)) continue;
    return Fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
                RefusalText(function, "timeout", "all streams done within " + std::to_string(timeout_ms) + " ms",
                            "work still running", "call again to go on waiting"));
  }
  aclError first = 0;
  for (const std::shared_ptr<Stream>& stream : streams) {
    const aclError code = ReportFailure(function, *stream);
    if (first == 0) first = code;
  }
  return first;
}

}  // namespace mlap::cann
