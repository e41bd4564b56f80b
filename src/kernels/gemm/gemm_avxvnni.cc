// The int8 product with AVX-VNNI: VPDPBUSD on 256 bits, for CPUs that have it without AVX-512.
#include <immintrin.h>

#include "kernels/gemm/gemm_panel.h"
#include "kernels/registration.h"

namespace mlap {
namespace {

// A word is four consecutive k. VPDPBUSD multiplies unsigned by signed bytes: the weight is the unsigned side, as w +
// 128, and 128 times the row's sum of activations is taken off at the end, modulo 2^32, so the result is exact.
struct S8AvxVnni {
  using Element = int8_t;
  using Output = int32_t;
  using Vector = __m256i;
  static constexpr int kLanes = 8;
  static constexpr int kTileRows = 6;
  static constexpr int kTileVectors = 2;
  static constexpr int kWideRows = 3;
  static constexpr int kUnit = 16;
  static constexpr int kStepK = 4;
  static constexpr bool kReadsA = true;

  static inline Vector Zero() { return _mm256_setzero_si256(); }
  static inline Vector Load(const uint32_t* x) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)); }
  static inline void Store(uint32_t* x, Vector v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(x), v); }
  static inline Vector Broadcast(const void* word) { return _mm256_set1_epi32(WordAt(word)); }
  static inline Vector MultiplyAdd(Vector sum, Vector w, Vector x) { return _mm256_dpbusd_avx_epi32(sum, w, x); }

  static inline __m128i Row(const int8_t* w) {
    return _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w)), _mm_set1_epi8(static_cast<char>(0x80)));
  }
  static inline void MakeWords(const int8_t* w, int64_t row_stride, Vector* words) {
    const __m128i row0 = Row(w), row1 = Row(w + row_stride), row2 = Row(w + 2 * row_stride),
                  row3 = Row(w + 3 * row_stride);
    const __m128i low01 = _mm_unpacklo_epi8(row0, row1), high01 = _mm_unpackhi_epi8(row0, row1);
    const __m128i low23 = _mm_unpacklo_epi8(row2, row3), high23 = _mm_unpackhi_epi8(row2, row3);
    words[0] = _mm256_set_m128i(_mm_unpackhi_epi16(low01, low23), _mm_unpacklo_epi16(low01, low23));
    words[1] = _mm256_set_m128i(_mm_unpackhi_epi16(high01, high23), _mm_unpacklo_epi16(high01, high23));
  }
  static inline void ExpandRow(const int8_t* a, int64_t count, uint32_t* words) {
    if (count % 4 != 0) words[count / 4] = 0;
    std::memcpy(words, a, static_cast<size_t>(count));
  }
  static inline int32_t RowCorrection(const int8_t* a, int64_t k) {
    __m256i sums = _mm256_setzero_si256();
    int64_t i = 0;
    for (; i + 32 <= k; i += 32) {
      sums = _mm256_dpbusd_avx_epi32(sums, _mm256_set1_epi8(1),
                                     _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + i)));
    }
    alignas(32) int32_t lanes[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), sums);
    int32_t sum = 0;
    for (const int32_t lane : lanes) sum += lane;
    for (; i < k; ++i) sum += a[i];
    return static_cast<int32_t>(static_cast<uint32_t>(sum) * 128u);
  }
  static inline void StoreRow(const uint32_t* sums, int32_t correction, int64_t begin, int64_t end, int32_t* c) {
    for (int64_t j = begin; j < end; ++j)
      c[j - begin] = static_cast<int32_t>(sums[j] - static_cast<uint32_t>(correction));
  }
};

}  // namespace

void UseGemmAvxVnni(KernelTable* table) {
  table->gemm_s8 = {RunPanelGemm<S8AvxVnni, GemmS8Args>, "gemm_s8_s8_s32_6x16_avxvnni"};
}

}  // namespace mlap
