// The 16-lane vector of the row kernels, in plain C++. See docs in row_kernels.h for what a vector has to offer.
#ifndef MLAP_KERNELS_VECTOR_VECTOR_SCALAR_H_
#define MLAP_KERNELS_VECTOR_VECTOR_SCALAR_H_

#include <cstdint>
#include <cstring>

#include "base/bf16.h"
#include "base/int8_rounding.h"

namespace mlap {
namespace {

struct VectorScalar {
  static constexpr int kLanes = 16;
  struct F32 {
    float lane[kLanes];
  };
  struct U32 {
    uint32_t lane[kLanes];
  };

  template <class Fn>
  static F32 ForLanes(int count, Fn fn) {
    F32 result;
    for (int i = 0; i < kLanes; ++i) result.lane[i] = i < count ? fn(i) : 0.0f;
    return result;
  }

  static F32 Broadcast(float x) {
    return ForLanes(kLanes, [=](int) { return x; });
  }
  static F32 Load(const float* x, int count) {
    return ForLanes(count, [=](int i) { return x[i]; });
  }
  static F32 LoadBf16(const Bf16* x, int count) {
    return ForLanes(count, [=](int i) { return ToFloat(x[i]); });
  }
  static F32 LoadInt32(const int32_t* x, int count) {
    return ForLanes(count, [=](int i) { return static_cast<float>(x[i]); });
  }
  static void LoadPairs(const float* x, int pairs, F32* even, F32* odd) {
    *even = ForLanes(pairs, [=](int i) { return x[2 * i]; });
    *odd = ForLanes(pairs, [=](int i) { return x[2 * i + 1]; });
  }
  static void LoadBf16Pairs(const Bf16* x, int pairs, F32* even, F32* odd) {
    *even = ForLanes(pairs, [=](int i) { return ToFloat(x[2 * i]); });
    *odd = ForLanes(pairs, [=](int i) { return ToFloat(x[2 * i + 1]); });
  }

  static void Store(float* out, const F32& x, int count) {
    for (int i = 0; i < count; ++i) out[i] = x.lane[i];
  }
  static void StoreBf16(Bf16* out, const F32& x, int count) {
    for (int i = 0; i < count; ++i) out[i] = RoundToBf16(x.lane[i]);
  }
  static void StoreBf16Pairs(Bf16* out, const F32& even, const F32& odd, int pairs) {
    for (int i = 0; i < pairs; ++i) {
      out[2 * i] = RoundToBf16(even.lane[i]);
      out[2 * i + 1] = RoundToBf16(odd.lane[i]);
    }
  }
  static void StoreInt8(int8_t* out, const F32& x, int count) {
    for (int i = 0; i < count; ++i) out[i] = RoundToInt8(x.lane[i]);
  }
  static void StoreInt8ThroughHalf(int8_t* out, const F32& x, int count) {
    for (int i = 0; i < count; ++i) out[i] = RoundToInt8ThroughHalf(x.lane[i]);
  }

  static F32 Add(const F32& a, const F32& b) {
    return ForLanes(kLanes, [&](int i) { return a.lane[i] + b.lane[i]; });
  }
  static F32 Mul(const F32& a, const F32& b) {
    return ForLanes(kLanes, [&](int i) { return a.lane[i] * b.lane[i]; });
  }
  static F32 Div(const F32& a, const F32& b) {
    return ForLanes(kLanes, [&](int i) { return a.lane[i] / b.lane[i]; });
  }
  static F32 Min(const F32& a, const F32& b) {
    return ForLanes(kLanes, [&](int i) { return a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  static F32 Max(const F32& a, const F32& b) {
    return ForLanes(kLanes, [&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  static F32 Negate(const F32& a) {
    return ForLanes(kLanes, [&](int i) { return -a.lane[i]; });
  }

  static U32 ZeroBits() {
    U32 result;
    for (uint32_t& lane : result.lane) lane = 0;
    return result;
  }
  static U32 MaxAbsBits(const U32& a, const F32& x) {
    U32 result;
    for (int i = 0; i < kLanes; ++i) {
      uint32_t bits;
      std::memcpy(&bits, &x.lane[i], sizeof(bits));
      bits &= 0x7fffffffu;
      result.lane[i] = bits > a.lane[i] ? bits : a.lane[i];
    }
    return result;
  }
  static uint32_t ReduceMax(const U32& a) {
    uint32_t result = 0;
    for (uint32_t lane : a.lane) result = lane > result ? lane : result;
    return result;
  }
};

}  // namespace
}  // namespace mlap

#endif  // MLAP_KERNELS_VECTOR_VECTOR_SCALAR_H_
