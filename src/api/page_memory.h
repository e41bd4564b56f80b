// Large memory on huge pages where the system has them.
#ifndef MLAP_API_PAGE_MEMORY_H_
#define MLAP_API_PAGE_MEMORY_H_

#include <cstddef>

namespace mlap {

// Zeros at first, aligned to a huge page above 1 MiB, else to a page. Movable.
class PageMemory {
 public:
  PageMemory() = default;
  ~PageMemory();
  PageMemory(PageMemory&& other) noexcept;
  PageMemory& operator=(PageMemory&& other) noexcept;

  // Replaces the memory by `num_bytes` new bytes; the content is lost. Throws std::bad_alloc, and then keeps the old.
  void Allocate(size_t num_bytes);

  char* data() const { return data_; }
  size_t num_bytes() const { return num_bytes_; }

 private:
  void* mapping_ = nullptr;
  size_t mapping_bytes_ = 0;
  char* data_ = nullptr;
  size_t num_bytes_ = 0;
};

}  // namespace mlap

#endif  // MLAP_API_PAGE_MEMORY_H_
