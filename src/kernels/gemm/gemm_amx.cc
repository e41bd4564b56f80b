// Matrix products with AMX tiles (TDPBF16PS, TDPBSSD), on weights as they lie in memory.
//
// A weight is taken in panels of 32 columns and kPanelSteps tiles of k: a panel is brought into the tiles' operand
// order once, and all rows of A pass over it. Between panels the sums wait in memory as binary32 or int32, which
// changes no bit: every output is still one chain over ascending k. A tile row is one row of A, so neither does the
// number of rows.
#include <immintrin.h>

#include "kernels/gemm/column_operands_avx512.h"
#include "kernels/registration.h"

namespace mlap {
namespace {

constexpr int64_t kTileRows = 16;
constexpr int64_t kTileRowBytes = 64;
constexpr int64_t kPanelColumns = 32;  // two tiles of 16 columns
constexpr int64_t kPanelTiles = 2;
// Steps of one tile's k in a panel: 16 KB of operands, which stay in the first-level cache.
constexpr int64_t kPanelSteps = 8;
// Panels are loaded two at a time, side by side, as several streams fetch more than one. Many rows take several panels
// through each piece of k, so that what has come of A from afar is used for all of them.
constexpr int64_t kGroupPanels = 6;
constexpr int64_t kManyRows = 64;
constexpr int64_t kFewPanels = 2;
// Rows whose sums of a group wait in the second-level cache: 384 KB.
constexpr int64_t kBlockRows = 512;

struct Bf16Tiles {
  using Operand = Bf16Operand;
  static constexpr int64_t kPanelBlocks = 2;  // column blocks of a panel
  static void Multiply4() {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  static void Multiply2() {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
  }
  static inline void MultiplyFew(int column_tile) {
    switch (column_tile) {
      case 0:
        _tile_dpbf16ps(0, 4, 5);
        break;
      case 1:
        _tile_dpbf16ps(1, 4, 6);
        break;
      case 2:
        _tile_dpbf16ps(2, 4, 5);
        break;
      default:
        _tile_dpbf16ps(3, 4, 6);
        break;
    }
  }
};

struct S8Tiles {
  using Operand = S8Operand;
  static constexpr int64_t kPanelBlocks = 1;
  static void Multiply4() {
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 4, 7);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }
  static void Multiply2() {
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 4, 7);
  }
  static inline void MultiplyFew(int column_tile) {
    switch (column_tile) {
      case 0:
        _tile_dpbssd(0, 4, 5);
        break;
      case 1:
        _tile_dpbssd(1, 4, 6);
        break;
      case 2:
        _tile_dpbssd(2, 4, 5);
        break;
      default:
        _tile_dpbssd(3, 4, 6);
        break;
    }
  }
};

// Tiles 0 to 3: sums of two row tiles times two column tiles. 4, 5: rows of A. 6, 7: columns of the weight.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// The tiles' current shape: pairs of row tiles of `first` and `second` rows; `second` may be 0.
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
    _tile_loadconfig(&config);
  }

  int64_t rows_[8] = {};  // of the tiles, as loaded; a shape without rows is never asked for
};

template <class Tiles>
class PanelProduct {
 public:
  using Operand = typename Tiles::Operand;
  using Element = typename Operand::Element;
  static constexpr int64_t kTileK = kTileRows * Operand::kStepK;  // k of one tile: 64 bytes of a row of A

