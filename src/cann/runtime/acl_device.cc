// Devices, contexts and system options.
#include <iterator>
#include <memory>
#include <mutex>
#include <string>

#include "acl/acl_rt.h"
#include "cann/runtime/recent_error.h"
#include "cann/runtime/runtime_state.h"

namespace mlap::cann {
namespace {

aclError RequireDevice(const char* function, int32_t device_id) {
  if (device_id == 0) return 0;
  return Fail(ACL_ERROR_RT_INVALID_DEVICEID, RefusalText(function, "deviceId", "0, the only device",
                                                         std::to_string(device_id), "see aclrtGetDeviceCount"));
}

aclError ResetDevice(const char* function, int32_t device_id, bool force) {
  if (const aclError code = RequireDevice(function, device_id)) return code;
  if (const aclError code = RefuseAfterFork(function)) return code;
  if (const aclError code = RefuseOnQueueThread(function)) return code;
  if (RuntimeState::Get().ResetDevice(force)) return 0;
  return Fail(ACL_ERROR_RT_CONTEXT_NULL, RefusalText(function, "deviceId", "a device that is set",
                                                     "one that is not, or was reset as often as it was set", ""));
}

// The largest legal value of each option.
constexpr int64_t kMaxOptionValue[] = {3, 1, 1, 1};

aclError RequireOption(const char* function, aclSysParamOpt opt) {
  const int value = static_cast<int>(opt);
  if (value >= 0 && value < static_cast<int>(std::size(kMaxOptionValue))) return 0;
  return Fail(ACL_ERROR_INVALID_PARAM,
              RefusalText(function, "opt", "an aclSysParamOpt, 0 to 3", std::to_string(value), ""));
}

aclError RequireOptionValue(const char* function, aclSysParamOpt opt, int64_t value) {
  if (const aclError code = RequireOption(function, opt)) return code;
  const int64_t max = kMaxOptionValue[static_cast<int>(opt)];
  if (value >= 0 && value <= max) return 0;
  return Fail(
      ACL_ERROR_INVALID_PARAM,
      RefusalText(function, "value", "0 to " + std::to_string(max) + " for this option", std::to_string(value), ""));
}

struct ProcessOptions {
  std::mutex mutex;
  int64_t values[std::size(kMaxOptionValue)] = {};
};

ProcessOptions& TheProcessOptions() {
  static ProcessOptions* const options = new ProcessOptions;
  return *options;
}

}  // namespace
}  // namespace mlap::cann

using namespace mlap::cann;

aclError aclrtSetDevice(int32_t deviceId) {
  return Guarded("aclrtSetDevice", [&] {
    if (const aclError code = RequireDevice("aclrtSetDevice", deviceId)) return code;
    if (const aclError code = RefuseAfterFork("aclrtSetDevice")) return code;
    RuntimeState::Get().SetDevice();
    return 0;
  });
}

aclError aclrtResetDevice(int32_t deviceId) {
  return Guarded("aclrtResetDevice", [&] { return ResetDevice("aclrtResetDevice", deviceId, /*force=*/false); });
}

aclError aclrtResetDeviceForce(int32_t deviceId) {
  return Guarded("aclrtResetDeviceForce",
                 [&] { return ResetDevice("aclrtResetDeviceForce", deviceId, /*force=*/true); });
}

aclError aclrtGetDevice(int32_t* deviceId) {
  return Guarded("aclrtGetDevice", [&] {
    if (const aclError code = RequirePointer("aclrtGetDevice", "deviceId", deviceId)) return code;
    std::shared_ptr<Context> context;
    if (const aclError code = FindCurrentContext("aclrtGetDevice", &context)) return code;
    *deviceId = 0;
    return 0;
  });
}

aclError aclrtGetDeviceCount(uint32_t* count) {
  return Guarded("aclrtGetDeviceCount", [&] {
    if (const aclError code = RequirePointer("aclrtGetDeviceCount", "count", count)) return code;
    *count = 1;
    return 0;
  });
}

aclError aclrtGetRunMode(aclrtRunMode* runMode) {
  return Guarded("aclrtGetRunMode", [&] {
    if (const aclError code = RequirePointer("aclrtGetRunMode", "runMode", runMode)) return code;
    *runMode = ACL_HOST;
    return 0;
  });
}

aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId) {
  return Guarded("aclrtCreateContext", [&] {
    if (const aclError code = RequirePointer("aclrtCreateContext", "context", context)) return code;
    if (const aclError code = RequireDevice("aclrtCreateContext", deviceId)) return code;
    if (const aclError code = RefuseAfterFork("aclrtCreateContext")) return code;
    *context = RuntimeState::Get().CreateContext();
    RuntimeState::SetCurrentHandle(*context);
    return 0;
  });
}

