// Weights as operands of the AVX-512 and AMX dot products, loaded as they lie in memory, and the stores of the sums.
#ifndef MLAP_KERNELS_GEMM_COLUMN_OPERANDS_AVX512_H_
#define MLAP_KERNELS_GEMM_COLUMN_OPERANDS_AVX512_H_

#include <immintrin.h>

#include <cstdint>

#include "base/bf16.h"
#include "kernels/vector/vector_avx512.h"

namespace mlap {
namespace {

static inline int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t Larger(int64_t a, int64_t b) { return a > b ? a : b; }

static inline __mmask16 FirstLanes16(int64_t count) {
  return count >= 16 ? static_cast<__mmask16>(0xffff) : static_cast<__mmask16>((1u << (count < 0 ? 0 : count)) - 1u);
}

static inline __mmask32 FirstLanes32(int64_t count) {
  return count >= 32 ? 0xffffffffu : (1u << (count < 0 ? 0 : count)) - 1u;
}

static inline __mmask64 FirstLanes64(int64_t count) {
  return count >= 64 ? ~0ull : (1ull << (count < 0 ? 0 : count)) - 1ull;
}

static inline __m512i Joined(__m256i low, __m256i high) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

// bf16: an operand holds 16 columns of 2 consecutive k each.
struct Bf16Operand {
  using Element = Bf16;
  using Output = Bf16;
  static constexpr int kBlockColumns = 16;
  static constexpr int kStepK = 2;    // elements of k in 32 bits
  static constexpr int kVectors = 1;  // operands of a column block

  // Rows [0, rows) of one block, rows <= kStepK, lanes [0, lanes); the rest is zero. `kPacked`: the rows are adjacent
  // in memory, and all of them and all lanes are there.
  template <bool kPacked>
  static inline void LoadStep(const Bf16* w, int64_t row_stride, int64_t rows, int64_t lanes, __m512i* operand) {
    __m512i two_rows;
    if (kPacked) {
      two_rows = _mm512_loadu_si512(w);
    } else {
      const __mmask16 mask = FirstLanes16(lanes);
      const __m256i first = _mm256_maskz_loadu_epi16(mask, w);
      const __m256i second = rows == kStepK ? _mm256_maskz_loadu_epi16(mask, w + row_stride) : _mm256_setzero_si256();
      two_rows = Joined(first, second);
    }
    // Bytes 4 * j to 4 * j + 3 of the operand are column j of both rows.
    const __m512i column = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i index =
        _mm512_add_epi32(_mm512_mullo_epi32(column, _mm512_set1_epi32(0x02020202)), _mm512_set1_epi32(0x21200100));
    operand[0] = _mm512_permutexvar_epi8(index, two_rows);
  }

  // kStepK rows of two blocks, all there, that lie side by side: an operand row of each block.
  static inline void LoadAdjacent(const Bf16* w, int64_t row_stride, __m512i* first, __m512i* second) {
    const __m512i low = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8,  //
                                         39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
    const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
    const __m512i even = _mm512_loadu_si512(w);
    const __m512i odd = _mm512_loadu_si512(w + row_stride);
    _mm512_store_si512(first, _mm512_permutex2var_epi16(even, low, odd));
    _mm512_store_si512(second, _mm512_permutex2var_epi16(even, high, odd));
  }

  // Stores lanes [begin, end) of 16 sums, rounded to bf16, to c[0, end - begin).
  static inline void StoreRounded(__m512 sum, int64_t begin, int64_t end, Bf16* c) {
    const __mmask16 mask = static_cast<__mmask16>(FirstLanes16(end) & ~FirstLanes16(begin));
    _mm256_mask_storeu_epi16(c - begin, mask, VectorAvx512::RoundToBf16Bits(sum));
  }