  // Rows [row_begin, row_begin + rows) times `num_panels` panels from column `first_column` on, of which the columns in
  // [column_begin, column_end) are stored.
  template <bool kPacked, class Args>
  static void Run(const Args& args, int64_t first_column, int64_t num_panels, int64_t row_begin, int64_t rows,
                  TileShape* shape) {
    auto* scratch = static_cast<Scratch*>(args.scratch);
    auto& sums = scratch->sums;
    __m512i* panel = scratch->panel;
    const WeightView& weight = args.weight;
    const Element* a = args.a + row_begin * args.a_row_stride;
    for (int64_t k = 0; k < weight.k; k += kPanelSteps * kTileK) {
      const int64_t panel_k = Smaller(kPanelSteps * kTileK, weight.k - k);
      for (int64_t p = 0; p < num_panels; p += kFewPanels) {
        const int64_t panels = Smaller(kFewPanels, num_panels - p);
        for (int64_t step = 0; step * kTileK < panel_k; ++step) {
          for (int64_t q = 0; q < panels; ++q) {
            LoadPanel<kPacked>(weight, first_column + (p + q) * kPanelColumns, k + step * kTileK,
                               Smaller(kTileK, panel_k - step * kTileK),
                               panel + (q * kPanelSteps + step) * kPanelTiles * kTileRows);
          }
        }
        for (int64_t q = 0; q < panels; ++q) {
          MultiplyPanel(a + k, args.a_row_stride, rows, panel_k, panel + q * kPanelSteps * kPanelTiles * kTileRows,
                        k == 0, sums[p + q], shape);
        }
      }
    }
    StorePanels(args, first_column, num_panels, row_begin, rows, scratch);
  }

  // At most 16 rows times up to kFewPanels panels: the sums stay in their tiles for all of k, and the columns of the
  // weight are read side by side, as several streams fetch more than one. The next step's columns are loaded before
  // this one's are multiplied.
  template <bool kPacked, class Args>
  static void RunFew(const Args& args, int64_t first_column, int64_t num_panels, TileShape* shape) {
    auto* scratch = static_cast<Scratch*>(args.scratch);
    const WeightView& weight = args.weight;
    shape->SetFew(args.rows);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    alignas(64) Element tail[kTileRows * kTileK];
    const auto load = [&](int64_t k, __m512i* step) {
      for (int64_t p = 0; p < num_panels; ++p) {
        LoadPanel<kPacked>(weight, first_column + p * kPanelColumns, k, Smaller(kTileK, weight.k - k),
                           step + p * kPanelTiles * kTileRows);
      }
    };
    __m512i* step = scratch->panel;
    __m512i* next_step = scratch->panel + kFewPanels * kPanelTiles * kTileRows;
    load(0, step);
    for (int64_t k = 0; k < weight.k; k += kTileK) {
      if (k + kTileK < weight.k) load(k + kTileK, next_step);
      if (weight.k - k >= kTileK) {
        _tile_loadd(4, args.a + k, args.a_row_stride * static_cast<int64_t>(sizeof(Element)));
      } else {
        CopyTail(args.a + k, args.a_row_stride, args.rows, weight.k - k, tail);
        _tile_loadd(4, tail, kTileRowBytes);
      }
      _tile_loadd(5, step, kTileRowBytes);
      Tiles::MultiplyFew(0);
      _tile_loadd(6, step + kTileRows, kTileRowBytes);
      Tiles::MultiplyFew(1);
      if (num_panels > 1) {
        _tile_loadd(5, step + 2 * kTileRows, kTileRowBytes);
        Tiles::MultiplyFew(2);
        _tile_loadd(6, step + 3 * kTileRows, kTileRowBytes);
        Tiles::MultiplyFew(3);
      }
      __m512i* used = step;
      step = next_step;
      next_step = used;
    }
    constexpr int64_t kSumStride = kPanelColumns * static_cast<int64_t>(sizeof(int32_t));
    _tile_stored(0, scratch->sums[0], kSumStride);
    _tile_stored(1, scratch->sums[0] + kTileRows, kSumStride);
    if (num_panels > 1) {
      _tile_stored(2, scratch->sums[1], kSumStride);
      _tile_stored(3, scratch->sums[1] + kTileRows, kSumStride);
    }
    StorePanels(args, first_column, num_panels, 0, args.rows, scratch);
  }

 private:
  struct alignas(64) Scratch {
    int32_t sums[kGroupPanels][kBlockRows * kPanelColumns];
    __m512i panel[kFewPanels * kPanelSteps * kPanelTiles * kTileRows];
  };
  static_assert(sizeof(Scratch) <= kGemmScratchBytes);

