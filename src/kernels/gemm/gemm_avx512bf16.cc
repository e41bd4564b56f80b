// Matrix products with AVX512_BF16 (VDPBF16PS) and AVX512_VNNI (VPDPBUSD), on weights as they lie in memory.
//
// Both walk a column group (up to kGroupBlocks column blocks) down k, with the accumulators of a row tile in registers.
// One accumulator is one output's whole chain: ascending k, nothing split, nothing reordered.
#include <immintrin.h>

#include "kernels/registration.h"

namespace mlap {
namespace {

constexpr int kLanes = 16;

static inline __mmask16 FirstLanes16(int64_t count) {
  return count >= 16 ? static_cast<__mmask16>(0xffff) : static_cast<__mmask16>((1u << (count < 0 ? 0 : count)) - 1u);
}

static inline __mmask32 FirstLanes32(int64_t count) {
  return count >= 32 ? 0xffffffffu : (1u << (count < 0 ? 0 : count)) - 1u;
}

static inline int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t Max(int64_t a, int64_t b) { return a > b ? a : b; }

static inline __m512i Joined(__m256i low, __m256i high) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

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

// --- bf16 ------------------------------------------------------------------------------------------------------------

// Two rows of 16 columns become 16 (k, k + 1) pairs.
static inline __m512i InterleavePairs(__m512i two_rows) {
  const __m512i index = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8,  //
                                         23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(index, two_rows);
}

struct Bf16Columns {
  static constexpr int kBlockColumns = 16;
  static constexpr int kStepK = 2;          // elements of k in one 32-bit step
  static constexpr int kMaxTileRows = 8;    // 8 rows x 3 blocks: 24 accumulators, 3 operands, the rest free
  static constexpr int kGroupBlocks = 3;
  static constexpr int kVectors = 1;        // accumulators a block takes per row
  using Element = Bf16;
  using Output = Bf16;
  using Accumulator = __m512;

  static inline Accumulator Zero() { return _mm512_setzero_ps(); }

  // The operand of k rows [0, rows) of one block, rows <= kStepK; `packed`: the rows are adjacent in memory.
  template <bool kPacked>
  static inline void LoadStep(const Bf16* w, int64_t row_stride, int64_t rows, int64_t lanes, __m512i* operand) {
    __m512i two_rows;
    if (kPacked && rows == kStepK) {
      two_rows = _mm512_loadu_si512(w);
    } else {
      const __mmask16 mask = FirstLanes16(lanes);
      const __m256i first = _mm256_maskz_loadu_epi16(mask, w);
      const __m256i second =
          rows == kStepK ? _mm256_maskz_loadu_epi16(mask, w + row_stride) : _mm256_setzero_si256();
      two_rows = Joined(first, second);
    }
    operand[0] = InterleavePairs(two_rows);
  }
  static inline Accumulator Multiply(Accumulator sum, __m512i operand, int32_t step) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(operand), reinterpret_cast<__m512bh>(_mm512_set1_epi32(step)));
  }
  static inline int32_t RowCorrection(const Bf16*, int64_t) { return 0; }

  // Stores lanes [begin, end) of a block's row to c[0, end - begin).
  static inline void Store(const Accumulator* sum, int32_t, int64_t begin, int64_t end, Bf16* c) {
    const __m512i bits = _mm512_castps_si512(sum[0]);
    const __m512i upper = _mm512_srli_epi32(bits, 16);
    const __m512i lsb = _mm512_and_si512(upper, _mm512_set1_epi32(1));
    __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(lsb, _mm512_set1_epi32(0x7fff))), 16);
    const __mmask16 is_nan = _mm512_cmp_ps_mask(sum[0], sum[0], _CMP_UNORD_Q);
    rounded = _mm512_mask_or_epi32(rounded, is_nan, upper, _mm512_set1_epi32(0x40));
    const __mmask16 mask = static_cast<__mmask16>(FirstLanes16(end) & ~FirstLanes16(begin));
    _mm256_mask_storeu_epi16(c - begin, mask, _mm512_cvtepi32_epi16(rounded));
  }
};

// --- int8 ------------------------------------------------------------------------------------------------------------

// VPDPBUSD multiplies unsigned by signed bytes. The weight is the unsigned side, as w + 128 (a flipped sign bit, once per
// loaded vector); 128 times the row's sum of activations is taken off at the end, modulo 2^32, so the result is exact.
struct S8Columns {
  static constexpr int kBlockColumns = 32;
  static constexpr int kStepK = 4;
  static constexpr int kMaxTileRows = 6;    // 6 rows x 2 blocks x 2 vectors: 24 accumulators
  static constexpr int kGroupBlocks = 2;
  static constexpr int kVectors = 2;
  using Element = int8_t;
  using Output = int32_t;
  using Accumulator = __m512i;

  static inline Accumulator Zero() { return _mm512_setzero_si512(); }

