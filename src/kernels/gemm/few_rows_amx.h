// A bf16 product of few rows without tiles, bit for bit as TDPBF16PS adds: while memory is the limit, loads that feed
// multiplications directly keep more of it in flight than loads that go through the tiles' operand order.
//
// TDPBF16PS takes 32 k at a time. It adds the products of the even k to one sum and those of the odd k to another, each
// with fused multiply-adds in ascending order that begin at zero, adds the two, and adds that to the output. Denormal
// inputs are zero, and so are denormal results. That is the instruction's definition in Intel's manual; a test compares
// the two.
#ifndef MLAP_KERNELS_GEMM_FEW_ROWS_AMX_H_
#define MLAP_KERNELS_GEMM_FEW_ROWS_AMX_H_

#include <immintrin.h>

#include <cstdint>

#include "kernels/gemm/column_operands_avx512.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/weight_prefetch.h"

namespace mlap {
namespace {

class FewRowsBf16 {
 public:
  static constexpr int64_t kMostRows = 2;

  static bool Takes(const GemmBf16Args& args) {
    return args.rows <= kMostRows && args.rows * PaddedK(args.weight.k) <= kGemmScratchBytes / kFloatBytes;
  }

  // Not inlined, as nothing may be computed under other rules for denormals and rounding.
  __attribute__((noinline)) static void Run(const GemmBf16Args& args) {
    constexpr unsigned kAllMaskedToNearest = 0x1f80, kDenormalsAreZero = 0x0040, kFlushToZero = 0x8000;
    const unsigned before = _mm_getcsr();
    _mm_setcsr(kAllMaskedToNearest | kDenormalsAreZero | kFlushToZero);
    FewRowsBf16(args).RunRows();
    _mm_setcsr(before);
  }

 private:
  using Element = Bf16;
  static constexpr int64_t kFloatBytes = static_cast<int64_t>(sizeof(float));
  static constexpr int64_t kBlockColumns = Bf16Operand::kBlockColumns;
  static constexpr int64_t kTileK = 32;
  static constexpr int64_t kTileElements = kTileK * kBlockColumns;
  static constexpr int64_t kLineElements = kLineBytes / static_cast<int64_t>(sizeof(Element));
  static constexpr int kBlocks = 4;  // column blocks at a time, each a stream of memory: several fetch more than one
  static constexpr int64_t kGroupColumns = kBlocks * kBlockColumns;
  static constexpr int64_t kAheadK = 96;  // how far ahead of its use a block is asked for
  // The beginning of what is read next, asked for in the last 32 k of so many: as much as RunInRows asks for ahead.
  static constexpr int64_t kNextStartBytes = 32 * 1024;
  static constexpr int64_t kNextStartTiles = 11;

  static constexpr int64_t PaddedK(int64_t k) { return (k + kTileK - 1) / kTileK * kTileK; }

  explicit FewRowsBf16(const GemmBf16Args& args)
      : args_(args),
        weight_(args.weight),
        is_packed_(weight_.row_stride == kBlockColumns),
        is_row_major_(weight_.block_stride == kBlockColumns),
        padded_k_(PaddedK(weight_.k)),
        a_(static_cast<float*>(args.scratch)) {}

  void RunRows() {
    for (int64_t m = 0; m < args_.rows; ++m) {
      const Bf16* a = args_.a + m * args_.a_row_stride;
      for (int64_t k = 0; k < padded_k_; k += 16) {
        const __m256i values = _mm256_maskz_loadu_epi16(FirstLanes16(weight_.k - k), a + k);
        const __m512i widened = _mm512_slli_epi32(_mm512_cvtepu16_epi32(values), 16);
        _mm512_store_si512(a_ + m * padded_k_ + k, widened);
      }
    }
    return args_.rows == 1 ? RunColumns<1>() : RunColumns<2>();
  }

  template <int kRows>
  void RunColumns() const {
    if (IsReadInRows()) return RunInRows<kRows>();
    if (!args_.was_next) PrefetchSpreadRows<Element>(weight_, args_.column_begin, args_.column_end);
    const int64_t end = (args_.column_end + kBlockColumns - 1) / kBlockColumns;
    int64_t block = args_.column_begin / kBlockColumns;
    for (; block + kBlocks <= end; block += kBlocks) RunBlocks<kRows, kBlocks>(block);
    for (; block + 2 <= end; block += 2) RunBlocks<kRows, 2>(block);
    if (block < end) RunBlocks<kRows, 1>(block);
  }

  bool IsReadInRows() const {
    const int64_t columns = args_.column_end - args_.column_begin;
    return is_row_major_ && columns == weight_.row_stride && weight_.k % kTileK == 0 && columns % kGroupColumns == 0 &&
           args_.rows * (padded_k_ + columns) <= kGemmScratchBytes / kFloatBytes;
  }

