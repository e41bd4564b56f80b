// The loop nest of the matrix products that first bring the weight into 32-bit words.
//
// A word holds the kStepK consecutive k of one column that one instruction consumes: a binary32 from one bf16, a pair
// of int16 from two int8, or four int8. The weight is taken in panels of kPanelColumns columns and up to kPanelSteps
// steps: a panel is made once and all rows of A pass over it. Between panels the sums wait in memory as they are, which
// changes no bit: every output is one chain over ascending k, for any number of rows.
//
// A policy P offers
//   Element, Output        of A and the weight; of C
//   Vector, kLanes         a register of 32-bit sums or words, 8 or 16 of them
//   kTileRows, kTileVectors  the register tile
//   kStepK                 elements of k in a word
//   Zero, Load, Store, Broadcast, MultiplyAdd(sum, word, word of A)
//   MakeWords(rows, words)   kStepK rows of 16 elements each, adjacent in memory or not, to 16 words
//   ExpandRow(a, count, words)  `count` elements of a row of A to words, the last one filled up with zeros
//   RowCorrection(a, k)      what is taken off every sum of a row
//   StoreRow(sums, correction, begin, end, c)
// and lives in an unnamed namespace. One that offers
//   Multiply(word, word)
// has words of binary32 that are multiplied by the E8M0 scales of the arguments before they enter a product.
#ifndef MLAP_KERNELS_GEMM_GEMM_PANEL_H_
#define MLAP_KERNELS_GEMM_GEMM_PANEL_H_

#include <cstdint>
#include <cstring>

#include "base/e8m0.h"
#include "base/weight_view.h"
#include "kernels/gemm/gemm.h"

namespace mlap {

template <class P, class Args>
class PanelGemm {
 public:
  using Element = typename P::Element;
  using Vector = typename P::Vector;

  static void Run(const Args& args) {
    for (int64_t column = args.column_begin / kGroup * kGroup; column < args.column_end; column += kPanelColumns) {
      for (int64_t row = 0; row < args.rows; row += kBlockRows) {
        RunPanels(args, column, row, args.rows - row < kBlockRows ? args.rows - row : kBlockRows);
      }
    }
  }

 private:
  static constexpr int64_t kGroup = 16;  // columns that MakeWords makes at a time; divides C0 of every type
  static constexpr int64_t kPanelColumns = P::kTileVectors * P::kLanes;
  // 16 to 24 KB of words: they stay in the first-level cache beside a tile's rows of A.
  static constexpr int64_t kPanelSteps = 128;
  static constexpr int64_t kBlockRows = 256;
  static_assert(kPanelColumns % kGroup == 0);
  static constexpr bool kIsScaled = requires { P::Multiply; };
  static_assert(!kIsScaled || (P::kStepK == 1 && kPanelSteps % kMxGroup == 0));

  struct alignas(64) Scratch {
    uint32_t sums[kBlockRows * kPanelColumns];
    uint32_t panel[kPanelSteps * kPanelColumns];
    uint32_t words[P::kTileRows * kPanelSteps];
  };
  static_assert(sizeof(Scratch) <= kGemmScratchBytes);

  static void RunPanels(const Args& args, int64_t column, int64_t row_begin, int64_t rows) {
    auto* scratch = static_cast<Scratch*>(args.scratch);
    uint32_t* sums = scratch->sums;
    uint32_t* panel = scratch->panel;
    const Element* a = args.a + row_begin * args.a_row_stride;
    for (int64_t k = 0; k < args.weight.k; k += kPanelSteps * P::kStepK) {
      const int64_t left = args.weight.k - k;
      const int64_t count = left < kPanelSteps * P::kStepK ? left : kPanelSteps * P::kStepK;
      MakePanel(args.weight, column, k, count, panel);
      if constexpr (kIsScaled) ScalePanel(args, column, k, count, panel);
      for (int64_t m = 0; m < rows; m += P::kTileRows) {
        const int64_t tile_rows = rows - m < P::kTileRows ? rows - m : P::kTileRows;
        ExpandRows(args, row_begin + m, tile_rows, k, count, scratch->words);
        const int64_t steps = (count + P::kStepK - 1) / P::kStepK;
        RunTile(scratch->words, tile_rows, panel, steps, k == 0, sums + m * kPanelColumns);
      }
    }
    const int64_t begin = args.column_begin > column ? args.column_begin - column : 0;
    const int64_t end = args.column_end - column < kPanelColumns ? args.column_end - column : kPanelColumns;
    auto* c = args.c + row_begin * args.c_row_stride + (column + begin - args.column_begin);
    for (int64_t m = 0; m < rows; ++m) {
      P::StoreRow(sums + m * kPanelColumns, P::RowCorrection(a + m * args.a_row_stride, args.weight.k), begin, end,
                  c + m * args.c_row_stride);
    }
  }