  // Stores columns [begin, end) of a row of sums to c[0, end - begin), past the caches if it `streams`.
  static inline void StoreRow(const uint32_t* sums, int64_t begin, int64_t end, Bf16* c, bool streams) {
    for (int64_t j = begin; j < end; j += 16) {
      auto* whole = reinterpret_cast<__m256i*>(c + (j - begin));
      if (streams && end - j >= 16 && reinterpret_cast<uintptr_t>(whole) % sizeof(*whole) == 0) {
        _mm256_stream_si256(whole, VectorAvx512::RoundToBf16Bits(_mm512_loadu_ps(sums + j)));
        continue;
      }
      StoreRounded(_mm512_maskz_loadu_ps(FirstLanes16(end - j), sums + j), 0, Smaller(end - j, 16), c + (j - begin));
    }
  }

  // Stores columns [begin, end) of some rows of sums.
  static inline void StoreRows(const int32_t* sums, int64_t sum_stride, int64_t rows, int64_t begin, int64_t end,
                               Bf16* c, int64_t c_stride) {
    for (int64_t m = 0; m < rows; ++m, sums += sum_stride, c += c_stride) {
      StoreRow(reinterpret_cast<const uint32_t*>(sums), begin, end, c, false);
    }
  }
};

// Four rows of 32 int8, as they enter an operand: rows 0 and 1, rows 2 and 3.
struct S8Rows {
  __m512i low;
  __m512i high;

  // Rows [0, rows) of one block, lanes [0, lanes); the rest is zero. `kPacked`: see Bf16Operand::LoadStep.
  template <bool kPacked>
  static inline S8Rows Load(const int8_t* w, int64_t row_stride, int64_t rows, int64_t lanes) {
    if (kPacked) return {_mm512_loadu_si512(w), _mm512_loadu_si512(w + 64)};
    const __mmask32 mask = FirstLanes32(lanes);
    __m256i row[4];
    for (int r = 0; r < 4; ++r) {
      row[r] = r < rows ? _mm256_maskz_loadu_epi8(mask, w + r * row_stride) : _mm256_setzero_si256();
    }
    return {Joined(row[0], row[1]), Joined(row[2], row[3])};
  }
};

// int8: two operands hold 16 columns each of 4 consecutive k.
struct S8Operand {
  using Element = int8_t;
  using Output = int32_t;
  static constexpr int kBlockColumns = 32;
  static constexpr int kStepK = 4;
  static constexpr int kVectors = 2;

  template <bool kPacked>
  static inline void LoadStep(const int8_t* w, int64_t row_stride, int64_t rows, int64_t lanes, __m512i* operand) {
    const S8Rows block = S8Rows::Load<kPacked>(w, row_stride, rows, lanes);
    // Byte 4 * j + r of the operands is row r of column j: rows 0, 1 are in `low`, rows 2, 3 in `high`.
    const __m512i column = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i index =
        _mm512_add_epi32(_mm512_mullo_epi32(column, _mm512_set1_epi32(0x01010101)), _mm512_set1_epi32(0x60402000));
    const __m512i next = _mm512_add_epi32(index, _mm512_set1_epi32(0x10101010));
    operand[0] = _mm512_permutex2var_epi8(block.low, index, block.high);
    operand[1] = _mm512_permutex2var_epi8(block.low, next, block.high);
  }

  static inline void StoreRows(const int32_t* sums, int64_t sum_stride, int64_t rows, int64_t begin, int64_t end,
                               int32_t* c, int64_t c_stride) {
    for (int64_t m = 0; m < rows; ++m, sums += sum_stride, c += c_stride) {
      for (int v = 0; v < kVectors; ++v) {
        const int64_t first = v * 16;
        const __mmask16 mask = static_cast<__mmask16>(FirstLanes16(end - first) & ~FirstLanes16(begin - first));
        _mm512_mask_storeu_epi32(c - begin + first, mask, _mm512_load_si512(sums + first));
      }
    }
  }
};

}  // namespace
}  // namespace mlap

#endif  // MLAP_KERNELS_GEMM_COLUMN_OPERANDS_AVX512_H_
