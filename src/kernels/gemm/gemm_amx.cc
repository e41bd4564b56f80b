// Matrix products with AMX tiles (TDPBF16PS, TDPBSSD), on weights as they lie in memory.
//
// Up to 32 rows, all sums stay in tiles for all of k, and the weight goes through a few kilobytes: it streams. More
// rows take it in rounds: a panel of 32 columns (two if k is short) and a piece of k, small enough that its operands
// stay in the first-level cache while all rows pass over them. As they pass, each pair of row tiles makes its share of
// the next round's operands, between the products of each step, so that the weight's way from memory is spread over the
// products. Between two rounds of one panel the sums wait in memory as binary32 or int32, which changes no bit: every
// output is still one chain over ascending k. A tile row is one row of A, so neither does the number of rows.

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
constexpr int64_t kMostBlockPairs = 8;
constexpr int64_t kMostBlockRows = kMostBlockPairs * kPairRows;
// Panels whose sums wait at the same time. The more, the less often A comes into the second-level cache: one is enough
// where A stays there anyway.
constexpr int64_t kMostGroupPanels = 8;
constexpr int64_t kStayingBytes = 1536 * 1024;
// So few rows that memory has little time for a line of the weight, if A stays: they go in shorter rounds, whose sums
// and operands take less of the first-level cache, and ask for longer pieces of the weight ahead.
constexpr int64_t kMostFewRows = 128;
constexpr int64_t kFewRowsPanelSteps = 4;
constexpr int64_t kFewRowsPieceSteps = 16;

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
    // Blocks of almost equal numbers of pairs of row tiles: at least two.
    const int64_t pairs = CeilDiv(args_.rows, kPairRows);
    const int64_t blocks = CeilDiv(pairs, kMostBlockPairs);
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t begin = block * pairs / blocks, end = (block + 1) * pairs / blocks;
      const int64_t row = begin * kPairRows;
      const int64_t rows = Smaller(end * kPairRows, args_.rows) - row;
      // The smallest share of the next round's operands with which all pairs make them all.
      if (end - begin < 4) {
        RunMany<kStepVectors / 2>(row, rows);
      } else if (end - begin < 8) {
        RunMany<kStepVectors / 4>(row, rows);
      } else {
        RunMany<kStepVectors / 8>(row, rows);
      }
    }
  }

 private:
  static constexpr int64_t kPairSums = kPairRows * kPanelColumns;
  static constexpr int64_t kPairStride = kPanelColumns * static_cast<int64_t>(sizeof(int32_t));
  static constexpr int64_t kStreamColumns = 4 * kTileRows;
  struct alignas(64) Scratch {
    int32_t sums[kMostGroupPanels * kMostBlockRows * kPanelColumns];
    int32_t finished[2][kMostRoundPanels * kPairSums];
    __m512i operands[2][kMostRoundPanels * kMostPanelSteps * kStepVectors];
  };
  static_assert(sizeof(Scratch) <= kGemmScratchBytes);

  // Sums of a pair of row tiles, finished but not yet stored. That takes turns with the steps of the next pair, for the
  // sums are slow to come from the tiles and C is slow to go to memory.
  class Unstored {
   public:
    explicit Unstored(const PanelProduct& product) : product_(product) {}
    // Where the next finished sums go to: not where those lie that are not yet stored.
    int32_t* Next() { return product_.scratch_->finished[which_]; }
    // Rows [row, row + rows) of the round's columns, which lie there.
    void Begin(const Round& round, int64_t row, int64_t rows) {
      sums_ = Next();
      which_ = 1 - which_;
      column_ = round.column;
      num_panels_ = round.num_panels;
      row_ = row;
      left_ = rows;
      rows_per_step_ = CeilDiv(rows, round.num_panels * round.PanelSteps(kTileK));
    }
    bool HasRows() const { return left_ > 0; }
    inline void Share() {
      if (left_ > 0) Store(Smaller(rows_per_step_, left_));
    }
    void Finish() {
      if (left_ > 0) Store(left_);
    }

   private:
    void Store(int64_t rows) {
      product_.StorePanels(column_, num_panels_, row_, rows, sums_, kPairSums, kPanelColumns);
      sums_ += rows * kPanelColumns;
      row_ += rows;
      left_ -= rows;
    }

    const PanelProduct& product_;
    int64_t column_ = 0;
    int64_t num_panels_ = 0;
    int which_ = 0;
    const int32_t* sums_ = nullptr;
    int64_t row_ = 0;
    int64_t left_ = 0;
    int64_t rows_per_step_ = 0;
  };

  using RowKind = typename WeightSteps<Tiles>::RowKind;

  // How a weight is asked for ahead: while a piece of a panel's k is made into operands, the next piece.
  struct Asking {
    int64_t piece_k;
    int64_t group_columns;  // from a panel to the one whose k is read after its own
  };

  // Rows [row_begin, row_begin + rows) times all columns. Each pair of row tiles makes kLines lines of each step of the
  // next round's operands.
  template <int kLines>
  void RunMany(int64_t row_begin, int64_t rows) {
    const bool stays = rows * weight_.k * static_cast<int64_t>(sizeof(Element)) <= kStayingBytes;
    const bool are_few = rows <= kMostFewRows && stays;
    const int64_t group_panels = stays ? 1 : kMostGroupPanels;
    const int64_t panel_steps = are_few ? kFewRowsPanelSteps : kMostPanelSteps;
    const RoundOrder order(column_begin_, args_.column_end, weight_.k, kTileK, group_panels, panel_steps);
    const Asking asking = {(are_few ? kFewRowsPieceSteps : kMostPanelSteps) * kTileK, order.group_columns()};
    Round rounds[2];
    order.First(&rounds[0]);
    Unstored unstored(*this);
    MakeRest(rounds[0], nullptr, scratch_->operands[0]);
    bool ascends = true, continues = false;
    for (int which = 0;; which = 1 - which, ascends = !ascends) {
      const Round& current = rounds[which];
      const Round& next = rounds[1 - which];
      const bool has_next = order.Advance(current, &rounds[1 - which]);
      const RoundRun run = {current,
                            has_next ? &next : nullptr,
                            scratch_->operands[which],
                            scratch_->operands[1 - which],
                            asking,
                            row_begin,
                            rows,
                            !stays,
                            ascends,
                            continues,
                            has_next && current.IsContinuedBy(next)};
      RunRound<kLines>(run, &unstored);
      if (!has_next) break;
      MakeRest(next, &current, scratch_->operands[1 - which]);
      continues = run.is_continued;
    }
    unstored.Finish();
  }

  struct RoundRun {
    const Round& round;
    const Round* next;  // null: none
    const __m512i* operands;
    __m512i* next_operands;
    const Asking& asking;
    int64_t row_begin;
    int64_t rows;
    bool asks_rows;     // of A, which does not stay in the second-level cache
    bool ascends;       // the order of pairs of row tiles
    bool continues;     // the first pair's sums are in their tiles
    bool is_continued;  // the last pair's sums stay there
  };

  // Pairs take turns in both directions, so that the sums of the last one stay in their tiles if the next round adds to
  // them.
  template <int kLines>
  void RunRound(const RoundRun& run, Unstored* unstored) {
    const Round& round = run.round;
    const bool is_last = round.k_end == weight_.k;
    const int64_t pairs = CeilDiv(run.rows, kPairRows);
    const int64_t panel_vectors = round.PanelSteps(kTileK) * kStepVectors;
    int32_t* const sums = scratch_->sums + (round.column - round.group_begin) * kMostBlockRows;
    for (int64_t turn = 0; turn < pairs; ++turn) {
      const int64_t m = run.ascends ? turn : pairs - 1 - turn;
      const int64_t row = run.row_begin + m * kPairRows;
      const int64_t pair_rows = Smaller(run.rows - m * kPairRows, kPairRows);
      int32_t* finished = unstored->Next();
      for (int64_t panel = 0; panel < round.num_panels; ++panel) {
        int32_t* waiting = sums + m * kPairSums;  // rounds of two panels are the only ones of their k
        const Pair pair = {args_.a + row * args_.a_row_stride,
                           pair_rows,
                           run.asks_rows ? RowsAskedFor(round, row, pair_rows) : RowsSoon{nullptr, 0},
                           round.k_begin == 0 ? nullptr : waiting,
                           is_last ? finished + panel * kPairSums : waiting,
                           run.continues && turn == 0,
                           run.is_continued && turn == pairs - 1};
        const __m512i* operands = run.operands + panel * panel_vectors;
        if (pair_rows > kTileRows) {
          MultiplyPair<true, kLines>(pair, run, operands, panel, turn, unstored);
        } else {
          MultiplyPair<false, kLines>(pair, run, operands, panel, turn, unstored);
        }
      }
      if (!is_last) continue;
      unstored->Finish();
      unstored->Begin(round, row, pair_rows);
    }
  }

  // What is asked for of A: at each step of a panel, 64 bytes of each of some rows.
  struct RowsSoon {
    const char* a;
    int64_t rows;
  };

  // The piece of k after this one, which all panels of a group pass over but only the first would wait for: each panel
  // asks for it in its own part of a pair's rows.
  RowsSoon RowsAskedFor(const Round& round, int64_t row, int64_t rows) const {
    const int64_t k = round.k_end < weight_.k ? round.k_end : 0;
    if (k + round.k_end - round.k_begin > weight_.k) return {nullptr, 0};
    const int64_t panels = CeilDiv(round.group_end - round.group_begin, kPanelColumns);
    const int64_t panel = (round.column - round.group_begin) / kPanelColumns;
    const int64_t begin = panel * rows / panels, end = (panel + 1) * rows / panels;
    return {reinterpret_cast<const char*>(args_.a + (row + begin) * args_.a_row_stride + k), end - begin};
  }

  // Up to two row tiles of A, and where their sums come from (null: zero) and go to.
  struct Pair {
    const Element* a;
    int64_t rows;
    RowsSoon rows_soon;
    const int32_t* in;
    int32_t* out;
    bool has_sums;    // in their tiles
    bool keeps_sums;  // there
  };

  // Steps of a panel of `next` that are made beside those of `round`: whole ones.
  int64_t StepsBeside(const Round& round, const Round& next, int64_t panel) const {
    if (panel >= round.num_panels || steps_.RowKindOf(next.ColumnOf(panel)) == RowKind::kNone) return 0;
    return Smaller(round.WholeSteps(kTileK), next.WholeSteps(kTileK));
  }

  // The operands of `next` that were not made beside `round`, if there was one.
  void MakeRest(const Round& next, const Round* round, __m512i* operands) {
    const int64_t steps = next.PanelSteps(kTileK);
    for (int64_t panel = 0; panel < next.num_panels; ++panel, operands += steps * kStepVectors) {
      for (int64_t step = round == nullptr ? 0 : StepsBeside(*round, next, panel); step < steps; ++step) {
        const int64_t column = next.ColumnOf(panel);
        steps_.template Load<kPanelTiles>(column, column, next.k_begin + step * kTileK, operands + step * kStepVectors);
      }
    }
  }

  // The piece to be asked for while the panel at `column` is made into operands from `k` on, which is `place` of its
  // own piece. After the last one: that panel's first, which is at hand.
  const Element* Soon(const Asking& asking, int64_t column, int64_t k, int64_t* place) const {
    const int64_t piece = k / asking.piece_k;
    *place = k % asking.piece_k;
    const int64_t next_k = (piece + 1) * asking.piece_k;
    if (next_k < weight_.k) return steps_.At(next_k, column);
    const int64_t next_column = column + asking.group_columns;
    return steps_.At(0, next_column + kPanelColumns <= args_.column_end ? next_column : column);
  }

  template <bool kHasSecond, int kLines>
  void MultiplyPair(const Pair& pair, const RoundRun& run, const __m512i* operands, int64_t panel, int64_t turn,
                    Unstored* unstored) {
    constexpr int kRowTiles = kHasSecond ? 2 : 1;
    shape_.Set(kRowTiles, pair.rows - (kRowTiles - 1) * kTileRows);
    if (pair.in == nullptr) {
      ZeroSums<kRowTiles * kPanelTiles>();
    } else if (!pair.has_sums) {
      LoadTile<0>(pair.in, kPairStride);
      LoadTile<1>(pair.in + kTileRows, kPairStride);
      if (kHasSecond) {
        LoadTile<2>(pair.in + kPairSums / 2, kPairStride);
        LoadTile<3>(pair.in + kPairSums / 2 + kTileRows, kPairStride);
      }
    }
    Place at = {pair.a + run.round.k_begin, operands, run.round.k_begin};
    const int64_t k_end = run.round.k_end;
    const int64_t steps_beside =
        run.next != nullptr && turn * kLines < kStepVectors ? StepsBeside(run.round, *run.next, panel) : 0;
    if (steps_beside > 0) {
      const int64_t column = run.next->ColumnOf(panel), k = run.next->k_begin;
      const Element* w = steps_.At(k, column);
      __m512i* out = run.next_operands + panel * run.next->PanelSteps(kTileK) * kStepVectors;
      const int64_t k_beside = at.k + steps_beside * kTileK;
      if (steps_.RowKindOf(column) == RowKind::kPacked) {
        using Share = typename WeightSteps<Tiles>::template PackedShare<kLines>;
        int64_t place;
        const Element* soon = Soon(run.asking, column, k, &place);
        Share share(weight_, turn, w, soon, place, run.asking.piece_k, out);
        MultiplySteps<kHasSecond>(pair, &at, k_beside, share, turn == 0, unstored);
      } else {
        typename WeightSteps<Tiles>::template AdjacentShare<kLines> share(weight_, turn, w, out);
        MultiplySteps<kHasSecond>(pair, &at, k_beside, share, turn == 0, unstored);
      }
    }
    if (at.k < k_end) MultiplySteps<kHasSecond>(pair, &at, k_end, NoShare(), turn == 0, unstored);
    if (!pair.keeps_sums) StoreSums<kRowTiles, kPanelTiles, kPanelColumns>(pair.out);
  }

  // Steps of one pair and panel. They are a function of their own, so that what they go by lives in registers; it takes
  // it by reference, since a copy would read in wide pieces what has just been written in narrow ones, and wait for all
  // stores before: a sixth of the time of 64 rows.
  struct Steps {
    const Element* a;
    int64_t row_bytes;  // of A
    const __m512i* operands;
    int64_t count;
    RowsSoon rows_soon;
  };
  // kIsAlone: nothing else goes on beside them but the making of operands.
  template <bool kHasSecond, bool kIsAlone, class Share>
  __attribute__((noinline)) void RunSteps(const Steps& steps, const Share& first, bool asks, Unstored* unstored) {
    Share share = first;
    const int64_t row_bytes = steps.row_bytes;
    const int64_t rows_soon = steps.rows_soon.rows;
    const char* soon_a = steps.rows_soon.a;
    const Element* a = steps.a;
    const Element* lower_a = AddBytes(a, kTileRows * row_bytes);
    const __m512i* operands = steps.operands;
    for (int64_t left = steps.count; left > 0; --left) {
      MultiplyStep<kHasSecond, true>(a, lower_a, row_bytes, operands, share);
      share.Advance();
      for (int64_t row = 0; row < rows_soon; ++row) PrefetchLaterLine(soon_a + row * row_bytes);
      soon_a += kTileRowBytes;
      a += kTileK;
      lower_a += kTileK;
      operands += kStepVectors;
      if constexpr (!kIsAlone) {
        if (asks) steps_.AskForNext();
        unstored->Share();
      }
    }
  }
  static const Element* AddBytes(const Element* a, int64_t bytes) {
    return reinterpret_cast<const Element*>(reinterpret_cast<const char*>(a) + bytes);
  }

  // The steps from here on.
  struct Place {
    const Element* a;
    const __m512i* operands;
    int64_t k;
  };

  // Up to k_end, at most the weight's end. asks: for what is read after this product.
  template <bool kHasSecond, class Share>
  inline void MultiplySteps(const Pair& pair, Place* at, int64_t k_end, const Share& share, bool asks,
                            Unstored* unstored) {
    const int64_t count = (k_end - at->k) / kTileK;
    const Steps steps = {at->a, args_.a_row_stride * static_cast<int64_t>(sizeof(Element)), at->operands, count,
                         pair.rows_soon};
    if (asks || unstored->HasRows()) {
      RunSteps<kHasSecond, false>(steps, share, asks, unstored);
    } else {
      RunSteps<kHasSecond, true>(steps, share, false, nullptr);
    }
    *at = {at->a + count * kTileK, at->operands + count * kStepVectors, at->k + count * kTileK};
    if (at->k == k_end) return;
    // Rows of A end before 64 bytes do.
    alignas(64) Element tail[kPairRows * kTileK];
    CopyTail(at->a, pair.rows, k_end - at->k, tail);
    RunSteps<kHasSecond, false>({tail, kTileRowBytes, at->operands, 1, {nullptr, 0}}, NoShare(), asks, unstored);
  }

  // A share of operands that is none.
  struct NoShare {
    template <int kPart, int kParts>
    inline void Make() const {}
    inline void Advance() {}
  };

  // Makes the parts of a share of operands between the products. kPasses: A goes by the operands, which stay in the
  // first-level cache.
  template <bool kHasSecond, bool kPasses, class Share>
  static inline void MultiplyStep(const Element* upper_a, const Element* lower_a, int64_t row_bytes,
                                  const __m512i* operands, const Share& share) {
    constexpr int kProducts = kHasSecond ? 4 : 2;
    LoadTile<4, kPasses>(upper_a, row_bytes);
    LoadTile<6>(operands, kTileRowBytes);
    Tiles::template Multiply<0, 4, 6>();
    share.template Make<0, kProducts>();
    LoadTile<7>(operands + kTileRows, kTileRowBytes);
    Tiles::template Multiply<1, 4, 7>();
    share.template Make<1, kProducts>();
    if constexpr (kHasSecond) {
      LoadTile<5, kPasses>(lower_a, row_bytes);
      Tiles::template Multiply<2, 5, 6>();
      share.template Make<2, kProducts>();
      Tiles::template Multiply<3, 5, 7>();
      share.template Make<3, kProducts>();
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
    StorePanels(column, kColumns / kPanelColumns, 0, args_.rows, scratch_->sums, kPanelColumns, kStreamColumns);
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
    MultiplyStep<kRowTiles == 2, false>(a, a + tile_stride, row_bytes, step, NoShare());
    if constexpr (kColumnTiles > 2) {
      LoadTile<6>(step + 2 * kTileRows, kTileRowBytes);
      Tiles::template Multiply<2, 4, 6>();
      LoadTile<7>(step + 3 * kTileRows, kTileRowBytes);
      Tiles::template Multiply<3, 4, 7>();
    }
  }

  // Rows [row_begin, row_begin + rows) of some panels' columns from `column` on, as far as they are asked for. From one
  // panel's sums to the next one's it is panel_sums.
  void StorePanels(int64_t column, int64_t num_panels, int64_t row_begin, int64_t rows, const int32_t* sums,
                   int64_t panel_sums, int64_t sum_stride) const {
    if constexpr (requires { Tiles::RoundedLine(sums); }) {
      if (column >= args_.column_begin && column + num_panels * kPanelColumns <= args_.column_end) {
        auto* c = args_.c + row_begin * args_.c_row_stride + column - args_.column_begin;
        const bool streams = args_.streams_c && reinterpret_cast<uintptr_t>(c) % kLineBytes == 0 &&
                             args_.c_row_stride % kPanelColumns == 0;
        for (int64_t m = 0; m < rows; ++m, sums += sum_stride, c += args_.c_row_stride) {
          for (int64_t panel = 0; panel < num_panels; ++panel) {
            const __m512i line = Tiles::RoundedLine(sums + panel * panel_sums);
            if (streams) {
              _mm512_stream_si512(reinterpret_cast<__m512i*>(c + panel * kPanelColumns), line);
            } else {
              _mm512_storeu_si512(c + panel * kPanelColumns, line);
            }
          }
        }
        return;
      }
    }
    for (int64_t panel = 0; panel < num_panels; ++panel, column += kPanelColumns, sums += panel_sums) {
      const int64_t begin = Larger(args_.column_begin - column, 0);
      const int64_t end = Smaller(args_.column_end - column, kPanelColumns);
      if (begin >= end) continue;
      auto* c = args_.c + row_begin * args_.c_row_stride + column + begin - args_.column_begin;
      Operand::StoreRows(sums, sum_stride, rows, begin, end, c, args_.c_row_stride);
    }
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
