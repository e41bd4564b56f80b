// Matrix products with AVX-512 (F, BW, VL, DQ): bf16 and 8-bit floats widened to binary32, int8 to pairs of int16
// (VPMADDWD, exact).
#include <immintrin.h>

#include "kernels/gemm/column_operands_avx512.h"
#include "kernels/gemm/float8_table.h"
#include "kernels/gemm/gemm_panel.h"
#include "kernels/registration.h"

namespace mlap {
namespace {

// What both products share: 8 rows x 48 columns in 24 of the 32 registers.
struct Avx512Tile {
  static constexpr int kLanes = 16;
  static constexpr int kTileRows = 8;
  static constexpr int kTileVectors = 3;
  static constexpr int kWideRows = 0;
  static constexpr int kUnit = 16;
};

// A word is a binary32.
struct F32Avx512 : Avx512Tile {
  using Vector = __m512;
  static constexpr int kStepK = 1;
  static constexpr bool kReadsA = false;

  static inline Vector Zero() { return _mm512_setzero_ps(); }
  static inline Vector Load(const uint32_t* x) { return _mm512_load_ps(x); }
  static inline void Store(uint32_t* x, Vector v) { _mm512_store_ps(x, v); }
  static inline Vector Broadcast(const void* word) { return _mm512_set1_ps(FloatAt(word)); }
  static inline Vector MultiplyAdd(Vector sum, Vector w, Vector x) { return _mm512_fmadd_ps(w, x, sum); }
};

struct Bf16Avx512 : F32Avx512 {
  using Element = Bf16;
  using Output = Bf16;

  static inline Vector Widened16(__m256i x) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
  }
  static inline void MakeWords(const Bf16* w, int64_t, Vector* words) {
    words[0] = Widened16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(w)));
  }
  static inline void ExpandRow(const Bf16* a, int64_t count, uint32_t* words) {
    for (int64_t i = 0; i < count; i += 16) {
      const __mmask16 mask = FirstLanes16(count - i);
      _mm512_mask_storeu_ps(words + i, mask, Widened16(_mm256_maskz_loadu_epi16(mask, a + i)));
    }
  }
  static inline int32_t RowCorrection(const Bf16*, int64_t) { return 0; }
  static inline void StoreRow(const uint32_t* sums, int64_t begin, int64_t end, Bf16* c, bool streams) {
    Bf16Operand::StoreRow(sums, begin, end, c, streams);
  }
};

// E4M3 is a binary16 with a shorter exponent and mantissa: moved there, a code stands for 2^-8 times its value,
// denormals included.
struct E4m3Codes {
  static inline __m512i Widen16(__m128i codes) {
    const __m256i shifted = _mm256_slli_epi16(_mm256_cvtepi8_epi16(codes), 7);
    // The sign's copy falls into the highest bit of the exponent, which is always zero.
    const __m256i halves = _mm256_and_si256(shifted, _mm256_set1_epi16(static_cast<int16_t>(0xbfff)));
    const __m512 values = _mm512_mul_ps(_mm512_cvtph_ps(halves), _mm512_set1_ps(256.0f));
    const __mmask16 is_nan = _mm_cmpeq_epi8_mask(_mm_or_si128(codes, _mm_set1_epi8(INT8_MIN)), _mm_set1_epi8(-1));
    return _mm512_mask_mov_epi32(_mm512_castps_si512(values), is_nan, _mm512_set1_epi32(0x7fc00000));
  }
};

// The values of HiFloat8's 128 magnitudes are looked up in four registers of 32 bf16 each.
struct HiF8Codes {
  static constexpr Float8Table<HiF8> kTable = {};

  // Codes stand in the upper halves of the words, where their values have to go as well; the lower halves look up code
  // 0, whose value is all zeros.
  static inline __m512i Widen16(__m128i codes) {
    const __m512i x = _mm512_slli_epi32(_mm512_cvtepu8_epi32(codes), 16);
    const __m512i below_64 =
        _mm512_permutex2var_epi16(_mm512_load_si512(kTable.bf16), x, _mm512_load_si512(kTable.bf16 + 32));
    const __m512i from_64 =
        _mm512_permutex2var_epi16(_mm512_load_si512(kTable.bf16 + 64), x, _mm512_load_si512(kTable.bf16 + 96));
    const __mmask32 is_from_64 = _mm512_test_epi16_mask(x, _mm512_set1_epi32(0x00400000));
    const __m512i magnitudes = _mm512_mask_mov_epi16(below_64, is_from_64, from_64);
    const __m512i signs = _mm512_and_si512(_mm512_slli_epi32(x, 8), _mm512_set1_epi32(INT32_MIN));
    const __mmask16 is_nan = _mm_cmpeq_epi8_mask(codes, _mm_set1_epi8(INT8_MIN));
    return _mm512_mask_mov_epi32(_mm512_or_si512(magnitudes, signs), is_nan, _mm512_set1_epi32(0x7fc00000));
  }
};

