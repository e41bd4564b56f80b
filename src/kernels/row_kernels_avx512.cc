#include "kernels/row_kernels.h"
#include "kernels/vector/vector_avx512.h"

namespace mlap {

void UseRowKernelsAvx512(KernelTable* table) { MLAP_ROW_KERNELS(table, VectorAvx512, "avx512"); }

}  // namespace mlap