aclError aclrtDestroyContext(aclrtContext context) {
  return Guarded("aclrtDestroyContext", [&] {
    constexpr const char* kFunction = "aclrtDestroyContext";
    if (const aclError code = RequirePointer(kFunction, "context", context)) return code;
    if (const aclError code = RefuseAfterFork(kFunction)) return code;
    RuntimeState& state = RuntimeState::Get();
    const std::shared_ptr<Context> found = state.contexts().Find(context);
    if (found == nullptr) return RefuseHandle(kFunction, "context", context, HandleKind::kContext);
    if (found->is_default) {
      return Fail(ACL_ERROR_RT_PARAM_INVALID,
                  RefusalText(kFunction, "context", "a context from aclrtCreateContext", "the device's default context",
                              "call aclrtResetDevice to destroy it"));
    }
    if (const aclError code = RefuseOnQueueThread(kFunction)) return code;
    if (!state.DestroyContext(context)) return RefuseHandle(kFunction, "context", context, HandleKind::kContext);
    return 0;
  });
}

aclError aclrtSetCurrentContext(aclrtContext context) {
  return Guarded("aclrtSetCurrentContext", [&] {
    if (const aclError code = RequirePointer("aclrtSetCurrentContext", "context", context)) return code;
    if (RuntimeState::Get().contexts().Find(context) == nullptr) {
      return RefuseHandle("aclrtSetCurrentContext", "context", context, HandleKind::kContext);
    }
    RuntimeState::SetCurrentHandle(context);
    return 0;
  });
}

aclError aclrtGetCurrentContext(aclrtContext* context) {
  return Guarded("aclrtGetCurrentContext", [&] {
    if (const aclError code = RequirePointer("aclrtGetCurrentContext", "context", context)) return code;
    std::shared_ptr<Context> found;
    if (const aclError code = FindCurrentContext("aclrtGetCurrentContext", &found)) return code;
    *context = RuntimeState::CurrentHandle();
    return 0;
  });
}

aclError aclrtCtxGetCurrentDefaultStream(aclrtStream* stream) {
  return Guarded("aclrtCtxGetCurrentDefaultStream", [&] {
    if (const aclError code = RequirePointer("aclrtCtxGetCurrentDefaultStream", "stream", stream)) return code;
    std::shared_ptr<Context> context;
    if (const aclError code = FindCurrentContext("aclrtCtxGetCurrentDefaultStream", &context)) return code;
    *stream = context->default_stream;
    return 0;
  });
}

aclError aclrtSynchronizeDevice() {
  return Guarded("aclrtSynchronizeDevice", [] { return SynchronizeAll("aclrtSynchronizeDevice", -1); });
}

aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) {
  return Guarded("aclrtSynchronizeDeviceWithTimeout",
                 [&] { return SynchronizeAll("aclrtSynchronizeDeviceWithTimeout", timeout); });
}

aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  return Guarded("aclrtCtxSetSysParamOpt", [&] {
    if (const aclError code = RequireOptionValue("aclrtCtxSetSysParamOpt", opt, value)) return code;
    std::shared_ptr<Context> context;
    if (const aclError code = FindCurrentContext("aclrtCtxSetSysParamOpt", &context)) return code;
    const std::lock_guard<std::mutex> lock(context->options_mutex);
    context->options[static_cast<int>(opt)] = value;
    return 0;
  });
}

aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
  return Guarded("aclrtCtxGetSysParamOpt", [&] {
    constexpr const char* kFunction = "aclrtCtxGetSysParamOpt";
    if (const aclError code = RequirePointer(kFunction, "value", value)) return code;
    if (const aclError code = RequireOption(kFunction, opt)) return code;
    std::shared_ptr<Context> context;
    if (const aclError code = FindCurrentContext(kFunction, &context)) return code;
    const std::lock_guard<std::mutex> lock(context->options_mutex);
    const auto found = context->options.find(static_cast<int>(opt));
    if (found == context->options.end()) {
      return Fail(
          ACL_ERROR_RT_SYSPARAMOPT_NOT_SET,
          RefusalText(kFunction, "opt", "an option that was set in this context",
                      std::to_string(static_cast<int>(opt)) + ", which was not", "call aclrtCtxSetSysParamOpt first"));
    }
    *value = found->second;
    return 0;
  });
}

aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  return Guarded("aclrtSetSysParamOpt", [&] {
    if (const aclError code = RequireOptionValue("aclrtSetSysParamOpt", opt, value)) return code;
    ProcessOptions& options = TheProcessOptions();
    const std::lock_guard<std::mutex> lock(options.mutex);
    options.values[static_cast<int>(opt)] = value;
    return 0;
  });
}

aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
  return Guarded("aclrtGetSysParamOpt", [&] {
    if (const aclError code = RequirePointer("aclrtGetSysParamOpt", "value", value)) return code;
    if (const aclError code = RequireOption("aclrtGetSysParamOpt", opt)) return code;
    ProcessOptions& options = TheProcessOptions();
    const std::lock_guard<std::mutex> lock(options.mutex);
    *value = options.values[static_cast<int>(opt)];
    return 0;
  });
}
