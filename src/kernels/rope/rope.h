// Rotary position embedding of one row.
#ifndef MLAP_KERNELS_ROPE_ROPE_H_
#define MLAP_KERNELS_ROPE_ROPE_H_

#include <cstdint>

#include "base/bf16.h"
#include "base/numeric_rules.h"

namespace mlap {

// Pairs of columns are rotated, every operation rounded to binary32 on its own. With (a, b) the columns of a pair in x
// and (p, q) its columns in out, cos and sin:
//
//   out[p] = bf(x[a] * cos[p] + x[b] * (-sin[p]))      out[q] = bf(x[b] * cos[q] + x[a] * sin[q])
//
//   kInterleavedToHalf  (a, b) = (2i, 2i + 1)   (p, q) = (i, n / 2 + i)
//   kHalf               (a, b) = (p, q) = (i, n / 2 + i)
//   kInterleaved        (a, b) = (p, q) = (2i, 2i + 1)
//   kNone               out = bf(x); cos and sin may be null
//
// `x` [n], `cos`, `sin` [n], `out` [n]; n is even. Bit-identical on every ISA.
using RopeFn = void (*)(const float* x, const Bf16* cos, const Bf16* sin, int64_t n, RopeStyle style, Bf16* out);

}  // namespace mlap

#endif  // MLAP_KERNELS_ROPE_ROPE_H_
