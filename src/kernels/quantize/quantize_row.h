// The conversions of kernels/quantize/quantize.h over a vector type V (see kernels/row_kernels.h).
#ifndef MLAP_KERNELS_QUANTIZE_QUANTIZE_ROW_H_
#define MLAP_KERNELS_QUANTIZE_QUANTIZE_ROW_H_

#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/bf16.h"
#include "base/numeric_rules.h"
#include "kernels/vector/for_each_vector.h"

namespace mlap {

template <class V>
static void WidenBf16Row(const Bf16* x, int64_t n, float* out) {
  ForEachVector<V>(n, [=](int64_t j, int count) { V::Store(out + j, V::LoadBf16(x + j, count), count); });
}

template <class V>
static void NarrowToBf16Row(const float* x, int64_t n, Bf16* out) {
  ForEachVector<V>(n, [=](int64_t j, int count) { V::StoreBf16(out + j, V::Load(x + j, count), count); });
}

template <class V>
static void DequantizeRow(const int32_t* x, float token_scale, const float* channel_scale, int64_t n,
                          NumericRules rules, float* out) {
  const auto token = V::Broadcast(token_scale);
  const bool token_first = rules == NumericRules::kA2;
  ForEachVector<V>(n, [=](int64_t j, int count) {
    const auto channel = V::Load(channel_scale + j, count);
    const auto scaled = V::Mul(V::LoadInt32(x + j, count), token_first ? token : channel);
    V::Store(out + j, V::Mul(scaled, token_first ? channel : token), count);
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
static float RowMagnitude(const float* x, int64_t n) {
  auto largest = V::ZeroBits();
  ForEachVector<V>(n, [&](int64_t j, int count) { largest = V::MaxAbsBits(largest, V::Load(x + j, count)); });
  return LargestMagnitude<V>(largest);
}

template <class V>
static void QuantizePerTokenRow(float* x, const float* smooth, int64_t n, NumericRules rules, int8_t* out,
                                float* scale) {
  if (smooth != nullptr) {
    ForEachVector<V>(n, [=](int64_t j, int count) {
      V::Store(x + j, V::Mul(V::Load(x + j, count), V::Load(smooth + j, count)), count);
    });
  }
  const float amax = RowMagnitude<V>(x, n);
  if (rules == NumericRules::kA2) {
    *scale = amax / 127.0f;
    const auto factor = V::Broadcast(127.0f / amax);
    ForEachVector<V>(
        n, [=](int64_t j, int count) { V::StoreInt8(out + j, V::Mul(V::Load(x + j, count), factor), count); });
  } else {
    *scale = amax * (1.0f / 127.0f);
    const auto divisor = V::Broadcast(*scale);
    ForEachVector<V>(
        n, [=](int64_t j, int count) { V::StoreInt8(out + j, V::Div(V::Load(x + j, count), divisor), count); });
  }
}

template <class V>
static float RowMagnitude(const Bf16* x, int64_t n) {
  auto largest = V::ZeroBits();
  int64_t done = 0;
  if constexpr (requires { V::kBf16AtATime; }) {
    auto largest_words = V::ZeroBits();
    for (; done + V::kBf16AtATime <= n; done += V::kBf16AtATime) {
      largest_words = V::MaxAbsBf16Words(largest_words, x + done);
    }
    largest = V::BitsOfBf16Words(largest_words);
  }
  ForEachVector<V>(n - done,
                   [&](int64_t j, int count) { largest = V::MaxAbsBits(largest, V::LoadBf16(x + done + j, count)); });
  return LargestMagnitude<V>(largest);
}

template <class V>
static void QuantizeQueryRow(const Bf16* x, int64_t n, int8_t* out, float* scale) {
  const float amax = RowMagnitude<V>(x, n);
  *scale = amax / 127.0f;
  const float one_factor = 127.0f / amax;
  const auto factor = V::Broadcast(one_factor);
  int64_t done = 0;
  if constexpr (requires { V::kNumbersAtATime; }) {
    // Every |x_j| <= A, so that a finite factor makes numbers of 127 at most.
    if (std::isfinite(one_factor) && std::isfinite(amax)) {
      for (; done + V::kNumbersAtATime <= n; done += V::kNumbersAtATime) {
        V::StoreNumbersThroughHalf(out + done, x + done, factor);
      }
    }
  }
  ForEachVector<V>(n - done, [=](int64_t j, int count) {
    V::StoreInt8ThroughHalf(out + done + j, V::Mul(V::LoadBf16(x + done + j, count), factor), count);
  });
}

template <class V>
static void QuantizePerGroupRow(const float* x, float clip_alpha, int64_t n, int8_t* out, float* scale) {
  const float limit = RowMagnitude<V>(x, n) * clip_alpha;
  *scale = limit * (1.0f / 127.0f);
  const auto high = V::Broadcast(limit);
  const auto low = V::Broadcast(-limit);
  const auto factor = V::Broadcast(1.0f / *scale);
  ForEachVector<V>(n, [=](int64_t j, int count) {
    const auto clipped = V::Min(V::Max(V::Load(x + j, count), low), high);
    V::StoreInt8(out + j, V::Mul(clipped, factor), count);
  });
}

}  // namespace mlap

#endif  // MLAP_KERNELS_QUANTIZE_QUANTIZE_ROW_H_
