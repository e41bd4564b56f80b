// Asking for a weight ahead of its use.
#ifndef MLAP_KERNELS_GEMM_WEIGHT_PREFETCH_H_
#define MLAP_KERNELS_GEMM_WEIGHT_PREFETCH_H_

#include <cstdint>

#include "base/weight_view.h"
#include "kernels/gemm/gemm.h"

namespace mlap {
namespace {

inline constexpr int64_t kLineBytes = 64;

// What is used soon, into the first-level cache. Not the compiler's builtin: gcc takes a function that does nothing
// else for one without effects and drops its calls.
static inline void PrefetchLine(const void* address) { __asm__ volatile("prefetcht0 (%0)" : : "r"(address)); }
// What is used later than other things that want the first-level cache, into the second-level one.
static inline void PrefetchLaterLine(const void* address) { __asm__ volatile("prefetcht1 (%0)" : : "r"(address)); }

// Columns [column_begin, column_end) of a weight whose rows of a block are apart, in the order of memory: kernels read
// it a few columns at a time, and would touch every line with a jump between.
template <class Element>
static inline void PrefetchSpreadRows(const WeightView& weight, int64_t column_begin, int64_t column_end) {
  if (weight.HasAdjacentRows()) return;
  constexpr auto kElementBytes = static_cast<int64_t>(sizeof(Element));
  const char* row = static_cast<const char*>(weight.data) + column_begin * kElementBytes;
  const int64_t row_bytes = (column_end - column_begin) * kElementBytes;
  for (int64_t k = 0; k < weight.k; ++k, row += weight.row_stride * kElementBytes) {
    for (int64_t byte = 0; byte < row_bytes; byte += kLineBytes) PrefetchLaterLine(row + byte);
  }
}

// Asks for what is read next, in equal portions.
class NextReadPrefetch {
 public:
  NextReadPrefetch(const NextRead& next, int64_t portions)
      : line_(static_cast<const char*>(next.data)), end_(line_ + next.num_bytes) {
    const int64_t lines = CeilDiv(next.num_bytes, kLineBytes);
    portion_bytes_ = CeilDiv(lines, portions < 1 ? 1 : portions) * kLineBytes;
  }
  inline void Portion() {
    const char* portion_end = end_ - line_ < portion_bytes_ ? end_ : line_ + portion_bytes_;
    for (; line_ < portion_end; line_ += kLineBytes) PrefetchLaterLine(line_);
  }

 private:
  const char* line_;
  const char* end_;
  int64_t portion_bytes_;
};

}  // namespace
}  // namespace mlap

#endif  // MLAP_KERNELS_GEMM_WEIGHT_PREFETCH_H_
