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
static inline void PrefetchLine(const void* address) { __asm__ volatile("prefetcht0 %a0" : : "p"(address)); }
// What is used later than other things that want the first-level cache, into the second-level one.
static inline void PrefetchLaterLine(const void* address) { __asm__ volatile("prefetcht1 %a0" : : "p"(address)); }

// Memory answers faster if it is asked in several places in turn: a core got 18 GB/s from one, 20 from two, 25 from
// four and 25 from eight.
inline constexpr int64_t kAskedPlaces = 8;

// The line to ask for when the one at `at` is read, for weights that are read in one or two places: while a piece of
// memory is read, the next piece is asked for in several places. Where pieces begin, addresses say.
template <uintptr_t kPieceBytes, uintptr_t kPlaces>
static inline const void* InNextPiece(const void* at) {
  const uintptr_t in_piece = reinterpret_cast<uintptr_t>(at) % kPieceBytes;
  const uintptr_t line = in_piece / kLineBytes;
  const uintptr_t next = line % kPlaces * (kPieceBytes / kPlaces) + line / kPlaces * kLineBytes;
  return static_cast<const char*>(at) - in_piece + kPieceBytes + next;
}

// Columns [column_begin, column_end) of a weight whose rows of a block are apart, as kernels read it a few columns at a
// time, and would touch every line with a jump between.
template <class Element>
static inline void PrefetchSpreadRows(const WeightView& weight, int64_t column_begin, int64_t column_end) {
  if (weight.HasAdjacentRows()) return;
  constexpr auto kElementBytes = static_cast<int64_t>(sizeof(Element));
  const char* first = static_cast<const char*>(weight.data) + column_begin * kElementBytes;
  const int64_t columns_bytes = (column_end - column_begin) * kElementBytes;
  const int64_t row_bytes = weight.row_stride * kElementBytes;
  const int64_t rows = CeilDiv(weight.k, kAskedPlaces);  // of a place
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t byte = 0; byte < columns_bytes; byte += kLineBytes) {
      for (int64_t k = row; k < weight.k; k += rows) PrefetchLaterLine(first + k * row_bytes + byte);
    }
  }
}

// Whether a weight that is not packed has been asked for as a whole.
template <class Args>
static inline bool WasNext(const Args& args) {
  if constexpr (requires { args.was_next; }) return args.was_next;
  return false;
}

// Asks for what is read next, in equal portions. One piece is asked for in several places.
class NextReadPrefetch {
 public:
  NextReadPrefetch(const NextRead& next, int64_t portions)
      : line_(static_cast<const char*>(next.data)),
        places_(next.num_pieces == 1 ? kAskedPlaces : next.num_pieces),
        left_(CeilDiv(next.num_bytes, next.num_pieces == 1 ? kAskedPlaces * kLineBytes : kLineBytes)),
        stride_bytes_(next.num_pieces == 1 ? left_ * kLineBytes : next.piece_stride_bytes),
        portion_(CeilDiv(left_, portions < 1 ? 1 : portions)) {}
  inline void Portion() {
    for (int64_t line = 0; line < portion_ && left_ > 0; ++line, --left_, line_ += kLineBytes) {
      for (int64_t place = 0; place < places_; ++place) PrefetchLaterLine(line_ + place * stride_bytes_);
    }
  }

 private:
  const char* line_;  // of the first place
  int64_t places_;
  int64_t left_;  // lines, of each place
  int64_t stride_bytes_;
  int64_t portion_;  // lines, of each place
};

}  // namespace
}  // namespace mlap

#endif  // MLAP_KERNELS_GEMM_WEIGHT_PREFETCH_H_
