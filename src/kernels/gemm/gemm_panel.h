// The loop nest of the matrix products that first bring the weight into 32-bit words.
//
// A word holds the kStepK consecutive k of one column that one instruction consumes: a binary32 from one bf16, a pair
// of int16 from two int8, or four int8. The weight is taken in panels of kPanelColumns columns and up to kPanelSteps
// steps: the first tile of rows makes a panel as it multiplies, the others pass over it, and all of them ask for the
// next one. Between panels the sums wait in memory as they are, which changes no bit: every output is one chain over
// ascending k, for any number of rows.
//
// A policy P offers
//   Element, Output        of A and the weight; of C
//   Vector, kLanes         a register of 32-bit sums or words, 8 or 16 of them
//   kTileRows, kTileVectors  the register tile
//   kWideRows              up to so many rows take tiles of half the rows and twice the vectors
//   kStepK                 elements of k in a word
//   Zero, Load, Store, Broadcast, MultiplyAdd(sum, word, word of A)
//   kUnit                  columns that MakeWords makes at a time; divides C0 of the type
//   MakeWords(rows, row_stride, words)  kStepK rows of kUnit elements each to kUnit words, in registers
//   kReadsA                whether a word of A is its kStepK elements as they lie in memory
//   ExpandRow(a, count, words)  `count` elements of a row of A to words, the last one filled up with zeros
//   RowCorrection(a, k)      what is taken off every sum of a row
//   StoreRow(sums, correction, begin, end, c)  for bf16 (sums, begin, end, c, streams): see GemmBf16Args
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
#include "kernels/gemm/weight_prefetch.h"

namespace mlap {

// A word, which may lie anywhere.
static inline int32_t WordAt(const void* word) {
  int32_t bits;
  std::memcpy(&bits, word, sizeof(bits));
  return bits;
}

static inline float FloatAt(const void* word) {
  float value;
  std::memcpy(&value, word, sizeof(value));
  return value;
}

// kTileRows x kVectors: the register tile. A panel is as wide as a tile.
template <class P, class Args, int kTileRows, int kVectors>
class PanelGemm {
 public:
  using Element = typename P::Element;
  using Vector = typename P::Vector;

  static constexpr int64_t kPanelColumns = kVectors * P::kLanes;

  static void Run(const Args& args) {
    if (!kIsScaled && args.rows <= kTileRows) {
      RunStream(args);
    } else {
      if (!WasNext(args)) PrefetchSpreadRows<Element>(args.weight, args.column_begin, args.column_end);
      RunGroups(args);
    }
    if constexpr (requires { args.streams_c; }) {
      if (args.streams_c) _mm_sfence();  // streamed stores are ordered by nothing else
    }
  }

 private:
  static constexpr int64_t kUnit = P::kUnit;
  static constexpr int kUnitVectors = kUnit / P::kLanes;
  // 8 to 48 KB of words, which stay in the first-level cache, or nearly, beside a tile's rows of A.
  static constexpr int64_t kPanelSteps = 128;
  static constexpr int64_t kTurn = 8;  // steps of a panel between two shares of the next panel that are asked for
  // Policies that read A ask for the rest of what comes in every so many turns. The others, whose products leave fewer
  // instructions free, are faster if they ask between tiles.
  static constexpr int64_t kRareTurns = 4;
  static constexpr int64_t kAsksOfTile = P::kReadsA ? kPanelSteps / kTurn / kRareTurns : 1;
  // Rows that are apart are walked so many steps at a time, if a panel has a whole line of each.
  static constexpr int64_t kSpreadSteps = 64 / P::kStepK;
  // Rows of A are widened once for a group of panels: both, and the sums, wait in the second-level cache.
  static constexpr int64_t kBlockRows = 256;
  static constexpr int64_t kGroupPanels = 192 / kPanelColumns;
  static constexpr int64_t kGroupColumns = kGroupPanels * kPanelColumns;
  static_assert(kPanelColumns % kUnit == 0);
  static constexpr int64_t kBlocks = CeilDiv(kPanelColumns * static_cast<int64_t>(sizeof(Element)), kFractalRowBytes);
  static constexpr int64_t kWordBytes = sizeof(uint32_t);
  // From a row of A's words to the next one while panels multiply; 0: as the caller has them.
  static constexpr int64_t kPanelRowBytes = P::kReadsA ? 0 : kPanelSteps * kWordBytes;
  static constexpr bool kIsScaled = requires { P::Multiply; };
  static_assert(!kIsScaled || (P::kStepK == 1 && kPanelSteps % kMxGroup == 0));