  // A weight whose rows of all columns follow each other: 32 rows at a time, a group of columns after the other, asking
  // for the next 32 rows in the order of memory. The sums of all columns wait in memory meanwhile.
  template <int kRows>
  void RunInRows() const {
    const int64_t groups = (args_.column_end - args_.column_begin) / kGroupColumns;
    float* all_sums = a_ + kRows * padded_k_;
    NextReadPrefetch next_read(args_.next, groups * weight_.k / kTileK);
    for (int64_t k = 0; k < weight_.k; k += kTileK) {
      const Bf16* w = static_cast<const Bf16*>(weight_.data) + k * weight_.row_stride + args_.column_begin;
      for (int64_t group = 0; group < groups; ++group) {
        float* group_sums = all_sums + group * kRows * kGroupColumns;
        __m512 sums[kRows][kBlocks];
#pragma GCC unroll 4
        for (int m = 0; m < kRows; ++m) {
#pragma GCC unroll 4
          for (int b = 0; b < kBlocks; ++b) {
            sums[m][b] = k == 0 ? _mm512_setzero_ps() : _mm512_load_ps(group_sums + (m * kBlocks + b) * 16);
          }
        }
        const Bf16* soon = w + kTileK * weight_.row_stride + group * (kTileK * kGroupColumns / kAskedPlaces);
        AddTile<kRows, kBlocks, TileIn::kRows>(w + group * kGroupColumns, weight_.row_stride, a_ + k, soon, sums);
        next_read.Portion();
        if (k + kTileK == weight_.k) {
          StoreBlocks<kRows, kBlocks>(args_.column_begin / kBlockColumns + group * kBlocks, sums);
          continue;
        }
#pragma GCC unroll 4
        for (int m = 0; m < kRows; ++m) {
#pragma GCC unroll 4
          for (int b = 0; b < kBlocks; ++b) _mm512_store_ps(group_sums + (m * kBlocks + b) * 16, sums[m][b]);
        }
      }
    }
  }

  template <int kRows, int kBlocks>
  void RunBlocks(int64_t first_block) const {
    __m512 sums[kRows][kBlocks];
#pragma GCC unroll 4
    for (int m = 0; m < kRows; ++m) {
#pragma GCC unroll 4
      for (int b = 0; b < kBlocks; ++b) sums[m][b] = _mm512_setzero_ps();
    }
    const bool has_all_columns = (first_block + kBlocks) * kBlockColumns <= weight_.n;
    const bool reads_weight = has_all_columns && (is_packed_ || is_row_major_);
    const Bf16* w = static_cast<const Bf16*>(weight_.data) + first_block * weight_.block_stride;
    const bool is_last = (first_block + kBlocks) * kBlockColumns >= args_.column_end;
    const Bf16* next_w = is_last ? w : w + kBlocks * weight_.block_stride;
    NextRead next = args_.next;
    next.num_bytes = is_last ? Smaller(next.num_bytes, kNextStartBytes) : 0;
    NextReadPrefetch next_read(next, kNextStartTiles);
    int64_t k = 0;
    if (reads_weight) {
      for (; k + kTileK <= weight_.k; k += kTileK) {
        if (is_packed_) {
          if (k >= weight_.k - kNextStartTiles * kTileK) next_read.Portion();
          const int64_t soon = k + kAheadK;
          const Bf16* soon_tile =
              soon < weight_.k ? w + soon * kBlockColumns : next_w + (soon - weight_.k) * kBlockColumns;
          AddTile<kRows, kBlocks, TileIn::kPackedWeight>(w + k * kBlockColumns, weight_.block_stride, a_ + k, soon_tile,
                                                         sums);
        } else {
          const Bf16* tile = w + k * weight_.row_stride;
          AddTile<kRows, kBlocks, TileIn::kRows>(tile, weight_.row_stride, a_ + k, tile, sums);
        }
      }
    }
    for (; k < weight_.k; k += kTileK) {
      // What lies past the weight is zero.
      alignas(64) Bf16 tile[kBlocks * kTileElements];
      CopyTile<kBlocks>(first_block, k, tile);
      AddTile<kRows, kBlocks, TileIn::kCopy>(tile, kTileElements, a_ + k, tile, sums);
    }
    StoreBlocks<kRows, kBlocks>(first_block, sums);
  }

  // Where 32 k of some blocks lie: in blocks of adjacent rows of 16, `stride` from block to block, of the weight or of
  // a copy; or in rows of all columns, `stride` from row to row. `soon` is asked for in the same order, or, for rows,
  // in the order of memory.
  enum class TileIn { kPackedWeight, kRows, kCopy };

