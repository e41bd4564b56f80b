// Matrix products with AMX tiles (TDPBF16PS, TDPBSSD), on weights as they lie in memory.
//
// Up to 64 rows, all sums stay in tiles for all of k, and the weight goes through a few kilobytes: it streams. More
// rows take it in slabs: 32 columns and a piece of k. The first rows of A that pass over a slab bring it into the
// tiles' operand order as they go; the others find it there. Between slabs of one column the sums wait in memory as
// binary32 or int32, which changes no bit: every output is still one chain over ascending k. A tile row is one row of
// A, so neither does the number of rows.
//
// Tile loads wait until earlier stores have left the core, hence the stores of a step come in one batch, and the sums
// stay in their tiles for as much of k as there is room for.
#include <immintrin.h>

#include "kernels/gemm/amx_tiles.h"
#include "kernels/gemm/column_operands_avx512.h"
#include "kernels/gemm/few_rows_amx.h"
#include "kernels/gemm/weight_prefetch.h"
#include "kernels/registration.h"

namespace mlap {
namespace {

constexpr int64_t kPairRows = 2 * kTileRows;
constexpr int64_t kPanelColumns = 32;  // two tiles of 16 columns
constexpr int64_t kPanelTiles = 2;
constexpr int64_t kStepVectors = kPanelTiles * kTileRows;  // operands of one tile's k
// A k of up to so many steps is one slab, 128 KB of operands; a longer one is cut into smaller slabs, so that their
// rows of A stay in the second-level cache while several panels pass.
constexpr int64_t kMostSlabSteps = 64;
constexpr int64_t kCutSlabSteps = 16;
// Panels that go through each slab's k together, as far as their operands fit in kMostSlabSteps.
constexpr int64_t kMostGroupPanels = 3;
// Rows whose sums of a group wait in the second-level cache: 192 KB.
constexpr int64_t kBlockRows = 512;
// How far ahead of its use a weight is asked for, in each block of columns. A line asked for also sets the processor's
// own prefetchers going.
constexpr int64_t kPrefetchBytes = 3072;

struct Bf16Tiles {
  using Operand = Bf16Operand;
  using FewRows = FewRowsBf16;  // which needs no tiles
  template <int kSum, int kA, int kB>
  static inline void Multiply() {
    MultiplyBf16Tiles<kSum, kA, kB>();
  }
  // 32 sums to a line of C. The tiles leave no denormals, which this conversion would lose.
  static inline __m512i RoundedLine(const int32_t* sums) {
    const __m512 low = _mm512_castsi512_ps(_mm512_load_si512(sums));
    const __m512 high = _mm512_castsi512_ps(_mm512_load_si512(sums + 16));
    const __mmask32 is_nan =
        _mm512_kunpackw(_mm512_cmp_ps_mask(high, high, _CMP_UNORD_Q), _mm512_cmp_ps_mask(low, low, _CMP_UNORD_Q));
    const __m512i line = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
    return _mm512_mask_mov_epi16(line, is_nan, _mm512_set1_epi16(kBf16Nan));
  }
};

struct S8Tiles {
  using Operand = S8Operand;
  template <int kSum, int kA, int kB>
  static inline void Multiply() {
    MultiplyS8Tiles<kSum, kA, kB>();
  }
};

// The tiles' current shape, for `row_tiles` tiles of rows of A, the last one of `last` rows, times as many column tiles
// as there is room for: see the functions that multiply.
class TileShape {
 public:
  void Set(int64_t row_tiles, int64_t last) {
    constexpr int64_t kAll = kTileRows;
    switch (row_tiles) {
      case 1:  // sums 0 to 3, A 4, columns 6 and 7
        return Load({last, last, last, last, last, 0, kAll, kAll});
      case 2:  // sums 0 to 3, A 4 and 5, columns 6 and 7
        return Load({kAll, kAll, last, last, kAll, last, kAll, kAll});
      case 3:  // sums 0 to 2, A 4, 5 and 6, columns 7
        return Load({kAll, kAll, last, 0, kAll, kAll, last, kAll});
      default:  // sums 0 to 3, A 4 and 5 in turn and 6, columns 7
        return Load({kAll, kAll, kAll, last, kAll, kAll, last, kAll});
    }
  }