  // How far ahead RunStream asks for the weight, in all the blocks of a panel together. Less leaves memory waiting,
  // more comes too early.
  static constexpr int64_t kStreamedBytes = 6144;
  static constexpr int64_t kPrefetchBytes = kStreamedBytes / kBlocks;
  static constexpr bool kHasWholeLines = kPanelColumns * static_cast<int64_t>(sizeof(Element)) >= kLineBytes;

  struct alignas(64) Scratch {
    uint32_t sums[kGroupPanels][kBlockRows * kPanelColumns];
    uint32_t panel[kPanelSteps * kPanelColumns];
    uint32_t words[kBlockRows * kPanelSteps];
  };
  static_assert(sizeof(Scratch) <= kGemmScratchBytes);

  static NextRead NextOf(const Args& args) {
    if constexpr (requires { args.next; }) return args.next;
    return {};
  }

  static void RunGroups(const Args& args) {
    NextReadPrefetch next_read(NextOf(args), CeilDiv(args.column_end - args.column_begin, kPanelColumns) *
                                                 CeilDiv(args.weight.k, kPanelSteps * P::kStepK) *
                                                 CeilDiv(args.rows, kTileRows) * kAsksOfTile);
    for (int64_t row = 0; row < args.rows; row += kBlockRows) {
      const int64_t rows = args.rows - row < kBlockRows ? args.rows - row : kBlockRows;
      for (int64_t column = args.column_begin / kUnit * kUnit; column < args.column_end; column += kGroupColumns) {
        RunGroup(args, column, row, rows, &next_read);
      }
    }
  }

  // The elements of k that a panel from `k` on has; none behind the weight's.
  static int64_t PanelCount(const WeightView& weight, int64_t k) {
    const int64_t left = weight.k - k;
    return left < kPanelSteps * P::kStepK ? left : kPanelSteps * P::kStepK;
  }

  // Columns [first_column, first_column + kGroupColumns) as far as they are asked for.
  static void RunGroup(const Args& args, int64_t first_column, int64_t row_begin, int64_t rows,
                       NextReadPrefetch* next_read) {
    auto* scratch = static_cast<Scratch*>(args.scratch);
    const int64_t left_panels = (args.column_end - first_column + kPanelColumns - 1) / kPanelColumns;
    const int64_t num_panels = left_panels < kGroupPanels ? left_panels : kGroupPanels;
    const int64_t tiles = (rows + kTileRows - 1) / kTileRows;  // equal ones, instead of full ones and a small rest
    for (int64_t k = 0; k < args.weight.k; k += kPanelSteps * P::kStepK) {
      const int64_t count = PanelCount(args.weight, k);
      const int64_t steps = (count + P::kStepK - 1) / P::kStepK;
      RowWords words = {reinterpret_cast<const char*>(scratch->words), kPanelSteps * kWordBytes};
      if (P::kReadsA && count % P::kStepK == 0) {
        words = WordsOfA(args, row_begin, k);
      } else {
        ExpandRows(args, row_begin, rows, k, count, scratch->words, kPanelSteps);
      }
      for (int64_t p = 0; p < num_panels; ++p) {
        const int64_t column = first_column + p * kPanelColumns;
        const bool is_last = p + 1 == num_panels;
        Ahead ahead = {
            NextPanel(args.weight, is_last ? first_column : column + kPanelColumns, is_last ? k + count : k, tiles),
            NextRows(), next_read};
        uint32_t* sums = scratch->sums[p];
        const bool makes = !kIsScaled && column + kPanelColumns <= args.weight.n && count % P::kStepK == 0;
        if (!makes) {
          MakePanel(args.weight, column, k, count, scratch->panel);
          if constexpr (kIsScaled) ScalePanel(args, column, k, count, scratch->panel);
        }
        for (int64_t t = 0; t < tiles; ++t) {
          const int64_t begin = rows * t / tiles, end = rows * (t + 1) / tiles;
          const RowWords tile_words = words.From(begin);
          uint32_t* tile_sums = sums + begin * kPanelColumns;
          if (!P::kReadsA) {
            next_read->Portion();
          } else if (is_last) {
            ahead.rows = NextRows(args, row_begin + begin, row_begin + end, k + count);
          }
          if (makes && t == 0) {
            RunTile(MakingWords(args.weight, column, k, scratch->panel, &ahead), tile_words, end - begin, steps, k == 0,
                    tile_sums);
          } else {
            RunTile(PanelWords<kPanelRowBytes>{scratch->panel, &ahead}, tile_words, end - begin, steps, k == 0,
                    tile_sums);
          }
        }
      }
    }
    for (int64_t m = row_begin; m < row_begin + rows; ++m) {
      const int32_t correction = P::RowCorrection(args.a + m * args.a_row_stride, args.weight.k);
      for (int64_t p = 0; p < num_panels; ++p) {
        StoreSums(args, m, first_column + p * kPanelColumns, correction,
                  scratch->sums[p] + (m - row_begin) * kPanelColumns);
      }
    }
  }

