#include "core/row_quantizer.h"

namespace mlap {

void QuantizeRow(const KernelTable& kernels, ElementType type, NumericRules rules, float* row, const float* smooth,
                 int64_t columns, void* out, float* scale) {
  if (type == ElementType::kInt8) {
    return kernels.quantize_per_token.run(row, smooth, columns, rules, static_cast<int8_t*>(out), scale);
  }
  const auto& kernel = type == ElementType::kE4m3 ? kernels.quantize_per_token_e4m3 : kernels.quantize_per_token_hif8;
  kernel.run(row, smooth, columns, static_cast<uint8_t*>(out), scale);
}

void QuantizeQueryRow(const KernelTable& kernels, ElementType type, NumericRules rules, const Bf16* query,
                      int64_t columns, float* row, void* out, float* scale) {
  if (type == ElementType::kInt8 && rules == NumericRules::kA2) {
    return kernels.quantize_query.run(query, columns, static_cast<int8_t*>(out), scale);
  }
  kernels.widen_bf16.run(query, columns, row);
  QuantizeRow(kernels, type, rules, row, nullptr, columns, out, scale);
}

void QuantizeGroup(const KernelTable& kernels, ElementType type, const float* group, const float* clip_alpha,
                   int64_t columns, void* out, float* scale) {
  if (type == ElementType::kInt8) {
    return kernels.quantize_per_group.run(group, *clip_alpha, columns, static_cast<int8_t*>(out), scale);
  }
  const auto& kernel = type == ElementType::kE4m3 ? kernels.quantize_per_group_e4m3 : kernels.quantize_per_group_hif8;
  kernel.run(group, columns, columns, static_cast<uint8_t*>(out), scale);
}

void NarrowRow(const KernelTable& kernels, ElementType type, const float* row, int64_t columns, void* out) {
  if (type == ElementType::kInt8) return kernels.narrow_to_int8.run(row, columns, static_cast<int8_t*>(out));
  const auto& kernel = type == ElementType::kE4m3 ? kernels.narrow_to_e4m3 : kernels.narrow_to_hif8;
  kernel.run(row, columns, static_cast<uint8_t*>(out));
}

}  // namespace mlap
