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
        for (int64_t row = 0; row < kTileRows; ++row, w += Operand::kStepK * weight_.row_stride) {
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

  // Some operand rows of each of a panel's steps, kLines of 64 bytes, made beside the products of another panel. What
  // they are made of is read in the same order as it lies in memory.

  // RowKind::kPacked: rows of one block. Asks for kLines of another piece of that block, in kPlaces places.
  template <int kLines>
  class PackedShare {
   public:
    static constexpr int64_t kPlaces = 4;
    static constexpr int64_t kStepLines = kTileRows * Operand::kVectors;  // of a block
    static constexpr int64_t kPlaceLines = kStepLines / kPlaces;
    // Share `share` of the panel's steps from `w` on, to `out`. `w` is k `place` of its piece, and the piece to be
    // asked for, of piece_k, begins at `soon`.
    PackedShare(const WeightView& weight, int64_t share, const Element* w, const Element* soon, int64_t place,
                int64_t piece_k, __m512i* out)
        : place_bytes_(piece_k * Operand::kBlockColumns * static_cast<int64_t>(sizeof(Element)) / kPlaces) {
      const int64_t block = share * kLines / kStepLines, line = share * kLines % kStepLines;
      w_ = w + block * weight.block_stride + line * kLineElements;
      soon_ = reinterpret_cast<const char*>(soon + block * weight.block_stride) + line / kPlaceLines * place_bytes_ +
              (place / kTileK * kPlaceLines + line % kPlaceLines) * kLineBytes;
      out_ = out + block * Operand::kVectors * kTileRows + line / Operand::kVectors;
    }
    // Part kPart of kParts of the rows.
    template <int kPart, int kParts>
    inline void Make() const {
      constexpr int64_t kRows = kLines / Operand::kVectors;
#pragma GCC unroll 16
      for (int64_t row = kPart * kRows / kParts; row < (kPart + 1) * kRows / kParts; ++row) {
        __m512i operand[Operand::kVectors];
        Operand::template LoadStep<true>(w_ + row * kRowElements, Operand::kBlockColumns, Operand::kStepK,
                                         Operand::kBlockColumns, operand);
#pragma GCC unroll 2
        for (int v = 0; v < Operand::kVectors; ++v) {
          const int64_t line = row * Operand::kVectors + v;
          PrefetchLaterLine(soon_ + line / kPlaceLines * place_bytes_ + line % kPlaceLines * kLineBytes);
          _mm512_store_si512(out_ + v * kTileRows + row, operand[v]);
        }
      }
    }
    // To the next step.
    inline void Advance() {
      w_ += kTileK * Operand::kBlockColumns;
      soon_ += kPlaceLines * kLineBytes;
      out_ += kStepVectors;
    }

   private:
    static constexpr int64_t kRowElements = Operand::kStepK * Operand::kBlockColumns;
    static constexpr int64_t kLineElements = kRowElements / Operand::kVectors;
    const int64_t place_bytes_;
    const Element* w_;
    const char* soon_;
    __m512i* out_;
  };

  // RowKind::kAdjacent.
  template <int kLines>
  class AdjacentShare {
   public:
    AdjacentShare(const WeightView& weight, int64_t share, const Element* w, __m512i* out)
        : row_stride_(weight.row_stride),
          w_(w + share * kRows * Operand::kStepK * weight.row_stride),
          out_(out + share * kRows) {}
    template <int kPart, int kParts>
    inline void Make() const {
#pragma GCC unroll 16
      for (int64_t row = kPart * kRows / kParts; row < (kPart + 1) * kRows / kParts; ++row) {
        MakeAdjacentRow(w_ + row * Operand::kStepK * row_stride_, row_stride_, out_ + row);
      }
    }
    inline void Advance() {
      w_ += kTileK * row_stride_;
      out_ += kStepVectors;
    }

   private:
    static constexpr int64_t kRows = kLines / kPanelTiles;
    const int64_t row_stride_;
    const Element* w_;
    __m512i* out_;
  };

  // To be called once a step.
  inline void AskForNext() { next_read_.Portion(); }

 private:
  static inline void MakePackedBlockRow(const Element* w, __m512i* out) {
    __m512i operand[Operand::kVectors];
    Operand::template LoadStep<true>(w, Operand::kBlockColumns, Operand::kStepK, Operand::kBlockColumns, operand);
    for (int v = 0; v < Operand::kVectors; ++v) _mm512_store_si512(out + v * kTileRows, operand[v]);
  }

  static inline void AskForPackedBlockRow(const Element* w) {
    for (int v = 0; v < Operand::kVectors; ++v) PrefetchLine(reinterpret_cast<const char*>(w) + v * kTileRowBytes);
  }

  static inline void MakeAdjacentRow(const Element* w, int64_t row_stride, __m512i* out) {
    if constexpr (requires { Operand::LoadAdjacent; }) {
      Operand::LoadAdjacent(w, row_stride, out, out + kTileRows);
    }
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