  // Row m's sums of a panel, as far as they are asked for.
  static void StoreSums(const Args& args, int64_t m, int64_t column, int32_t correction, const uint32_t* sums) {
    const int64_t begin = args.column_begin > column ? args.column_begin - column : 0;
    const int64_t end = args.column_end - column < kPanelColumns ? args.column_end - column : kPanelColumns;
    auto* c = args.c + m * args.c_row_stride + (column + begin - args.column_begin);
    if constexpr (requires { args.streams_c; }) {
      P::StoreRow(sums, begin, end, c, args.streams_c);
    } else {
      P::StoreRow(sums, correction, begin, end, c);
    }
  }

  // One tile of rows multiplies the weight's words as they are made, k as a whole: memory streams, and nothing goes
  // through a panel. Where the words of A do not fit, k is cut, and the sums of all columns wait.
  static void RunStream(const Args& args) {
    auto* scratch = static_cast<Scratch*>(args.scratch);
    constexpr int64_t kWords = sizeof(scratch->words) / sizeof(uint32_t);
    constexpr int64_t kSums = sizeof(scratch->sums) / sizeof(uint32_t);
    int64_t most_steps = (kWords / args.rows - 16) / kPanelSteps * kPanelSteps;
    const bool is_far_apart = !args.weight.HasAdjacentRows() && !WasNext(args);
    if (is_far_apart && kHasWholeLines) {
      most_steps = kSpreadSteps;
    } else if (is_far_apart) {
      PrefetchSpreadRows<Element>(args.weight, args.column_begin, args.column_end);
    }
    NextReadPrefetch next_read(NextOf(args), CeilDiv(args.column_end - args.column_begin, kPanelColumns) *
                                                 CeilDiv(args.weight.k, WeightWords::kStepsOfPortion));
    const int64_t most_columns = kSums / args.rows / kPanelColumns * kPanelColumns;
    int32_t corrections[kTileRows];
    for (int64_t m = 0; m < args.rows; ++m) {
      corrections[m] = P::RowCorrection(args.a + m * args.a_row_stride, args.weight.k);
    }
    for (int64_t first = args.column_begin / kUnit * kUnit; first < args.column_end; first += most_columns) {
      const int64_t column_end = args.column_end - first < most_columns ? args.column_end : first + most_columns;
      for (int64_t k = 0; k < args.weight.k; k += most_steps * P::kStepK) {
        const int64_t left = args.weight.k - k;
        const int64_t count = left < most_steps * P::kStepK ? left : most_steps * P::kStepK;
        const int64_t steps = (count + P::kStepK - 1) / P::kStepK;
        const int64_t stride = ((steps + 15) / 16 | 1) * 16;  // an odd number of lines, apart in the caches' sets
        ExpandRows(args, 0, args.rows, k, count, scratch->words, stride);
        const RowWords row_words = {reinterpret_cast<const char*>(scratch->words), stride * kWordBytes};
        uint32_t* sums = scratch->sums[0];
        for (int64_t column = first; column < column_end; column += kPanelColumns, sums += args.rows * kPanelColumns) {
          if (column + kPanelColumns <= args.weight.n && count % P::kStepK == 0) {
            const bool is_last = column + kPanelColumns >= column_end;
            const WeightWords words(args.weight, column, k, k + count, is_last ? first : column + kPanelColumns,
                                    is_last ? k + count : k, is_far_apart, &next_read);
            RunTile(words, row_words, args.rows, steps, k == 0, sums);
            continue;
          }
          // The weight ends here.
          NextReadPrefetch nothing({}, 1);
          Ahead none = {NextPanel(), NextRows(), &nothing};
          for (int64_t s = 0; s < steps; s += kPanelSteps) {
            const int64_t panel_steps = steps - s < kPanelSteps ? steps - s : kPanelSteps;
            const int64_t left_count = count - s * P::kStepK;
            MakePanel(args.weight, column, k + s * P::kStepK,
                      left_count < panel_steps * P::kStepK ? left_count : panel_steps * P::kStepK, scratch->panel);
            RunTile(PanelWords<0>{scratch->panel, &none},
                    RowWords{row_words.first + s * kWordBytes, row_words.row_bytes}, args.rows, panel_steps, k + s == 0,
                    sums);
          }
        }
      }
      const uint32_t* sums = scratch->sums[0];
      for (int64_t column = first; column < column_end; column += kPanelColumns) {
        for (int64_t m = 0; m < args.rows; ++m, sums += kPanelColumns) {
          StoreSums(args, m, column, corrections[m], sums);
        }
      }
    }
  }

