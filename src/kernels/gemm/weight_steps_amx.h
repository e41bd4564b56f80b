// Weights in the tiles' operand order, one tile's k at a time.
#ifndef MLAP_KERNELS_GEMM_WEIGHT_STEPS_AMX_H_
#define MLAP_KERNELS_GEMM_WEIGHT_STEPS_AMX_H_

#include <immintrin.h>

#include <cstdint>

#include "kernels/gemm/amx_tiles.h"
#include "kernels/gemm/column_operands_avx512.h"
#include "kernels/gemm/weight_prefetch.h"

namespace mlap {
namespace {

inline constexpr int64_t kPanelColumns = 32;  // two tiles of 16 columns
inline constexpr int64_t kPanelTiles = 2;
inline constexpr int64_t kStepVectors = kPanelTiles * kTileRows;  // operands of a panel's step

// A step is one tile's k of a weight: for each tile of columns, 16 operand rows of 64 bytes. What lies past the
// weight's rows and columns is zero.
template <class Tiles>
class WeightSteps {
 public:
  using Operand = typename Tiles::Operand;
  using Element = typename Operand::Element;
  static constexpr int64_t kTileK = kTileRows * Operand::kStepK;  // 64 bytes of a row of A
  // How far ahead of its use a weight is asked for, in each block of columns. A line asked for also sets the
  // processor's own prefetchers going.
  static constexpr int64_t kPrefetchBytes = 2048;

  // `steps`: over how many what is read next is asked for. More than 256 rows have asked for all of it in their first
  // block.
  WeightSteps(const WeightView& weight, const NextRead& next_read, int64_t steps)
      : weight_(weight), next_read_(next_read, steps) {}

  // kColumnTiles of the step at `k`, which runs over all of the weight's k. The columns from `next_column` on are read
  // after these.
  template <int kColumnTiles>
  inline void Load(int64_t column, int64_t next_column, int64_t k, __m512i* out) {
    constexpr int64_t kBlocks = kColumnTiles * kTileRows / Operand::kBlockColumns;
    static_assert(kColumnTiles % kPanelTiles == 0);
    const int64_t k_count = Smaller(kTileK, weight_.k - k);
    const RowKind kind = k_count == kTileK ? RowKindOf(column, kColumnTiles * kTileRows) : RowKind::kNone;
    if (kind == RowKind::kPacked) {
      for (int64_t block = 0; block < kBlocks; ++block) LoadPacked(column, next_column, k, block, out);
      return;
    }
    if (kind == RowKind::kAdjacent) {
      for (int64_t tile = 0; tile < kColumnTiles; tile += kPanelTiles, out += kStepVectors) {
        const Element* w = At(k, column + tile * kTileRows);
        for (int64_t row = 0; row < kTileRows; ++row, w += RowElements()) {
          MakeAdjacentRow(w, weight_.row_stride, out + row);
        }
      }
      return;
    }
    LoadPart(column, kBlocks, k, k_count, out);
  }

  // How the operand rows of whole steps of so many columns can be made, one at a time.
  enum class RowKind { kPacked, kAdjacent, kNone };
  RowKind RowKindOf(int64_t column, int64_t columns = kPanelColumns) const {
    if (column + columns > weight_.n) return RowKind::kNone;
    if (weight_.HasAdjacentRows()) return RowKind::kPacked;
    if constexpr (requires { Operand::LoadAdjacent; }) {
      if (weight_.block_stride == Operand::kBlockColumns) return RowKind::kAdjacent;
    }
    return RowKind::kNone;
  }
  const Element* At(int64_t k, int64_t column) const {
    return static_cast<const Element*>(weight_.data) + column / Operand::kBlockColumns * weight_.block_stride +
           k * weight_.row_stride;
  }
  // From one operand row's weights to the next one's.
  int64_t RowElements() const { return Operand::kStepK * weight_.row_stride; }

