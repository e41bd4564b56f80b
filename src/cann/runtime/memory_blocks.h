// The memory programs got from aclrtMalloc and aclrtMallocHost.
#ifndef MLAP_CANN_RUNTIME_MEMORY_BLOCKS_H_
#define MLAP_CANN_RUNTIME_MEMORY_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

namespace mlap::cann {

enum class MemoryKind { kDevice, kHost };

struct MemoryBlock {
  uintptr_t begin = 0;
  size_t num_bytes = 0;
  MemoryKind kind = MemoryKind::kDevice;
  size_t page_bytes = 0;
};

// One per process, never destroyed. Thread-safe.
class MemoryBlocks {
 public:
  static MemoryBlocks& Get();

  // Allocates `num_bytes` > 0, aligned to 64 bytes or more; null without memory.
  void* Allocate(size_t num_bytes, MemoryKind kind);

  // False if `pointer` is not the beginning of a block of that kind.
  bool Free(void* pointer, MemoryKind kind);

  // The block `pointer` lies in.
  std::optional<MemoryBlock> Find(const void* pointer);

 private:
  MemoryBlocks() = default;

  std::mutex mutex_;
  std::map<uintptr_t, MemoryBlock> blocks_;  // by beginning
};

// All memory of the machine, and what is left of it, in bytes.
size_t TotalMemoryBytes();
size_t AvailableMemoryBytes();

}  // namespace mlap::cann

#endif  // MLAP_CANN_RUNTIME_MEMORY_BLOCKS_H_
