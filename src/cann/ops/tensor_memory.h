// How a tensor's view lies in memory: what can be read or written through it, and dense copies of strided inputs.
#ifndef MLAP_CANN_OPS_TENSOR_MEMORY_H_
#define MLAP_CANN_OPS_TENSOR_MEMORY_H_

#include <cstdint>
#include <string>

#include "cann/ops/prolog_params.h"

namespace mlap::cann {

// Whether the operator can use the tensor's memory as described:
//   any      a data pointer aligned to the elements unless empty; byte offsets that fit a signed 64-bit number
//   output   contiguous
//   caches   strided as they like, as long as no element lies in another's place
//   weights  as a matrix view (k, n) of FRACTAL_NZ memory: contiguous, as strides cannot describe fractals
// On failure *expected and *found say why.
bool CheckTensorMemory(Param param, const TensorDescriptor& tensor, std::string* expected, std::string* found);

// Whether the operator needs a dense copy of an input before it can run: the device makes one, too.
bool NeedsDenseCopy(Param param, const TensorDescriptor& tensor);

// The bytes of the dense copy.
int64_t DenseBytes(const TensorDescriptor& tensor);

// Copies the view's elements, in row-major order, to `dense` [DenseBytes].
void CopyDense(const TensorDescriptor& tensor, char* dense);

}  // namespace mlap::cann

#endif  // MLAP_CANN_OPS_TENSOR_MEMORY_H_
