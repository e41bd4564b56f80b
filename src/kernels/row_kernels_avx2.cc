#include "kernels/row_kernels.h"
#include "kernels/vector/vector_avx2.h"

namespace mlap {

void UseRowKernelsAvx2(KernelTable* table) { MLAP_ROW_KERNELS(table, VectorAvx2, "avx2"); }

}  // namespace mlap