  // Steps of k in [k_begin, k_begin + k_count), as words [step][kPanelColumns]; what lies past the weight is zero.
  static void MakePanel(const WeightView& weight, int64_t first_column, int64_t k_begin, int64_t k_count,
                        uint32_t* panel) {
    for (int64_t group = 0; group < kPanelColumns; group += kUnit) {
      const int64_t column = first_column + group;
      const int64_t lanes = weight.n - column < kUnit ? weight.n - column : kUnit;
      const Element* w = static_cast<const Element*>(weight.data) + weight.Offset(k_begin, column);
      uint32_t* out = panel + group;
      for (int64_t k = 0; k < k_count; k += P::kStepK, w += P::kStepK * weight.row_stride, out += kPanelColumns) {
        const int64_t step_rows = k_count - k < P::kStepK ? k_count - k : P::kStepK;
        Vector words[kUnitVectors];
        if (lanes == kUnit && step_rows == P::kStepK) {
          P::MakeWords(w, weight.row_stride, words);
        } else {
          Element rows[P::kStepK * kUnit];
          std::memset(static_cast<void*>(rows), 0, sizeof(rows));
          for (int64_t r = 0; lanes > 0 && r < step_rows; ++r) {
            std::memcpy(static_cast<void*>(rows + r * kUnit), w + r * weight.row_stride,
                        static_cast<size_t>(lanes) * sizeof(Element));
          }
          P::MakeWords(rows, kUnit, words);
        }
        for (int v = 0; v < kUnitVectors; ++v) P::Store(out + v * P::kLanes, words[v]);
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
                         uint32_t* words, int64_t word_stride) {
    for (int64_t m = first_row; m < first_row + rows; ++m, words += word_stride) {
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

  // Asks for the weight's part of the panel that comes next, a share at a time.
  class NextPanel {
   public:
    NextPanel() = default;
    // `k` may be the end of the weight's.
    NextPanel(const WeightView& weight, int64_t column, int64_t k, int64_t tiles) {
      constexpr int64_t kTurnBytes = kTurn * P::kStepK * kFractalRowBytes;
      const int64_t count = PanelCount(weight, k);
      const int64_t in_block = column % weight.block_columns;
      const bool has_been_asked_for = in_block > 0 && kPanelColumns < weight.block_columns;
      if (!weight.HasAdjacentRows() || has_been_asked_for || column + kPanelColumns > weight.n || count <= 0) {
        return;
      }
      line_ = static_cast<const char*>(weight.data) +
              weight.Offset(k, column - in_block) * static_cast<int64_t>(sizeof(Element));
      end_ = line_ + count * kFractalRowBytes;
      block_bytes_ = weight.block_stride * static_cast<int64_t>(sizeof(Element));
      portion_bytes_ = (kTurnBytes / kLineBytes + tiles - 1) / tiles * kLineBytes;
    }
    inline void Portion() {
      const char* portion_end = end_ - line_ < portion_bytes_ ? end_ : line_ + portion_bytes_;
      for (; line_ < portion_end; line_ += kLineBytes) {
#pragma GCC unroll 16
        for (int64_t block = 0; block < kBlocks; ++block) {
          PrefetchLine(line_ + block * block_bytes_);
        }
      }
    }

   private:
    const char* line_ = nullptr;
    const char* end_ = nullptr;
    int64_t block_bytes_ = 0;
    int64_t portion_bytes_ = 0;
  };

  // Asks for the elements of a tile's rows of A that the panels of the next k read.
  class NextRows {
   public:
    NextRows() = default;
    NextRows(const Args& args, int64_t row_begin, int64_t row_end, int64_t k) {
      const int64_t count = PanelCount(args.weight, k);
      if (count <= 0) return;
      row_bytes_ = args.a_row_stride * static_cast<int64_t>(sizeof(Element));
      line_ = reinterpret_cast<const char*>(args.a + row_begin * args.a_row_stride + k);
      end_ = line_ + (row_end - row_begin) * row_bytes_;
      lines_ = CeilDiv(count * static_cast<int64_t>(sizeof(Element)), kLineBytes);
    }
    // A line of every row.
    inline void Portion() {
      if (lines_ == 0) return;
      for (const char* line = line_; line < end_; line += row_bytes_) PrefetchLaterLine(line);
      line_ += kLineBytes;
      end_ += kLineBytes;
      --lines_;
    }

   private:
    const char* line_ = nullptr;
    const char* end_ = nullptr;
    int64_t row_bytes_ = 0;
    int64_t lines_ = 0;
  };

  // Everything that is asked for while tiles multiply, a share in a turn.
  struct Ahead {
    NextPanel panel;
    NextRows rows;
    NextReadPrefetch* read;
    int64_t turn = 0;
    inline void Portion() {
      panel.Portion();
      if constexpr (P::kReadsA) {
        if (turn++ % kRareTurns != 0) return;
        rows.Portion();
        read->Portion();
      }
    }
  };

  // Words of rows of A.
  struct RowWords {
    const char* first;
    int64_t row_bytes;  // from a row to the next
    RowWords From(int64_t row) const { return {first + row * row_bytes, row_bytes}; }
  };
  static RowWords WordsOfA(const Args& args, int64_t row, int64_t k) {
    return {reinterpret_cast<const char*>(args.a + row * args.a_row_stride + k),
            args.a_row_stride * static_cast<int64_t>(sizeof(Element))};
  }

  // The words of a panel, step by step: as they were left there, or from the weight, or from the weight and left there.
  // kRowBytes is that of A's words, 0 if it is not known beforehand.
  template <int64_t kBytes>
  struct PanelWords {
    const uint32_t* panel;
    Ahead* ahead;
    static constexpr int64_t kRowBytes = kBytes;
    static constexpr int64_t kTurn = PanelGemm::kTurn;
    inline void AskAhead() { ahead->Portion(); }
    inline void Next(Vector* words) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) words[v] = P::Load(panel + v * P::kLanes);
      panel += kPanelColumns;
    }
  };
  class WeightWords {
   public:
    static constexpr int64_t kRowBytes = 0;
    // So many steps of packed rows fill whole lines.
    static constexpr int64_t kTurn =
        P::kStepK * kFractalRowBytes < kLineBytes ? kLineBytes / (P::kStepK * kFractalRowBytes) : 1;

    // Asks for nothing.
    WeightWords(const WeightView& weight, int64_t column, int64_t k) : row_stride_(weight.row_stride) {
#pragma GCC unroll 16
      for (int unit = 0; unit < kUnits; ++unit) {
        units_[unit] = static_cast<const Element*>(weight.data) + weight.Offset(k, column + unit * kUnit);
      }
    }
    static constexpr int64_t kTurnsOfPortion = 16;
    static constexpr int64_t kStepsOfPortion = kTurnsOfPortion * kTurn * P::kStepK;
    // Words of k [k, k_end), after which those of the panel at (next_k, next_column) are read.
    WeightWords(const WeightView& weight, int64_t column, int64_t k, int64_t k_end, int64_t next_column, int64_t next_k,
                bool is_far_apart, NextReadPrefetch* next_read)
        : WeightWords(weight, column, k) {
      is_far_apart_ = is_far_apart;
      next_read_ = next_read;
      is_packed_ = weight.HasAdjacentRows();
      const int64_t to_next = (weight.Offset(next_k, next_column) - weight.Offset(k, column)) * kElementBytes;
      const int64_t k_bytes = (k_end - k) * kFractalRowBytes;
      then_bytes_ = is_packed_ ? kPrefetchBytes + to_next - k_bytes : to_next;
      ahead_bytes_ = is_packed_ && k_bytes > kPrefetchBytes ? kPrefetchBytes : then_bytes_;
      turns_ = (k_bytes - kPrefetchBytes) / (kTurn * P::kStepK * kFractalRowBytes);
    }
    // The lines of the next kTurn steps, some time ahead; once for the units of a block. Rows that are apart are asked
    // for in the next panel, a panel's columns of each.
    inline void AskAhead() {
      if (--portion_turns_ == 0) {
        portion_turns_ = kTurnsOfPortion;
        next_read_->Portion();
      }
      if (is_packed_) {
        constexpr int kBlockUnits = kFractalRowBytes / static_cast<int>(sizeof(Element)) / kUnit;
#pragma GCC unroll 16
        for (int unit = 0; unit < kUnits; unit += kBlockUnits) {
          const char* at = reinterpret_cast<const char*>(units_[unit]);
          for (int64_t byte = 0; byte < kTurn * P::kStepK * kFractalRowBytes; byte += kLineBytes) {
            if constexpr (kBlocks == 1) {
              PrefetchLaterLine(InNextPiece<32 * 1024, 4>(at + byte));
            } else {
              PrefetchLine(at + ahead_bytes_ + byte);
            }
          }
        }
        if (--turns_ == 0) ahead_bytes_ = then_bytes_;
      } else if (kHasWholeLines && is_far_apart_) {
        for (int64_t row = 0; row < kTurn * P::kStepK; ++row) {
          for (int64_t byte = 0; byte < kPanelColumns * kElementBytes; byte += kLineBytes) {
            PrefetchLine(reinterpret_cast<const char*>(units_[0] + row * row_stride_) + ahead_bytes_ + byte);
          }
        }
      }
    }
    inline void Next(Vector* words) {
#pragma GCC unroll 16
      for (int unit = 0; unit < kUnits; ++unit) {
        P::MakeWords(units_[unit], row_stride_, words + unit * kUnitVectors);
        units_[unit] += P::kStepK * row_stride_;
      }
    }

   private:
    static constexpr int kUnits = kPanelColumns / kUnit;
    static constexpr int64_t kElementBytes = static_cast<int64_t>(sizeof(Element));

    const Element* units_[kUnits];
    const int64_t row_stride_;
    bool is_packed_ = false;
    bool is_far_apart_ = false;  // rows, and not in a cache
    NextReadPrefetch* next_read_ = nullptr;
    int64_t portion_turns_ = kTurnsOfPortion;
    int64_t ahead_bytes_ = 0;
    int64_t turns_ = 0;  // until ahead_bytes_ changes
    int64_t then_bytes_ = 0;
  };

  class MakingWords {
   public:
    static constexpr int64_t kRowBytes = kPanelRowBytes;
    static constexpr int64_t kTurn = PanelGemm::kTurn;

    MakingWords(const WeightView& weight, int64_t column, int64_t k, uint32_t* panel, Ahead* ahead)
        : weight_words_(weight, column, k), panel_(panel), ahead_(ahead) {}
    inline void AskAhead() { ahead_->Portion(); }
    inline void Next(Vector* words) {
      weight_words_.Next(words);
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) P::Store(panel_ + v * P::kLanes, words[v]);
      panel_ += kPanelColumns;
    }

   private:
    WeightWords weight_words_;
    uint32_t* panel_;
    Ahead* ahead_;
  };

  template <class Words>
  static void RunTile(const Words& panel, const RowWords& words, int64_t rows, int64_t steps, bool is_first,
                      uint32_t* sums) {
    using Fn = void (*)(Words, RowWords, int64_t, bool, uint32_t*);
    static constexpr Fn kTiles[] = {Multiply<1, Words>,       Multiply<Rows(2), Words>, Multiply<Rows(3), Words>,
                                    Multiply<Rows(4), Words>, Multiply<Rows(5), Words>, Multiply<Rows(6), Words>,
                                    Multiply<Rows(7), Words>, Multiply<Rows(8), Words>};
    kTiles[rows - 1](panel, words, steps, is_first, sums);
  }

  static constexpr int Rows(int rows) { return rows < kTileRows ? rows : kTileRows; }

  template <int kRows, class Words>
  static void Multiply(Words panel, RowWords words, int64_t steps, bool is_first, uint32_t* sums) {
    if (Words::kRowBytes > 0) words.row_bytes = Words::kRowBytes;
    Vector sum[kRows][kVectors];
#pragma GCC unroll 16
    for (int m = 0; m < kRows; ++m) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) {
        sum[m][v] = is_first ? P::Zero() : P::Load(sums + m * kPanelColumns + v * P::kLanes);
      }
    }
    int64_t s = 0;
    for (; s + Words::kTurn <= steps; s += Words::kTurn) {
      panel.AskAhead();
#pragma GCC unroll 2
      for (int64_t turn = 0; turn < Words::kTurn; ++turn) AddStep<kRows>(&panel, words, s + turn, sum);
    }
    for (; s < steps; ++s) AddStep<kRows>(&panel, words, s, sum);
#pragma GCC unroll 16
    for (int m = 0; m < kRows; ++m) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) P::Store(sums + m * kPanelColumns + v * P::kLanes, sum[m][v]);
    }
  }

  template <int kRows, class Words>
  __attribute__((always_inline)) static inline void AddStep(Words* panel, const RowWords& words, int64_t step,
                                                            Vector (&sum)[kRows][kVectors]) {
    Vector word[kVectors];
    panel->Next(word);
#pragma GCC unroll 16
    for (int m = 0; m < kRows; ++m) {
      const Vector x = P::Broadcast(words.first + m * words.row_bytes + step * kWordBytes);
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) sum[m][v] = P::MultiplyAdd(sum[m][v], word[v], x);
    }
  }
};