 private:
  void Load(const int64_t (&rows)[8]) {
    if (__builtin_memcmp(rows_, rows, sizeof(rows_)) == 0) return;
    __builtin_memcpy(rows_, rows, sizeof(rows_));
    TileConfig config;
    for (int tile = 0; tile < 8; ++tile) {
      if (rows[tile] == 0) continue;
      config.rows[tile] = static_cast<uint8_t>(rows[tile]);
      config.row_bytes[tile] = kTileRowBytes;
    }
    ConfigureTiles(config);
  }

  int64_t rows_[8] = {};  // of the tiles, as loaded; a shape without rows is never asked for
};

// A piece of a weight: some columns from `column` on, k [k_begin, k_end).
struct Slab {
  int64_t column;
  int64_t k_begin;
  int64_t k_end;
};

// Brings weights into the tiles' operand order, one tile's k at a time: 16 operand rows of 64 bytes for each tile of
// columns. What lies past the weight's rows and columns is zero.
template <class Tiles>
class StepLoader {
 public:
  using Operand = typename Tiles::Operand;
  using Element = typename Operand::Element;
  static constexpr int64_t kTileK = kTileRows * Operand::kStepK;  // 64 bytes of a row of A

  // `steps`: over how many what is read next is asked for. One row tile loads half as many, and asks for half of it.
  StepLoader(const WeightView& weight, const NextRead& next_read, int64_t steps)
      : weight_(weight), next_read_(next_read, steps), is_packed_(weight.row_stride == Operand::kBlockColumns) {}

  // kColumnTiles of the step of `slab` that begins at `k`. If the weight is asked for ahead, the columns from
  // `next_column` on are read after the slab.
  template <int kColumnTiles, bool kAsksAhead>
  inline void Load(const Slab& slab, int64_t next_column, int64_t k, __m512i* out) {
    constexpr int64_t kBlocks = kColumnTiles * kTileRows / Operand::kBlockColumns;
    static_assert(kBlocks > 0);
    next_read_.Portion();
    const int64_t k_count = Smaller(kTileK, slab.k_end - k);
    const bool is_whole = k_count == kTileK && slab.column + kColumnTiles * kTileRows <= weight_.n;
    if (is_whole && is_packed_) {
      for (int64_t block = 0; block < kBlocks; ++block) LoadPacked<kAsksAhead>(slab, next_column, k, block, out);
      return;
    }
    if constexpr (requires { Operand::LoadAdjacent; } && kBlocks % 2 == 0) {
      if (is_whole && weight_.block_stride == Operand::kBlockColumns) {
        for (int64_t tile = 0; tile < kColumnTiles; tile += 2, out += 2 * kTileRows) {
          Operand::LoadAdjacent(At(k, slab.column + tile * kTileRows), weight_.row_stride, out, out + kTileRows);
        }
        return;
      }
    }
    LoadPart(slab.column, kBlocks, k, k_count, out);
  }

 private:
  const Element* At(int64_t k, int64_t column) const {
    return static_cast<const Element*>(weight_.data) + column / Operand::kBlockColumns * weight_.block_stride +
           k * weight_.row_stride;
  }

  template <bool kAsksAhead>
  inline void LoadPacked(const Slab& slab, int64_t next_column, int64_t k, int64_t block, __m512i* out) const {
    constexpr int64_t kAheadK = kPrefetchBytes / (Operand::kBlockColumns * static_cast<int64_t>(sizeof(Element)));
    const int64_t column = block * Operand::kBlockColumns;
    const Element* w = At(k, slab.column + column);
    const int64_t ahead = k + kAheadK;
    const Element* soon =
        ahead < slab.k_end ? w + kAheadK * Operand::kBlockColumns : At(ahead - slab.k_end, next_column + column);
    out += block * Operand::kVectors * kTileRows;
    for (int64_t row = 0; row < kTileRows; ++row) {
      constexpr int64_t kRowElements = Operand::kStepK * Operand::kBlockColumns;
      for (int v = 0; kAsksAhead && v < Operand::kVectors; ++v) {
        PrefetchLine(reinterpret_cast<const char*>(soon + row * kRowElements) + v * kTileRowBytes);
      }
      __m512i operand[Operand::kVectors];
      Operand::template LoadStep<true>(w + row * kRowElements, Operand::kBlockColumns, Operand::kStepK,
                                       Operand::kBlockColumns, operand);
      for (int v = 0; v < Operand::kVectors; ++v) _mm512_store_si512(out + v * kTileRows + row, operand[v]);
    }
  }

