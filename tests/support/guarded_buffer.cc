#include "support/guarded_buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace mlap::test {
namespace {

constexpr uint8_t kCanary = 0x5C;

size_t PageBytes() {
  static const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

// A test without its guards would prove nothing, so there is no way to go on.
[[noreturn]] void Die(const char* what) {
  std::perror(what);
  std::abort();
}

}  // namespace

GuardedBuffer::GuardedBuffer(size_t size) : size_(size) {
  const size_t page = PageBytes();
  inner_bytes_ = (size + page - 1) / page * page;
  if (inner_bytes_ == 0) inner_bytes_ = page;
  mapping_bytes_ = inner_bytes_ + 2 * page;
  void* mapping = mmap(nullptr, mapping_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) Die("mmap");
  mapping_ = static_cast<uint8_t*>(mapping);
  Protect(Access::kReadWrite);
  data_ = mapping_ + page + inner_bytes_ - size;
  std::memset(mapping_ + page, kCanary, static_cast<size_t>(data_ - mapping_) - page);
}

GuardedBuffer::~GuardedBuffer() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

GuardedBuffer::GuardedBuffer(GuardedBuffer&& other) noexcept { *this = std::move(other); }

GuardedBuffer& GuardedBuffer::operator=(GuardedBuffer&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_bytes_, other.mapping_bytes_);
  std::swap(inner_bytes_, other.inner_bytes_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void GuardedBuffer::Fill(uint8_t value) {
  if (size_ > 0) std::memset(data_, value, size_);
}

void GuardedBuffer::Protect(Access access) {
  if (mapping_ == nullptr) return;
  const int flags = access == Access::kNone ? PROT_NONE : access == Access::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
  if (mprotect(mapping_ + PageBytes(), inner_bytes_, flags) != 0) Die("mprotect");
}

bool GuardedBuffer::FrontIntact() const {
  if (mapping_ == nullptr) return true;
  for (const uint8_t* p = mapping_ + PageBytes(); p < data_; ++p) {
    if (*p != kCanary) return false;
  }
  return true;
}

void* UntouchableAddress(int slot) {
  constexpr size_t kSlotBytes = size_t{64} << 20;
  constexpr size_t kNumSlots = 32;
  static uint8_t* const region = [] {
    void* mapping =
        mmap(nullptr, kSlotBytes * kNumSlots, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) Die("mmap");
    return static_cast<uint8_t*>(mapping);
  }();
  return region + static_cast<size_t>(slot) * kSlotBytes + kSlotBytes / 2;
}

}  // namespace mlap::test
