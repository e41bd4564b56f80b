// Memory: copying and filling, at once or on a stream.
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "acl/acl_rt.h"
#include "cann/runtime/memory_blocks.h"
#include "cann/runtime/recent_error.h"
#include "cann/runtime/runtime_state.h"

namespace mlap::cann {
namespace {

// 107000 if a range of `num_bytes` begins in a block of this library and leaves it: what would silently damage other
// memory here is a fault on a device.
aclError RequireInsideBlock(const char* function, const char* parameter, const void* begin, size_t num_bytes) {
  const std::optional<MemoryBlock> block = MemoryBlocks::Get().Find(begin);
  if (!block) return 0;
  const size_t num_bytes_left = block->num_bytes - (reinterpret_cast<uintptr_t>(begin) - block->begin);
  if (num_bytes <= num_bytes_left) return 0;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, RefusalText(function, parameter,
                                                      "a range inside the block it begins in, at most " +
                                                          std::to_string(num_bytes_left) + " bytes from there",
                                                      std::to_string(num_bytes) + " bytes", ""));
}

aclError RequireKind(const char* function, aclrtMemcpyKind kind, int min_kind, int max_kind) {
  const int value = static_cast<int>(kind);
  if (value >= min_kind && value <= max_kind) return 0;
  return Fail(
      ACL_ERROR_INVALID_PARAM,
      RefusalText(function, "kind", "a kind from " + std::to_string(min_kind) + " to " + std::to_string(max_kind),
                  std::to_string(value), "ACL_MEMCPY_DEFAULT (4) always works"));
}

aclError RequireRoom(const char* function, const char* parameter, size_t room, size_t count) {
  if (count <= room) return 0;
  return Fail(ACL_ERROR_RT_PARAM_INVALID,
              RefusalText(function, "count", std::string("at most ") + parameter + " (" + std::to_string(room) + ")",
                          std::to_string(count), ""));
}

// A rectangle of bytes to copy; a plain copy is one row.
struct Copy {
  void* dst;
  size_t dst_pitch;
  const void* src;
  size_t src_pitch;
  size_t width;
  size_t height;

  // The ranges may overlap. Rows are then copied from the end that is not yet overwritten, so that a rectangle moved
  // within a pitch arrives whole.
  void Run() const {
    const bool backwards = reinterpret_cast<uintptr_t>(dst) > reinterpret_cast<uintptr_t>(src);
    for (size_t i = 0; i < height; ++i) {
      const size_t row = backwards ? height - 1 - i : i;
      std::memmove(static_cast<char*>(dst) + row * dst_pitch, static_cast<const char*>(src) + row * src_pitch, width);
    }
  }
};

aclError CheckCopy(const char* function, size_t dst_room, const void* dst, const void* src, size_t count,
                   aclrtMemcpyKind kind) {
  if (const aclError code = RequireKind(function, kind, ACL_MEMCPY_HOST_TO_HOST, ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE)) {
    return code;
  }
  if (const aclError code = RequirePointer(function, "dst", dst)) return code;
  if (const aclError code = RequirePointer(function, "src", src)) return code;
  if (const aclError code = RequireRoom(function, "destMax", dst_room, count)) return code;
  if (const aclError code = RequireInsideBlock(function, "dst", dst, count)) return code;
  return RequireInsideBlock(function, "src", src, count);
}

// From the first byte of the first row to the last byte of the last; nothing if that does not fit into size_t.
std::optional<size_t> SpanBytes(size_t pitch, size_t width, size_t height) {
  size_t span = 0;
  if (__builtin_mul_overflow(pitch, height - 1, &span) || __builtin_add_overflow(span, width, &span)) {
    return std::nullopt;
  }
  return span;
}

aclError CheckRows(const char* function, const char* pitch_name, size_t pitch, const char* pointer_name,
                   const void* pointer, size_t width, size_t height) {
  if (const aclError code = RequirePointer(function, pointer_name, pointer)) return code;
  if (width > pitch) {
    return Fail(
        ACL_ERROR_INVALID_PARAM,
        RefusalText(function, "width", std::string("at most ") + pitch_name + " (" + std::to_string(pitch) + ")",
                    std::to_string(width), ""));
  }
  const std::optional<size_t> span = SpanBytes(pitch, width, height);
  if (!span || *span > std::numeric_limits<uintptr_t>::max() - reinterpret_cast<uintptr_t>(pointer)) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                RefusalText(function, pitch_name, "rows that fit into the address space",
                            std::to_string(height) + " rows " + std::to_string(pitch) + " bytes apart", ""));
  }
  return RequireInsideBlock(function, pointer_name, pointer, *span);
}

