// Tensors of files and cases as arguments of the native interface.
#ifndef MLAP_TOOLS_NATIVE_TENSOR_H_
#define MLAP_TOOLS_NATIVE_TENSOR_H_

#include <mlaprolog/mlaprolog.h>

#include <optional>

#include "safetensors_file.h"

namespace mlap::tools {

// Nothing if the native interface has no such type.
std::optional<mlap_dtype> NativeDtype(Dtype dtype);

// A contiguous tensor. The shape is the file's if it has 1 to 4 dimensions, else its elements in rows of the last
// dimension. The type must have a native one.
mlap_tensor NativeTensor(const TensorView& view);

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_NATIVE_TENSOR_H_
