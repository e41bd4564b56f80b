// Matrix products with AVX512_BF16 (VDPBF16PS) and AVX512_VNNI (VPDPBUSD), on weights as they lie in memory.
//
// Both walk a column group (up to kGroupBlocks column blocks) down k, with the accumulators of a row tile in registers.
// One accumulator is one output's whole chain: ascending k, nothing split, nothing reordered.
#include <immintrin.h>

#include "kernels/gemm/column_operands_avx512.h"
#include "kernels/gemm/weight_prefetch.h"
#include "kernels/registration.h"

namespace mlap {
namespace {

// How far ahead of its use a weight is asked for, in each column block.
constexpr int64_t kPrefetchBytes = 2048;

// Copies what is left of a row's k (fewer elements than a step) into one zero-filled 32-bit step.
template <class Element>
static inline int32_t LastStep(const Element* a, int64_t left) {
  int32_t step = 0;
  __builtin_memcpy(&step, a, static_cast<size_t>(left) * sizeof(Element));
  return step;
}

template <class Element>
static inline int32_t FullStep(const Element* a) {
  int32_t step;
  __builtin_memcpy(&step, a, sizeof(step));
  return step;
}

// A row tile's accumulators over an operand's columns: 24 of the 32 registers.
struct Bf16Columns : Bf16Operand {
  static constexpr int kMaxTileRows = 8;  // 8 rows x 3 blocks
  static constexpr int kGroupBlocks = 3;
  using Accumulator = __m512;

  static inline Accumulator Zero() { return _mm512_setzero_ps(); }
  static inline __m512i Prepared(__m512i operand) { return operand; }
  static inline Accumulator Multiply(Accumulator sum, __m512i operand, int32_t step) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(operand),
                            reinterpret_cast<__m512bh>(_mm512_set1_epi32(step)));
  }
  static inline int32_t RowCorrection(const Bf16*, int64_t) { return 0; }
  static inline void Store(const Accumulator* sum, int32_t, int64_t begin, int64_t end, Bf16* c) {
    StoreRounded(sum[0], begin, end, c);
  }
};

// VPDPBUSD multiplies unsigned by signed bytes. The weight is the unsigned side, as w + 128 (a flipped sign bit, once
// per loaded operand); 128 times the row's sum of activations is taken off at the end, modulo 2^32, so the result is
// exact.
struct S8Columns : S8Operand {
  static constexpr int kMaxTileRows = 5;  // 5 rows x 2 blocks x 2 vectors, beside 4 operands and 3 constants
  static constexpr int kGroupBlocks = 2;
  using Accumulator = __m512i;

  static inline Accumulator Zero() { return _mm512_setzero_si512(); }
  static inline __m512i Prepared(__m512i operand) {
    return _mm512_xor_si512(operand, _mm512_set1_epi8(static_cast<char>(0x80)));
  }
  static inline Accumulator Multiply(Accumulator sum, __m512i operand, int32_t step) {
    return _mm512_dpbusd_epi32(sum, operand, _mm512_set1_epi32(step));
  }
  static inline int32_t RowCorrection(const int8_t* a, int64_t k) {
    __m512i sums = _mm512_setzero_si512();
    const __m512i ones = _mm512_set1_epi8(1);
    for (int64_t i = 0; i < k; i += 64) {
      const int64_t left = k - i;
      const __mmask64 mask = left >= 64 ? ~0ull : (1ull << left) - 1ull;
      sums = _mm512_dpbusd_epi32(sums, ones, _mm512_maskz_loadu_epi8(mask, a + i));
    }
    return static_cast<int32_t>(static_cast<uint32_t>(_mm512_reduce_add_epi32(sums)) * 128u);
  }
  static inline void Store(const Accumulator* sum, int32_t correction, int64_t begin, int64_t end, int32_t* c) {
    for (int v = 0; v < kVectors; ++v) {
      const int64_t first = v * 16;
      const __mmask16 mask = static_cast<__mmask16>(FirstLanes16(end - first) & ~FirstLanes16(begin - first));
      _mm512_mask_storeu_epi32(c - begin + first, mask, _mm512_sub_epi32(sum[v], _mm512_set1_epi32(correction)));
    }
  }
};

