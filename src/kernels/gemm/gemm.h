// Matrix products with a weight read in place: C[rows, columns) = A [rows, k] * W [k, columns).
//
// Every output element has one accumulation chain over ascending k, held in one accumulator. The chain is the same for
// any number of rows, any column range and any tile, so that a token's result depends on nothing but the token.
//
// There is at least one row, one k and one column.
#ifndef MLAP_KERNELS_GEMM_GEMM_H_
#define MLAP_KERNELS_GEMM_GEMM_H_

#include <cstdint>

#include "base/bf16.h"
#include "base/weight_view.h"

namespace mlap {

// Memory that a caller lends to each call of a product, aligned to 64 bytes: the most that any kernel needs. It is not
// on the stack, as a program may give its threads small ones.
inline constexpr int64_t kGemmScratchBytes = 384 * 1024;

// What the calling thread reads after a product: pieces of num_bytes each. Kernels ask for it beside their own weight.
struct NextRead {
  const void* data = nullptr;
  int64_t num_bytes = 0;
  int64_t num_pieces = 1;
  int64_t piece_stride_bytes = 0;
};

// C = bf(A W): bf16 products accumulate in binary32, one rounding to bf16 at the end.
struct GemmBf16Args {
  const Bf16* a;         // [rows, k], k = weight.k
  int64_t a_row_stride;  // elements
  int64_t rows;
  WeightView weight;     // bf16
  int64_t column_begin;  // columns [column_begin, column_end) of the weight are computed
  int64_t column_end;
  Bf16* c;               // [rows, column_end - column_begin]
  int64_t c_row_stride;  // elements
  void* scratch;         // [kGemmScratchBytes]
  NextRead next = {};
  bool was_next = false;   // the whole weight was `next` of this thread's last product: it need not be asked for again
  bool streams_c = false;  // C is too large to be read from a cache soon: stores may go past them
};
using GemmBf16Fn = void (*)(const GemmBf16Args& args);

// C = A W in int32: exact while k < 2^16 (|product| <= 2^14), hence bit-identical on every ISA.
struct GemmS8Args {
  const int8_t* a;
  int64_t a_row_stride;
  int64_t rows;
  WeightView weight;  // int8
  int64_t column_begin;
  int64_t column_end;
  int32_t* c;
  int64_t c_row_stride;
  void* scratch;
  NextRead next = {};
};
using GemmS8Fn = void (*)(const GemmS8Args& args);

// C = A W in binary32, of 8-bit floats: A has the type of the weight, kE4m3 or kHiF8, and products accumulate without a
// rounding at the end. Products of two codes are exact in binary32, so the bits are the same on every ISA.
//
// With E8M0 scales (E4M3 only) each value is first multiplied by the power of two that its block of kMxGroup along k
// has in A or in the weight. That is exact while the value is a normal binary32; a product is then rounded before it is
// added, which matters for what leaves that range only. A NaN scale makes NaNs.
struct GemmF8Args {
  const uint8_t* a;
  int64_t a_row_stride;
  int64_t rows;
  WeightView weight;  // kE4m3 or kHiF8
  int64_t column_begin;
  int64_t column_end;
  float* c;
  int64_t c_row_stride;
  void* scratch;
  const uint8_t* a_scales = nullptr;  // [rows, ceil(k / kMxGroup)], or null: no scales
  int64_t a_scale_stride = 0;         // of rows
  const uint8_t* w_scales = nullptr;  // [n, ceil(k / kMxGroup)], with a_scales
  int64_t w_scale_stride = 0;         // of columns
};
using GemmF8Fn = void (*)(const GemmF8Args& args);

}  // namespace mlap

#endif  // MLAP_KERNELS_GEMM_GEMM_H_
