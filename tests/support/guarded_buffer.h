// Memory whose neighbours fault: a byte read or written past either end of it ends the test at the culprit.
#ifndef MLAP_TESTS_SUPPORT_GUARDED_BUFFER_H_
#define MLAP_TESTS_SUPPORT_GUARDED_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mlap::test {

enum class Access { kNone, kRead, kReadWrite };

// `size` bytes that end exactly where an inaccessible page begins. In front of them lie less than a page of canary
// bytes and then another inaccessible page. `size` may be 0. The contents start as zeros.
class GuardedBuffer {
 public:
  GuardedBuffer() = default;
  explicit GuardedBuffer(size_t size);
  ~GuardedBuffer();
  GuardedBuffer(GuardedBuffer&& other) noexcept;
  GuardedBuffer& operator=(GuardedBuffer&& other) noexcept;

  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

  void Fill(uint8_t value);
  std::vector<uint8_t> Bytes() const { return {data_, data_ + size_}; }
  void Protect(Access access);
  // Whether the canary bytes in front are as they were. Needs read access.
  bool FrontIntact() const;

 private:
  uint8_t* mapping_ = nullptr;
  size_t mapping_bytes_ = 0;
  size_t inner_bytes_ = 0;  // the accessible pages
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

// An address whose whole neighbourhood of 64 MiB is inaccessible: for calls that must not touch data. Distinct for
// distinct slots in [0, 32).
void* UntouchableAddress(int slot);

}  // namespace mlap::test

#endif  // MLAP_TESTS_SUPPORT_GUARDED_BUFFER_H_