  void LoadPart(int64_t first_column, int64_t blocks, int64_t k_begin, int64_t k_count, __m512i* out) const {
    for (int64_t block = 0; block < blocks; ++block, out += Operand::kVectors * kTileRows) {
      const int64_t column = first_column + block * Operand::kBlockColumns;
      const int64_t lanes = Larger(Smaller(weight_.n - column, Operand::kBlockColumns), 0);
      for (int64_t row = 0; row < kTileRows; ++row) {
        const int64_t k = row * Operand::kStepK;
        __m512i operand[Operand::kVectors] = {};
        if (k < k_count && lanes > 0) {
          Operand::template LoadStep<false>(At(k_begin + k, column), weight_.row_stride,
                                            Smaller(k_count - k, Operand::kStepK), lanes, operand);
        }
        for (int v = 0; v < Operand::kVectors; ++v) _mm512_store_si512(out + v * kTileRows + row, operand[v]);
      }
    }
  }

  const WeightView& weight_;
  NextReadPrefetch next_read_;
  const bool is_packed_;
};

template <class Tiles, class Args>
class PanelProduct {
 public:
  using Operand = typename Tiles::Operand;
  using Element = typename Operand::Element;
  using Loader = StepLoader<Tiles>;
  static constexpr int64_t kTileK = Loader::kTileK;

  explicit PanelProduct(const Args& args)
      : args_(args),
        weight_(args.weight),
        scratch_(static_cast<Scratch*>(args.scratch)),
        loader_(args.weight, args.next,
                CeilDiv(args.column_end - args.column_begin, kPanelColumns) * CeilDiv(args.weight.k, kTileK)),
        slab_k_(weight_.k <= kMostSlabSteps * kTileK ? weight_.k : kCutSlabSteps * kTileK),
        slab_steps_(CeilDiv(slab_k_, kTileK)),
        group_columns_(Smaller(kMostSlabSteps / slab_steps_, kMostGroupPanels) * kPanelColumns),
        column_begin_(args.column_begin / kPanelColumns * kPanelColumns) {}

  void Run() {
    const int64_t row_tiles = CeilDiv(args_.rows, kTileRows);
    if (row_tiles == 1) return RunStream<1, 4>();
    if (row_tiles == 2) return RunStream<2, 2>();
    if constexpr (Operand::kBlockColumns == kTileRows) {
      if (weight_.row_stride == Operand::kBlockColumns) {
        if (row_tiles == 3) return RunStream<3, 1>();
        if (row_tiles == 4) return RunStream<4, 1>();
      }
    }
    for (int64_t row = 0; row < args_.rows; row += kBlockRows) RunMany(row, Smaller(kBlockRows, args_.rows - row));
  }

 private:
  static constexpr int64_t kSumColumns = kMostGroupPanels * kPanelColumns;
  static constexpr int64_t kSumStride = kSumColumns * static_cast<int64_t>(sizeof(int32_t));
  struct alignas(64) Scratch {
    int32_t sums[kBlockRows * kSumColumns];
    int32_t finished[kPairRows * kSumColumns];
    __m512i operands[kMostSlabSteps * kStepVectors];
  };
  static_assert(sizeof(Scratch) <= kGemmScratchBytes);

  // Panels that go through a piece of k together.
  struct Group {
    int64_t column;
    int64_t column_end;  // as far as columns are asked for
    int64_t k_begin;
    int64_t k_end;

    int64_t NumPanels() const { return CeilDiv(column_end - column, kPanelColumns); }
    Slab SlabOf(int64_t panel) const { return {column + panel * kPanelColumns, k_begin, k_end}; }
  };

  // Rows [row_begin, row_begin + rows) times all columns.
  void RunMany(int64_t row_begin, int64_t rows) {
    for (int64_t column = column_begin_; column < args_.column_end; column += group_columns_) {
      for (int64_t k = 0; k < weight_.k; k += slab_k_) {
        RunGroup({column, Smaller(column + group_columns_, args_.column_end), k, Smaller(k + slab_k_, weight_.k)},
                 row_begin, rows);
      }
    }
  }

