// The scalar matrix products: the structure of the SIMD kernels (row tiles over column blocks) in plain C++.
#include "base/bf16.h"
#include "base/e4m3.h"
#include "base/e8m0.h"
#include "base/hif8.h"
#include "kernels/gemm/float8_table.h"
#include "kernels/registration.h"

namespace mlap {
namespace {

// Rows that share one pass over a column block. Their sums are 12 of the 16 registers that every x86-64 has; with a
// fourth row, compilers give up on vectors altogether.
constexpr int64_t kTileRows = 3;

struct Bf16Product {
  using Element = Bf16;
  using Accumulator = float;
  static constexpr int kBlockColumns = 16;
  static float Widen(Bf16 value) { return ToFloat(value); }
  static void Store(float sum, Bf16* out) { *out = RoundToBf16(sum); }
};

struct S8Product {
  using Element = int8_t;
  using Accumulator = int32_t;
  static constexpr int kBlockColumns = 32;
  static int32_t Widen(int8_t value) { return value; }
  static void Store(int32_t sum, int32_t* out) { *out = sum; }
};

template <class Format>
struct F8Product {
  using Element = uint8_t;
  using Accumulator = float;
  static constexpr int kBlockColumns = 32;
  static constexpr Float8Table<Format> kTable = {};
  static float Widen(uint8_t code) { return ToFloat(Bf16{kTable.bf16[code]}); }
  static void Store(float sum, float* out) { *out = sum; }
};

// What elements are multiplied by before they enter a product: nothing, or their block's power of two.
struct Unscaled {
  template <class Args>
  Unscaled(const Args&, int64_t, int64_t) {}
  template <class T>
  T Row(T value, int64_t, int64_t) const {
    return value;
  }
  template <class T>
  T Column(T value, int64_t, int64_t) const {
    return value;
  }
};

struct MxScaled {
  const uint8_t* a;
  const uint8_t* w;
  int64_t a_stride, w_stride;
  MxScaled(const GemmF8Args& args, int64_t first_row, int64_t first_column)
      : a(args.a_scales + first_row * args.a_scale_stride),
        w(args.w_scales + first_column * args.w_scale_stride),
        a_stride(args.a_scale_stride),
        w_stride(args.w_scale_stride) {}
  float Row(float value, int64_t m, int64_t i) const { return value * ToFloat(E8m0{a[m * a_stride + i / kMxGroup]}); }
  float Column(float value, int64_t j, int64_t i) const {
    return value * ToFloat(E8m0{w[j * w_stride + i / kMxGroup]});
  }
};

// One tile: kRows rows times one column block, of which lanes [0, lanes) exist.
template <class Product, class Scales, int kRows>
void AccumulateTile(const typename Product::Element* a, int64_t a_row_stride, const typename Product::Element* w,
                    int64_t w_row_stride, int64_t k, int lanes, const Scales& scales,
                    typename Product::Accumulator (&out)[kTileRows][Product::kBlockColumns]) {
  constexpr int kLanes = Product::kBlockColumns;
  typename Product::Accumulator sum[kRows][kLanes] = {};
  for (int64_t i = 0; i < k; ++i, w += w_row_stride) {
    typename Product::Accumulator row[kLanes];
    if (lanes == kLanes) {
      for (int j = 0; j < kLanes; ++j) row[j] = scales.Column(Product::Widen(w[j]), j, i);
    } else {
      for (int j = 0; j < kLanes; ++j) row[j] = j < lanes ? scales.Column(Product::Widen(w[j]), j, i) : 0;
    }
    for (int m = 0; m < kRows; ++m) {
      const auto x = scales.Row(Product::Widen(a[m * a_row_stride + i]), m, i);
      for (int j = 0; j < kLanes; ++j) sum[m][j] += x * row[j];
    }
  }
  for (int m = 0; m < kRows; ++m) {
    for (int j = 0; j < kLanes; ++j) out[m][j] = sum[m][j];
  }
}

template <class Product, class Args, class Scales = Unscaled>
void Gemm(const Args& args) {
  using Element = typename Product::Element;
  constexpr int64_t kLanes = Product::kBlockColumns;
  static constexpr decltype(&AccumulateTile<Product, Scales, 1>) kTiles[kTileRows] = {
      AccumulateTile<Product, Scales, 1>, AccumulateTile<Product, Scales, 2>, AccumulateTile<Product, Scales, 3>};

  const WeightView& weight = args.weight;
  for (int64_t block = args.column_begin / kLanes; block * kLanes < args.column_end; ++block) {
    const int64_t first = block * kLanes;
    const Element* w = static_cast<const Element*>(weight.data) + block * weight.block_stride;
    const int64_t lanes = weight.n - first < kLanes ? weight.n - first : kLanes;
    const int64_t begin = args.column_begin > first ? args.column_begin : first;
    const int64_t end = args.column_end < first + lanes ? args.column_end : first + lanes;
    for (int64_t m = 0; m < args.rows; m += kTileRows) {
      const int64_t rows = args.rows - m < kTileRows ? args.rows - m : kTileRows;
      typename Product::Accumulator sum[kTileRows][kLanes];
      kTiles[rows - 1](args.a + m * args.a_row_stride, args.a_row_stride, w, weight.row_stride, weight.k,
                       static_cast<int>(lanes), Scales(args, m, first), sum);
      for (int64_t r = 0; r < rows; ++r) {
        auto* c = args.c + (m + r) * args.c_row_stride;
        for (int64_t j = begin; j < end; ++j) Product::Store(sum[r][j - first], &c[j - args.column_begin]);
      }
    }
  }
}

void GemmF8(const GemmF8Args& args) {
  if (args.weight.type == ElementType::kHiF8) return Gemm<F8Product<HiF8>, GemmF8Args>(args);
  if (args.a_scales != nullptr) return Gemm<F8Product<E4m3>, GemmF8Args, MxScaled>(args);
  return Gemm<F8Product<E4m3>, GemmF8Args>(args);
}

}  // namespace

void UseGemmScalar(KernelTable* table) {
  table->gemm_bf16 = {Gemm<Bf16Product, GemmBf16Args>, "gemm_bf16_bf16_bf16_3x16_scalar"};
  table->gemm_s8 = {Gemm<S8Product, GemmS8Args>, "gemm_s8_s8_s32_3x32_scalar"};
  table->gemm_f8 = {GemmF8, "gemm_f8_f8_f32_3x32_scalar"};
}

}  // namespace mlap