  template <int kRows, int kBlocks, TileIn kPlace>
  inline void AddTile(const Bf16* w, int64_t stride, const float* a, const Bf16* soon,
                      __m512 (&sums)[kRows][kBlocks]) const {
    __m512 even[kRows][kBlocks], odd[kRows][kBlocks];
#pragma GCC unroll 4
    for (int m = 0; m < kRows; ++m) {
#pragma GCC unroll 4
      for (int b = 0; b < kBlocks; ++b) even[m][b] = odd[m][b] = _mm512_setzero_ps();
    }
    for (int64_t k = 0; k < kTileK; k += 2) {
#pragma GCC unroll 4
      for (int b = 0; b < kBlocks; ++b) {
        __m512 even_w, odd_w;
        if constexpr (kPlace != TileIn::kRows) {
          const Bf16* rows = w + b * stride + k * kBlockColumns;
          if (kPlace == TileIn::kPackedWeight) PrefetchLine(soon + b * stride + k * kBlockColumns);
          const __m512i line = _mm512_loadu_si512(rows);
          even_w = LowHalf(line);
          odd_w = HighHalf(line);
        } else {
          const int64_t line = k * kBlocks / 2 + b;
          PrefetchLaterLine(soon + line % kAskedPlaces * (kTileK / kAskedPlaces) * stride +
                            line / kAskedPlaces * kLineElements);
          even_w = Widened(w + k * stride + b * kBlockColumns);
          odd_w = Widened(w + (k + 1) * stride + b * kBlockColumns);
        }
#pragma GCC unroll 4
        for (int m = 0; m < kRows; ++m) {
          even[m][b] = _mm512_fmadd_ps(even_w, _mm512_set1_ps(a[m * padded_k_ + k]), even[m][b]);
          odd[m][b] = _mm512_fmadd_ps(odd_w, _mm512_set1_ps(a[m * padded_k_ + k + 1]), odd[m][b]);
        }
      }
    }
#pragma GCC unroll 4
    for (int m = 0; m < kRows; ++m) {
#pragma GCC unroll 4
      for (int b = 0; b < kBlocks; ++b) {
        sums[m][b] = _mm512_add_ps(sums[m][b], _mm512_add_ps(even[m][b], odd[m][b]));
      }
    }
  }

  // 16 bf16 of a line, widened to binary32.
  static inline __m512 LowHalf(__m512i line) {
    const __m512i index = _mm512_set_epi16(15, 0, 14, 0, 13, 0, 12, 0, 11, 0, 10, 0, 9, 0, 8, 0,  //
                                           7, 0, 6, 0, 5, 0, 4, 0, 3, 0, 2, 0, 1, 0, 0, 0);
    return _mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(0xaaaaaaaau, index, line));
  }
  static inline __m512 HighHalf(__m512i line) {
    const __m512i index = _mm512_set_epi16(31, 0, 30, 0, 29, 0, 28, 0, 27, 0, 26, 0, 25, 0, 24, 0,  //
                                           23, 0, 22, 0, 21, 0, 20, 0, 19, 0, 18, 0, 17, 0, 16, 0);
    return _mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(0xaaaaaaaau, index, line));
  }
  static inline __m512 Widened(const Bf16* row) {
    const __m256i values = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(values), 16));
  }

  // Rows [k, k + 32) of kBlocks blocks to the packed order, zero where the weight ends.
  template <int kBlocks>
  void CopyTile(int64_t first_block, int64_t k, Bf16* tile) const {
    for (int64_t b = 0; b < kBlocks; ++b) {
      const int64_t lanes = weight_.n - (first_block + b) * kBlockColumns;
      const Bf16* w = static_cast<const Bf16*>(weight_.data) + (first_block + b) * weight_.block_stride;
      for (int64_t row = 0; row < kTileK; ++row, tile += kBlockColumns) {
        const bool is_there = k + row < weight_.k && lanes > 0;
        const __mmask16 mask = is_there ? FirstLanes16(lanes) : static_cast<__mmask16>(0);
        _mm256_store_si256(reinterpret_cast<__m256i*>(tile),
                           _mm256_maskz_loadu_epi16(mask, w + (is_there ? k + row : 0) * weight_.row_stride));
      }
    }
  }

  template <int kRows, int kBlocks>
  void StoreBlocks(int64_t first_block, const __m512 (&sums)[kRows][kBlocks]) const {
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) {
      const int64_t column = (first_block + b) * kBlockColumns;
      const int64_t begin = Larger(args_.column_begin - column, 0);
      const int64_t end = Smaller(args_.column_end - column, kBlockColumns);
#pragma GCC unroll 4
      for (int m = 0; m < kRows; ++m) {
        Bf16Operand::StoreRounded(sums[m][b], begin, end,
                                  args_.c + m * args_.c_row_stride + column + begin - args_.column_begin);
      }
    }
  }

  const GemmBf16Args& args_;
  const WeightView& weight_;
  const bool is_packed_;
  const bool is_row_major_;
  const int64_t padded_k_;
  float* a_;  // [rows, padded_k_]
};

}  // namespace
}  // namespace mlap

#endif  // MLAP_KERNELS_GEMM_FEW_ROWS_AMX_H_