  // The first pair of row tiles brings a group's operands in, which takes memory's time, as it multiplies; the others
  // find them there.
  void RunGroup(const Group& group, int64_t row_begin, int64_t rows) {
    const bool is_last = group.k_end == weight_.k;
    int32_t* sums = scratch_->sums;
    for (int64_t m = 0; m < rows; m += kPairRows, sums += kPairRows * kSumColumns) {
      const int64_t pair_rows = Smaller(rows - m, kPairRows);
      const Pair pair = {args_.a + (row_begin + m) * args_.a_row_stride, pair_rows, group.k_begin == 0 ? nullptr : sums,
                         is_last ? scratch_->finished : sums};
      for (int64_t panel = 0; panel < group.NumPanels(); ++panel) {
        if (pair_rows > kTileRows) {
          MultiplyPair<true>(pair, group, panel, m == 0);
        } else {
          MultiplyPair<false>(pair, group, panel, m == 0);
        }
      }
      if (is_last) StoreGroup(group, row_begin + m, pair_rows);
    }
  }

  // Up to two row tiles of A, and where their sums come from (null: zero) and go to.
  struct Pair {
    const Element* a;
    int64_t rows;
    const int32_t* in;
    int32_t* out;
  };

  template <bool kHasSecond>
  void MultiplyPair(const Pair& pair, const Group& group, int64_t panel, bool loads) {
    constexpr int64_t kLower = kTileRows * kSumColumns;
    const int64_t column = panel * kPanelColumns;
    constexpr int kRowTiles = kHasSecond ? 2 : 1;
    shape_.Set(kRowTiles, pair.rows - (kRowTiles - 1) * kTileRows);
    if (pair.in == nullptr) {
      ZeroSums<kRowTiles * kPanelTiles>();
    } else {
      const int32_t* in = pair.in + column;
      LoadTile<0>(in, kSumStride);
      LoadTile<1>(in + kTileRows, kSumStride);
      if (kHasSecond) {
        LoadTile<2>(in + kLower, kSumStride);
        LoadTile<3>(in + kLower + kTileRows, kSumStride);
      }
    }
    const Slab slab = group.SlabOf(panel);
    __m512i* operands = scratch_->operands + panel * slab_steps_ * kStepVectors;
    if (loads) {
      // Each step is brought in before the one ahead of it is multiplied.
      loader_.template Load<kPanelTiles, false>(slab, slab.column, slab.k_begin, operands);
      for (int64_t k = slab.k_begin; k < slab.k_end; k += kTileK, operands += kStepVectors) {
        if (k + kTileK < slab.k_end) {
          loader_.template Load<kPanelTiles, false>(slab, slab.column, k + kTileK, operands + kStepVectors);
        }
        MultiplySteps<kHasSecond>(pair, operands, k, Smaller(k + kTileK, slab.k_end));
      }
    } else {
      MultiplySteps<kHasSecond>(pair, operands, slab.k_begin, slab.k_end);
    }
    StoreSums<kRowTiles, kPanelTiles>(pair.out + column);
  }

  template <bool kHasSecond>
  inline void MultiplySteps(const Pair& pair, const __m512i* operands, int64_t k, int64_t k_end) {
    const int64_t row_bytes = args_.a_row_stride * static_cast<int64_t>(sizeof(Element));
    const Element* a = pair.a + k;
    const Element* lower_a = a + kTileRows * args_.a_row_stride;
    for (; k + kTileK <= k_end; k += kTileK, a += kTileK, lower_a += kTileK, operands += kStepVectors) {
      MultiplyStep<kHasSecond>(a, lower_a, row_bytes, operands);
    }
    if (k == k_end) return;
    // Rows of A end before 64 bytes do.
    alignas(64) Element tail[kPairRows * kTileK];
    CopyTail(a, pair.rows, k_end - k, tail);
    MultiplyStep<kHasSecond>(tail, tail + kTileRows * kTileK, kTileRowBytes, operands);
  }

