// Matrix products with AVX512_BF16 (VDPBF16PS) and AVX512_VNNI (VPDPBUSD).
#include <immintrin.h>

#include "kernels/gemm/column_operands_avx512.h"
#include "kernels/gemm/gemm_panel.h"
#include "kernels/gemm/s8_dot_avx512.h"
#include "kernels/registration.h"

namespace mlap {
namespace {

// A word is a pair of consecutive k.
struct Bf16Dot {
  using Element = Bf16;
  using Output = Bf16;
  using Vector = __m512;
  static constexpr int kLanes = 16;
  static constexpr int kTileRows = 8;  // 8 rows x 48 columns in 24 of the 32 registers
  static constexpr int kTileVectors = 3;
  static constexpr int kWideRows = 0;
  static constexpr int kUnit = Bf16Operand::kBlockColumns;
  static constexpr int kStepK = Bf16Operand::kStepK;
  static constexpr bool kReadsA = true;

  static inline Vector Zero() { return _mm512_setzero_ps(); }
  static inline Vector Load(const uint32_t* x) { return _mm512_load_ps(x); }
  static inline void Store(uint32_t* x, Vector v) { _mm512_store_ps(x, v); }
  static inline Vector Broadcast(const void* word) { return _mm512_set1_ps(FloatAt(word)); }
  static inline Vector MultiplyAdd(Vector sum, Vector w, Vector x) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(w), reinterpret_cast<__m512bh>(x));
  }

  static inline void MakeWords(const Bf16* w, int64_t row_stride, Vector* words) {
    __m512i operand;
    if (row_stride == kUnit) {
      Bf16Operand::LoadStep<true>(w, row_stride, kStepK, kUnit, &operand);
    } else {
      Bf16Operand::LoadStep<false>(w, row_stride, kStepK, kUnit, &operand);
    }
    words[0] = _mm512_castsi512_ps(operand);
  }
  static inline void ExpandRow(const Bf16* a, int64_t count, uint32_t* words) {
    for (int64_t i = 0; i < count; i += 32) {
      const __m512i pairs = _mm512_maskz_loadu_epi16(FirstLanes32(count - i), a + i);
      _mm512_mask_storeu_epi32(words + i / 2, FirstLanes16((count - i + 1) / 2), pairs);
    }
  }
  static inline int32_t RowCorrection(const Bf16*, int64_t) { return 0; }
  static inline void StoreRow(const uint32_t* sums, int64_t begin, int64_t end, Bf16* c, bool streams) {
    Bf16Operand::StoreRow(sums, begin, end, c, streams);
  }
};

}  // namespace

void UseGemmAvx512Bf16(KernelTable* table) {
  table->gemm_bf16 = {RunPanelGemm<Bf16Dot, GemmBf16Args>, "gemm_bf16_bf16_bf16_8x48_avx512bf16"};
  table->gemm_s8 = {RunPanelGemm<S8DotAvx512<S8Operand>, GemmS8Args>, "gemm_s8_s8_s32_6x64_avx512bf16"};
}

}  // namespace mlap
