#include "huge_buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "parallel_for.h"
#include "tool_error.h"

namespace mlap::bench {

HugeBuffer::HugeBuffer(size_t num_bytes) : num_bytes_(num_bytes) {
  // A page more than needed at each end, as read loops may prefetch beyond the end.
  mapping_bytes_ = (num_bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes + 2 * kHugePageBytes;
  mapping_ = mmap(nullptr, mapping_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED) {
    mapping_ = nullptr;
    tools::Fail("the benchmark's buffers: expected {} bytes of memory, found none", num_bytes);
  }
  const auto address = reinterpret_cast<uintptr_t>(mapping_);
  data_ = reinterpret_cast<std::byte*>((address + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes);
  madvise(data_, mapping_bytes_ - kHugePageBytes, MADV_HUGEPAGE);  // where it is refused, the pages are small
  const auto pages = static_cast<int64_t>((num_bytes + kHugePageBytes - 1) / kHugePageBytes);
  tools::ParallelFor(pages, [this](int64_t begin, int64_t end) {
    std::memset(data_ + static_cast<size_t>(begin) * kHugePageBytes, 0,
                static_cast<size_t>(end - begin) * kHugePageBytes);
  });
}

HugeBuffer::~HugeBuffer() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

HugeBuffer::HugeBuffer(HugeBuffer&& other) noexcept { *this = std::move(other); }

HugeBuffer& HugeBuffer::operator=(HugeBuffer&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_bytes_, other.mapping_bytes_);
  std::swap(data_, other.data_);
  std::swap(num_bytes_, other.num_bytes_);
  return *this;
}

void CopyInParallel(std::byte* to, const std::byte* from, size_t num_bytes) {
  const auto pages = static_cast<int64_t>((num_bytes + kHugePageBytes - 1) / kHugePageBytes);
  tools::ParallelFor(pages, [=](int64_t begin, int64_t end) {
    const size_t first = static_cast<size_t>(begin) * kHugePageBytes;
    const size_t last = std::min(static_cast<size_t>(end) * kHugePageBytes, num_bytes);
    std::memcpy(to + first, from + first, last - first);
  });
}

}  // namespace mlap::bench