  template <bool kHasSecond>
  static inline void MultiplyStep(const Element* upper_a, const Element* lower_a, int64_t row_bytes,
                                  const __m512i* operands) {
    LoadTile<4>(upper_a, row_bytes);
    LoadTile<6>(operands, kTileRowBytes);
    Tiles::template Multiply<0, 4, 6>();
    LoadTile<7>(operands + kTileRows, kTileRowBytes);
    Tiles::template Multiply<1, 4, 7>();
    if (kHasSecond) {
      LoadTile<5>(lower_a, row_bytes);
      Tiles::template Multiply<2, 5, 6>();
      Tiles::template Multiply<3, 5, 7>();
    }
  }

  // Rows [row, row + rows) of a group's columns from the finished sums.
  void StoreGroup(const Group& group, int64_t row, int64_t rows) const {
    for (int64_t panel = 0; panel < group.NumPanels(); ++panel) {
      StorePanel(group.column + panel * kPanelColumns, kPanelColumns, row, rows,
                 scratch_->finished + panel * kPanelColumns);
    }
  }

  // All rows at once, kRowTiles of them, times all columns: the sums stay in their tiles for all of k, the weight goes
  // through a few kilobytes and is needed no more.
  template <int kRowTiles, int kColumnTiles>
  void RunStream() {
    shape_.Set(kRowTiles, args_.rows - (kRowTiles - 1) * kTileRows);
    constexpr int64_t kColumns = kColumnTiles * kTileRows;
    int64_t column = column_begin_;
    for (; column + kColumns / 2 < args_.column_end; column += kColumns) StreamColumns<kRowTiles, kColumnTiles>(column);
    if (column >= args_.column_end) return;
    constexpr int kHalf = kRowTiles == 1 ? kColumnTiles / 2 : kColumnTiles;
    StreamColumns<kRowTiles, kHalf>(column);
  }

  template <int kRowTiles, int kColumnTiles>
  void StreamColumns(int64_t column) {
    constexpr int64_t kColumns = kColumnTiles * kTileRows;
    ZeroSums<kRowTiles * kColumnTiles>();
    const Slab slab = {column, 0, weight_.k};
    const int64_t next_column = column + kColumns < args_.column_end ? column + kColumns : column;
    __m512i* step = scratch_->operands;
    __m512i* next_step = step + kColumnTiles * kTileRows;
    loader_.template Load<kColumnTiles, true>(slab, next_column, 0, step);
    for (int64_t k = 0; k < weight_.k; k += kTileK) {
      if (k + kTileK < weight_.k) {
        loader_.template Load<kColumnTiles, true>(slab, next_column, k + kTileK, next_step);
      }
      if (weight_.k - k >= kTileK) {
        StreamStep<kRowTiles, kColumnTiles>(args_.a + k, args_.a_row_stride, step);
      } else {
        alignas(64) Element tail[kRowTiles * kTileRows * kTileK];
        CopyTail(args_.a + k, args_.rows, weight_.k - k, tail);
        StreamStep<kRowTiles, kColumnTiles>(tail, kTileK, step);
      }
      __m512i* used = step;
      step = next_step;
      next_step = used;
    }
    StoreSums<kRowTiles, kColumnTiles>(scratch_->sums);
    for (int64_t part = 0; part < kColumns; part += kPanelColumns) {
      StorePanel(column + part, Smaller(kColumns, kPanelColumns), 0, args_.rows, scratch_->sums + part);
    }
  }

  template <int kTiles>
  static inline void ZeroSums() {
    ZeroTile<0>();
    if (kTiles > 1) ZeroTile<1>();
    if (kTiles > 2) ZeroTile<2>();
    if (kTiles > 3) ZeroTile<3>();
  }

  // The tiles of sums, kColumnTiles of them side by side.
  template <int kRowTiles, int kColumnTiles, int kTile = 0>
  static inline void StoreSums(int32_t* sums) {
    if constexpr (kTile < kRowTiles * kColumnTiles) {
      constexpr int64_t kRow = kTile / kColumnTiles * kTileRows, kColumn = kTile % kColumnTiles * kTileRows;
      StoreTile<kTile>(sums + kRow * kSumColumns + kColumn, kSumStride);
      StoreSums<kRowTiles, kColumnTiles, kTile + 1>(sums);
    }
  }

