// The 16-lane vector of the row kernels in AVX2: two registers. Tails go through a zero-filled buffer, so that all
// elements see the same instructions.
#ifndef MLAP_KERNELS_VECTOR_VECTOR_AVX2_H_
#define MLAP_KERNELS_VECTOR_VECTOR_AVX2_H_

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "base/bf16.h"

namespace mlap {
namespace {

// bf() of eight lanes, in the upper halves of words whose lower halves are of no use.
static inline __m256i RoundToUpperBf16(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i lsb = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(lsb, _mm256_set1_epi32(0x7fff)));
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  return _mm256_blendv_epi8(rounded, _mm256_set1_epi32(kBf16Nan << 16), is_nan);
}

// bf() of eight lanes.
static inline __m128i RoundToBf16Bits(__m256 x) {
  const __m256i result = _mm256_srli_epi32(RoundToUpperBf16(x), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(result), _mm256_extracti128_si256(result, 1));
}

struct VectorAvx2 {
  static constexpr int kLanes = 16;
  struct F32 {
    __m256 low, high;
  };
  struct U32 {
    __m256i low, high;
  };

  // The first `count` of 16 elements; the rest is zero.
  template <class T>
  struct Padded {
    T element[kLanes];
    Padded(const T* x, int count) {
      std::memset(static_cast<void*>(element), 0, sizeof(element));
      std::memcpy(static_cast<void*>(element), x, static_cast<size_t>(count) * sizeof(T));
    }
  };

  static F32 Broadcast(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static F32 Load(const float* x, int count) {
    if (count < kLanes) {
      const Padded<float> padded(x, count);
      return Load(padded.element, kLanes);
    }
    return {_mm256_loadu_ps(x), _mm256_loadu_ps(x + 8)};
  }
  static __m256 Widen8(const Bf16* x) {
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
  }
  static F32 LoadBf16(const Bf16* x, int count) {
    if (count < kLanes) {
      const Padded<Bf16> padded(x, count);
      return LoadBf16(padded.element, kLanes);
    }
    return {Widen8(x), Widen8(x + 8)};
  }
  static F32 LoadInt32(const int32_t* x, int count) {
    if (count < kLanes) {
      const Padded<int32_t> padded(x, count);
      return LoadInt32(padded.element, kLanes);
    }
    const auto* vectors = reinterpret_cast<const __m256i*>(x);
    return {_mm256_cvtepi32_ps(_mm256_loadu_si256(vectors)), _mm256_cvtepi32_ps(_mm256_loadu_si256(vectors + 1))};
  }
  // Eight pairs of two registers.
  static void Split(__m256 a, __m256 b, __m256* even, __m256* odd) {
    const __m256i order = _mm256_setr_epi32(0, 1, 4, 5, 2, 3, 6, 7);
    *even = _mm256_permutevar8x32_ps(_mm256_shuffle_ps(a, b, 0x88), order);
    *odd = _mm256_permutevar8x32_ps(_mm256_shuffle_ps(a, b, 0xdd), order);
  }
  static void LoadPairs(const float* x, int pairs, F32* even, F32* odd) {
    const int first = pairs < 8 ? pairs : 8;
    const F32 low = Load(x, 2 * first);
    const F32 high = pairs > 8 ? Load(x + 16, 2 * (pairs - 8)) : Broadcast(0.0f);
    Split(low.low, low.high, &even->low, &odd->low);
    Split(high.low, high.high, &even->high, &odd->high);
  }
  // A pair of bf16 is a 32-bit lane, the even element in its lower half.
  static void LoadBf16Pairs(const Bf16* x, int pairs, F32* even, F32* odd) {
    Bf16 padded[2 * kLanes];
    std::memset(static_cast<void*>(padded), 0, sizeof(padded));
    std::memcpy(static_cast<void*>(padded), x, static_cast<size_t>(pairs) * 2 * sizeof(Bf16));
    const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(padded));
    const __m256i second = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(padded + kLanes));
    const __m256i lower = _mm256_set1_epi32(0xffff);
    *even = {_mm256_castsi256_ps(_mm256_slli_epi32(first, 16)), _mm256_castsi256_ps(_mm256_slli_epi32(second, 16))};
    *odd = {_mm256_castsi256_ps(_mm256_andnot_si256(lower, first)),
            _mm256_castsi256_ps(_mm256_andnot_si256(lower, second))};
  }