  // Steps of k in [k_begin, k_begin + k_count), as words [step][kPanelColumns]; what lies past the weight is zero.
  static void MakePanel(const WeightView& weight, int64_t first_column, int64_t k_begin, int64_t k_count,
                        uint32_t* panel) {
    for (int64_t group = 0; group < kPanelColumns; group += kGroup) {
      const int64_t column = first_column + group;
      const int64_t lanes = weight.n - column < kGroup ? weight.n - column : kGroup;
      const Element* w = static_cast<const Element*>(weight.data) +
                         column / weight.block_columns * weight.block_stride + column % weight.block_columns +
                         k_begin * weight.row_stride;
      uint32_t* out = panel + group;
      for (int64_t k = 0; k < k_count; k += P::kStepK, w += P::kStepK * weight.row_stride, out += kPanelColumns) {
        const int64_t step_rows = k_count - k < P::kStepK ? k_count - k : P::kStepK;
        if (lanes == kGroup && step_rows == P::kStepK) {
          P::MakeWords(w, weight.row_stride, out);
        } else {
          Element rows[P::kStepK * kGroup];
          std::memset(static_cast<void*>(rows), 0, sizeof(rows));
          for (int64_t r = 0; lanes > 0 && r < step_rows; ++r) {
            std::memcpy(static_cast<void*>(rows + r * kGroup), w + r * weight.row_stride,
                        static_cast<size_t>(lanes) * sizeof(Element));
          }
          P::MakeWords(rows, kGroup, out);
        }
      }
    }
  }

  static void ScalePanel(const Args& args, int64_t first_column, int64_t k_begin, int64_t k_count, uint32_t* panel) {
    for (int64_t k = 0; k < k_count; k += kMxGroup) {
      const int64_t end = k_count - k < kMxGroup ? k_count : k + kMxGroup;
      const uint8_t* scales = args.w_scales + (k_begin + k) / kMxGroup;
      for (int64_t group = 0; group < kPanelColumns; group += P::kLanes) {
        alignas(64) uint32_t factors[P::kLanes] = {};
        for (int64_t j = 0; j < P::kLanes && first_column + group + j < args.weight.n; ++j) {
          const float factor = ToFloat(E8m0{scales[(first_column + group + j) * args.w_scale_stride]});
          std::memcpy(&factors[j], &factor, sizeof(factor));
        }
        const Vector factor = P::Load(factors);
        for (int64_t i = k; i < end; ++i) {
          uint32_t* words = panel + i * kPanelColumns + group;
          P::Store(words, P::Multiply(P::Load(words), factor));
        }
      }
    }
  }

  static void ExpandRows(const Args& args, int64_t first_row, int64_t rows, int64_t k_begin, int64_t k_count,
                         uint32_t* words) {
    for (int64_t m = first_row; m < first_row + rows; ++m, words += kPanelSteps) {
      P::ExpandRow(args.a + m * args.a_row_stride + k_begin, k_count, words);
      if constexpr (kIsScaled) {
        // Whole vectors: what lies past the row is scratch and enters no product.
        const uint8_t* scales = args.a_scales + m * args.a_scale_stride + k_begin / kMxGroup;
        for (int64_t i = 0; i < k_count; i += P::kLanes) {
          const float factor = ToFloat(E8m0{scales[i / kMxGroup]});
          uint32_t factor_word;
          std::memcpy(&factor_word, &factor, sizeof(factor));
          P::Store(words + i, P::Multiply(P::Load(words + i), P::Broadcast(&factor_word)));
        }
      }
    }
  }

  static void RunTile(const uint32_t* words, int64_t rows, const uint32_t* panel, int64_t steps, bool is_first,
                      uint32_t* sums) {
    using Fn = void (*)(const uint32_t*, const uint32_t*, int64_t, bool, uint32_t*);
    static constexpr Fn kTiles[] = {Multiply<1>,       Multiply<Rows(2)>, Multiply<Rows(3)>, Multiply<Rows(4)>,
                                    Multiply<Rows(5)>, Multiply<Rows(6)>, Multiply<Rows(7)>, Multiply<Rows(8)>};
    kTiles[rows - 1](words, panel, steps, is_first, sums);
  }

  static constexpr int Rows(int rows) { return rows < P::kTileRows ? rows : P::kTileRows; }

  template <int kRows>
  static void Multiply(const uint32_t* words, const uint32_t* panel, int64_t steps, bool is_first, uint32_t* sums) {
    constexpr int kVectors = P::kTileVectors;
    Vector sum[kRows][kVectors];
    for (int m = 0; m < kRows; ++m) {
      for (int v = 0; v < kVectors; ++v) {
        sum[m][v] = is_first ? P::Zero() : P::Load(sums + m * kPanelColumns + v * P::kLanes);
      }
    }
    for (int64_t s = 0; s < steps; ++s, panel += kPanelColumns) {
      Vector word[kVectors];
      for (int v = 0; v < kVectors; ++v) word[v] = P::Load(panel + v * P::kLanes);
      for (int m = 0; m < kRows; ++m) {
        const Vector x = P::Broadcast(words + m * kPanelSteps + s);
        for (int v = 0; v < kVectors; ++v) sum[m][v] = P::MultiplyAdd(sum[m][v], word[v], x);
      }
    }
    for (int m = 0; m < kRows; ++m) {
      for (int v = 0; v < kVectors; ++v) P::Store(sums + m * kPanelColumns + v * P::kLanes, sum[m][v]);
    }
  }
};

}  // namespace mlap

#endif  // MLAP_KERNELS_GEMM_GEMM_PANEL_H_
