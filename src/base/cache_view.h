// A paged cache: block_num pages of block_size slots, each slot one row of `width` elements.
//
// The logical shape is always [block_num, block_size, 1, width]. Two byte orders share it:
//
//   kRows  slot s, element d:  page s / block_size, row s % block_size, element d
//   kNz    the page's elements lie as [width / C0][block_size][C0], C0 = 32 bytes of elements
//
// Strides apply to the logical shape. An NZ page is a permutation of its page's elements in logical (row-major) order,
// so a strided NZ cache is written exactly where a contiguous copy, written and copied back, would put its elements.
#ifndef MLAP_BASE_CACHE_VIEW_H_
#define MLAP_BASE_CACHE_VIEW_H_

#include <cstdint>

#include "base/element_type.h"
#include "base/weight_view.h"

namespace mlap {

enum class CacheOrder { kRows, kNz };

struct CacheView {
  void* data = nullptr;
  ElementType type = ElementType::kBf16;
  CacheOrder order = CacheOrder::kRows;
  int64_t block_num = 0;
  int64_t block_size = 0;
  int64_t width = 0;
  // In elements, of the page, the slot within a page, and the element within a slot.
  int64_t block_stride = 0;
  int64_t slot_stride = 0;
  int64_t element_stride = 0;

  constexpr int64_t Capacity() const { return block_num * block_size; }

  // The longest run of consecutive elements d, d+1, .. of a slot that stays consecutive in logical order.
  constexpr int64_t RunLength() const { return order == CacheOrder::kNz ? FractalColumns(type) : width; }

  // Offset in elements from `data` of element `d` of slot `slot`.
  constexpr int64_t Offset(int64_t slot, int64_t d) const {
    const int64_t page = slot / block_size;
    int64_t row = slot % block_size;
    if (order == CacheOrder::kNz) {
      const int64_t c0 = FractalColumns(type);
      const int64_t within_page = (d / c0) * block_size * c0 + row * c0 + d % c0;
      row = within_page / width;
      d = within_page % width;
    }
    return page * block_stride + row * slot_stride + d * element_stride;
  }
};

constexpr CacheView ContiguousCache(void* data, ElementType type, CacheOrder order, int64_t block_num,
                                    int64_t block_size, int64_t width) {
  return {data, type, order, block_num, block_size, width, block_size * width, width, 1};
}

}  // namespace mlap

#endif  // MLAP_BASE_CACHE_VIEW_H_