  template <bool kPacked>
  static inline void LoadStep(const int8_t* w, int64_t row_stride, int64_t rows, int64_t lanes, __m512i* operand) {
    __m512i low, high;
    if (kPacked && rows == kStepK) {
      low = _mm512_loadu_si512(w);
      high = _mm512_loadu_si512(w + 64);
    } else {
      const __mmask32 mask = FirstLanes32(lanes);
      __m256i row[4];
      for (int r = 0; r < 4; ++r) {
        row[r] = r < rows ? _mm256_maskz_loadu_epi8(mask, w + r * row_stride) : _mm256_setzero_si256();
      }
      low = Joined(row[0], row[1]);
      high = Joined(row[2], row[3]);
    }
    // Byte 4 * j + r of the operand is row r of column j: rows 0, 1 are in `low`, rows 2, 3 in `high`.
    const __m512i column = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i index =
        _mm512_add_epi32(_mm512_mullo_epi32(column, _mm512_set1_epi32(0x01010101)), _mm512_set1_epi32(0x60402000));
    const __m512i flip = _mm512_set1_epi8(static_cast<char>(0x80));
    operand[0] = _mm512_xor_si512(_mm512_permutex2var_epi8(low, index, high), flip);
    operand[1] = _mm512_xor_si512(
        _mm512_permutex2var_epi8(low, _mm512_add_epi32(index, _mm512_set1_epi32(0x10101010)), high), flip);
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
      const int64_t first = v * kLanes;
      const __mmask16 mask = static_cast<__mmask16>(FirstLanes16(end - first) & ~FirstLanes16(begin - first));
      _mm512_mask_storeu_epi32(c - begin + first, mask, _mm512_sub_epi32(sum[v], _mm512_set1_epi32(correction)));
    }
  }
};

// --- the loop nest ---------------------------------------------------------------------------------------------------

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
  const BlockRange* blocks;            // of the group
  const int32_t* corrections;          // of the rows
  typename Columns::Output* c;         // at the group's first stored column
  int64_t c_row_stride;
};

template <class Columns, int kRows, int kBlocks, bool kPacked>
void RunTile(const Tile<Columns>& tile) {
  using Element = typename Columns::Element;
  constexpr int kVectors = Columns::kVectors;
  typename Columns::Accumulator sum[kRows][kBlocks * kVectors];
  for (int m = 0; m < kRows; ++m) {
    for (int v = 0; v < kBlocks * kVectors; ++v) sum[m][v] = Columns::Zero();
  }
  const int64_t whole_k = tile.k - tile.k % Columns::kStepK;
  const Element* w = tile.w;
  for (int64_t i = 0; i < whole_k; i += Columns::kStepK, w += Columns::kStepK * tile.row_stride) {
    __m512i operand[kBlocks * kVectors];
    for (int b = 0; b < kBlocks; ++b) {
      Columns::template LoadStep<kPacked>(w + b * tile.block_stride, tile.row_stride, Columns::kStepK,
                                          tile.blocks[b].lanes, operand + b * kVectors);
    }
    for (int m = 0; m < kRows; ++m) {
      const int32_t step = FullStep(tile.a + m * tile.a_row_stride + i);
      for (int v = 0; v < kBlocks * kVectors; ++v) sum[m][v] = Columns::Multiply(sum[m][v], operand[v], step);
    }
  }
  if (whole_k < tile.k) {
    __m512i operand[kBlocks * kVectors];
    for (int b = 0; b < kBlocks; ++b) {
      Columns::template LoadStep<false>(w + b * tile.block_stride, tile.row_stride, tile.k - whole_k,
                                        tile.blocks[b].lanes, operand + b * kVectors);
    }
    for (int m = 0; m < kRows; ++m) {
      const int32_t step = LastStep(tile.a + m * tile.a_row_stride + whole_k, tile.k - whole_k);
      for (int v = 0; v < kBlocks * kVectors; ++v) sum[m][v] = Columns::Multiply(sum[m][v], operand[v], step);
    }
  }
  for (int m = 0; m < kRows; ++m) {
    auto* c = tile.c + m * tile.c_row_stride;
    for (int b = 0; b < kBlocks; ++b) {
      const BlockRange& block = tile.blocks[b];
      Columns::Store(sum[m] + b * kVectors, tile.corrections[m], block.begin, block.end, c);
      c += block.end - block.begin;
    }
  }
}

template <class Columns, bool kPacked, int kBlocks>
void RunRows(Tile<Columns> tile, int64_t rows) {
  using Fn = void (*)(const Tile<Columns>&);
  static constexpr Fn kTiles[8] = {
      RunTile<Columns, 1, kBlocks, kPacked>, RunTile<Columns, 2, kBlocks, kPacked>,
      RunTile<Columns, 3, kBlocks, kPacked>, RunTile<Columns, 4, kBlocks, kPacked>,
      RunTile<Columns, 5, kBlocks, kPacked>, RunTile<Columns, 6, kBlocks, kPacked>,
      RunTile<Columns, Columns::kMaxTileRows == 8 ? 7 : 1, kBlocks, kPacked>,
      RunTile<Columns, Columns::kMaxTileRows == 8 ? 8 : 1, kBlocks, kPacked>};
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
    const int64_t count = Min(Columns::kGroupBlocks, block_end - first);
    BlockRange blocks[Columns::kGroupBlocks];
    int64_t stored = 0;
    for (int64_t b = 0; b < count; ++b) {
      const int64_t column = (first + b) * kColumns;
      blocks[b] = {Min(kColumns, weight.n - column), Max(args.column_begin - column, 0),
                   Min(kColumns, args.column_end - column)};
      stored += blocks[b].end - blocks[b].begin;
    }
    const auto* w = static_cast<const typename Columns::Element*>(weight.data) + first * weight.block_stride;
    const Tile<Columns> tile = {args.a,   args.a_row_stride, w, weight.block_stride, weight.row_stride,
                                weight.k, blocks,            nullptr, c,             args.c_row_stride};
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
  table->gemm_s8 = {Gemm<S8Columns, GemmS8Args>, "gemm_s8_s8_s32_6x64_avx512bf16"};
}

}  // namespace mlap
