// The 16-lane vector of the row kernels in AVX-512 (F, BW, VL). Masked loads keep tails on the same instructions.
#ifndef MLAP_KERNELS_VECTOR_VECTOR_AVX512_H_
#define MLAP_KERNELS_VECTOR_VECTOR_AVX512_H_

#include <immintrin.h>

#include <cstdint>

#include "base/bf16.h"

namespace mlap {
namespace {

struct VectorAvx512 {
  static constexpr int kLanes = 16;
  using F32 = __m512;
  using U32 = __m512i;

  static __mmask16 FirstLanes(int count) { return static_cast<__mmask16>((1u << count) - 1u); }

  static F32 Broadcast(float x) { return _mm512_set1_ps(x); }
  static F32 Load(const float* x, int count) { return _mm512_maskz_loadu_ps(FirstLanes(count), x); }
  static F32 LoadBf16(const Bf16* x, int count) {
    const __m256i bits = _mm256_maskz_loadu_epi16(FirstLanes(count), x);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  static F32 LoadInt32(const int32_t* x, int count) {
    return _mm512_cvtepi32_ps(_mm512_maskz_loadu_epi32(FirstLanes(count), x));
  }
  static void LoadPairs(const float* x, int pairs, F32* even, F32* odd) {
    const int first = pairs < 8 ? pairs : 8;
    const __m512 low = Load(x, 2 * first);
    const __m512 high = pairs > 8 ? Load(x + 16, 2 * (pairs - 8)) : _mm512_setzero_ps();
    const __m512i even_index = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd_index = _mm512_add_epi32(even_index, _mm512_set1_epi32(1));
    *even = _mm512_permutex2var_ps(low, even_index, high);
    *odd = _mm512_permutex2var_ps(low, odd_index, high);
  }
  // A pair of bf16 is a 32-bit lane, the even element in its lower half.
  static void LoadBf16Pairs(const Bf16* x, int pairs, F32* even, F32* odd) {
    const __m512i bits = _mm512_maskz_loadu_epi32(FirstLanes(pairs), x);
    *even = _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
    *odd = _mm512_castsi512_ps(_mm512_andnot_si512(_mm512_set1_epi32(0xffff), bits));
  }

  static void Store(float* out, F32 x, int count) { _mm512_mask_storeu_ps(out, FirstLanes(count), x); }

  // Integer rounding instead of VCVTNEPS2BF16, which would flush denormals.
  static __m256i RoundToBf16Bits(F32 x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i upper = _mm512_srli_epi32(bits, 16);
    const __m512i lsb = _mm512_and_si512(upper, _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(lsb, _mm512_set1_epi32(0x7fff)));
    rounded = _mm512_srli_epi32(rounded, 16);
    const __mmask16 is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    rounded = _mm512_mask_mov_epi32(rounded, is_nan, _mm512_set1_epi32(kBf16Nan));
    return _mm512_cvtepi32_epi16(rounded);
  }
  static void StoreBf16(Bf16* out, F32 x, int count) {
    _mm256_mask_storeu_epi16(out, FirstLanes(count), RoundToBf16Bits(x));
  }
  static void StoreBf16Pairs(Bf16* out, F32 even, F32 odd, int pairs) {
    const __m512i low = _mm512_cvtepu16_epi32(RoundToBf16Bits(even));
    const __m512i high = _mm512_slli_epi32(_mm512_cvtepu16_epi32(RoundToBf16Bits(odd)), 16);
    _mm512_mask_storeu_epi32(out, FirstLanes(pairs), _mm512_or_si512(low, high));
  }
  static void StoreInt8(int8_t* out, F32 x, int count) {
    const __mmask16 is_number = _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q);
    const __m512 clipped = _mm512_min_ps(_mm512_max_ps(x, _mm512_set1_ps(-128.0f)), _mm512_set1_ps(127.0f));
    const __m512i rounded =
        _mm512_maskz_cvt_roundps_epi32(is_number, clipped, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_mask_storeu_epi8(out, FirstLanes(count), _mm512_cvtepi32_epi8(rounded));
  }
  // RoundToInt8ThroughHalf of base/int8_rounding.h, lane by lane.
  static void StoreInt8ThroughHalf(int8_t* out, F32 x, int count) {
    const __mmask16 is_number = _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q);
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i magnitude_bits = _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff));
    const __m512i half_bits =
        _mm512_andnot_si512(_mm512_set1_epi32(0x1fff), _mm512_add_epi32(magnitude_bits, _mm512_set1_epi32(0x1000)));
    const __m512 raised = _mm512_add_ps(_mm512_castsi512_ps(half_bits), _mm512_set1_ps(0.5f));
    const __m512i magnitude = _mm512_maskz_cvttps_epi32(is_number, _mm512_min_ps(raised, _mm512_set1_ps(128.0f)));
    const __mmask16 is_negative = _mm512_movepi32_mask(bits);
    const __m512i value = _mm512_mask_sub_epi32(magnitude, is_negative, _mm512_setzero_si512(), magnitude);
    _mm_mask_storeu_epi8(out, FirstLanes(count), _mm512_cvtsepi32_epi8(value));
  }

