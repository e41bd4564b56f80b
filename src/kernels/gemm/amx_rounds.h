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

// A round's operands, at most 16 KB, and the next round's fit in the first-level cache beside the rows of A that pass.
inline constexpr int64_t kMostRoundSteps = 8;
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
  // Columns from `column_begin`, where a panel begins, to `column_end`; `step_k` is the k of a step, round_steps at
  // most kMostRoundSteps.
  RoundOrder(int64_t column_begin, int64_t column_end, int64_t k, int64_t step_k, int64_t group_panels,
             int64_t round_steps)
      : column_begin_(column_begin),
        column_end_(column_end),
        k_(k),
        round_k_(Smaller(k, round_steps * step_k)),
        round_panels_(Smaller(kMostRoundPanels, round_steps / CeilDiv(round_k_, step_k))),
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

// Makes the operands of one round after the other, a row at a time, and asks for the weight a step ahead of that.
template <class Tiles>
class RoundOperands {
 public:
  using Steps = WeightSteps<Tiles>;
  using Element = typename Steps::Element;

  RoundOperands(Steps* steps, const RoundOrder& order)
      : steps_(steps),
        order_(order),
        is_packed_(steps->RowKindOf(order.First().column) == Steps::RowKind::kPacked),
        row_elements_(steps->RowElements()),
        line_stride_(steps->LineStride(is_packed_)),
        walk_round_(order.First()),
        walk_k_(walk_round_.k_begin) {
    if (is_packed_ && WalkHasRows()) steps->AskForPackedStep(WalkWeights());
  }

  // [num_panels, steps, panel's tiles, kTileRows] operand rows, in so many shares.
  void Begin(const Round& round, int64_t shares, __m512i* operands) {
    steps_left_ = round.NumSteps(kTileK);
    rows_per_share_ = CeilDiv(steps_left_ * kTileRows, shares);
    out_ = operands;
    place_ = NextStep();
  }
  int64_t rows_per_share() const { return rows_per_share_; }
  void Finish() {
    Maker maker(this);
    maker.Make((steps_left_ + 1) * kTileRows);
  }

 private:
  // Where the next operand row is made.
  struct Place {
    const Element* w = nullptr;
    const Element* soon = nullptr;  // the same row of the next step, asked for meanwhile
    __m512i* out = nullptr;
    int64_t rows_left = 0;  // of the step; none: the round is complete
  };

 public:
  // Makes rows from where they are to be made next. While it lives it has the place to itself, in registers.
  class Maker {
   public:
    explicit Maker(RoundOperands* operands)
        : operands_(operands),
          place_(operands->place_),
          is_packed_(operands->is_packed_),
          row_elements_(operands->row_elements_),
          line_stride_(operands->line_stride_) {}
    ~Maker() { operands_->place_ = place_; }
    Maker(const Maker&) = delete;
    Maker& operator=(const Maker&) = delete;

    // As many rows, or what is left of the round.
    inline void Make(int64_t rows) {
      for (; rows > 0 && place_.rows_left > 0; --rows) {
        if (is_packed_) {
          Steps::MakePackedRow(place_.w, place_.soon, line_stride_, place_.out);
        } else {
          Steps::MakeAdjacentRow(place_.w, line_stride_, place_.out);
        }
        place_.w += row_elements_;
        place_.soon += row_elements_;
        ++place_.out;
        if (--place_.rows_left == 0) place_ = operands_->NextStep();
      }
    }

   private:
    RoundOperands* operands_;
    Place place_;
    const bool is_packed_;
    const int64_t row_elements_;
    const int64_t line_stride_;
  };

 private:
  static constexpr int64_t kTileK = Steps::kTileK;

  // The round's next step that is made by rows; what cannot be is made at once.
  __attribute__((noinline)) Place NextStep() {
    while (steps_left_ > 0) {
      --steps_left_;
      steps_->AskForNext();
      __m512i* out = out_;
      out_ += kStepVectors;
      if (!WalkHasRows()) {
        steps_->MakeStep(WalkColumn(), walk_k_, Smaller(kTileK, walk_round_.k_end - walk_k_), out);
        AdvanceWalk();
        continue;
      }
      const Element* w = WalkWeights();
      const Element* soon = AdvanceWalk() && WalkHasRows() ? WalkWeights() : w;
      return {w, soon, out, kTileRows};
    }
    return {};
  }

  // The walk over the steps in the order of rounds: the step that follows those made or being made.
  int64_t WalkColumn() const { return walk_round_.ColumnOf(walk_panel_); }
  const Element* WalkWeights() const { return steps_->At(walk_k_, WalkColumn()); }
  bool WalkHasRows() const {
    return walk_k_ + kTileK <= walk_round_.k_end && steps_->RowKindOf(WalkColumn()) != Steps::RowKind::kNone;
  }
  // False at the end.
  bool AdvanceWalk() {
    walk_k_ += kTileK;
    if (walk_k_ < walk_round_.k_end) return true;
    if (++walk_panel_ == walk_round_.num_panels) {
      walk_panel_ = 0;
      if (!order_.Advance(&walk_round_)) return false;
    }
    walk_k_ = walk_round_.k_begin;
    return true;
  }

  Steps* steps_;
  const RoundOrder& order_;
  const bool is_packed_;
  const int64_t row_elements_;
  const int64_t line_stride_;

  Round walk_round_;
  int64_t walk_panel_ = 0;
  int64_t walk_k_;

  int64_t steps_left_ = 0;  // of the round, not begun
  int64_t rows_per_share_ = 0;
  __m512i* out_ = nullptr;
  Place place_;
};

}  // namespace
}  // namespace mlap

#endif  // MLAP_KERNELS_GEMM_AMX_ROUNDS_H_
