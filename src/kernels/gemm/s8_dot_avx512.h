// The policy of int8 products with VPDPBUSD on 512 bits, for gemm_panel.h.
#ifndef MLAP_KERNELS_GEMM_S8_DOT_AVX512_H_
#define MLAP_KERNELS_GEMM_S8_DOT_AVX512_H_

#include <immintrin.h>

#include <cstdint>

#include "kernels/gemm/column_operands_avx512.h"
#include "kernels/gemm/gemm_panel.h"

namespace mlap {
namespace {

// A word is four consecutive k. VPDPBUSD multiplies unsigned by signed bytes: the weight is the unsigned side, as w +
// 128 (a flipped sign bit), and 128 times the row's sum of activations is taken off at the end, modulo 2^32, so the
// result is exact. `Operand` brings the weight into words.
template <class Operand>
struct S8DotAvx512 {
  using Element = int8_t;
  using Output = int32_t;
  using Vector = __m512i;
  static constexpr int kLanes = 16;
  static constexpr int kTileRows = 6;  // 6 rows x 64 columns in 24 of the 32 registers
  static constexpr int kTileVectors = 4;
  static constexpr int kWideRows = 0;
  static constexpr int kUnit = Operand::kBlockColumns;
  static constexpr int kStepK = Operand::kStepK;
  static constexpr bool kReadsA = true;

  static inline Vector Zero() { return _mm512_setzero_si512(); }
  static inline Vector Load(const uint32_t* x) { return _mm512_load_si512(x); }
  static inline void Store(uint32_t* x, Vector v) { _mm512_store_si512(x, v); }
  static inline Vector Broadcast(const void* word) { return _mm512_set1_epi32(WordAt(word)); }
  static inline Vector MultiplyAdd(Vector sum, Vector w, Vector x) { return _mm512_dpbusd_epi32(sum, w, x); }

  static inline void MakeWords(const int8_t* w, int64_t row_stride, Vector* words) {
    if (row_stride == kUnit) {
      Operand::template LoadStep<true>(w, row_stride, kStepK, kUnit, words);
    } else {
      Operand::template LoadStep<false>(w, row_stride, kStepK, kUnit, words);
    }
    for (int v = 0; v < Operand::kVectors; ++v) {
      words[v] = _mm512_xor_si512(words[v], _mm512_set1_epi8(static_cast<char>(0x80)));
    }
  }
  static inline void ExpandRow(const int8_t* a, int64_t count, uint32_t* words) {
    for (int64_t i = 0; i < count; i += 64) {
      const __m512i steps = _mm512_maskz_loadu_epi8(FirstLanes64(count - i), a + i);
      _mm512_mask_storeu_epi32(words + i / 4, FirstLanes16((count - i + 3) / 4), steps);
    }
  }
  static inline int32_t RowCorrection(const int8_t* a, int64_t k) {
    __m512i sums = _mm512_setzero_si512();
    const __m512i ones = _mm512_set1_epi8(1);
    for (int64_t i = 0; i < k; i += 64) {
      sums = _mm512_dpbusd_epi32(sums, ones, _mm512_maskz_loadu_epi8(FirstLanes64(k - i), a + i));
    }
    return static_cast<int32_t>(static_cast<uint32_t>(_mm512_reduce_add_epi32(sums)) * 128u);
  }
  static inline void StoreRow(const uint32_t* sums, int32_t correction, int64_t begin, int64_t end, int32_t* c) {
    for (int64_t j = begin; j < end; j += 16) {
      const __mmask16 mask = FirstLanes16(end - j);
      const __m512i sum = _mm512_maskz_loadu_epi32(mask, sums + j);
      _mm512_mask_storeu_epi32(c + (j - begin), mask, _mm512_sub_epi32(sum, _mm512_set1_epi32(correction)));
    }
  }
};

}  // namespace
}  // namespace mlap

#endif  // MLAP_KERNELS_GEMM_S8_DOT_AVX512_H_
