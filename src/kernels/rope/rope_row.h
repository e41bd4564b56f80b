// RopeFn over a vector type V (see kernels/row_kernels.h).
#ifndef MLAP_KERNELS_ROPE_ROPE_ROW_H_
#define MLAP_KERNELS_ROPE_ROPE_ROW_H_

#include <cstdint>

#include "base/bf16.h"

namespace mlap {

template <class V>
static void RopeRow(const float* x, const Bf16* cos, const Bf16* sin, int64_t n, Bf16* out) {
  const int64_t half = n / 2;
  for (int64_t i = 0; i < half; i += V::kLanes) {
    const int count = half - i < V::kLanes ? static_cast<int>(half - i) : V::kLanes;
    typename V::F32 real, imaginary;
    V::LoadPairs(x + 2 * i, count, &real, &imaginary);
    const auto minus_sin = V::Negate(V::LoadBf16(sin + i, count));
    V::StoreBf16(out + i, V::Add(V::Mul(real, V::LoadBf16(cos + i, count)), V::Mul(imaginary, minus_sin)), count);
    V::StoreBf16(
        out + half + i,
        V::Add(V::Mul(imaginary, V::LoadBf16(cos + half + i, count)), V::Mul(real, V::LoadBf16(sin + half + i, count))),
        count);
  }
}

}  // namespace mlap

#endif  // MLAP_KERNELS_ROPE_ROPE_ROW_H_
