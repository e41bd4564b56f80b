// Matrix products with AMX tiles (TDPBF16PS, TDPBSSD), on weights as they lie in memory.
//
// A weight is taken in slabs: 32 columns and a piece of k. The first rows of A that pass over a slab bring it into the
// tiles' operand order as they go, so that memory streams while tiles multiply; the others find it there. Between slabs
// of one column the sums wait in memory as binary32 or int32, which changes no bit: every output is still one chain
// over ascending k. A tile row is one row of A, so neither does the number of rows.
//
// Tile loads wait until earlier stores have left the core (measured: an interleaved store costs more than the tile
// product), hence the stores of a step come in one batch, and the sums stay in their tiles for as much of k as there is
// room for.
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
// Panels that go through each slab's k together.
constexpr int64_t kGroupPanels = 3;
// Panels of few rows are read side by side, as several streams fetch more than one.
constexpr int64_t kFewPanels = 2;
// Rows whose sums of a group wait in the second-level cache: 192 KB.
constexpr int64_t kBlockRows = 512;
// How far ahead of its use a weight is asked for, in each block of columns. A line asked for also sets the processor's
// own prefetchers going.
constexpr int64_t kPrefetchBytes = 4096;
constexpr int64_t kFewPrefetchBytes = 2048;

struct Bf16Tiles {
  using Operand = Bf16Operand;
  using FewRows = FewRowsBf16;  // which needs no tiles
  static constexpr int64_t kPanelBlocks = 2;  // column blocks of a panel
  template <int kSum, int kA, int kB>
  static inline void Multiply() {
    MultiplyBf16Tiles<kSum, kA, kB>();
  }
};

struct S8Tiles {
  using Operand = S8Operand;
  static constexpr int64_t kPanelBlocks = 1;
  template <int kSum, int kA, int kB>
  static inline void Multiply() {
    MultiplyS8Tiles<kSum, kA, kB>();
  }
};

// The tiles' current shape. For pairs of row tiles, of `first` and `second` rows (`second` may be 0), times two column
// tiles: sums in 0 to 3, rows of A in 4 and 5, columns in 6 and 7.
class TileShape {
 public:
  void Set(int64_t first, int64_t second) { Load({first, first, second, second, first, second, kTileRows, kTileRows}); }

  // For one row tile times four column tiles: sums in 0 to 3, rows of A in 4, columns in 5 and 6.
  void SetFew(int64_t rows) { Load({rows, rows, rows, rows, rows, kTileRows, kTileRows, 0}); }

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

// A piece of a weight: columns [column, column + kPanelColumns), k [k_begin, k_end).
struct Slab {
  int64_t column;
  int64_t k_begin;
  int64_t k_end;
};

// Brings weights into the tiles' operand order, one tile's k at a time: 16 operand rows of 64 bytes for each of the two
// tiles of columns. What lies past the weight's rows and columns is zero.
template <class Tiles>
class StepLoader {
 public:
  using Operand = typename Tiles::Operand;
  using Element = typename Operand::Element;
  static constexpr int64_t kTileK = kTileRows * Operand::kStepK;  // 64 bytes of a row of A

  // `steps`: how many will be loaded.
  StepLoader(const WeightView& weight, int64_t prefetch_bytes, const NextRead& next_read, int64_t steps)
      : weight_(weight),
        next_read_(next_read, steps),
        is_packed_(weight.row_stride == Operand::kBlockColumns),
        prefetch_k_(prefetch_bytes / (Operand::kBlockColumns * static_cast<int64_t>(sizeof(Element)))) {}

  // The step of `slab` that begins at `k`; `next` is read after the slab.
  inline void Load(const Slab& slab, const Slab& next, int64_t k, __m512i* out) {
    next_read_.Portion();
    const int64_t k_count = Smaller(kTileK, slab.k_end - k);
    const bool is_whole = k_count == kTileK && slab.column + kPanelColumns <= weight_.n;
    if (is_whole && is_packed_) {
      for (int64_t block = 0; block < Tiles::kPanelBlocks; ++block) LoadPacked(slab, next, k, block, out);
      return;
    }
    if constexpr (requires { Operand::LoadAdjacent; }) {
      if (is_whole && weight_.block_stride == Operand::kBlockColumns) {
        return Operand::LoadAdjacent(At(k, slab.column), weight_.row_stride, out, out + kTileRows);
      }
    }
    LoadPart(slab.column, k, k_count, out);
  }

