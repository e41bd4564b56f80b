// The order in which many rows are multiplied with AMX tiles.
#ifndef MLAP_KERNELS_GEMM_AMX_ROUNDS_H_
#define MLAP_KERNELS_GEMM_AMX_ROUNDS_H_

#include <cstdint>

#include "kernels/gemm/column_operands_avx512.h"
#include "kernels/gemm/weight_steps_amx.h"

namespace mlap {
namespace {

// Steps of a panel in a round: its operands, and the next round's, take 32 KB of the first-level cache beside the rows
// of A that pass.
inline constexpr int64_t kMostPanelSteps = 8;
// So short a k is taken in one piece, by two panels together, whose finished rows are 128 bytes of C: memory takes two
// lines side by side in the time of one.
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
  int64_t PanelSteps(int64_t step_k) const { return CeilDiv(k_end - k_begin, step_k); }
  int64_t WholeSteps(int64_t step_k) const { return (k_end - k_begin) / step_k; }
  // Whether `next`, the round after this one, adds to the same sums.
  bool IsContinuedBy(const Round& next) const { return next.column == column && next.k_begin == k_end; }
};

// Group after group; in a group piece after piece of k, in ascending order; in a piece panel after panel.
class RoundOrder {
 public:
  // Columns from `column_begin`, where a panel begins, to `column_end`; `step_k` is the k of a step, `panel_steps` at
  // most kMostPanelSteps.
  RoundOrder(int64_t column_begin, int64_t column_end, int64_t k, int64_t step_k, int64_t group_panels,
             int64_t panel_steps)
      : column_begin_(column_begin),
        column_end_(column_end),
        k_(k),
        round_k_(k <= kMostPanelSteps * step_k ? k : panel_steps * step_k),
        round_panels_(round_k_ == k ? kMostRoundPanels : 1),
        group_columns_(Larger(group_panels, round_panels_) * kPanelColumns) {}

  int64_t group_columns() const { return group_columns_; }

  void First(Round* round) const { Fill(column_begin_, column_begin_, 0, round); }

  // The round after `round`; false if it was the last.
  bool Advance(const Round& round, Round* next) const {
    const int64_t column = round.column + round.num_panels * kPanelColumns;
    if (column < round.group_end) {
      Fill(round.group_begin, column, round.k_begin, next);
      return true;
    }
    if (round.k_end < k_) {
      Fill(round.group_begin, round.group_begin, round.k_end, next);
      return true;
    }
    if (round.group_end >= column_end_) return false;
    Fill(round.group_end, round.group_end, 0, next);
    return true;
  }

 private:
  // Field by field: a copy in wide pieces of what was written in narrow ones has to wait for all stores before it.
  void Fill(int64_t group_begin, int64_t column, int64_t k_begin, Round* round) const {
    const int64_t group_end = Smaller(group_begin + group_columns_, column_end_);
    round->group_begin = group_begin;
    round->group_end = group_end;
    round->column = column;
    round->num_panels = Smaller(CeilDiv(group_end - column, kPanelColumns), round_panels_);
    round->k_begin = k_begin;
    round->k_end = Smaller(k_begin + round_k_, k_);
  }

  const int64_t column_begin_;
  const int64_t column_end_;
  const int64_t k_;
  const int64_t round_k_;
  const int64_t round_panels_;
  const int64_t group_columns_;
};

}  // namespace
}  // namespace mlap

#endif  // MLAP_KERNELS_GEMM_AMX_ROUNDS_H_