// The lanes of a column block that exist in the weight, and those that are asked for.
struct BlockRange {
  int64_t lanes;
  int64_t begin;
  int64_t end;
};

template <class Columns>
struct Tile {
  const typename Columns::Element* a;
  int64_t a_row_stride;
  const typename Columns::Element* w;  // first block of the group
  int64_t block_stride;
  int64_t row_stride;
  int64_t k;
  const BlockRange* blocks;     // of the group
  const int32_t* corrections;   // of the rows
  typename Columns::Output* c;  // at the group's first stored column
  int64_t c_row_stride;
};

// The end of a tile, from sums that have been stored: what is left of k, and C. Apart from the main loop, so that the
// sums there are nothing but registers to the compiler.
template <class Columns, int kRows, int kBlocks>
__attribute__((noinline)) void FinishTile(const Tile<Columns>& tile, typename Columns::Accumulator* sums) {
  constexpr int kVectors = Columns::kVectors;
  const int64_t left = tile.k % Columns::kStepK;
  if (left > 0) {
    __m512i operand[kBlocks * kVectors];
    const auto* w = tile.w + (tile.k - left) * tile.row_stride;
    for (int b = 0; b < kBlocks; ++b) {
      Columns::template LoadStep<false>(w + b * tile.block_stride, tile.row_stride, left, tile.blocks[b].lanes,
                                        operand + b * kVectors);
    }
    for (__m512i& vector : operand) vector = Columns::Prepared(vector);
    for (int m = 0; m < kRows; ++m) {
      const int32_t step = LastStep(tile.a + m * tile.a_row_stride + tile.k - left, left);
      for (int v = 0; v < kBlocks * kVectors; ++v) {
        auto& sum = sums[m * kBlocks * kVectors + v];
        sum = Columns::Multiply(sum, operand[v], step);
      }
    }
  }
  for (int m = 0; m < kRows; ++m) {
    auto* c = tile.c + m * tile.c_row_stride;
    for (int b = 0; b < kBlocks; ++b, sums += kVectors) {
      const BlockRange& block = tile.blocks[b];
      Columns::Store(sums, tile.corrections[m], block.begin, block.end, c);
      c += block.end - block.begin;
    }
  }
}

template <class Columns, int kRows, int kBlocks, bool kPacked>
void RunTile(const Tile<Columns>& tile) {
  constexpr int kVectors = Columns::kVectors;
  typename Columns::Accumulator sum[kRows][kBlocks * kVectors];
#pragma GCC unroll 16
  for (int m = 0; m < kRows; ++m) {
#pragma GCC unroll 16
    for (int v = 0; v < kBlocks * kVectors; ++v) sum[m][v] = Columns::Zero();
  }
  const auto* w = tile.w;
  for (int64_t i = 0; i + Columns::kStepK <= tile.k; i += Columns::kStepK, w += Columns::kStepK * tile.row_stride) {
    __m512i operand[kBlocks * kVectors];
#pragma GCC unroll 16
    for (int b = 0; b < kBlocks; ++b) {
      if (kPacked) {
        for (int line = 0; line < kVectors; ++line) {
          PrefetchLine(reinterpret_cast<const char*>(w + b * tile.block_stride) + kPrefetchBytes + line * kLineBytes);
        }
      }
      Columns::template LoadStep<kPacked>(w + b * tile.block_stride, tile.row_stride, Columns::kStepK,
                                          tile.blocks[b].lanes, operand + b * kVectors);
    }
#pragma GCC unroll 16
    for (__m512i& vector : operand) vector = Columns::Prepared(vector);
#pragma GCC unroll 16
    for (int m = 0; m < kRows; ++m) {
      const int32_t step = FullStep(tile.a + m * tile.a_row_stride + i);
#pragma GCC unroll 16
      for (int v = 0; v < kBlocks * kVectors; ++v) sum[m][v] = Columns::Multiply(sum[m][v], operand[v], step);
    }
  }
  typename Columns::Accumulator sums[kRows * kBlocks * kVectors];
#pragma GCC unroll 16
  for (int m = 0; m < kRows; ++m) {
#pragma GCC unroll 16
    for (int v = 0; v < kBlocks * kVectors; ++v) sums[m * kBlocks * kVectors + v] = sum[m][v];
  }
  FinishTile<Columns, kRows, kBlocks>(tile, sums);
}

