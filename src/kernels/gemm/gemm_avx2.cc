// Matrix products with AVX2 and FMA: bf16 and 8-bit floats widened to binary32, int8 to pairs of int16 (VPMADDWD,
// exact).
#include <immintrin.h>

#include "kernels/gemm/float8_table.h"
#include "kernels/gemm/gemm_panel.h"
#include "kernels/registration.h"
#include "kernels/vector/vector_avx2.h"

namespace mlap {
namespace {

// What both products share: 6 rows x 16 columns in 12 of the 16 registers.
struct Avx2Tile {
  static constexpr int kLanes = 8;
  static constexpr int kTileRows = 6;
  static constexpr int kTileVectors = 2;
  static constexpr int kWideRows = 3;
  static constexpr int kUnit = 16;
};

// A word is a binary32.
struct F32Avx2 : Avx2Tile {
  using Vector = __m256;
  static constexpr int kStepK = 1;
  static constexpr bool kReadsA = false;

  static inline Vector Zero() { return _mm256_setzero_ps(); }
  static inline Vector Load(const uint32_t* x) { return _mm256_loadu_ps(reinterpret_cast<const float*>(x)); }
  static inline void Store(uint32_t* x, Vector v) { _mm256_storeu_ps(reinterpret_cast<float*>(x), v); }
  static inline Vector Broadcast(const void* word) { return _mm256_set1_ps(FloatAt(word)); }
  static inline Vector MultiplyAdd(Vector sum, Vector w, Vector x) { return _mm256_fmadd_ps(w, x, sum); }
};

struct Bf16Avx2 : F32Avx2 {
  using Element = Bf16;
  using Output = Bf16;

  static inline Vector Widened8(const Bf16* x) {
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
  }
  // Sums and words of 16 columns are first the even ones, then the odd ones: so a mask and a shift widen them.
  static inline void MakeWords(const Bf16* w, int64_t, Vector* words) {
    const __m256i row = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w));
    words[0] = _mm256_castsi256_ps(_mm256_slli_epi32(row, 16));
    words[1] = _mm256_castsi256_ps(_mm256_and_si256(row, _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  static inline void ExpandRow(const Bf16* a, int64_t count, uint32_t* words) {
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) Store(words + i, Widened8(a + i));
    for (; i < count; ++i) words[i] = static_cast<uint32_t>(a[i].bits) << 16;
  }
  static inline int32_t RowCorrection(const Bf16*, int64_t) { return 0; }
  static inline void StoreRow(const uint32_t* sums, int64_t begin, int64_t end, Bf16* c, bool streams) {
    for (int64_t unit = begin / 16 * 16; unit < end; unit += 16) {
      const __m256i even = _mm256_srli_epi32(RoundToUpperBf16(Load(sums + unit)), 16);
      const __m256i columns = _mm256_blend_epi16(even, RoundToUpperBf16(Load(sums + unit + 8)), 0xaa);
      if (begin <= unit && unit + 16 <= end) {
        auto* whole = reinterpret_cast<__m256i*>(c + (unit - begin));
        if (streams && reinterpret_cast<uintptr_t>(whole) % sizeof(*whole) == 0) {
          _mm256_stream_si256(whole, columns);
        } else {
          _mm256_storeu_si256(whole, columns);
        }
        continue;
      }
      alignas(32) Bf16 part[16];
      _mm256_store_si256(reinterpret_cast<__m256i*>(part), columns);
      const int64_t first = begin > unit ? begin - unit : 0;
      const int64_t last = end - unit < 16 ? end - unit : 16;
      std::memcpy(static_cast<void*>(c + (unit + first - begin)), part + first,
                  static_cast<size_t>(last - first) * sizeof(Bf16));
    }
  }
};

// Codes are looked up in a table of all 256 values.
template <class Format>
struct F8Avx2 : F32Avx2 {
  using Element = uint8_t;
  using Output = float;
  static constexpr Float8Table<Format> kTable = {};

