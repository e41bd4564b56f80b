// The row kernels, written once over a 16-lane vector type and instantiated by one file per ISA.
//
// A vector type V (vector/vector_<isa>.h) offers F32 and U32 of kLanes = 16 lanes; loads and stores of the first
// `count` lanes (1 <= count <= 16, the rest reads as zero and is not written) from binary32, bf16, int32 and
// interleaved pairs and to binary32, bf16 (bf()) and int8 (int8(), or through binary16); lane-wise Add, Mul, Div,
// Negate, Min, Max, each one rounded binary32 operation; and a maximum over the bits of |x|. What it may offer besides:
// that maximum over kBf16AtATime bf16, and StoreNumbersThroughHalf, for kNumbersAtATime bf16 times a factor: int8
// through binary16, of products that are numbers below 128. V lives in an unnamed namespace, so that what is
// instantiated over it stays in its object.
#ifndef MLAP_KERNELS_ROW_KERNELS_H_
#define MLAP_KERNELS_ROW_KERNELS_H_

#include "kernels/quantize/quantize_f8_row.h"
#include "kernels/quantize/quantize_row.h"
#include "kernels/registration.h"
#include "kernels/rms_norm/rms_norm_row.h"
#include "kernels/rope/rope_row.h"

namespace mlap {

// The names of an ISA's row kernels: "<op>_<isa>".
#define MLAP_ROW_KERNELS(table, V, isa)                                                                      \
  do {                                                                                                       \
    (table)->rms_norm = {RmsNormRow<V>, "rms_norm_f32_" isa};                                                \
    (table)->rope = {RopeRow<V>, "rope_f32_bf16_" isa};                                                      \
    (table)->widen_bf16 = {WidenBf16Row<V>, "widen_bf16_f32_" isa};                                          \
    (table)->narrow_to_bf16 = {NarrowToBf16Row<V>, "narrow_f32_bf16_" isa};                                  \
    (table)->dequantize = {DequantizeRow<V>, "dequantize_s32_f32_" isa};                                     \
    (table)->quantize_per_channel = {QuantizePerChannelRow<V>, "quantize_channel_f32_s8_" isa};              \
    (table)->quantize_per_token = {QuantizePerTokenRow<V>, "quantize_token_f32_s8_" isa};                    \
    (table)->quantize_query = {QuantizeQueryRow<V>, "quantize_query_bf16_s8_" isa};                          \
    (table)->quantize_per_group = {QuantizePerGroupRow<V>, "quantize_group_f32_s8_" isa};                    \
    (table)->narrow_to_int8 = {NarrowToInt8Row<V>, "narrow_f32_s8_" isa};                                    \
    (table)->scale = {ScaleRow<V>, "scale_f32_" isa};                                                        \
    (table)->dequantize_f32 = {DequantizeF32Row<V>, "dequantize_f32_f32_" isa};                              \
    (table)->narrow_to_e4m3 = {NarrowToF8Row<V, E4m3Cast>, "narrow_f32_e4m3_" isa};                          \
    (table)->narrow_to_hif8 = {NarrowToF8Row<V, HiF8Cast>, "narrow_f32_hif8_" isa};                          \
    (table)->quantize_per_token_e4m3 = {QuantizePerTokenF8Row<V, E4m3Cast>, "quantize_token_f32_e4m3_" isa}; \
    (table)->quantize_per_token_hif8 = {QuantizePerTokenF8Row<V, HiF8Cast>, "quantize_token_f32_hif8_" isa}; \
    (table)->quantize_per_group_e4m3 = {QuantizePerGroupF8Row<V, E4m3Cast>, "quantize_group_f32_e4m3_" isa}; \
    (table)->quantize_per_group_hif8 = {QuantizePerGroupF8Row<V, HiF8Cast>, "quantize_group_f32_hif8_" isa}; \
    (table)->quantize_mx = {QuantizeMxRow<V>, "quantize_mx_f32_e4m3_" isa};                                  \
  } while (false)

}  // namespace mlap

#endif  // MLAP_KERNELS_ROW_KERNELS_H_
