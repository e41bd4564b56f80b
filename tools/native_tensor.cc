#include "native_tensor.h"

#include <algorithm>

#include "tool_error.h"

namespace mlap::tools {

std::optional<mlap_dtype> NativeDtype(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBF16:
      return MLAP_BF16;
    case Dtype::kI8:
      return MLAP_INT8;
    case Dtype::kF32:
      return MLAP_FLOAT32;
    case Dtype::kI64:
      return MLAP_INT64;
    case Dtype::kI32:
      return MLAP_INT32;
    case Dtype::kF8E4M3:
      return MLAP_FLOAT8_E4M3;
    case Dtype::kF64:
      return MLAP_FLOAT64;
    case Dtype::kF16:
      return MLAP_FLOAT16;
    default:
      return std::nullopt;
  }
}

mlap_tensor NativeTensor(const TensorView& view) {
  mlap_tensor native = {};
  // Inputs are never written; the interface has one type for inputs and outputs.
  native.data = const_cast<std::byte*>(view.bytes);
  native.dtype = NativeDtype(view.dtype).value();
  if (!view.shape.empty() && view.shape.size() <= MLAP_MAX_RANK) {
    native.rank = static_cast<int32_t>(view.shape.size());
    std::copy(view.shape.begin(), view.shape.end(), native.dims);
    return native;
  }
  const auto count = static_cast<int64_t>(view.num_bytes / DtypeBytes(view.dtype));
  const int64_t width = view.shape.empty() ? 1 : std::max<int64_t>(view.shape.back(), 1);
  native.rank = 2;
  native.dims[0] = count / width;
  native.dims[1] = width;
  return native;
}

}  // namespace mlap::tools
