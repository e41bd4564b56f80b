// Rows to an 8-bit type, by the kernel that the type and the rules ask for.
#ifndef MLAP_CORE_ROW_QUANTIZER_H_
#define MLAP_CORE_ROW_QUANTIZER_H_

#include <cstdint>

#include "base/bf16.h"
#include "base/element_type.h"
#include "base/numeric_rules.h"
#include "kernels/kernel_table.h"

namespace mlap {

// Dynamic quantisation of a row of `columns` values, multiplied by `smooth` if that is given, with one scale. `row` is
// overwritten. The 8-bit floats follow k950 always.
void QuantizeRow(const KernelTable& kernels, ElementType type, NumericRules rules, float* row, const float* smooth,
                 int64_t columns, void* out, float* scale);

// The same for a head's query, which kA2 rounds in its own way. `row` is scratch for so many values.
void QuantizeQueryRow(const KernelTable& kernels, ElementType type, NumericRules rules, const Bf16* query,
                      int64_t columns, float* row, void* out, float* scale);

// One group of a kPerGroup row. `clip_alpha` is for int8 and not read otherwise.
void QuantizeGroup(const KernelTable& kernels, ElementType type, const float* group, const float* clip_alpha,
                   int64_t columns, void* out, float* scale);

// The saturating cast of the type, value by value.
void NarrowRow(const KernelTable& kernels, ElementType type, const float* row, int64_t columns, void* out);

}  // namespace mlap

#endif  // MLAP_CORE_ROW_QUANTIZER_H_