  // RoundToInt8ThroughHalf of x[0, 64) * factor, all of them numbers below 128 in magnitude.
  static constexpr int kNumbersAtATime = 64;
  static void StoreNumbersThroughHalf(int8_t* out, const Bf16* x, F32 factor) {
    const __m512i first = WordsThroughHalf(_mm512_loadu_si512(x), factor);
    const __m512i second = WordsThroughHalf(_mm512_loadu_si512(x + 32), factor);
    // Packing takes 8 words of each by turns.
    const __m512i in_order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    _mm512_storeu_si512(out, _mm512_permutexvar_epi64(in_order, _mm512_packs_epi16(first, second)));
  }

  static F32 Add(F32 a, F32 b) { return _mm512_add_ps(a, b); }
  static F32 Mul(F32 a, F32 b) { return _mm512_mul_ps(a, b); }
  static F32 Div(F32 a, F32 b) { return _mm512_div_ps(a, b); }
  static F32 Min(F32 a, F32 b) { return _mm512_min_ps(a, b); }
  static F32 Max(F32 a, F32 b) { return _mm512_max_ps(a, b); }
  static F32 Negate(F32 a) {
    return _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(a), _mm512_set1_epi32(INT32_MIN)));
  }

  static U32 ZeroBits() { return _mm512_setzero_si512(); }
  static U32 MaxAbsBits(U32 a, F32 x) {
    return _mm512_max_epu32(a, _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff)));
  }
  static constexpr int kBf16AtATime = 32;
  // Of pairs of words; BitsOfBf16Words gives the larger word of each pair as the bits of a binary32.
  static U32 MaxAbsBf16Words(U32 a, const Bf16* x) {
    return _mm512_max_epu16(a, _mm512_and_si512(_mm512_loadu_si512(x), _mm512_set1_epi16(0x7fff)));
  }
  static U32 BitsOfBf16Words(U32 a) {
    return _mm512_max_epu32(_mm512_slli_epi32(a, 16), _mm512_andnot_si512(_mm512_set1_epi32(0xffff), a));
  }
  static uint32_t ReduceMax(U32 a) { return static_cast<uint32_t>(_mm512_reduce_max_epu32(a)); }

 private:
  // 32 bf16 times `factor` as words. A pair of bf16 is a 32-bit lane, the even element in its lower half.
  static __m512i WordsThroughHalf(__m512i pairs, F32 factor) {
    const __m512i even = _mm512_slli_epi32(pairs, 16);
    const __m512i odd = _mm512_andnot_si512(_mm512_set1_epi32(0xffff), pairs);
    const __m512i low = IntegerThroughHalf(_mm512_mul_ps(_mm512_castsi512_ps(even), factor));
    const __m512i high = IntegerThroughHalf(_mm512_mul_ps(_mm512_castsi512_ps(odd), factor));
    return _mm512_mask_mov_epi16(low, 0xaaaaaaaau, _mm512_slli_epi32(high, 16));
  }
  // The magnitude is in the lower bits, so that it can be rounded without regard to the sign.
  static __m512i IntegerThroughHalf(F32 x) {
    const __m512i half_bits = _mm512_andnot_si512(_mm512_set1_epi32(0x1fff),
                                                  _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x1000)));
    constexpr int kSignOfAElseB = 0xe4;  // of c ? a : b, with c the sign's mask
    const __m512i signed_half = _mm512_ternarylogic_epi32(half_bits, _mm512_set1_epi32(0x3f000000),
                                                          _mm512_set1_epi32(INT32_MIN), kSignOfAElseB);
    return _mm512_cvttps_epi32(_mm512_add_ps(_mm512_castsi512_ps(half_bits), _mm512_castsi512_ps(signed_half)));
  }
};

}  // namespace
}  // namespace mlap

#endif  // MLAP_KERNELS_VECTOR_VECTOR_AVX512_H_
