// The conversions of kernels/quantize/quantize_f8.h over a vector type V (see kernels/row_kernels.h) and a format.
#ifndef MLAP_KERNELS_QUANTIZE_QUANTIZE_F8_ROW_H_
#define MLAP_KERNELS_QUANTIZE_QUANTIZE_F8_ROW_H_

#include <cstdint>
#include <cstring>

#include "base/e4m3.h"
#include "base/e8m0.h"
#include "base/hif8.h"
#include "kernels/quantize/quantize_row.h"
#include "kernels/vector/for_each_vector.h"

namespace mlap {
namespace {

struct E4m3Cast {
  static constexpr float kMax = kE4m3Max;
  static uint8_t Round(float value) { return RoundToE4m3(value).bits; }
};

struct HiF8Cast {
  static constexpr float kMax = kHiF8Max;
  static uint8_t Round(float value) { return RoundToHiF8(value).bits; }
};

}  // namespace

template <class V>
static void DequantizeF32Row(const float* x, float token_scale, const float* channel_scale, int64_t n, float* out) {
  const auto token = V::Broadcast(token_scale);
  ForEachVector<V>(n, [=](int64_t j, int count) {
    const auto scaled = V::Mul(V::Load(x + j, count), V::Load(channel_scale + j, count));
    V::Store(out + j, V::Mul(scaled, token), count);
  });
}

// The casts have no branches: the compiler makes vector code of this loop, with the instructions of its file's ISA.
template <class V, class Cast>
static void NarrowToF8Row(const float* x, int64_t n, uint8_t* out) {
  const float* __restrict from = x;
  uint8_t* __restrict to = out;
  for (int64_t j = 0; j < n; ++j) to[j] = Cast::Round(from[j]);
}

// out_j = cast(x_j / scale), with the scale of a row whose largest magnitude is amax.
template <class V, class Cast>
static float QuantizeByAmax(const float* x, int64_t n, float amax, uint8_t* out) {
  constexpr int64_t kChunk = 256;
  const float scale = amax * (1.0f / Cast::kMax);
  const auto divisor = V::Broadcast(scale);
  for (int64_t j = 0; j < n; j += kChunk) {
    const int64_t chunk = n - j < kChunk ? n - j : kChunk;
    float quotients[kChunk];
    ForEachVector<V>(chunk, [=, &quotients](int64_t i, int count) {
      V::Store(quotients + i, V::Div(V::Load(x + j + i, count), divisor), count);
    });
    NarrowToF8Row<V, Cast>(quotients, chunk, out + j);
  }
  return scale;
}

template <class V, class Cast>
static void QuantizePerTokenF8Row(float* x, const float* smooth, int64_t n, uint8_t* out, float* scale) {
  auto largest = V::ZeroBits();
  ForEachVector<V>(n, [&](int64_t j, int count) {
    auto z = V::Load(x + j, count);
    if (smooth != nullptr) {
      z = V::Mul(z, V::Load(smooth + j, count));
      V::Store(x + j, z, count);
    }
    largest = V::MaxAbsBits(largest, z);
  });
  *scale = QuantizeByAmax<V, Cast>(x, n, LargestMagnitude<V>(largest), out);
}

template <class V, class Cast>
static void QuantizePerGroupF8Row(const float* x, int64_t n, int64_t group, uint8_t* out, float* scales) {
  for (int64_t j = 0; j < n; j += group) {
    auto largest = V::ZeroBits();
    ForEachVector<V>(group, [&](int64_t i, int count) { largest = V::MaxAbsBits(largest, V::Load(x + j + i, count)); });
    const float amax = LargestMagnitude<V>(largest);
    scales[j / group] = QuantizeByAmax<V, Cast>(x + j, group, amax < 1e-4f ? 1e-4f : amax, out + j);
  }
}

template <class V>
static void QuantizeMxRow(const float* x, int64_t n, uint8_t* out, uint8_t* scales) {
  for (int64_t j = 0; j < n; j += kMxGroup) {
    E4m3 codes[kMxGroup];
    const int64_t count = n - j < kMxGroup ? n - j : kMxGroup;
    scales[j / kMxGroup] = QuantizeMxBlock(x + j, count, codes).bits;
    std::memcpy(out + j, codes, static_cast<size_t>(count));
  }
}

}  // namespace mlap

#endif  // MLAP_KERNELS_QUANTIZE_QUANTIZE_F8_ROW_H_
