// RmsNormFn over a vector type V (see kernels/row_kernels.h).
#ifndef MLAP_KERNELS_RMS_NORM_RMS_NORM_ROW_H_
#define MLAP_KERNELS_RMS_NORM_RMS_NORM_ROW_H_

#include <cstdint>

#include "base/bf16.h"
#include "kernels/vector/for_each_vector.h"

namespace mlap {

// The lane count of the device's vector unit; it fixes the order in which the squares are added.
static constexpr int kSumLanes = 64;

template <class V>
static float SumOfSquares(const float* x, int64_t n) {
  constexpr int kVectors = kSumLanes / V::kLanes;
  typename V::F32 sums[kVectors];
  for (int v = 0; v < kVectors; ++v) sums[v] = V::Broadcast(0.0f);
  for (int64_t j = 0; j < n; j += kSumLanes) {
    for (int v = 0; v < kVectors; ++v) {
      const int64_t left = n - j - v * V::kLanes;
      if (left <= 0) break;
      const auto q = V::Load(x + j + v * V::kLanes, left < V::kLanes ? static_cast<int>(left) : V::kLanes);
      sums[v] = V::Add(sums[v], V::Mul(q, q));
    }
  }
  float lanes[kSumLanes];
  for (int v = 0; v < kVectors; ++v) V::Store(lanes + v * V::kLanes, sums[v], V::kLanes);
  for (int width = kSumLanes / 2; width >= 1; width /= 2) {
    for (int i = 0; i < width; ++i) lanes[i] = lanes[2 * i] + lanes[2 * i + 1];
  }
  return lanes[0];
}

template <class V>
static void RmsNormRow(const float* x, const Bf16* gamma, int64_t n, float epsilon, float* y) {
  const float reciprocal = 1.0f / static_cast<float>(n);
  const float mean = SumOfSquares<V>(x, n) * reciprocal;
  const auto root = V::Broadcast(__builtin_sqrtf(mean + epsilon));
  ForEachVector<V>(n, [=](int64_t j, int count) {
    const auto normalized = V::Div(V::Load(x + j, count), root);
    V::Store(y + j, V::Mul(normalized, V::LoadBf16(gamma + j, count)), count);
  });
}

}  // namespace mlap

#endif  // MLAP_KERNELS_RMS_NORM_RMS_NORM_ROW_H_
