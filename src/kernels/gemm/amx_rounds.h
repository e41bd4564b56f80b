// The order in which many rows are multiplied with AMX tiles, and the operands of each round, made beside the products
// of the round before.
#ifndef MLAP_KERNELS_GEMM_AMX_ROUNDS_H_
#define MLAP_KERNELS_GEMM_AMX_ROUNDS_H_

#include <immintrin.h>

#include <cstdint>

#include "kernels/gemm/amx_tiles.h"
#include "kernels/gemm/column_operands_avx512.h"
#include "kernels/gemm/weight_steps_amx.h"

namespace mlap {
namespace {

// A round's operands, 16 KB, and the next round's fit in the first-level cache beside the rows of A that pass.
inline constexpr int64_t kRoundSteps = 8;
inline constexpr int64_t kMostRoundPanels = 2;

// Some panels of a group of panels, and a piece of k.
struct Round {
  int64_t group_begin;  // columns
  int64_t group_end;
  int64_t column;
  int64_t num_panels;
  int64_t k_begin;
  int64_t k_end;

  int64_t ColumnOf(int64_t panel) const { return column + panel * kPanelColumns; }
  int64_t StepsOfPanel(int64_t step_k) const { return CeilDiv(k_end - k_begin, step_k); }
  int64_t NumSteps(int64_t step_k) const { return num_panels * StepsOfPanel(step_k); }
};

// Group after group; in a group piece after piece of k, in ascending order; in a piece panel after panel.
class RoundOrder {
 public:
  // Columns from `column_begin`, where a panel begins, to `column_end`; `step_k` is the k of a step.
  RoundOrder(int64_t column_begin, int64_t column_end, int64_t k, int64_t step_k, int64_t group_panels)
      : column_begin_(column_begin),
        column_end_(column_end),
        k_(k),
        round_k_(Smaller(k, kRoundSteps * step_k)),
        round_panels_(Smaller(kMostRoundPanels, kRoundSteps / CeilDiv(round_k_, step_k))),
        group_columns_(group_panels * kPanelColumns) {}

  Round First() const { return Filled({column_begin_, 0, column_begin_, 0, 0, 0}); }

  // To the round after `round`; false if it was the last.
  bool Advance(Round* round) const {
    Round next = *round;
    next.column += next.num_panels * kPanelColumns;
    if (next.column >= next.group_end) {
      next.column = next.group_begin;
      next.k_begin = next.k_end;
      if (next.k_begin == k_) {
        next.k_begin = 0;
        next.group_begin += group_columns_;
        next.column = next.group_begin;
        if (next.group_begin >= column_end_) return false;
      }
    }
    *round = Filled(next);
    return true;
  }

 private:
  Round Filled(Round round) const {
    round.group_end = Smaller(round.group_begin + group_columns_, column_end_);
    round.num_panels = Smaller(CeilDiv(round.group_end - round.column, kPanelColumns), round_panels_);
    round.k_end = Smaller(round.k_begin + round_k_, k_);
    return round;
  }

  const int64_t column_begin_;
  const int64_t column_end_;
  const int64_t k_;
  const int64_t round_k_;
  const int64_t round_panels_;
  const int64_t group_columns_;
};

// Makes the operands of one round after the other, in shares, and asks for the weight ahead of that.
template <class Tiles>
class RoundOperands {
 public:
  RoundOperands(WeightSteps<Tiles>* steps, const RoundOrder& order)
      : steps_(steps), order_(order), row_elements_(steps->RowElements()), ahead_round_(order.First()) {
    EnterAheadPanel();
    if (steps->RowKindOf(ahead_round_.column) != Steps::RowKind::kPacked) return;
    for (int64_t row = 0; row < kAheadRows; ++row) AskForRow();
  }

  // [num_panels, steps, panel's tiles, kTileRows] operand rows, in so many shares.
  void Begin(const Round& round, int64_t shares, __m512i* operands) {
    rows_per_share_ = CeilDiv(round.NumSteps(kTileK) * kTileRows, shares);
    round_ = round;
    out_ = operands;
    panel_ = -1;
    kind_ = Steps::RowKind::kNone;
    NextPanel();
  }
  inline void Share() { Make(rows_per_share_); }
  void Finish() {
    while (panel_ < round_.num_panels) Make(rows_left_);
  }

