// Every kernel the operator calls. A table is complete from the scalar kernels; each usable ISA then overrides what it
// has.
#ifndef MLAP_KERNELS_KERNEL_TABLE_H_
#define MLAP_KERNELS_KERNEL_TABLE_H_

#include <cstdint>

#include "kernels/gemm/gemm.h"
#include "kernels/quantize/quantize.h"
#include "kernels/quantize/quantize_f8.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rope/rope.h"

namespace mlap {

// A function and the name under which reports show it: <op>_<types>_<tile>_<isa>.
template <typename Fn>
struct Kernel {
  Fn run = nullptr;
  const char* name = nullptr;
};

// The list of kernels, one X(member, function type) each, so that reports and tests cannot forget one.
#define MLAP_KERNEL_LIST(X)                        \
  X(gemm_bf16, GemmBf16Fn)                         \
  X(gemm_s8, GemmS8Fn)                             \
  X(gemm_f8, GemmF8Fn)                             \
  X(rms_norm, RmsNormFn)                           \
  X(rope, RopeFn)                                  \
  X(widen_bf16, WidenBf16Fn)                       \
  X(narrow_to_bf16, NarrowToBf16Fn)                \
  X(dequantize, DequantizeFn)                      \
  X(quantize_per_channel, QuantizePerChannelFn)    \
  X(quantize_per_token, QuantizePerTokenFn)        \
  X(quantize_query, QuantizeQueryFn)               \
  X(quantize_per_group, QuantizePerGroupFn)        \
  X(narrow_to_int8, NarrowToInt8Fn)                \
  X(scale, ScaleFn)                                \
  X(dequantize_f32, DequantizeF32Fn)               \
  X(narrow_to_e4m3, NarrowToF8Fn)                  \
  X(narrow_to_hif8, NarrowToF8Fn)                  \
  X(quantize_per_token_e4m3, QuantizePerTokenF8Fn) \
  X(quantize_per_token_hif8, QuantizePerTokenF8Fn) \
  X(quantize_per_group_e4m3, QuantizePerGroupF8Fn) \
  X(quantize_per_group_hif8, QuantizePerGroupF8Fn) \
  X(quantize_mx, QuantizeMxFn)

// Columns that suit any kernel: a few of its panels.
inline constexpr int64_t kTaskColumns = 96;

struct KernelTable {
#define MLAP_KERNEL_MEMBER(member, Fn) Kernel<Fn> member;
  MLAP_KERNEL_LIST(MLAP_KERNEL_MEMBER)
#undef MLAP_KERNEL_MEMBER
  // Columns of a weight that a task with hundreds of rows takes at most: as many as the products bring A into a cache
  // once for.
  int64_t task_columns = kTaskColumns;
};

}  // namespace mlap

#endif  // MLAP_KERNELS_KERNEL_TABLE_H_
