#include "kernels/row_kernels.h"
#include "kernels/vector/vector_scalar.h"

namespace mlap {

void UseRowKernelsScalar(KernelTable* table) { MLAP_ROW_KERNELS(table, VectorScalar, "scalar"); }

}  // namespace mlap