  // VPGATHERDD reads 32 bits at an entry; the upper half, the next entry, is shifted out.
  static inline Vector Widened8(const uint8_t* x) {
    const __m256i codes = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(x)));
    const __m256i values = _mm256_i32gather_epi32(reinterpret_cast<const int*>(kTable.bf16), codes, 2);
    return _mm256_castsi256_ps(_mm256_slli_epi32(values, 16));
  }
  static inline void MakeWords(const uint8_t* w, int64_t, Vector* words) {
    words[0] = Widened8(w);
    words[1] = Widened8(w + 8);
  }
  static inline void ExpandRow(const uint8_t* a, int64_t count, uint32_t* words) {
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) Store(words + i, Widened8(a + i));
    for (; i < count; ++i) words[i] = static_cast<uint32_t>(kTable.bf16[a[i]]) << 16;
  }
  static inline int32_t RowCorrection(const uint8_t*, int64_t) { return 0; }
  static inline void StoreRow(const uint32_t* sums, int32_t, int64_t begin, int64_t end, float* c) {
    std::memcpy(c, sums + begin, static_cast<size_t>(end - begin) * sizeof(float));
  }
};

// A product of scaled values may leave the normal numbers, where a fused addition would show it unrounded.
struct MxF8Avx2 : F8Avx2<E4m3> {
  static inline Vector Multiply(Vector w, Vector x) { return _mm256_mul_ps(w, x); }
  static inline Vector MultiplyAdd(Vector sum, Vector w, Vector x) { return _mm256_add_ps(sum, Multiply(w, x)); }
};

void GemmF8(const GemmF8Args& args) {
  if (args.weight.type == ElementType::kHiF8) return RunPanelGemm<F8Avx2<HiF8>, GemmF8Args>(args);
  if (args.a_scales != nullptr) return RunPanelGemm<MxF8Avx2, GemmF8Args>(args);
  return RunPanelGemm<F8Avx2<E4m3>, GemmF8Args>(args);
}

// A word is a pair of consecutive k, widened to int16.
struct S8Avx2 : Avx2Tile {
  using Element = int8_t;
  using Output = int32_t;
  using Vector = __m256i;
  static constexpr int kStepK = 2;
  static constexpr bool kReadsA = false;

  static inline Vector Zero() { return _mm256_setzero_si256(); }
  static inline Vector Load(const uint32_t* x) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)); }
  static inline void Store(uint32_t* x, Vector v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(x), v); }
  static inline Vector Broadcast(const void* word) { return _mm256_set1_epi32(WordAt(word)); }
  static inline Vector MultiplyAdd(Vector sum, Vector w, Vector x) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(w, x));
  }

  static inline void MakeWords(const int8_t* w, int64_t row_stride, Vector* words) {
    const __m128i first = _mm_loadu_si128(reinterpret_cast<const __m128i*>(w));
    const __m128i second = _mm_loadu_si128(reinterpret_cast<const __m128i*>(w + row_stride));
    words[0] = _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(first, second));
    words[1] = _mm256_cvtepi8_epi16(_mm_unpackhi_epi8(first, second));
  }
  static inline uint32_t Pair(int8_t low, int8_t high) {
    return static_cast<uint16_t>(low) | static_cast<uint32_t>(static_cast<uint16_t>(high)) << 16;
  }
  static inline void ExpandRow(const int8_t* a, int64_t count, uint32_t* words) {
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) {
      const __m256i wide = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a + i)));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(words + i / 2), wide);
    }
    for (; i + 2 <= count; i += 2) words[i / 2] = Pair(a[i], a[i + 1]);
    if (i < count) words[i / 2] = Pair(a[i], 0);
  }
  static inline int32_t RowCorrection(const int8_t*, int64_t) { return 0; }
  static inline void StoreRow(const uint32_t* sums, int32_t, int64_t begin, int64_t end, int32_t* c) {
    std::memcpy(c, sums + begin, static_cast<size_t>(end - begin) * sizeof(int32_t));
  }
};

}  // namespace

void UseGemmAvx2(KernelTable* table) {
  table->gemm_bf16 = {RunPanelGemm<Bf16Avx2, GemmBf16Args>, "gemm_bf16_bf16_bf16_6x16_avx2"};
  table->gemm_s8 = {RunPanelGemm<S8Avx2, GemmS8Args>, "gemm_s8_s8_s32_6x16_avx2"};
  table->gemm_f8 = {GemmF8, "gemm_f8_f8_f32_6x16_avx2"};
}

}  // namespace mlap