 private:
  const Element* At(int64_t k, int64_t column) const {
    return static_cast<const Element*>(weight_.data) + column / Operand::kBlockColumns * weight_.block_stride +
           k * weight_.row_stride;
  }

  inline void LoadPacked(const Slab& slab, const Slab& next, int64_t k, int64_t block, __m512i* out) const {
    const int64_t column = block * Operand::kBlockColumns;
    const Element* w = At(k, slab.column + column);
    const int64_t ahead = k + prefetch_k_;
    const Element* soon = ahead < slab.k_end ? w + prefetch_k_ * Operand::kBlockColumns
                                             : At(next.k_begin + (ahead - slab.k_end), next.column + column);
    out += block * Operand::kVectors * kTileRows;
    for (int64_t row = 0; row < kTileRows; ++row) {
      constexpr int64_t kRowElements = Operand::kStepK * Operand::kBlockColumns;
      for (int v = 0; v < Operand::kVectors; ++v) {
        PrefetchLine(reinterpret_cast<const char*>(soon + row * kRowElements) + v * kTileRowBytes);
      }
      __m512i operand[Operand::kVectors];
      Operand::template LoadStep<true>(w + row * kRowElements, Operand::kBlockColumns, Operand::kStepK,
                                       Operand::kBlockColumns, operand);
      for (int v = 0; v < Operand::kVectors; ++v) _mm512_store_si512(out + v * kTileRows + row, operand[v]);
    }
  }

