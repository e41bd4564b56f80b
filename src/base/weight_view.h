// A weight matrix W [k, n] (k: reduction, n: output columns) in any layout the operator reads in place.
//
// One address function serves every layout, because both are column blocks of contiguous rows:
//
//   element (i, j)  at  (j / block_columns) * block_stride + i * row_stride + j % block_columns
//
//   FRACTAL_NZ   block_columns = row_stride = C0 (32 bytes: 16 bf16 or 32 int8), block_stride = 16 * ceil(k / 16) * C0
//   row-major    block_columns = block_stride = C0, row_stride = n
#ifndef MLAP_BASE_WEIGHT_VIEW_H_
#define MLAP_BASE_WEIGHT_VIEW_H_

#include <cstdint>

#include "base/element_type.h"

namespace mlap {

// A fractal is 16 rows of 32 bytes, whatever the element type.
inline constexpr int64_t kFractalRows = 16;
inline constexpr int64_t kFractalRowBytes = 32;

constexpr int64_t FractalColumns(ElementType type) { return kFractalRowBytes / ElementBytes(type); }

constexpr int64_t CeilDiv(int64_t value, int64_t divisor) { return (value + divisor - 1) / divisor; }

struct WeightView {
  const void* data = nullptr;
  ElementType type = ElementType::kBf16;
  int64_t k = 0;
  int64_t n = 0;
  int64_t block_columns = 0;  // C0 of the type
  int64_t block_stride = 0;   // elements
  int64_t row_stride = 0;     // elements

  // Whether the rows of a block follow each other without a gap, as in FRACTAL_NZ.
  constexpr bool HasAdjacentRows() const { return row_stride == block_columns; }
  constexpr int64_t Offset(int64_t i, int64_t j) const {
    return (j / block_columns) * block_stride + i * row_stride + j % block_columns;
  }
};

// `data` holds [ceil(n / C0), ceil(k / 16), 16, C0]; what lies past k and n is never used.
constexpr WeightView NzWeight(const void* data, ElementType type, int64_t k, int64_t n) {
  const int64_t c0 = FractalColumns(type);
  return {data, type, k, n, c0, CeilDiv(k, kFractalRows) * kFractalRows * c0, c0};
}

constexpr WeightView RowMajorWeight(const void* data, ElementType type, int64_t k, int64_t n) {
  const int64_t c0 = FractalColumns(type);
  return {data, type, k, n, c0, c0, n};
}

}  // namespace mlap

#endif  // MLAP_BASE_WEIGHT_VIEW_H_
