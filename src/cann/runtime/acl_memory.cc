// Memory: allocation and queries.
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "acl/acl_rt.h"
#include "cann/runtime/memory_blocks.h"
#include "cann/runtime/recent_error.h"
#include "cann/runtime/runtime_state.h"

namespace mlap::cann {
namespace {

// A device pads each block, and programs may rely on reading a little past the end of what they asked for.
constexpr size_t kGranuleBytes = 32;
constexpr size_t kTailBytes = 32;

aclError Allocate(const char* function, const char* parameter, void** pointer, size_t size, MemoryKind kind) {
  if (const aclError code = RequirePointer(function, parameter, pointer)) return code;
  if (size == 0) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                RefusalText(function, "size", "at least 1", "0", "pass the number of bytes to allocate"));
  }
  std::shared_ptr<Context> context;
  if (const aclError code = FindCurrentContext(function, &context)) return code;
  void* allocated = nullptr;
  if (size <= std::numeric_limits<size_t>::max() - kGranuleBytes - kTailBytes) {
    const size_t padded = (size + kGranuleBytes - 1) / kGranuleBytes * kGranuleBytes + kTailBytes;
    allocated = MemoryBlocks::Get().Allocate(kind == MemoryKind::kDevice ? padded : size, kind);
  }
  if (allocated == nullptr) {
    const size_t available = AvailableMemoryBytes();
    if (size <= available) {
      return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
                  RefusalText(function, "size", "a size the system grants to this process",
                              std::to_string(size) + ": the system refused these bytes",
                              "a limit on the process may be the reason (ulimit -v): raise it, or free memory"));
    }
    return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
                RefusalText(function, "size",
                            "no more than the memory that is available, now " + std::to_string(available) + " bytes",
                            std::to_string(size), "free memory or ask for less"));
  }
  *pointer = allocated;
  return 0;
}

aclError Free(const char* function, const char* parameter, const char* allocator, void* pointer, MemoryKind kind) {
  if (const aclError code = RequirePointer(function, parameter, pointer)) return code;
  if (MemoryBlocks::Get().Free(pointer, kind)) return 0;
  const std::optional<MemoryBlock> block = MemoryBlocks::Get().Find(pointer);
  const char* found = "a pointer this library did not allocate, or one that was freed";
  if (block) {
    found = block->begin == reinterpret_cast<uintptr_t>(pointer) ? "memory of the other kind (device or host)"
                                                                 : "a pointer into the middle of a block";
  }
  return Fail(ACL_ERROR_RT_PARAM_INVALID,
              RefusalText(function, parameter, std::string("a pointer from ") + allocator + " that is not freed yet",
                          found, ""));
}

}  // namespace
}  // namespace mlap::cann

using namespace mlap::cann;

aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy) {
  return Guarded("aclrtMalloc", [&] { return Allocate("aclrtMalloc", "devPtr", devPtr, size, MemoryKind::kDevice); });
}

aclError aclrtFree(void* devPtr) {
  return Guarded("aclrtFree", [&] { return Free("aclrtFree", "devPtr", "aclrtMalloc", devPtr, MemoryKind::kDevice); });
}

aclError aclrtMallocHost(void** hostPtr, size_t size) {
  return Guarded("aclrtMallocHost",
                 [&] { return Allocate("aclrtMallocHost", "hostPtr", hostPtr, size, MemoryKind::kHost); });
}

aclError aclrtFreeHost(void* hostPtr) {
  return Guarded("aclrtFreeHost",
                 [&] { return Free("aclrtFreeHost", "hostPtr", "aclrtMallocHost", hostPtr, MemoryKind::kHost); });
}

aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t* freeBytes, size_t* totalBytes) {
  return Guarded("aclrtGetMemInfo", [&] {
    if (const aclError code = RequirePointer("aclrtGetMemInfo", "freeBytes", freeBytes)) return code;
    if (const aclError code = RequirePointer("aclrtGetMemInfo", "totalBytes", totalBytes)) return code;
    const int value = static_cast<int>(attr);
    if (value < ACL_DDR_MEM || value > ACL_MEM_P2P_HUGE1G) {
      return Fail(ACL_ERROR_INVALID_PARAM,
                  RefusalText("aclrtGetMemInfo", "attr", "an aclrtMemAttr, 0 to 17", std::to_string(value), ""));
    }
    std::shared_ptr<Context> context;
    if (const aclError code = FindCurrentContext("aclrtGetMemInfo", &context)) return code;
    *freeBytes = AvailableMemoryBytes();
    *totalBytes = TotalMemoryBytes();
    return 0;
  });
}

aclError aclrtPointerGetAttributes(const void* ptr, aclrtPtrAttributes* attributes) {
  return Guarded("aclrtPointerGetAttributes", [&] {
    if (const aclError code = RequirePointer("aclrtPointerGetAttributes", "ptr", ptr)) return code;
    if (const aclError code = RequirePointer("aclrtPointerGetAttributes", "attributes", attributes)) return code;
    *attributes = {};
    attributes->location.type = ACL_MEM_LOCATION_TYPE_UNREGISTERED;
    if (const std::optional<MemoryBlock> block = MemoryBlocks::Get().Find(ptr)) {
      attributes->location.type =
          block->kind == MemoryKind::kDevice ? ACL_MEM_LOCATION_TYPE_DEVICE : ACL_MEM_LOCATION_TYPE_HOST;
      attributes->pageSize = static_cast<uint32_t>(block->page_bytes);
    }
    return 0;
  });
}