template <class Columns, bool kPacked, int kBlocks>
void RunRows(Tile<Columns> tile, int64_t rows) {
  using Fn = void (*)(const Tile<Columns>&);
  static constexpr Fn kTiles[8] = {RunTile<Columns, 1, kBlocks, kPacked>,
                                   RunTile<Columns, 2, kBlocks, kPacked>,
                                   RunTile<Columns, 3, kBlocks, kPacked>,
                                   RunTile<Columns, 4, kBlocks, kPacked>,
                                   RunTile<Columns, 5, kBlocks, kPacked>,
                                   RunTile<Columns, 6, kBlocks, kPacked>,
                                   RunTile < Columns,
                                   Columns::kMaxTileRows == 8 ? 7 : 1,
                                   kBlocks,
                                   kPacked >
                                   , RunTile < Columns, Columns::kMaxTileRows == 8 ? 8 : 1, kBlocks, kPacked > };
  const auto* a = tile.a;
  auto* c = tile.c;
  // Equal tiles instead of full ones and a small rest: a tile of one row leaves most of the machine idle.
  const int64_t tiles = (rows + Columns::kMaxTileRows - 1) / Columns::kMaxTileRows;
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t begin = rows * t / tiles;
    const int64_t count = rows * (t + 1) / tiles - begin;
    int32_t corrections[8];
    tile.a = a + begin * tile.a_row_stride;
    tile.c = c + begin * tile.c_row_stride;
    for (int64_t m = 0; m < count; ++m) {
      corrections[m] = Columns::RowCorrection(tile.a + m * tile.a_row_stride, tile.k);
    }
    tile.corrections = corrections;
    kTiles[count - 1](tile);
  }
}

template <class Columns, bool kPacked, class Args>
void RunGroups(const Args& args) {
  const WeightView& weight = args.weight;
  constexpr int64_t kColumns = Columns::kBlockColumns;
  const int64_t block_end = (args.column_end + kColumns - 1) / kColumns;
  auto* c = args.c;
  for (int64_t first = args.column_begin / kColumns; first < block_end; first += Columns::kGroupBlocks) {
    const int64_t count = Smaller(Columns::kGroupBlocks, block_end - first);
    BlockRange blocks[Columns::kGroupBlocks];
    int64_t stored = 0;
    for (int64_t b = 0; b < count; ++b) {
      const int64_t column = (first + b) * kColumns;
      blocks[b] = {Smaller(kColumns, weight.n - column), Larger(args.column_begin - column, 0),
                   Smaller(kColumns, args.column_end - column)};
      stored += blocks[b].end - blocks[b].begin;
    }
    const auto* w = static_cast<const typename Columns::Element*>(weight.data) + first * weight.block_stride;
    const Tile<Columns> tile = {args.a, args.a_row_stride, w, weight.block_stride, weight.row_stride, weight.k,
                                blocks, nullptr,           c, args.c_row_stride};
    if (count == 1) {
      RunRows<Columns, kPacked, 1>(tile, args.rows);
    } else if (count == 2) {
      RunRows<Columns, kPacked, 2>(tile, args.rows);
    } else {
      RunRows<Columns, kPacked, Columns::kGroupBlocks>(tile, args.rows);
    }
    c += stored;
  }
}

template <class Columns, class Args>
void Gemm(const Args& args) {
  PrefetchSpreadRows<typename Columns::Element>(args.weight, args.column_begin, args.column_end);
  // FRACTAL_NZ rows follow each other without a gap, so that one load takes a whole step of k.
  if (args.weight.row_stride == Columns::kBlockColumns) {
    RunGroups<Columns, true>(args);
  } else {
    RunGroups<Columns, false>(args);
  }
}

}  // namespace

void UseGemmAvx512Bf16(KernelTable* table) {
  table->gemm_bf16 = {Gemm<Bf16Columns, GemmBf16Args>, "gemm_bf16_bf16_bf16_8x48_avx512bf16"};
  table->gemm_s8 = {Gemm<S8Columns, GemmS8Args>, "gemm_s8_s8_s32_5x64_avx512bf16"};
}

}  // namespace mlap
