// The conversions of kernels/quantize/quantize.h over a vector type V (see kernels/row_kernels.h).
#ifndef MLAP_KERNELS_QUANTIZE_QUANTIZE_ROW_H_
#define MLAP_KERNELS_QUANTIZE_QUANTIZE_ROW_H_

#include <cstdint>
#include <cstring>

#include "base/bf16.h"

namespace mlap {

// Calls fn(first element, count) for each vector of a row of n elements.
template <class V, class Fn>
static inline void ForEachVector(int64_t n, Fn fn) {
  for (int64_t j = 0; j < n; j += V::kLanes) {
    fn(j, n - j < V::kLanes ? static_cast<int>(n - j) : V::kLanes);
  }
}

template <class V>
static void WidenBf16Row(const Bf16* x, int64_t n, float* out) {
  ForEachVector<V>(n, [=](int64_t j, int count) { V::Store(out + j, V::LoadBf16(x + j, count), count); });
}

template <class V>
static void NarrowToBf16Row(const float* x, int64_t n, Bf16* out) {
  ForEachVector<V>(n, [=](int64_t j, int count) { V::StoreBf16(out + j, V::Load(x + j, count), count); });
}

template <class V>
static void DequantizeRow(const int32_t* x, float token_scale, const float* channel_scale, int64_t n, float* out) {
  const auto token = V::Broadcast(token_scale);
  ForEachVector<V>(n, [=](int64_t j, int count) {
    const auto scaled = V::Mul(V::LoadInt32(x + j, count), token);
    V::Store(out + j, V::Mul(scaled, V::Load(channel_scale + j, count)), count);
  });
}

template <class V>
static void QuantizePerChannelRow(const float* x, const float* scale, int64_t n, int8_t* out) {
  ForEachVector<V>(n, [=](int64_t j, int count) {
    V::StoreInt8(out + j, V::Mul(V::Load(x + j, count), V::Load(scale + j, count)), count);
  });
}

template <class V>
static void NarrowToInt8Row(const float* x, int64_t n, int8_t* out) {
  ForEachVector<V>(n, [=](int64_t j, int count) { V::StoreInt8(out + j, V::Load(x + j, count), count); });
}

template <class V>
static void ScaleRow(const float* x, float factor, int64_t n, float* out) {
  const auto broadcast = V::Broadcast(factor);
  ForEachVector<V>(n,
                   [=](int64_t j, int count) { V::Store(out + j, V::Mul(V::Load(x + j, count), broadcast), count); });
}

// |z| is compared by its bits: the order of non-negative binary32 values, with NaN above infinity, so that the maximum
// does not depend on the order of the comparisons even when a NaN is present.
template <class V>
static float LargestMagnitude(const typename V::U32& largest) {
  const uint32_t bits = V::ReduceMax(largest);
  float amax;
  std::memcpy(&amax, &bits, sizeof(amax));
  return amax;
}

template <class V>
static void QuantizePerTokenRow(float* x, const float* smooth, int64_t n, int8_t* out, float* scale) {
  auto largest = V::ZeroBits();
  ForEachVector<V>(n, [&](int64_t j, int count) {
    auto z = V::Load(x + j, count);
    if (smooth != nullptr) {
      z = V::Mul(z, V::Load(smooth + j, count));
      V::Store(x + j, z, count);
    }
    largest = V::MaxAbsBits(largest, z);
  });
  const float amax = LargestMagnitude<V>(largest);
  *scale = amax / 127.0f;
  const auto factor = V::Broadcast(127.0f / amax);
  ForEachVector<V>(n,
                   [=](int64_t j, int count) { V::StoreInt8(out + j, V::Mul(V::Load(x + j, count), factor), count); });
}

template <class V>
static void QuantizeQueryRow(const float* x, int64_t n, int8_t* out, float* scale) {
  auto largest = V::ZeroBits();
  ForEachVector<V>(n, [&](int64_t j, int count) { largest = V::MaxAbsBits(largest, V::Load(x + j, count)); });
  const float amax = LargestMagnitude<V>(largest);
  *scale = amax / 127.0f;
  const auto factor = V::Broadcast(127.0f / amax);
  ForEachVector<V>(
      n, [=](int64_t j, int count) { V::StoreInt8ThroughHalf(out + j, V::Mul(V::Load(x + j, count), factor), count); });
}

}  // namespace mlap

#endif  // MLAP_KERNELS_QUANTIZE_QUANTIZE_ROW_H_
