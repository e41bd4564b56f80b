// The int8 product with AVX512_VNNI (VPDPBUSD), for CPUs that have it without BF16, and perhaps without VBMI.
#include <immintrin.h>

#include "kernels/gemm/column_operands_avx512.h"
#include "kernels/gemm/gemm_panel.h"
#include "kernels/gemm/s8_dot_avx512.h"
#include "kernels/registration.h"

namespace mlap {
namespace {

// S8Operand's words without a permutation of bytes.
struct S8UnpackedOperand {
  static constexpr int kBlockColumns = S8Operand::kBlockColumns;
  static constexpr int kStepK = S8Operand::kStepK;
  static constexpr int kVectors = S8Operand::kVectors;

  template <bool kPacked>
  static inline void LoadStep(const int8_t* w, int64_t row_stride, int64_t rows, int64_t lanes, __m512i* operand) {
    const S8Rows block = S8Rows::Load<kPacked>(w, row_stride, rows, lanes);
    // In quarters of 16 bytes: rows 0 and 2, rows 1 and 3.
    const __m512i even = _mm512_shuffle_i64x2(block.low, block.high, 0x44);
    const __m512i odd = _mm512_shuffle_i64x2(block.low, block.high, 0xee);
    // Pairs of rows 0, 1 and of rows 2, 3, of columns 0 to 7 and 16 to 23; then of the others.
    const __m512i outer = _mm512_unpacklo_epi8(even, odd);
    const __m512i inner = _mm512_unpackhi_epi8(even, odd);
    const __m512i rows01 = _mm512_shuffle_i64x2(outer, inner, 0x44);
    const __m512i rows23 = _mm512_shuffle_i64x2(outer, inner, 0xee);
    // Words of columns 0, 16, 8, 24 and 4, 20, 12, 28, and of the three behind each.
    const __m512i first = _mm512_unpacklo_epi16(rows01, rows23);
    const __m512i second = _mm512_unpackhi_epi16(rows01, rows23);
    operand[0] = _mm512_permutex2var_epi64(first, _mm512_set_epi64(13, 12, 5, 4, 9, 8, 1, 0), second);
    operand[1] = _mm512_permutex2var_epi64(first, _mm512_set_epi64(15, 14, 7, 6, 11, 10, 3, 2), second);
  }
};

}  // namespace

void UseGemmAvx512Vnni(KernelTable* table) {
  table->gemm_s8 = {RunPanelGemm<S8DotAvx512<S8UnpackedOperand>, GemmS8Args>, "gemm_s8_s8_s32_6x64_avx512vnni"};
}

}  // namespace mlap
