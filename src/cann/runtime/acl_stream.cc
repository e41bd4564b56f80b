// Streams.
#include <memory>
#include <string>
#include <utility>

#include "acl/acl_rt.h"
#include "cann/runtime/recent_error.h"
#include "cann/runtime/runtime_state.h"

namespace mlap::cann {
namespace {

constexpr uint32_t kMaxPriority = 7;
constexpr uint32_t kFlagsWithoutEffect = ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC | ACL_STREAM_HUGE;
constexpr uint32_t kDeviceOnlyFlags = ACL_STREAM_PERSISTENT | ACL_STREAM_CPU_SCHEDULE | ACL_STREAM_DEVICE_USE_ONLY;

aclError CreateStream(const char* function, aclrtStream* stream, uint32_t priority, uint32_t flag) {
  if (const aclError code = RequirePointer(function, "stream", stream)) return code;
  if (const aclError code = RefuseAfterFork(function)) return code;
  if (priority > kMaxPriority) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                RefusalText(function, "priority", "0 (highest) to 7", std::to_string(priority), ""));
  }
  if ((flag & ~(kFlagsWithoutEffect | kDeviceOnlyFlags)) != 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                RefusalText(function, "flag", "a combination of the ACL_STREAM_ flags", std::to_string(flag), ""));
  }
  if ((flag & kDeviceOnlyFlags) != 0) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                RefusalText(function, "flag", "only FAST_LAUNCH (1), FAST_SYNC (2) and HUGE (8)", std::to_string(flag),
                            "the other flags name features of the device that a CPU does not have"));
  }
  std::shared_ptr<Context> context;
  if (const aclError code = FindCurrentContext(function, &context)) return code;
  const aclrtStream created = RuntimeState::Get().CreateStream(RuntimeState::CurrentHandle());
  // Another thread destroyed the context in between; the second look records the refusal.
  if (created == nullptr) return FindCurrentContext(function, &context);
  *stream = created;
  return 0;
}

aclError DestroyStream(const char* function, aclrtStream stream, bool drop_queued) {
  if (const aclError code = RequirePointer(function, "stream", stream)) return code;
  std::shared_ptr<Stream> found;
  if (const aclError code = FindStream(function, stream, &found)) return code;
  if (found->is_default) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, RefusalText(function, "stream", "a stream from aclrtCreateStream",
                                                        "the context's default stream", "it ends with its context"));
  }
  if (&found->queue == WorkQueue::OfThisThread()) return RefuseOnQueueThread(function);
  if (!RuntimeState::Get().DestroyStream(stream, drop_queued)) {
    return RefuseHandle(function, "stream", stream, HandleKind::kStream);
  }
  return 0;
}

aclError SynchronizeStream(const char* function, aclrtStream stream, int32_t timeout_ms) {
  if (const aclError code = RequireTimeout(function, timeout_ms)) return code;
  std::shared_ptr<Stream> found;
  if (const aclError code = FindStream(function, stream, &found)) return code;
  if (&found->queue == WorkQueue::OfThisThread()) return RefuseOnQueueThread(function);
  if (!found->queue.WaitForAll(DeadlineAfter(timeout_ms))) {
    return Fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
                RefusalText(function, "timeout", "the stream done within " + std::to_string(timeout_ms) + " ms",
                            "work still running", "call again to go on waiting"));
  }
  return ReportFailure(function, *found);
}

}  // namespace
}  // namespace mlap::cann

using namespace mlap::cann;

aclError aclrtCreateStream(aclrtStream* stream) {
  return Guarded("aclrtCreateStream", [&] { return CreateStream("aclrtCreateStream", stream, 0, 0); });
}

aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority, uint32_t flag) {
  return Guarded("aclrtCreateStreamWithConfig",
                 [&] { return CreateStream("aclrtCreateStreamWithConfig", stream, priority, flag); });
}

aclError aclrtDestroyStream(aclrtStream stream) {
  return Guarded("aclrtDestroyStream",
                 [&] { return DestroyStream("aclrtDestroyStream", stream, /*drop_queued=*/false); });
}

aclError aclrtDestroyStreamForce(aclrtStream stream) {
  return Guarded("aclrtDestroyStreamForce",
                 [&] { return DestroyStream("aclrtDestroyStreamForce", stream, /*drop_queued=*/true); });
}

aclError aclrtSynchronizeStream(aclrtStream stream) {
  return Guarded("aclrtSynchronizeStream", [&] { return SynchronizeStream("aclrtSynchronizeStream", stream, -1); });
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
  return Guarded("aclrtSynchronizeStreamWithTimeout",
                 [&] { return SynchronizeStream("aclrtSynchronizeStreamWithTimeout", stream, timeout); });
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status) {
  return Guarded("aclrtStreamQuery", [&] {
    if (const aclError code = RequirePointer("aclrtStreamQuery", "status", status)) return code;
    std::shared_ptr<Stream> found;
    if (const aclError code = FindStream("aclrtStreamQuery", stream, &found)) return code;
    *status = found->queue.IsIdle() ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
    return 0;
  });
}

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void* args) {
  return Guarded("aclrtLaunchHostFunc", [&] {
    if (fn == nullptr) return RequirePointer("aclrtLaunchHostFunc", "fn", nullptr);
    return PushOnStream("aclrtLaunchHostFunc", stream, [fn, args] {
      fn(args);
      return TaskResult{};
    });
  });
}