aclError CheckCopy2d(const char* function, const Copy& copy, aclrtMemcpyKind kind) {
  if (const aclError code = RequireKind(function, kind, ACL_MEMCPY_HOST_TO_DEVICE, ACL_MEMCPY_DEFAULT)) return code;
  if (const aclError code = CheckRows(function, "dpitch", copy.dst_pitch, "dst", copy.dst, copy.width, copy.height)) {
    return code;
  }
  return CheckRows(function, "spitch", copy.src_pitch, "src", copy.src, copy.width, copy.height);
}

aclError RefuseHostToHost(const char* function, aclrtMemcpyKind kind) {
  if (kind != ACL_MEMCPY_HOST_TO_HOST) return 0;
  return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, RefusalText(function, "kind", "a kind with the device on one side",
                                                            "ACL_MEMCPY_HOST_TO_HOST (0)", "use aclrtMemcpy"));
}

aclError RequireContext(const char* function) {
  std::shared_ptr<Context> context;
  return FindCurrentContext(function, &context);
}

aclError PushCopy(const char* function, const Copy& copy, aclrtStream stream) {
  // Programs reuse pageable memory as soon as the call returns, because a device's driver has copied it by then.
  const bool must_wait =
      !MemoryBlocks::Get().Find(copy.dst).has_value() || !MemoryBlocks::Get().Find(copy.src).has_value();
  std::shared_ptr<Stream> target;
  uint64_t ticket = 0;
  const auto run = [copy] {
    copy.Run();
    return TaskResult{};
  };
  if (const aclError code = PushOnStream(function, stream, run, &target, &ticket)) return code;
  if (must_wait && &target->queue != WorkQueue::OfThisThread()) target->queue.Wait(ticket, std::nullopt);
  return 0;
}

aclError CheckFill(const char* function, const void* pointer, size_t room, size_t count) {
  if (const aclError code = RequirePointer(function, "devPtr", pointer)) return code;
  if (const aclError code = RequireRoom(function, "maxCount", room, count)) return code;
  return RequireInsideBlock(function, "devPtr", pointer, count);
}

}  // namespace
}  // namespace mlap::cann

using namespace mlap::cann;

aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind) {
  return Guarded("aclrtMemcpy", [&] {
    if (count == 0) return 0;
    if (const aclError code = CheckCopy("aclrtMemcpy", destMax, dst, src, count, kind)) return code;
    if (const aclError code = RequireContext("aclrtMemcpy")) return code;
    std::memmove(dst, src, count);
    return 0;
  });
}

aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind,
                          aclrtStream stream) {
  return Guarded("aclrtMemcpyAsync", [&] {
    if (count == 0) return 0;
    if (const aclError code = RefuseHostToHost("aclrtMemcpyAsync", kind)) return code;
    if (const aclError code = CheckCopy("aclrtMemcpyAsync", destMax, dst, src, count, kind)) return code;
    return PushCopy("aclrtMemcpyAsync", {dst, count, src, count, count, 1}, stream);
  });
}

aclError aclrtMemcpy2d(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,
                       aclrtMemcpyKind kind) {
  return Guarded("aclrtMemcpy2d", [&] {
    if (width == 0 || height == 0) return 0;
    const Copy copy{dst, dpitch, src, spitch, width, height};
    if (const aclError code = CheckCopy2d("aclrtMemcpy2d", copy, kind)) return code;
    if (const aclError code = RequireContext("aclrtMemcpy2d")) return code;
    copy.Run();
    return 0;
  });
}

aclError aclrtMemcpy2dAsync(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,
                            aclrtMemcpyKind kind, aclrtStream stream) {
  return Guarded("aclrtMemcpy2dAsync", [&] {
    if (width == 0 || height == 0) return 0;
    const Copy copy{dst, dpitch, src, spitch, width, height};
    if (const aclError code = RefuseHostToHost("aclrtMemcpy2dAsync", kind)) return code;
    if (const aclError code = CheckCopy2d("aclrtMemcpy2dAsync", copy, kind)) return code;
    return PushCopy("aclrtMemcpy2dAsync", copy, stream);
  });
}

aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count) {
  return Guarded("aclrtMemset", [&] {
    if (count == 0) return 0;
    if (const aclError code = CheckFill("aclrtMemset", devPtr, maxCount, count)) return code;
    if (const aclError code = RequireContext("aclrtMemset")) return code;
    std::memset(devPtr, value, count);
    return 0;
  });
}

aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream) {
  return Guarded("aclrtMemsetAsync", [&] {
    if (count == 0) return 0;
    if (const aclError code = CheckFill("aclrtMemsetAsync", devPtr, maxCount, count)) return code;
    return PushOnStream("aclrtMemsetAsync", stream, [devPtr, value, count] {
      std::memset(devPtr, value, count);
      return TaskResult{};
    });
  });
}
