#include "kernels/row_kernels.h"
#include "kernels/vector/vector_avx512.h"

namespace mlap {

void UseRowKernelsAvx512Bf16(KernelTable* table) { MLAP_ROW_KERNELS(table, VectorAvx512, "avx512bf16"); }

}  // namespace mlap
