// Conversions of one row between bf16, binary32, int8 and int32. Bit-identical on every ISA but for which
// binary32 NaN a NaN is.
#ifndef MLAP_KERNELS_QUANTIZE_QUANTIZE_H_
#define MLAP_KERNELS_QUANTIZE_QUANTIZE_H_

#include <cstdint>

#include "base/bf16.h"
#include "base/numeric_rules.h"

namespace mlap {

// out_j = x_j, exactly.
using WidenBf16Fn = void (*)(const Bf16* x, int64_t n, float* out);

// out_j = bf(x_j).
using NarrowToBf16Fn = void (*)(const float* x, int64_t n, Bf16* out);

// kA2:   out_j = (float(x_j) * token_scale) * channel_scale_j
// k950:  out_j = (float(x_j) * channel_scale_j) * token_scale
// The product of the scales is never formed first.
using DequantizeFn = void (*)(const int32_t* x, float token_scale, const float* channel_scale, int64_t n,
                              NumericRules rules, float* out);

// out_j = int8(x_j * scale_j).
using QuantizePerChannelFn = void (*)(const float* x, const float* scale, int64_t n, int8_t* out);

// Dynamic quantisation of a row: z_j = x_j * smooth_j (smooth may be null: z = x), A = max |z_j|, and
//
//   kA2:   *scale = A / 127        out_j = int8(z_j * (127 / A))
//   k950:  *scale = A * (1 / 127)  out_j = int8(z_j / *scale)
//
// A zero row has scale 0 and zeros; a NaN makes the scale NaN and every element 0. `x` is overwritten with z.
using QuantizePerTokenFn = void (*)(float* x, const float* smooth, int64_t n, NumericRules rules, int8_t* out,
                                    float* scale);

// The quantised query under kA2: A = max |x_j|, *scale = A / 127, out_j = x_j * (127 / A) rounded through binary16 with
// ties away (RoundToInt8ThroughHalf). Under k950 it is quantised like any row.
using QuantizeQueryFn = void (*)(const Bf16* x, int64_t n, int8_t* out, float* scale);

// One group of a kPerGroup cache row. A = max |x_j|, L = A * clip_alpha, *scale = L * (1 / 127),
// out_j = int8(min(max(x_j, -L), L) * (1 / *scale)). A zero group has scale 0 and zeros, a NaN as above.
using QuantizePerGroupFn = void (*)(const float* x, float clip_alpha, int64_t n, int8_t* out, float* scale);

// out_j = int8(x_j).
using NarrowToInt8Fn = void (*)(const float* x, int64_t n, int8_t* out);

// out_j = x_j * factor.
using ScaleFn = void (*)(const float* x, float factor, int64_t n, float* out);

}  // namespace mlap

#endif  // MLAP_KERNELS_QUANTIZE_QUANTIZE_H_
