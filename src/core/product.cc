#include "core/product.h"

#include <cstring>

namespace mlap {

void RunProduct(const KernelTable& kernels, const TokenRows& rows, const ScaledWeight& weight, const ProductPart& part,
                void* out, int64_t out_stride, void* scratch, const NextRead& next) {
  const void* first = rows.Row(part.row_begin);
  const int64_t count = part.row_end - part.row_begin;
  if (rows.type == ElementType::kBf16) {
    kernels.gemm_bf16.run({static_cast<const Bf16*>(first), rows.stride, count, weight.view, part.column_begin,
                           part.column_end, static_cast<Bf16*>(out), out_stride, scratch, next});
  } else if (rows.type == ElementType::kInt8) {
    kernels.gemm_s8.run({static_cast<const int8_t*>(first), rows.stride, count, weight.view, part.column_begin,
                         part.column_end, static_cast<int32_t*>(out), out_stride, scratch, next});
  } else {
    GemmF8Args args = {
        static_cast<const uint8_t*>(first), rows.stride, count,  weight.view, part.column_begin, part.column_end,
        static_cast<float*>(out),           out_stride,  scratch};
    if (rows.mx_scale != nullptr) {
      args.a_scale_stride = args.w_scale_stride = MxGroups(rows.width);
      args.a_scales = rows.mx_scale + part.row_begin * args.a_scale_stride;
      args.w_scales = weight.mx_scale;
    }
    kernels.gemm_f8.run(args);
  }
}

void FinishProductRow(const KernelTable& kernels, NumericRules rules, const TokenRows& rows, int64_t t,
                      const ScaledWeight& weight, int64_t column_begin, int64_t column_end, const void* product,
                      float* out) {
  const int64_t columns = column_end - column_begin;
  if (rows.type == ElementType::kBf16) {
    kernels.widen_bf16.run(static_cast<const Bf16*>(product), columns, out);
  } else if (rows.type == ElementType::kInt8) {
    kernels.dequantize.run(static_cast<const int32_t*>(product), rows.scale[t], weight.scale + column_begin, columns,
                           rules, out);
  } else if (rows.mx_scale == nullptr) {
    kernels.dequantize_f32.run(static_cast<const float*>(product), rows.scale[t], weight.scale + column_begin, columns,
                               out);
  } else {
    std::memcpy(out, product, static_cast<size_t>(columns) * sizeof(float));
  }
}

}  // namespace mlap
