// Conversions of one row to 8-bit floats, each for E4M3 and for HiFloat8. Bit-identical on every ISA.
//
// Casts are those of base/e4m3.h and base/hif8.h: they saturate, and NaNs become 0. `max` is the largest number of the
// format, 448 or 2^15; out holds codes.
#ifndef MLAP_KERNELS_QUANTIZE_QUANTIZE_F8_H_
#define MLAP_KERNELS_QUANTIZE_QUANTIZE_F8_H_

#include <cstdint>

namespace mlap {

// out_j = (x_j * channel_scale_j) * token_scale: the order of the 950's dequantisation, for sums in binary32.
using DequantizeF32Fn = void (*)(const float* x, float token_scale, const float* channel_scale, int64_t n, float* out);

// out_j = cast(x_j).
using NarrowToF8Fn = void (*)(const float* x, int64_t n, uint8_t* out);

// Dynamic quantisation of a row: z_j = x_j * smooth_j (smooth may be null: z = x), A = max |z_j|,
// *scale = A * fl(1 / max), out_j = cast(z_j / *scale). The quantised query is this without smooth. A zero row has
// scale 0 and zeros; a NaN makes the scale NaN and every code 0. With smooth, `x` is overwritten with z; without,
// it is only read.
using QuantizePerTokenF8Fn = void (*)(float* x, const float* smooth, int64_t n, uint8_t* out, float* scale);

// The same in groups of `group` consecutive values (n is a multiple), with A no smaller than 1e-4 (a NaN stays): scales
// holds n / group values.
using QuantizePerGroupF8Fn = void (*)(const float* x, int64_t n, int64_t group, uint8_t* out, float* scales);

// Microscaling: E4M3 in blocks of kMxGroup values, the last one may be shorter, with an E8M0 scale each
// (QuantizeMxBlock of base/e8m0.h). scales holds ceil(n / kMxGroup) bytes.
using QuantizeMxFn = void (*)(const float* x, int64_t n, uint8_t* out, uint8_t* scales);

}  // namespace mlap

#endif  // MLAP_KERNELS_QUANTIZE_QUANTIZE_F8_H_