  // The elements between the two lines that an operand row of a panel is made of: blocks of columns apart if it
  // is_packed (RowKind::kPacked), else rows (RowKind::kAdjacent).
  int64_t LineStride(bool is_packed) const { return is_packed ? weight_.block_stride : weight_.row_stride; }

  // The operand row whose weights begin at `w`, a line for each of the panel's tiles; asks for the one at `soon`.
  // RowKind::kPacked.
  static inline void MakePackedRow(const Element* w, const Element* soon, int64_t line_stride, __m512i* out) {
    for (int64_t block = 0; block < kPanelBlocks; ++block, w += line_stride, soon += line_stride) {
      AskForPackedBlockRow(soon);
      MakePackedBlockRow(w, out + block * Operand::kVectors * kTileRows);
    }
  }
  // RowKind::kAdjacent.
  static inline void MakeAdjacentRow(const Element* w, int64_t line_stride, __m512i* out) {
    if constexpr (requires { Operand::LoadAdjacent; }) {
      Operand::LoadAdjacent(w, line_stride, out, out + kTileRows);
    }
  }
  // The panel's step whose weights begin at `w`. RowKind::kPacked.
  inline void AskForPackedStep(const Element* w) const {
    for (int64_t block = 0; block < kPanelBlocks; ++block, w += weight_.block_stride) {
      for (int64_t row = 0; row < kTileRows; ++row) {
        AskForPackedBlockRow(w + row * Operand::kStepK * Operand::kBlockColumns);
      }
    }
  }
  // A panel's step that may reach past the weight's columns or, having k_count of a tile's k, past a piece of k.
  void MakeStep(int64_t column, int64_t k, int64_t k_count, __m512i* out) const {
    LoadPart(column, kPanelBlocks, k, k_count, out);
  }

  // To be called once a step.
  inline void AskForNext() { next_read_.Portion(); }

 private:
  static constexpr int64_t kPanelBlocks = kPanelColumns / Operand::kBlockColumns;

  static inline void MakePackedBlockRow(const Element* w, __m512i* out) {
    __m512i operand[Operand::kVectors];
    Operand::template LoadStep<true>(w, Operand::kBlockColumns, Operand::kStepK, Operand::kBlockColumns, operand);
    for (int v = 0; v < Operand::kVectors; ++v) _mm512_store_si512(out + v * kTileRows, operand[v]);
  }

  static inline void AskForPackedBlockRow(const Element* w) {
    for (int v = 0; v < Operand::kVectors; ++v) PrefetchLine(reinterpret_cast<const char*>(w) + v * kTileRowBytes);
  }

  inline void LoadPacked(int64_t first_column, int64_t next_column, int64_t k, int64_t block, __m512i* out) const {
    constexpr int64_t kAheadK = kPrefetchBytes / (Operand::kBlockColumns * static_cast<int64_t>(sizeof(Element)));
    const int64_t column = block * Operand::kBlockColumns;
    const Element* w = At(k, first_column + column);
    const int64_t ahead = k + kAheadK;
    const Element* soon =
        ahead < weight_.k ? w + kAheadK * Operand::kBlockColumns : At(ahead - weight_.k, next_column + column);
    out += block * Operand::kVectors * kTileRows;
    for (int64_t row = 0; row < kTileRows; ++row) {
      const int64_t element = row * Operand::kStepK * Operand::kBlockColumns;
      if constexpr (Operand::kVectors > 1) {
        // One or two blocks of columns are few places: two pages of each.
        for (int v = 0; v < Operand::kVectors; ++v) {
          const char* line = reinterpret_cast<const char*>(w + element) + v * kTileRowBytes;
          PrefetchLine(InNextPiece<8 * 1024, 2>(line));
        }
      } else {
        AskForPackedBlockRow(soon + element);
      }
      MakePackedBlockRow(w + element, out + row);
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
};

}  // namespace
}  // namespace mlap

#endif  // MLAP_KERNELS_GEMM_WEIGHT_STEPS_AMX_H_
