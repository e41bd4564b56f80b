// Matrix products with AMX tiles (TDPBF16PS, TDPBSSD), on weights as they lie in memory.
//
// Up to 32 rows, all sums stay in tiles for all of k, and the weight goes through a few kilobytes: it streams. More
// rows take it in rounds: a panel of 32 columns and a piece of k, small enough that its operands stay in the
// first-level cache while all rows pass over them. As they pass, the operands of the next round are made, a few rows
// between the products of each step, so that the weight's way from memory is spread over the products. Between two
// rounds of one panel the sums wait in memory as binary32 or int32, which changes no bit: every output is still one
// chain over ascending k. A tile row is one row of A, so neither does the number of rows.

#include <immintrin.h>

#include "kernels/gemm/amx_rounds.h"
#include "kernels/gemm/amx_tiles.h"
#include "kernels/gemm/column_operands_avx512.h"
#include "kernels/gemm/few_rows_amx.h"
#include "kernels/gemm/weight_prefetch.h"
#include "kernels/gemm/weight_steps_amx.h"
#include "kernels/registration.h"

namespace mlap {
namespace {

constexpr int64_t kPairRows = 2 * kTileRows;
// Rows that pass over the weight together: with the sums of a group, they stay in the second-level cache.
constexpr int64_t kMostBlockRows = 256;
// Panels whose sums wait at the same time. The more, the less often A comes into the second-level cache.
constexpr int64_t kMostGroupPanels = 8;
// So few rows that A stays there anyway, and that memory has little time for a line of the weight: they take a panel in
// one go, which reads the weight in long pieces, in shorter rounds, whose sums and operands take less of the
// first-level cache.
constexpr int64_t kMostFewRows = 128;
constexpr int64_t kFewRowsRoundSteps = 4;

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

// The tiles' current shape, for one or two tiles of rows of A, the last one of `last` rows: see the functions that
// multiply.
class TileShape {
 public:
  void Set(int64_t row_tiles, int64_t last) {
    if (row_tiles == row_tiles_ && last == last_) return;
    row_tiles_ = row_tiles;
    last_ = last;
    constexpr int64_t kAll = kTileRows;
    if (row_tiles == 1) {
      Load({last, last, last, last, last, 0, kAll, kAll});  // sums 0 to 3, A 4, columns 6 and 7
    } else {
      Load({kAll, kAll, last, last, kAll, last, kAll, kAll});  // sums 0 to 3, A 4 and 5, columns 6 and 7
    }
  }

 private:
  static void Load(const int64_t (&rows)[8]) {
    TileConfig config;
    for (int tile = 0; tile < 8; ++tile) {
      if (rows[tile] == 0) continue;
      config.rows[tile] = static_cast<uint8_t>(rows[tile]);
      config.row_bytes[tile] = kTileRowBytes;
    }
    ConfigureTiles(config);
  }

  int64_t row_tiles_ = 0;  // none: nothing is loaded
  int64_t last_ = 0;
};

template <class Tiles, class Args>
class PanelProduct {
 public:
  using Operand = typename Tiles::Operand;
  using Element = typename Operand::Element;
  static constexpr int64_t kTileK = WeightSteps<Tiles>::kTileK;

  explicit PanelProduct(const Args& args)
      : args_(args),
        weight_(args.weight),
        scratch_(static_cast<Scratch*>(args.scratch)),
        steps_(args.weight, args.next,
               CeilDiv(args.column_end - args.column_begin, args.rows > kTileRows ? kPanelColumns : kStreamColumns) *
                   CeilDiv(args.weight.k, kTileK)),
        column_begin_(args.column_begin / kPanelColumns * kPanelColumns) {}

  void Run() {
    const int64_t row_tiles = CeilDiv(args_.rows, kTileRows);
    if (row_tiles == 1) return RunStream<1, 4>();
    if (row_tiles == 2) return RunStream<2, 2>();
    // Blocks of equal numbers of pairs.
    const int64_t blocks = CeilDiv(args_.rows, kMostBlockRows);
    const int64_t block_rows = CeilDiv(CeilDiv(args_.rows, blocks), kPairRows) * kPairRows;
    for (int64_t row = 0; row < args_.rows; row += block_rows) RunMany(row, Smaller(block_rows, args_.rows - row));
  }

