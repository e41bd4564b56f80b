// Rotary position embedding of one row: interleaved pairs in, halves out.
#ifndef MLAP_KERNELS_ROPE_ROPE_H_
#define MLAP_KERNELS_ROPE_ROPE_H_

#include <cstdint>

#include "base/bf16.h"

namespace mlap {

// With h = n / 2 and every operation rounded to binary32 on its own:
//
//   out[i]     = bf(x[2i]     * cos[i]     + x[2i + 1] * (-sin[i]))
//   out[h + i] = bf(x[2i + 1] * cos[h + i] + x[2i]     * sin[h + i])
//
// `x` [n], `cos`, `sin` [n] (both halves are read), `out` [n]; n is even. Bit-identical on every ISA.
using RopeFn = void (*)(const float* x, const Bf16* cos, const Bf16* sin, int64_t n, Bf16* out);

}  // namespace mlap

#endif  // MLAP_KERNELS_ROPE_ROPE_H_