template <class Codes>
struct F8Avx512 : F32Avx512 {
  using Element = uint8_t;
  using Output = float;

  static inline void MakeWords(const uint8_t* w, int64_t, Vector* words) {
    words[0] = _mm512_castsi512_ps(Codes::Widen16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w))));
  }
  static inline void ExpandRow(const uint8_t* a, int64_t count, uint32_t* words) {
    for (int64_t i = 0; i < count; i += 16) {
      const __mmask16 mask = FirstLanes16(count - i);
      _mm512_mask_storeu_epi32(words + i, mask, Codes::Widen16(_mm_maskz_loadu_epi8(mask, a + i)));
    }
  }
  static inline int32_t RowCorrection(const uint8_t*, int64_t) { return 0; }
  static inline void StoreRow(const uint32_t* sums, int32_t, int64_t begin, int64_t end, float* c) {
    std::memcpy(c, sums + begin, static_cast<size_t>(end - begin) * sizeof(float));
  }
};

// A product of scaled values may leave the normal numbers, where a fused addition would show it unrounded.
struct MxF8Avx512 : F8Avx512<E4m3Codes> {
  static inline Vector Multiply(Vector w, Vector x) { return _mm512_mul_ps(w, x); }
  static inline Vector MultiplyAdd(Vector sum, Vector w, Vector x) { return _mm512_add_ps(sum, Multiply(w, x)); }
};

void GemmF8(const GemmF8Args& args) {
  if (args.weight.type == ElementType::kHiF8) return RunPanelGemm<F8Avx512<HiF8Codes>, GemmF8Args>(args);
  if (args.a_scales != nullptr) return RunPanelGemm<MxF8Avx512, GemmF8Args>(args);
  return RunPanelGemm<F8Avx512<E4m3Codes>, GemmF8Args>(args);
}

// A word is a pair of consecutive k, widened to int16.
struct S8Avx512 : Avx512Tile {
  using Element = int8_t;
  using Output = int32_t;
  using Vector = __m512i;
  static constexpr int kStepK = 2;
  static constexpr bool kReadsA = false;

  static inline Vector Zero() { return _mm512_setzero_si512(); }
  static inline Vector Load(const uint32_t* x) { return _mm512_load_si512(x); }
  static inline void Store(uint32_t* x, Vector v) { _mm512_store_si512(x, v); }
  static inline Vector Broadcast(const void* word) { return _mm512_set1_epi32(WordAt(word)); }
  static inline Vector MultiplyAdd(Vector sum, Vector w, Vector x) {
    return _mm512_add_epi32(sum, _mm512_madd_epi16(w, x));
  }

  static inline void MakeWords(const int8_t* w, int64_t row_stride, Vector* words) {
    const __m128i first = _mm_loadu_si128(reinterpret_cast<const __m128i*>(w));
    const __m128i second = _mm_loadu_si128(reinterpret_cast<const __m128i*>(w + row_stride));
    const __m256i pairs = _mm256_set_m128i(_mm_unpackhi_epi8(first, second), _mm_unpacklo_epi8(first, second));
    words[0] = _mm512_cvtepi8_epi16(pairs);
  }
  static inline void ExpandRow(const int8_t* a, int64_t count, uint32_t* words) {
    for (int64_t i = 0; i < count; i += 32) {
      const __m256i bytes = _mm256_maskz_loadu_epi8(FirstLanes32(count - i), a + i);
      const __mmask16 pairs = FirstLanes16((count - i + 1) / 2);
      _mm512_mask_storeu_epi32(words + i / 2, pairs, _mm512_cvtepi8_epi16(bytes));
    }
  }
  static inline int32_t RowCorrection(const int8_t*, int64_t) { return 0; }
  static inline void StoreRow(const uint32_t* sums, int32_t, int64_t begin, int64_t end, int32_t* c) {
    std::memcpy(c, sums + begin, static_cast<size_t>(end - begin) * sizeof(int32_t));
  }
};

}  // namespace

void UseGemmAvx512(KernelTable* table) {
  table->gemm_bf16 = {RunPanelGemm<Bf16Avx512, GemmBf16Args>, "gemm_bf16_bf16_bf16_8x48_avx512"};
  table->gemm_s8 = {RunPanelGemm<S8Avx512, GemmS8Args>, "gemm_s8_s8_s32_8x48_avx512"};
  table->gemm_f8 = {GemmF8, "gemm_f8_f8_f32_8x48_avx512"};
}

}  // namespace mlap