 private:
  static constexpr int64_t kPairSums = kPairRows * kPanelColumns;
  static constexpr int64_t kPairStride = kPanelColumns * static_cast<int64_t>(sizeof(int32_t));
  static constexpr int64_t kStreamColumns = 4 * kTileRows;
  struct alignas(64) Scratch {
    int32_t sums[kMostGroupPanels * kMostBlockRows * kPanelColumns];
    int32_t finished[2][kMostRoundPanels * kPairSums];
    __m512i operands[2][kMostRoundSteps * kStepVectors];
  };
  static_assert(sizeof(Scratch) <= kGemmScratchBytes);

  // Sums of a pair of row tiles, finished but not yet stored. That takes turns with the steps of the next pair, for the
  // sums are slow to come from the tiles and C is slow to go to memory.
  class Unstored {
   public:
    explicit Unstored(const PanelProduct& product) : product_(product) {}
    // Rows [row, row + rows) of the round's columns, from `sums`.
    void Begin(const Round& round, const int32_t* sums, int64_t row, int64_t rows) {
      round_ = round;
      sums_ = sums;
      row_ = row;
      left_ = rows;
      rows_per_step_ = CeilDiv(rows, round.NumSteps(kTileK));
    }
    inline void Share() {
      if (left_ > 0) Store(Smaller(rows_per_step_, left_));
    }
    void Finish() {
      if (left_ > 0) Store(left_);
    }

   private:
    void Store(int64_t rows) {
      for (int64_t panel = 0; panel < round_.num_panels; ++panel) {
        product_.StorePanel(round_.ColumnOf(panel), row_, rows, sums_ + panel * kPairSums, kPanelColumns);
      }
      sums_ += rows * kPanelColumns;
      row_ += rows;
      left_ -= rows;
    }

    const PanelProduct& product_;
    Round round_ = {};
    const int32_t* sums_ = nullptr;
    int64_t row_ = 0;
    int64_t left_ = 0;
    int64_t rows_per_step_ = 0;
  };

  // What goes on beside the steps of a round.
  struct Beside {
    RoundOperands<Tiles> next;  // the next round's operands
    Unstored unstored;
    int which_finished = 0;  // the buffer that the next finished sums go to
  };

  // Rows [row_begin, row_begin + rows) times all columns.
  void RunMany(int64_t row_begin, int64_t rows) {
    const bool are_few = rows <= kMostFewRows;
    const RoundOrder order(column_begin_, args_.column_end, weight_.k, kTileK, are_few ? 1 : kMostGroupPanels,
                           are_few ? kFewRowsRoundSteps : kMostRoundSteps);
    const int64_t pairs = CeilDiv(rows, kPairRows);
    Round round = order.First();
    Beside beside = {RoundOperands<Tiles>(&steps_, order), Unstored(*this)};
    beside.next.Begin(round, 1, scratch_->operands[0]);
    for (int which = 0;; which = 1 - which) {
      beside.next.Finish();
      const Round current = round;
      const bool has_next = order.Advance(&round);
      if (has_next) beside.next.Begin(round, pairs * current.NumSteps(kTileK), scratch_->operands[1 - which]);
      RunRound(current, scratch_->operands[which], row_begin, rows, &beside);
      if (!has_next) break;
    }
    beside.unstored.Finish();
  }

