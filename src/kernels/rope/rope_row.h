// RopeFn over a vector type V (see kernels/row_kernels.h).
#ifndef MLAP_KERNELS_ROPE_ROPE_ROW_H_
#define MLAP_KERNELS_ROPE_ROPE_ROW_H_

#include <cstdint>

#include "base/bf16.h"
#include "base/numeric_rules.h"
#include "kernels/vector/for_each_vector.h"

namespace mlap {

// How the pairs of a row lie: `count` pairs from pair i on are loaded, from binary32 or bf16, and stored as bf16.
template <class V>
struct InterleavedPairs {
  using F32 = typename V::F32;
  static void Load(const float* x, int64_t, int64_t i, int count, F32* a, F32* b) {
    V::LoadPairs(x + 2 * i, count, a, b);
  }
  static void Load(const Bf16* x, int64_t, int64_t i, int count, F32* a, F32* b) {
    V::LoadBf16Pairs(x + 2 * i, count, a, b);
  }
  static void Store(Bf16* out, int64_t, int64_t i, int count, F32 a, F32 b) {
    V::StoreBf16Pairs(out + 2 * i, a, b, count);
  }
};

template <class V>
struct HalfPairs {
  using F32 = typename V::F32;
  static void Load(const float* x, int64_t half, int64_t i, int count, F32* a, F32* b) {
    *a = V::Load(x + i, count);
    *b = V::Load(x + half + i, count);
  }
  static void Load(const Bf16* x, int64_t half, int64_t i, int count, F32* a, F32* b) {
    *a = V::LoadBf16(x + i, count);
    *b = V::LoadBf16(x + half + i, count);
  }
  static void Store(Bf16* out, int64_t half, int64_t i, int count, F32 a, F32 b) {
    V::StoreBf16(out + i, a, count);
    V::StoreBf16(out + half + i, b, count);
  }
};

template <class V, class In, class Out>
static void RotateRow(const float* x, const Bf16* cos, const Bf16* sin, int64_t n, Bf16* out) {
  const int64_t half = n / 2;
  ForEachVector<V>(half, [=](int64_t i, int count) {
    typename V::F32 real, imaginary, cos_p, cos_q, sin_p, sin_q;
    In::Load(x, half, i, count, &real, &imaginary);
    Out::Load(cos, half, i, count, &cos_p, &cos_q);
    Out::Load(sin, half, i, count, &sin_p, &sin_q);
    Out::Store(out, half, i, count, V::Add(V::Mul(real, cos_p), V::Mul(imaginary, V::Negate(sin_p))),
               V::Add(V::Mul(imaginary, cos_q), V::Mul(real, sin_q)));
  });
}

template <class V>
static void RopeRow(const float* x, const Bf16* cos, const Bf16* sin, int64_t n, RopeStyle style, Bf16* out) {
  switch (style) {
    case RopeStyle::kInterleavedToHalf:
      return RotateRow<V, InterleavedPairs<V>, HalfPairs<V>>(x, cos, sin, n, out);
    case RopeStyle::kHalf:
      return RotateRow<V, HalfPairs<V>, HalfPairs<V>>(x, cos, sin, n, out);
    case RopeStyle::kInterleaved:
      return RotateRow<V, InterleavedPairs<V>, InterleavedPairs<V>>(x, cos, sin, n, out);
    case RopeStyle::kNone:
      return ForEachVector<V>(n, [=](int64_t j, int count) { V::StoreBf16(out + j, V::Load(x + j, count), count); });
  }
}

}  // namespace mlap

#endif  // MLAP_KERNELS_ROPE_ROPE_ROW_H_