 private:
  using Steps = WeightSteps<Tiles>;
  using Element = typename Steps::Element;
  static constexpr int64_t kTileK = Steps::kTileK;
  static constexpr int64_t kAheadRows = 24;  // measured; twice as many, or a third, are a few per cent slower

  inline void Make(int64_t rows) {
    for (; rows > 0 && panel_ < round_.num_panels; --rows) {
      if (kind_ == Steps::RowKind::kPacked) {
        AskForRow();
        steps_->MakePackedRow(row_, out_);
      } else {
        steps_->MakeAdjacentRow(row_, out_);
      }
      row_ += row_elements_;
      ++out_;
      if (--rows_left_ % kTileRows != 0) continue;
      out_ += kStepVectors - kTileRows;
      steps_->AskForNext();
      if (rows_left_ == 0) NextPanel();
    }
  }

  // To the next panel with rows to make. What cannot be made by rows is made at once.
  __attribute__((noinline)) void NextPanel() {
    do {
      if (panel_ >= 0 && kind_ != Steps::RowKind::kNone) MakeSteps(WholeEnd(round_));
      if (++panel_ == round_.num_panels) return;
      kind_ = steps_->RowKindOf(round_.ColumnOf(panel_));
      if (kind_ == Steps::RowKind::kNone) MakeSteps(round_.k_begin);
      rows_left_ = RowsOfPanel(kind_, round_);
      row_ = steps_->At(round_.k_begin, round_.ColumnOf(panel_));
    } while (rows_left_ == 0);
  }

  // The steps of the current panel from `k` on.
  void MakeSteps(int64_t k) {
    for (; k < round_.k_end; k += kTileK, out_ += kStepVectors) {
      steps_->AskForNext();
      steps_->MakeStep(round_.ColumnOf(panel_), k, Smaller(kTileK, round_.k_end - k), out_);
    }
  }

  static int64_t WholeEnd(const Round& round) {
    return round.k_begin + (round.k_end - round.k_begin) / kTileK * kTileK;
  }
  static int64_t RowsOfPanel(typename Steps::RowKind kind, const Round& round) {
    return kind == Steps::RowKind::kNone ? 0 : (WholeEnd(round) - round.k_begin) / kTileK * kTileRows;
  }

  // The next row of the walk ahead, if it is not at its end.
  inline void AskForRow() {
    if (ahead_left_ == 0 && !NextAheadPanel()) return;
    --ahead_left_;
    steps_->AskForPackedRow(ahead_row_);
    ahead_row_ += row_elements_;
  }
  // To the next panel that has rows.
  __attribute__((noinline)) bool NextAheadPanel() {
    do {
      if (ahead_panel_ + 1 < ahead_round_.num_panels) {
        ++ahead_panel_;
      } else {
        if (!order_.Advance(&ahead_round_)) return false;
        ahead_panel_ = 0;
      }
      EnterAheadPanel();
    } while (ahead_left_ == 0);
    return true;
  }
  void EnterAheadPanel() {
    const int64_t column = ahead_round_.ColumnOf(ahead_panel_);
    ahead_row_ = steps_->At(ahead_round_.k_begin, column);
    ahead_left_ = RowsOfPanel(steps_->RowKindOf(column), ahead_round_);
  }

  Steps* steps_;
  const RoundOrder& order_;
  const int64_t row_elements_;

  Round round_ = {};
  int64_t rows_per_share_ = 0;
  int64_t panel_ = 0;  // round_.num_panels: the round is complete
  typename Steps::RowKind kind_ = Steps::RowKind::kNone;
  const Element* row_ = nullptr;
  int64_t rows_left_ = 0;  // of the panel's whole steps
  __m512i* out_ = nullptr;

  Round ahead_round_;
  int64_t ahead_panel_ = 0;
  const Element* ahead_row_ = nullptr;
  int64_t ahead_left_ = 0;
};

}  // namespace
}  // namespace mlap

#endif  // MLAP_KERNELS_GEMM_AMX_ROUNDS_H_