  void RunRound(const Round& round, const __m512i* operands, int64_t row_begin, int64_t rows, Beside* beside) {
    const bool is_last = round.k_end == weight_.k;
    const int64_t panel_vectors = round.StepsOfPanel(kTileK) * kStepVectors;
    int32_t* sums = scratch_->sums + (round.column - round.group_begin) * kMostBlockRows;
    for (int64_t m = 0; m < rows; m += kPairRows) {
      int32_t* finished = scratch_->finished[beside->which_finished];
      const int64_t pair_rows = Smaller(rows - m, kPairRows);
      for (int64_t panel = 0; panel < round.num_panels; ++panel, sums += kPairSums) {
        const Pair pair = {args_.a + (row_begin + m) * args_.a_row_stride, pair_rows,
                           round.k_begin == 0 ? nullptr : sums, is_last ? finished + panel * kPairSums : sums};
        if (pair_rows > kTileRows) {
          MultiplyPair<true>(pair, round, operands + panel * panel_vectors, beside);
        } else {
          MultiplyPair<false>(pair, round, operands + panel * panel_vectors, beside);
        }
      }
      if (!is_last) continue;
      beside->unstored.Finish();
      beside->unstored.Begin(round, finished, row_begin + m, pair_rows);
      beside->which_finished = 1 - beside->which_finished;
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
  void MultiplyPair(const Pair& pair, const Round& round, const __m512i* operands, Beside* beside) {
    constexpr int kRowTiles = kHasSecond ? 2 : 1;
    shape_.Set(kRowTiles, pair.rows - (kRowTiles - 1) * kTileRows);
    if (pair.in == nullptr) {
      ZeroSums<kRowTiles * kPanelTiles>();
    } else {
      LoadTile<0>(pair.in, kPairStride);
      LoadTile<1>(pair.in + kTileRows, kPairStride);
      if (kHasSecond) {
        LoadTile<2>(pair.in + kPairSums / 2, kPairStride);
        LoadTile<3>(pair.in + kPairSums / 2 + kTileRows, kPairStride);
      }
    }
    MultiplySteps<kHasSecond>(pair, operands, round.k_begin, round.k_end, beside);
    StoreSums<kRowTiles, kPanelTiles, kPanelColumns>(pair.out);
  }

  template <bool kHasSecond>
  inline void MultiplySteps(const Pair& pair, const __m512i* operands, int64_t k, int64_t k_end, Beside* beside) {
    const int64_t row_bytes = args_.a_row_stride * static_cast<int64_t>(sizeof(Element));
    const Element* a = pair.a + k;
    const Element* lower_a = a + kTileRows * args_.a_row_stride;
    const int64_t share = beside->next.rows_per_share();
    typename RoundOperands<Tiles>::Maker maker(&beside->next);
    for (; k + kTileK <= k_end; k += kTileK, a += kTileK, lower_a += kTileK, operands += kStepVectors) {
      MultiplyStep<kHasSecond, true>(a, lower_a, row_bytes, operands, &maker, share);
      beside->unstored.Share();
    }
    if (k == k_end) return;
    // Rows of A end before 64 bytes do.
    alignas(64) Element tail[kPairRows * kTileK];
    CopyTail(a, pair.rows, k_end - k, tail);
    MultiplyStep<kHasSecond, true>(tail, tail + kTileRows * kTileK, kTileRowBytes, operands, &maker, share);
    beside->unstored.Share();
  }

  // A RoundOperands::Maker that has nothing to make.
  struct NoMaker {
    inline void Make(int64_t) {}
  };

  // Makes `share` operand rows between the products. kPasses: A goes by the operands, which stay in the first-level
  // cache.
  template <bool kHasSecond, bool kPasses, class Maker>
  static inline void MultiplyStep(const Element* upper_a, const Element* lower_a, int64_t row_bytes,
                                  const __m512i* operands, Maker* maker, int64_t share) {
    constexpr int64_t kProducts = kHasSecond ? 4 : 2;
    LoadTile<4, kPasses>(upper_a, row_bytes);
    LoadTile<6>(operands, kTileRowBytes);
    Tiles::template Multiply<0, 4, 6>();
    maker->Make(share / kProducts);
    LoadTile<7>(operands + kTileRows, kTileRowBytes);
    Tiles::template Multiply<1, 4, 7>();
    maker->Make((share + 1) / kProducts);
    if (kHasSecond) {
      LoadTile<5, kPasses>(lower_a, row_bytes);
      Tiles::template Multiply<2, 5, 6>();
      maker->Make((share + 2) / kProducts);
      Tiles::template Multiply<3, 5, 7>();
      maker->Make((share + 3) / kProducts);
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
    const int64_t next_column = column + kColumns < args_.column_end ? column + kColumns : column;
    __m512i* step = scratch_->operands[0];
    __m512i* next_step = step + kColumnTiles * kTileRows;
    steps_.template Load<kColumnTiles>(column, next_column, 0, step);
    for (int64_t k = 0; k < weight_.k; k += kTileK) {
      if (k + kTileK < weight_.k) {
        steps_.template Load<kColumnTiles>(column, next_column, k + kTileK, next_step);
      }
      steps_.AskForNext();
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
    StoreSums<kRowTiles, kColumnTiles, kStreamColumns>(scratch_->sums);
    for (int64_t part = 0; part < kColumns; part += kPanelColumns) {
      StorePanel(column + part, 0, args_.rows, scratch_->sums + part, kStreamColumns);
    }
  }

  template <int kTiles>
  static inline void ZeroSums() {
    ZeroTile<0>();
    if (kTiles > 1) ZeroTile<1>();
    if (kTiles > 2) ZeroTile<2>();
    if (kTiles > 3) ZeroTile<3>();
  }

  // The tiles of sums, kColumnTiles of them side by side, in rows of kStride sums.
  template <int kRowTiles, int kColumnTiles, int64_t kStride, int kTile = 0>
  static inline void StoreSums(int32_t* sums) {
    if constexpr (kTile < kRowTiles * kColumnTiles) {
      constexpr int64_t kRow = kTile / kColumnTiles * kTileRows, kColumn = kTile % kColumnTiles * kTileRows;
      StoreTile<kTile>(sums + kRow * kStride + kColumn, kStride * static_cast<int64_t>(sizeof(int32_t)));
      StoreSums<kRowTiles, kColumnTiles, kStride, kTile + 1>(sums);
    }
  }

  template <int kRowTiles, int kColumnTiles>
  static inline void StreamStep(const Element* a, int64_t a_stride, const __m512i* step) {
    const int64_t row_bytes = a_stride * static_cast<int64_t>(sizeof(Element));
    const int64_t tile_stride = kTileRows * a_stride;
    NoMaker maker;
    MultiplyStep<kRowTiles == 2, false>(a, a + tile_stride, row_bytes, step, &maker, 0);
    if constexpr (kColumnTiles > 2) {
      LoadTile<6>(step + 2 * kTileRows, kTileRowBytes);
      Tiles::template Multiply<2, 4, 6>();
      LoadTile<7>(step + 3 * kTileRows, kTileRowBytes);
      Tiles::template Multiply<3, 4, 7>();
    }
  }

  // The panel's columns from `column` on, as far as they are asked for, of rows [row_begin, row_begin + rows).
  void StorePanel(int64_t column, int64_t row_begin, int64_t rows, const int32_t* sums, int64_t sum_stride) const {
    const int64_t begin = Larger(args_.column_begin - column, 0);
    const int64_t end = Smaller(args_.column_end - column, kPanelColumns);
    if (begin >= end) return;
    auto* c = args_.c + row_begin * args_.c_row_stride + column + begin - args_.column_begin;
    if constexpr (requires { Tiles::RoundedLine(sums); }) {
      if (begin == 0 && end == kPanelColumns) {
        const bool streams = args_.streams_c && reinterpret_cast<uintptr_t>(c) % kLineBytes == 0 &&
                             args_.c_row_stride % kPanelColumns == 0;
        for (int64_t m = 0; m < rows; ++m, sums += sum_stride, c += args_.c_row_stride) {
          if (streams) {
            _mm512_stream_si512(reinterpret_cast<__m512i*>(c), Tiles::RoundedLine(sums));
          } else {
            _mm512_storeu_si512(c, Tiles::RoundedLine(sums));
          }
        }
        return;
      }
    }
    Operand::StoreRows(sums, sum_stride, rows, begin, end, c, args_.c_row_stride);
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
  WeightSteps<Tiles> steps_;
  const int64_t column_begin_;  // of the first panel
  TileShape shape_;
};

template <class Tiles, class Args>
void Gemm(const Args& args) {
  if constexpr (requires { Tiles::FewRows::Run(args); }) {
    if (Tiles::FewRows::Takes(args)) return Tiles::FewRows::Run(args);
  }
  if (!WasNext(args)) {
    PrefetchSpreadRows<typename Tiles::Operand::Element>(args.weight, args.column_begin, args.column_end);
  }
  PanelProduct<Tiles, Args>(args).Run();
  ReleaseTiles();
  if constexpr (requires { args.streams_c; }) {
    if (args.streams_c) _mm_sfence();  // streamed stores are ordered by nothing else
  }
}

}  // namespace

void UseGemmAmx(KernelTable* table) {
  table->task_columns = kMostGroupPanels * kPanelColumns;
  table->gemm_bf16 = {Gemm<Bf16Tiles, GemmBf16Args>, "gemm_bf16_bf16_bf16_32x32_amx"};
  table->gemm_s8 = {Gemm<S8Tiles, GemmS8Args>, "gemm_s8_s8_s32_32x32_amx"};
}

}  // namespace mlap
