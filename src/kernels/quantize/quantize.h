// Conversions of one row between bf16, binary32, int8 and int32. Bit-identical on every ISA.
#ifndef MLAP_KERNELS_QUANTIZE_QUANTIZE_H_
#define MLAP_KERNELS_QUANTIZE_QUANTIZE_H_

#include <cstdint>

#include "base/bf16.h"

namespace mlap {

// out_j = x_j, exactly.
using WidenBf16Fn = void (*)(const Bf16* x, int64_t n, float* out);

// out_j = bf(x_j).
using NarrowToBf16Fn = void (*)(const float* x, int64_t n, Bf16* out);

// out_j = (float(x_j) * token_scale) * channel_scale_j: the product of the scales is never formed first.
using DequantizeFn = void (*)(const int32_t* x, float token_scale, const float* channel_scale, int64_t n, float* out);

// out_j = int8(x_j * scale_j).
using QuantizePerChannelFn = void (*)(const float* x, const float* scale, int64_t n, int8_t* out);

// Dynamic quantisation of a row: z_j = x_j * smooth_j (smooth may be null: z = x), A = max |z_j|,
// *scale = A / 127, out_j = int8(z_j * (127 / A)). A zero row has scale 0 and zeros; a NaN makes the scale NaN and
// every element 0. `x` is overwritten with z.
using QuantizePerTokenFn = void (*)(float* x, const float* smooth, int64_t n, int8_t* out, float* scale);

// The quantised query: A = max |x_j|, *scale = A / 127, out_j = x_j * (127 / A) rounded through binary16 with ties away
// (RoundToInt8ThroughHalf).
using QuantizeQueryFn = void (*)(const float* x, int64_t n, int8_t* out, float* scale);

// out_j = int8(x_j).
using NarrowToInt8Fn = void (*)(const float* x, int64_t n, int8_t* out);

// out_j = x_j * factor.
using ScaleFn = void (*)(const float* x, float factor, int64_t n, float* out);

}  // namespace mlap

#endif  // MLAP_KERNELS_QUANTIZE_QUANTIZE_H_