  template <class Args>
  static void StorePanels(const Args& args, int64_t first_column, int64_t num_panels, int64_t row_begin, int64_t rows,
                          const Scratch* scratch) {
    for (int64_t p = 0; p < num_panels; ++p) {
      const int64_t column = first_column + p * kPanelColumns;
      const int64_t begin = Larger(args.column_begin - column, 0);
      Operand::StoreRows(scratch->sums[p], rows, begin, Smaller(args.column_end - column, kPanelColumns),
                         args.c + row_begin * args.c_row_stride + column + begin - args.column_begin,
                         args.c_row_stride);
    }
  }

  // Tile t of step s: 16 operand rows of 64 bytes. What lies past the weight's rows and columns is zero.
  template <bool kPacked>
  static void LoadPanel(const WeightView& weight, int64_t first_column, int64_t k_begin, int64_t k_count,
                        __m512i* panel) {
    for (int64_t block = 0; block < Tiles::kPanelBlocks; ++block) {
      const int64_t column = first_column + block * Operand::kBlockColumns;
      const int64_t lanes = Larger(Smaller(weight.n - column, Operand::kBlockColumns), 0);
      const Element* w = static_cast<const Element*>(weight.data) +
                         column / Operand::kBlockColumns * weight.block_stride + k_begin * weight.row_stride;
      for (int64_t row = 0; row * Operand::kStepK < RoundUp(k_count, kTileK); ++row) {
        const int64_t left = k_count - row * Operand::kStepK;
        // The same rows of the next panel: they arrive while this one is multiplied.
        const char* next =
            reinterpret_cast<const char*>(w + (row * Operand::kStepK + kPanelSteps * kTileK) * weight.row_stride);
        for (int line = 0; line < Operand::kVectors; ++line) _mm_prefetch(next + 64 * line, _MM_HINT_T1);
        __m512i operand[Operand::kVectors];
        if (left >= Operand::kStepK && lanes == Operand::kBlockColumns) {
          Operand::template LoadStep<kPacked>(w + row * Operand::kStepK * weight.row_stride, weight.row_stride,
                                              Operand::kStepK, lanes, operand);
        } else if (left > 0 && lanes > 0) {
          Operand::template LoadStep<false>(w + row * Operand::kStepK * weight.row_stride, weight.row_stride,
                                            Smaller(left, Operand::kStepK), lanes, operand);
        } else {
          for (int v = 0; v < Operand::kVectors; ++v) operand[v] = _mm512_setzero_si512();
        }
        __m512i* out = panel + row / kTileRows * kPanelTiles * kTileRows + row % kTileRows;
        for (int v = 0; v < Operand::kVectors; ++v) out[(block * Operand::kVectors + v) * kTileRows] = operand[v];
      }
    }
  }

  static void MultiplyPanel(const Element* a, int64_t a_row_stride, int64_t rows, int64_t k_count, const __m512i* panel,
                            bool is_first, int32_t* sums, TileShape* shape) {
    constexpr int64_t kPair = 2 * kTileRows;
    const int64_t whole = rows / kPair * kPair;
    if (whole > 0) {
      shape->Set(kTileRows, kTileRows);
      for (int64_t m = 0; m < whole; m += kPair) {
        MultiplyPair(a + m * a_row_stride, a_row_stride, kTileRows, kTileRows, k_count, panel, is_first,
                     sums + m * kPanelColumns);
      }
    }
    if (whole < rows) {
      const int64_t first = Smaller(rows - whole, kTileRows);
      shape->Set(first, rows - whole - first);
      MultiplyPair(a + whole * a_row_stride, a_row_stride, first, rows - whole - first, k_count, panel, is_first,
                   sums + whole * kPanelColumns);
    }
  }

