// The operator's matrix products in every element type, and their rows in binary32.
#ifndef MLAP_CORE_PRODUCT_H_
#define MLAP_CORE_PRODUCT_H_

#include <cstdint>

#include "base/prolog_args.h"
#include "kernels/kernel_table.h"

namespace mlap {

// Rows of tokens: x, or cQ.
struct TokenRows {
  const void* data = nullptr;  // [tokens, width], rows `stride` elements apart
  ElementType type = ElementType::kBf16;
  int64_t width = 0;
  int64_t stride = 0;
  const float* scale = nullptr;       // [tokens], the 8-bit types with one scale per token
  const uint8_t* mx_scale = nullptr;  // [tokens, MxGroups(width)], E4M3 with E8M0 scales

  const void* Row(int64_t t) const { return static_cast<const char*>(data) + t * stride * ElementBytes(type); }
};

// A weight of the rows' type, with the scales of its columns.
struct ScaledWeight {
  WeightView view;
  const float* scale = nullptr;       // [n], the 8-bit types
  const uint8_t* mx_scale = nullptr;  // [n, MxGroups(k)], with rows that have them
};

// An element of a product: bf16 products are rounded to bf16, others are 4-byte sums.
constexpr int64_t ProductBytes(ElementType type) { return type == ElementType::kBf16 ? 2 : 4; }

// Columns [column_begin, column_end) of a product, of rows [row_begin, row_end).
struct ProductPart {
  int64_t row_begin;
  int64_t row_end;
  int64_t column_begin;
  int64_t column_end;
};

// `out` [row_end - row_begin, column_end - column_begin], rows out_stride elements apart. `scratch` has
// kGemmScratchBytes. `next` is what the caller reads afterwards.
void RunProduct(const KernelTable& kernels, const TokenRows& rows, const ScaledWeight& weight, const ProductPart& part,
                void* out, int64_t out_stride, void* scratch, const NextRead& next = {});

// One row of a product in binary32: widened, or dequantised unless E8M0 scales have done that. `product` holds columns
// [column_begin, column_end) of the weight for token t of `rows`.
void FinishProductRow(const KernelTable& kernels, NumericRules rules, const TokenRows& rows, int64_t t,
                      const ScaledWeight& weight, int64_t column_begin, int64_t column_end, const void* product,
                      float* out);

}  // namespace mlap

#endif  // MLAP_CORE_PRODUCT_H_
