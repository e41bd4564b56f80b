#include "api/page_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>
#include <utility>

namespace mlap {
namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;
constexpr size_t kMostSmallPageBytes = size_t{1} << 20;

constexpr size_t RoundUp(size_t value, size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

PageMemory::~PageMemory() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

PageMemory::PageMemory(PageMemory&& other) noexcept { *this = std::move(other); }

PageMemory& PageMemory::operator=(PageMemory&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_bytes_, other.mapping_bytes_);
  std::swap(data_, other.data_);
  std::swap(num_bytes_, other.num_bytes_);
  return *this;
}

void PageMemory::Allocate(size_t num_bytes) {
  if (num_bytes > SIZE_MAX / 2) throw std::bad_alloc();
  const bool is_huge = num_bytes > kMostSmallPageBytes;
  // A huge page more, so that an aligned part of the size lies in it.
  const size_t bytes = is_huge ? RoundUp(num_bytes, kHugePageBytes) + kHugePageBytes : num_bytes + 1;
  void* mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  PageMemory result;
  result.mapping_ = mapping;
  result.mapping_bytes_ = bytes;
  result.num_bytes_ = num_bytes;
  result.data_ = static_cast<char*>(mapping);
  if (is_huge) {
    result.data_ = reinterpret_cast<char*>(RoundUp(reinterpret_cast<uintptr_t>(mapping), kHugePageBytes));
    madvise(result.data_, bytes - kHugePageBytes, MADV_HUGEPAGE);  // where it is refused, the pages are small
  }
  *this = std::move(result);
}

}  // namespace mlap