// A policy's kernel.
template <class P, class Args>
void RunPanelGemm(const Args& args) {
  using Whole = PanelGemm<P, Args, P::kTileRows, P::kTileVectors>;
  if constexpr (P::kWideRows > 0) {
    if (args.rows <= P::kWideRows) return PanelGemm<P, Args, P::kTileRows / 2, 2 * P::kTileVectors>::Run(args);
  }
  constexpr int kNarrow = 2;  // vectors of a panel behind the whole ones, if no more are left
  if constexpr (P::kTileVectors > kNarrow) {
    const int64_t columns = args.column_end - args.column_begin / P::kUnit * P::kUnit;
    const int64_t rest = columns % Whole::kPanelColumns;
    if (rest > 0 && rest <= kNarrow * P::kLanes) {
      Args last = args;
      last.column_begin = args.column_end - rest > args.column_begin ? args.column_end - rest : args.column_begin;
      last.c += last.column_begin - args.column_begin;
      if (last.column_begin > args.column_begin) {
        Args whole = args;
        whole.column_end = last.column_begin;
        Whole::Run(whole);
      }
      if constexpr (requires { last.next; }) last.next = {};
      PanelGemm<P, Args, P::kTileRows, kNarrow>::Run(last);
      return;
    }
  }
  Whole::Run(args);
}

}  // namespace mlap

#endif  // MLAP_KERNELS_GEMM_GEMM_PANEL_H_
