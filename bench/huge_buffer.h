// Memory on huge pages, for everything that does not get its memory from the operator's own runtime.
#ifndef MLAP_BENCH_HUGE_BUFFER_H_
#define MLAP_BENCH_HUGE_BUFFER_H_

#include <cstddef>
#include <cstdint>

namespace mlap::bench {

inline constexpr size_t kHugePageBytes = size_t{2} << 20;

// Zeros at first, all pages present, aligned to a huge page.
class HugeBuffer {
 public:
  HugeBuffer() = default;
  // Throws ToolError if there is no memory.
  explicit HugeBuffer(size_t num_bytes);
  ~HugeBuffer();
  HugeBuffer(HugeBuffer&& other) noexcept;
  HugeBuffer& operator=(HugeBuffer&& other) noexcept;

  std::byte* data() const { return data_; }
  uint16_t* bf16() const { return reinterpret_cast<uint16_t*>(data_); }
  size_t num_bytes() const { return num_bytes_; }

 private:
  void* mapping_ = nullptr;
  size_t mapping_bytes_ = 0;
  std::byte* data_ = nullptr;
  size_t num_bytes_ = 0;
};

// With all threads.
void CopyInParallel(std::byte* to, const std::byte* from, size_t num_bytes);

}  // namespace mlap::bench

#endif  // MLAP_BENCH_HUGE_BUFFER_H_