  static void MultiplyPair(const Element* a, int64_t a_row_stride, int64_t first, int64_t second, int64_t k_count,
                           const __m512i* panel, bool is_first, int32_t* sums) {
    constexpr int64_t kSumStride = kPanelColumns * static_cast<int64_t>(sizeof(int32_t));
    int32_t* lower = sums + kTileRows * kPanelColumns;
    if (is_first) {
      _tile_zero(0);
      _tile_zero(1);
      if (second > 0) {
        _tile_zero(2);
        _tile_zero(3);
      }
    } else {
      _tile_loadd(0, sums, kSumStride);
      _tile_loadd(1, sums + kTileRows, kSumStride);
      if (second > 0) {
        _tile_loadd(2, lower, kSumStride);
        _tile_loadd(3, lower + kTileRows, kSumStride);
      }
    }
    const int64_t row_bytes = a_row_stride * static_cast<int64_t>(sizeof(Element));
    for (int64_t k = 0; k < k_count; k += kTileK, panel += kPanelTiles * kTileRows) {
      const Element* upper_a = a + k;
      const Element* lower_a = a + kTileRows * a_row_stride + k;
      int64_t stride = row_bytes;
      alignas(64) Element tail[2 * kTileRows * kTileK];
      if (k_count - k < kTileK) {
        // The last step of k: rows of A end before 64 bytes do.
        CopyTail(upper_a, a_row_stride, first + second, k_count - k, tail);
        upper_a = tail;
        lower_a = tail + kTileRows * kTileK;
        stride = kTileRowBytes;
      }
      _tile_loadd(6, panel, kTileRowBytes);
      _tile_loadd(7, panel + kTileRows, kTileRowBytes);
      _tile_loadd(4, upper_a, stride);
      if (second > 0) {
        _tile_loadd(5, lower_a, stride);
        Tiles::Multiply4();
      } else {
        Tiles::Multiply2();
      }
    }
    _tile_stored(0, sums, kSumStride);
    _tile_stored(1, sums + kTileRows, kSumStride);
    if (second > 0) {
      _tile_stored(2, lower, kSumStride);
      _tile_stored(3, lower + kTileRows, kSumStride);
    }
  }

  static void CopyTail(const Element* a, int64_t a_row_stride, int64_t rows, int64_t count, Element* tail) {
    for (int64_t m = 0; m < rows; ++m) {
      const __mmask64 mask = (1ull << (static_cast<uint64_t>(count) * sizeof(Element))) - 1ull;
      _mm512_store_si512(tail + m * kTileK, _mm512_maskz_loadu_epi8(mask, a + m * a_row_stride));
    }
  }

  static constexpr int64_t RoundUp(int64_t value, int64_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
  }
};

template <bool kBool>
struct Constant {
  static constexpr bool kValue = kBool;
};

template <class Tiles, class Args>
void Gemm(const Args& args) {
  const bool packed = args.weight.row_stride == Tiles::Operand::kBlockColumns;
  const int64_t first_panel = args.column_begin / kPanelColumns;
  const int64_t panel_end = (args.column_end + kPanelColumns - 1) / kPanelColumns;
  const int64_t group_panels = args.rows > kManyRows ? kGroupPanels : kFewPanels;
  TileShape shape;
  for (int64_t row = 0; row < args.rows; row += kBlockRows) {
    const int64_t rows = Smaller(kBlockRows, args.rows - row);
    for (int64_t panel = first_panel; panel < panel_end; panel += group_panels) {
      const int64_t num_panels = Smaller(group_panels, panel_end - panel);
      const auto run = [&](auto is_packed) {
        constexpr bool kPacked = decltype(is_packed)::kValue;
        if (args.rows <= kTileRows) {
          PanelProduct<Tiles>::template RunFew<kPacked>(args, panel * kPanelColumns, num_panels, &shape);
        } else {
          PanelProduct<Tiles>::template Run<kPacked>(args, panel * kPanelColumns, num_panels, row, rows, &shape);
        }
      };
      if (packed) {
        run(Constant<true>());
      } else {
        run(Constant<false>());
      }
    }
  }
  _tile_release();
}

}  // namespace

void UseGemmAmx(KernelTable* table) {
  table->gemm_bf16 = {Gemm<Bf16Tiles, GemmBf16Args>, "gemm_bf16_bf16_bf16_32x32_amx"};
  table->gemm_s8 = {Gemm<S8Tiles, GemmS8Args>, "gemm_s8_s8_s32_32x32_amx"};
}

}  // namespace mlap