  void LoadPart(int64_t first_column, int64_t k_begin, int64_t k_count, __m512i* out) const {
    for (int64_t block = 0; block < Tiles::kPanelBlocks; ++block, out += Operand::kVectors * kTileRows) {
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
  const int64_t prefetch_k_;
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
        loader_(args.weight, args.rows <= kTileRows ? kFewPrefetchBytes : kPrefetchBytes, args.next,
                CeilDiv(args.column_end - args.column_begin, kPanelColumns) * CeilDiv(args.weight.k, kTileK)),
        slab_k_(weight_.k <= kMostSlabSteps * kTileK ? weight_.k : kCutSlabSteps * kTileK),
        column_begin_(args.column_begin / kPanelColumns * kPanelColumns) {}

  void Run() {
    if (args_.rows <= kTileRows) {
      RunFew();
    } else {
      for (int64_t row = 0; row < args_.rows; row += kBlockRows) RunMany(row, Smaller(kBlockRows, args_.rows - row));
    }
  }

 private:
  struct alignas(64) Scratch {
    int32_t sums[kGroupPanels][kBlockRows * kPanelColumns];
    int32_t finished[kPairRows * kPanelColumns];
    __m512i operands[kMostSlabSteps * kStepVectors];
  };
  static_assert(sizeof(Scratch) <= kGemmScratchBytes);
  static constexpr int64_t kSumStride = kPanelColumns * static_cast<int64_t>(sizeof(int32_t));

  Slab SlabAt(int64_t column, int64_t k) const { return {column, k, Smaller(k + slab_k_, weight_.k)}; }

  // The slabs of a group of panels: for each piece of k all its columns. False after the last one of the last group.
  bool Advance(Slab* slab) const {
    const int64_t group = column_begin_ + (slab->column - column_begin_) / kGroupColumns * kGroupColumns;
    const int64_t group_end = Smaller(group + kGroupColumns, args_.column_end);
    const int64_t column = slab->column + kPanelColumns;
    if (column < group_end) {
      *slab = SlabAt(column, slab->k_begin);
    } else if (slab->k_end < weight_.k) {
      *slab = SlabAt(group, slab->k_end);
    } else if (column < args_.column_end) {
      *slab = SlabAt(column, 0);
    } else {
      return false;
    }
    return true;
  }

  // Rows [row_begin, row_begin + rows) times all columns.
  void RunMany(int64_t row_begin, int64_t rows) {
    Slab next = SlabAt(column_begin_, 0);
    for (bool is_more = true; is_more;) {
      const Slab slab = next;
      is_more = Advance(&next);
      const bool is_first = slab.k_begin == 0;
      const bool is_last = slab.k_end == weight_.k;
      int32_t* sums = scratch_->sums[(slab.column - column_begin_) / kPanelColumns % kGroupPanels];
      for (int64_t m = 0; m < rows; m += kPairRows, sums += kPairRows * kPanelColumns) {
        const int64_t pair_rows = Smaller(rows - m, kPairRows);
        const Pair pair = {args_.a + (row_begin + m) * args_.a_row_stride, pair_rows, is_first ? nullptr : sums,
                           is_last ? scratch_->finished : sums};
        if (pair_rows > kTileRows) {
          MultiplyPair<true>(pair, slab, next, m == 0);
        } else {
          MultiplyPair<false>(pair, slab, next, m == 0);
        }
        if (is_last) StorePanel(slab.column, row_begin + m, pair_rows, scratch_->finished);
      }
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
  void MultiplyPair(const Pair& pair, const Slab& slab, const Slab& next, bool loads) {
    constexpr int64_t kLower = kTileRows * kPanelColumns;
    shape_.Set(Smaller(pair.rows, kTileRows), kHasSecond ? pair.rows - kTileRows : 0);
    if (pair.in == nullptr) {
      ZeroTile<0>();
      ZeroTile<1>();
      if (kHasSecond) {
        ZeroTile<2>();
        ZeroTile<3>();
      }
    } else {
      LoadTile<0>(pair.in, kSumStride);
      LoadTile<1>(pair.in + kTileRows, kSumStride);
      if (kHasSecond) {
        LoadTile<2>(pair.in + kLower, kSumStride);
        LoadTile<3>(pair.in + kLower + kTileRows, kSumStride);
      }
    }
    if (loads) {
      // Each step is brought in before the one ahead of it is multiplied.
      loader_.Load(slab, next, slab.k_begin, scratch_->operands);
      for (int64_t k = slab.k_begin; k < slab.k_end; k += kTileK) {
        if (k + kTileK < slab.k_end) loader_.Load(slab, next, k + kTileK, Operands(slab, k + kTileK));
        MultiplySteps<kHasSecond>(pair, slab, k, Smaller(k + kTileK, slab.k_end));
      }
    } else {
      MultiplySteps<kHasSecond>(pair, slab, slab.k_begin, slab.k_end);
    }
    StoreTile<0>(pair.out, kSumStride);
    StoreTile<1>(pair.out + kTileRows, kSumStride);
    if (kHasSecond) {
      StoreTile<2>(pair.out + kLower, kSumStride);
      StoreTile<3>(pair.out + kLower + kTileRows, kSumStride);
    }
  }

  inline __m512i* Operands(const Slab& slab, int64_t k) const {
    return scratch_->operands + (k - slab.k_begin) / kTileK * kStepVectors;
  }

  template <bool kHasSecond>
  inline void MultiplySteps(const Pair& pair, const Slab& slab, int64_t k, int64_t k_end) {
    const int64_t row_bytes = args_.a_row_stride * static_cast<int64_t>(sizeof(Element));
    const Element* a = pair.a + k;
    const Element* lower_a = a + kTileRows * args_.a_row_stride;
    const __m512i* operands = Operands(slab, k);
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

  // At most 16 rows times all columns: the sums of up to kFewPanels panels stay in their tiles for all of k.
  void RunFew() {
    shape_.SetFew(args_.rows);
    for (int64_t column = column_begin_; column < args_.column_end; column += kFewPanels * kPanelColumns) {
      if (column + kPanelColumns < args_.column_end) {
        RunFewPanels<2>(column);
      } else {
        RunFewPanels<1>(column);
      }
    }
  }

  template <int64_t kPanels>
  void RunFewPanels(int64_t first_column) {
    ZeroTile<0>();
    ZeroTile<1>();
    ZeroTile<2>();
    ZeroTile<3>();
    const auto load = [&](int64_t k, __m512i* step) {
      for (int64_t p = 0; p < kPanels; ++p) {
        const int64_t column = first_column + p * kPanelColumns;
        const int64_t next = column + kFewPanels * kPanelColumns;
        loader_.Load({column, 0, weight_.k}, {next < args_.column_end ? next : column, 0, weight_.k}, k,
                     step + p * kStepVectors);
      }
    };
    __m512i* step = scratch_->operands;
    __m512i* next_step = step + kPanels * kStepVectors;
    load(0, step);
    for (int64_t k = 0; k < weight_.k; k += kTileK) {
      if (k + kTileK < weight_.k) load(k + kTileK, next_step);
      alignas(64) Element tail[kTileRows * kTileK];
      if (weight_.k - k >= kTileK) {
        LoadTile<4>(args_.a + k, args_.a_row_stride * static_cast<int64_t>(sizeof(Element)));
      } else {
        CopyTail(args_.a + k, args_.rows, weight_.k - k, tail);
        LoadTile<4>(tail, kTileRowBytes);
      }
      LoadTile<5>(step, kTileRowBytes);
      Tiles::template Multiply<0, 4, 5>();
      LoadTile<6>(step + kTileRows, kTileRowBytes);
      Tiles::template Multiply<1, 4, 6>();
      if (kPanels > 1) {
        LoadTile<5>(step + 2 * kTileRows, kTileRowBytes);
        Tiles::template Multiply<2, 4, 5>();
        LoadTile<6>(step + 3 * kTileRows, kTileRowBytes);
        Tiles::template Multiply<3, 4, 6>();
      }
      __m512i* used = step;
      step = next_step;
      next_step = used;
    }
    StoreTile<0>(scratch_->sums[0], kSumStride);
    StoreTile<1>(scratch_->sums[0] + kTileRows, kSumStride);
    if (kPanels > 1) {
      StoreTile<2>(scratch_->sums[1], kSumStride);
      StoreTile<3>(scratch_->sums[1] + kTileRows, kSumStride);
    }
    for (int64_t p = 0; p < kPanels; ++p) {
      StorePanel(first_column + p * kPanelColumns, 0, args_.rows, scratch_->sums[p]);
    }
  }

  void StorePanel(int64_t column, int64_t row_begin, int64_t rows, const int32_t* sums) const {
    const int64_t begin = Larger(args_.column_begin - column, 0);
    Operand::StoreRows(sums, rows, begin, Smaller(args_.column_end - column, kPanelColumns),
                       args_.c + row_begin * args_.c_row_stride + column + begin - args_.column_begin,
                       args_.c_row_stride);
  }

  void CopyTail(const Element* a, int64_t rows, int64_t count, Element* tail) const {
    const __mmask64 mask = (1ull << (static_cast<uint64_t>(count) * sizeof(Element))) - 1ull;
    for (int64_t m = 0; m < rows; ++m) {
      _mm512_store_si512(tail + m * kTileK, _mm512_maskz_loadu_epi8(mask, a + m * args_.a_row_stride));
    }
  }

  static constexpr int64_t kGroupColumns = kGroupPanels * kPanelColumns;

  const Args& args_;
  const WeightView& weight_;
  Scratch* scratch_;
  Loader loader_;
  const int64_t slab_k_;
  const int64_t column_begin_;  // of the first panel
  TileShape shape_;
};

template <class Tiles, class Args>
void Gemm(const Args& args) {
  PrefetchSpreadRows<typename Tiles::Operand::Element>(args.weight, args.column_begin, args.column_end);
  if constexpr (requires { Tiles::FewRows::Run(args); }) {
    if (Tiles::FewRows::Takes(args)) return Tiles::FewRows::Run(args);
  }
  PanelProduct<Tiles, Args>(args).Run();
  ReleaseTiles();
}

}  // namespace

void UseGemmAmx(KernelTable* table) {
  table->gemm_bf16 = {Gemm<Bf16Tiles, GemmBf16Args>, "gemm_bf16_bf16_bf16_32x32_amx"};
  table->gemm_s8 = {Gemm<S8Tiles, GemmS8Args>, "gemm_s8_s8_s32_32x32_amx"};
}

}  // namespace mlap