  template <int kRowTiles, int kColumnTiles>
  static inline void StreamStep(const Element* a, int64_t a_stride, const __m512i* step) {
    const int64_t row_bytes = a_stride * static_cast<int64_t>(sizeof(Element));
    const int64_t tile_stride = kTileRows * a_stride;
    if constexpr (kRowTiles <= 2) {
      MultiplyStep<kRowTiles == 2>(a, a + tile_stride, row_bytes, step);
      if constexpr (kColumnTiles > 2) {
        LoadTile<6>(step + 2 * kTileRows, kTileRowBytes);
        Tiles::template Multiply<2, 4, 6>();
        LoadTile<7>(step + 3 * kTileRows, kTileRowBytes);
        Tiles::template Multiply<3, 4, 7>();
      }
    } else {
      LoadTile<7>(step, kTileRowBytes);
      LoadTile<4>(a, row_bytes);
      Tiles::template Multiply<0, 4, 7>();
      LoadTile<5>(a + tile_stride, row_bytes);
      Tiles::template Multiply<1, 5, 7>();
      if constexpr (kRowTiles == 4) {
        LoadTile<4>(a + 2 * tile_stride, row_bytes);
        Tiles::template Multiply<2, 4, 7>();
      }
      LoadTile<6>(a + (kRowTiles - 1) * tile_stride, row_bytes);
      Tiles::template Multiply<kRowTiles - 1, 6, 7>();
    }
  }

  // Columns [column, column + columns), at most a panel, of rows [row_begin, row_begin + rows), as far as they are
  // asked for.
  void StorePanel(int64_t column, int64_t columns, int64_t row_begin, int64_t rows, const int32_t* sums) const {
    const int64_t begin = Larger(args_.column_begin - column, 0);
    const int64_t end = Smaller(args_.column_end - column, columns);
    if (begin >= end) return;
    auto* c = args_.c + row_begin * args_.c_row_stride + column + begin - args_.column_begin;
    if constexpr (requires { Tiles::RoundedLine(sums); }) {
      if (begin == 0 && end == kPanelColumns) {
        const bool streams = args_.streams_c && reinterpret_cast<uintptr_t>(c) % kLineBytes == 0 &&
                             args_.c_row_stride % kPanelColumns == 0;
        for (int64_t m = 0; m < rows; ++m, sums += kSumColumns, c += args_.c_row_stride) {
          if (streams) {
            _mm512_stream_si512(reinterpret_cast<__m512i*>(c), Tiles::RoundedLine(sums));
          } else {
            _mm512_storeu_si512(c, Tiles::RoundedLine(sums));
          }
        }
        return;
      }
    }
    Operand::StoreRows(sums, kSumColumns, rows, begin, end, c, args_.c_row_stride);
  }

  void CopyTail(const Element* a, int64_t rows, int64_t count, Element* tail) const {
    const __mmask64 mask = (1ull << (static_cast<uint64_t>(count) * sizeof(Element))) - 1ull;
    for (int64_t m = 0; m < rows; ++m) {
      _mm512_store_si512(tail + m * kTileK, _mm512_maskz_loadu_epi8(mask, a + m * args_.a_row_stride));
    }
  }

  const Args& args_;
  const WeightView& weight_;
  Scratch* scratch_;
  Loader loader_;
  const int64_t slab_k_;
  const int64_t slab_steps_;
  const int64_t group_columns_;
  const int64_t column_begin_;  // of the first panel
  TileShape shape_;
};

template <class Tiles, class Args>
void Gemm(const Args& args) {
  if constexpr (requires { Tiles::FewRows::Run(args); }) {
    if (Tiles::FewRows::Takes(args)) return Tiles::FewRows::Run(args);
  }
  PrefetchSpreadRows<typename Tiles::Operand::Element>(args.weight, args.column_begin, args.column_end);
  PanelProduct<Tiles, Args>(args).Run();
  ReleaseTiles();
  if constexpr (requires { args.streams_c; }) {
    if (args.streams_c) _mm_sfence();  // streamed stores are ordered by nothing else
  }
}

}  // namespace

void UseGemmAmx(KernelTable* table) {
  table->gemm_bf16 = {Gemm<Bf16Tiles, GemmBf16Args>, "gemm_bf16_bf16_bf16_32x32_amx"};
  table->gemm_s8 = {Gemm<S8Tiles, GemmS8Args>, "gemm_s8_s8_s32_32x32_amx"};
}

}  // namespace mlap