  static void Store(float* out, const F32& x, int count) {
    if (count == kLanes) {
      _mm256_storeu_ps(out, x.low);
      _mm256_storeu_ps(out + 8, x.high);
    } else {
      float lanes[kLanes];
      Store(lanes, x, kLanes);
      std::memcpy(out, lanes, static_cast<size_t>(count) * sizeof(float));
    }
  }
  static void StoreBf16(Bf16* out, const F32& x, int count) {
    Bf16 lanes[kLanes];
    Bf16* to = count == kLanes ? out : lanes;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), RoundToBf16Bits(x.low));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 8), RoundToBf16Bits(x.high));
    if (count < kLanes) std::memcpy(static_cast<void*>(out), lanes, static_cast<size_t>(count) * sizeof(Bf16));
  }
  static void StoreBf16Pairs(Bf16* out, const F32& even, const F32& odd, int pairs) {
    Bf16 lanes[2 * kLanes];
    auto* vectors = reinterpret_cast<__m128i*>(lanes);
    const __m128i even_low = RoundToBf16Bits(even.low), odd_low = RoundToBf16Bits(odd.low);
    const __m128i even_high = RoundToBf16Bits(even.high), odd_high = RoundToBf16Bits(odd.high);
    _mm_storeu_si128(vectors, _mm_unpacklo_epi16(even_low, odd_low));
    _mm_storeu_si128(vectors + 1, _mm_unpackhi_epi16(even_low, odd_low));
    _mm_storeu_si128(vectors + 2, _mm_unpacklo_epi16(even_high, odd_high));
    _mm_storeu_si128(vectors + 3, _mm_unpackhi_epi16(even_high, odd_high));
    std::memcpy(static_cast<void*>(out), lanes, static_cast<size_t>(pairs) * 2 * sizeof(Bf16));
  }
  static void StoreBytes(int8_t* out, __m256i low, __m256i high, int count) {
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xd8);
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    int8_t lanes[kLanes];
    int8_t* to = count == kLanes ? out : lanes;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
    if (count < kLanes) std::memcpy(out, lanes, static_cast<size_t>(count));
  }
  static __m256i Round8(__m256 x) {
    const __m256 is_number = _mm256_cmp_ps(x, x, _CMP_ORD_Q);
    const __m256 clipped = _mm256_min_ps(_mm256_max_ps(x, _mm256_set1_ps(-128.0f)), _mm256_set1_ps(127.0f));
    const __m256 rounded = _mm256_round_ps(clipped, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    return _mm256_cvttps_epi32(_mm256_and_ps(rounded, is_number));
  }
  static void StoreInt8(int8_t* out, const F32& x, int count) { StoreBytes(out, Round8(x.low), Round8(x.high), count); }
  // RoundToInt8ThroughHalf of base/int8_rounding.h, lane by lane.
  static __m256i RoundThroughHalf8(__m256 x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i magnitude_bits = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
    const __m256i half_bits =
        _mm256_andnot_si256(_mm256_set1_epi32(0x1fff), _mm256_add_epi32(magnitude_bits, _mm256_set1_epi32(0x1000)));
    const __m256 raised = _mm256_add_ps(_mm256_castsi256_ps(half_bits), _mm256_set1_ps(0.5f));
    const __m256 bounded = _mm256_min_ps(raised, _mm256_set1_ps(128.0f));
    const __m256 is_number = _mm256_cmp_ps(x, x, _CMP_ORD_Q);
    const __m256i magnitude = _mm256_cvttps_epi32(_mm256_and_ps(bounded, is_number));
    // Sign 0 for +0.0 would erase the lane: or-ing in a one keeps it.
    return _mm256_sign_epi32(magnitude, _mm256_or_si256(bits, _mm256_set1_epi32(1)));
  }
  static void StoreInt8ThroughHalf(int8_t* out, const F32& x, int count) {
    StoreBytes(out, RoundThroughHalf8(x.low), RoundThroughHalf8(x.high), count);
  }

  static F32 Add(const F32& a, const F32& b) { return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)}; }
  static F32 Mul(const F32& a, const F32& b) { return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)}; }
  static F32 Div(const F32& a, const F32& b) { return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)}; }
  static F32 Min(const F32& a, const F32& b) { return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)}; }
  static F32 Max(const F32& a, const F32& b) { return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)}; }
  static F32 Negate(const F32& a) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return {_mm256_xor_ps(a.low, sign), _mm256_xor_ps(a.high, sign)};
  }

  static U32 ZeroBits() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
  static U32 MaxAbsBits(const U32& a, const F32& x) {
    const __m256i mask = _mm256_set1_epi32(0x7fffffff);
    return {_mm256_max_epu32(a.low, _mm256_and_si256(_mm256_castps_si256(x.low), mask)),
            _mm256_max_epu32(a.high, _mm256_and_si256(_mm256_castps_si256(x.high), mask))};
  }
  static uint32_t ReduceMax(const U32& a) {
    alignas(32) uint32_t lanes[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), _mm256_max_epu32(a.low, a.high));
    uint32_t result = 0;
    for (const uint32_t lane : lanes) result = lane > result ? lane : result;
    return result;
  }
};

}  // namespace
}  // namespace mlap

#endif  // MLAP_KERNELS_VECTOR_VECTOR_AVX2_H_
