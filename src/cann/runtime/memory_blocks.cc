#include "cann/runtime/memory_blocks.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>

namespace mlap::cann {
namespace {

constexpr size_t kAlignmentBytes = 64;
constexpr size_t kHugePageBytes = size_t{2} << 20;
// Above this a block lies on huge pages, as on the device. The last one is whole: measured with N = 128, a call is 4 to
// 10 % slower if the ends of the weights and a workspace below 2 MiB lie on small pages.
constexpr size_t kMostSmallPageBytes = size_t{1} << 20;

size_t PageBytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

// What is held for a large block. AddressSanitizer is told the block's own size, so that it sees what lies behind it.
size_t HeldBytes(size_t num_bytes) {
#ifdef __SANITIZE_ADDRESS__
  return num_bytes;
#else
  return (num_bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
#endif
}

// Only whole huge pages are given the advice.
bool AdviseHugePages([[maybe_unused]] void* begin, [[maybe_unused]] size_t num_bytes) {
#ifdef MADV_HUGEPAGE
  return madvise(begin, num_bytes / kHugePageBytes * kHugePageBytes, MADV_HUGEPAGE) == 0;
#else
  return false;
#endif
}

}  // namespace

MemoryBlocks& MemoryBlocks::Get() {
  static MemoryBlocks* const blocks = new MemoryBlocks;
  return *blocks;
}

void* MemoryBlocks::Allocate(size_t num_bytes, MemoryKind kind) {
  // The system would promise more than the machine has and end the process when it is used.
  if (num_bytes > TotalMemoryBytes()) return nullptr;
  const bool is_large = num_bytes > kMostSmallPageBytes;
  const size_t held_bytes = is_large ? HeldBytes(num_bytes) : num_bytes;
  void* pointer = nullptr;
  if (posix_memalign(&pointer, is_large ? kHugePageBytes : kAlignmentBytes, held_bytes) != 0) return nullptr;
  const bool has_huge_pages = is_large && AdviseHugePages(pointer, held_bytes);
  const uintptr_t begin = reinterpret_cast<uintptr_t>(pointer);
  try {
    const std::lock_guard<std::mutex> lock(mutex_);
    blocks_[begin] = {begin, num_bytes, kind, has_huge_pages ? kHugePageBytes : PageBytes()};
  } catch (...) {
    std::free(pointer);
    return nullptr;
  }
  return pointer;
}

bool MemoryBlocks::Free(void* pointer, MemoryKind kind) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = blocks_.find(reinterpret_cast<uintptr_t>(pointer));
    if (found == blocks_.end() || found->second.kind != kind) return false;
    blocks_.erase(found);
  }
  std::free(pointer);
  return true;
}

std::optional<MemoryBlock> MemoryBlocks::Find(const void* pointer) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  const std::lock_guard<std::mutex> lock(mutex_);
  auto next = blocks_.upper_bound(address);
  if (next == blocks_.begin()) return std::nullopt;
  const MemoryBlock& block = std::prev(next)->second;
  if (address - block.begin >= block.num_bytes) return std::nullopt;
  return block;
}

size_t TotalMemoryBytes() {
  const long num_pages = sysconf(_SC_PHYS_PAGES);
  return num_pages <= 0 ? std::numeric_limits<size_t>::max() / 2 : static_cast<size_t>(num_pages) * PageBytes();
}

size_t AvailableMemoryBytes() {
  // What can be had without swapping, caches included; sysconf counts only what is unused.
  std::ifstream file("/proc/meminfo");
  std::string key;
  size_t kibibytes = 0;
  std::string unit;
  while (file >> key >> kibibytes) {
    if (key == "MemAvailable:") return std::min(kibibytes * 1024, TotalMemoryBytes());
    std::getline(file, unit);
  }
#ifdef _SC_AVPHYS_PAGES
  const long num_pages = sysconf(_SC_AVPHYS_PAGES);
  if (num_pages > 0) return static_cast<size_t>(num_pages) * PageBytes();
#endif
  return 0;
}

}  // namespace mlap::cann
