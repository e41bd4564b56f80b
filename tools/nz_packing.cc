#include "nz_packing.h"

#include "native_tensor.h"
#include "tool_error.h"

namespace mlap::tools {

CaseTensor PackNz(const CaseTensor& matrix, mlap_dtype dtype) {
  std::byte* bytes = nullptr;
  CaseTensor image = NewTensor(dtype, NzShape(matrix.view.shape[0], matrix.view.shape[1], dtype), &bytes);
  const mlap_tensor from = NativeTensor(matrix.view, dtype);
  mlap_tensor to = NativeTensor(image.view, dtype);
  to.layout = MLAP_FRACTAL_NZ;
  if (mlap_nz_pack(&from, &to) != MLAP_OK) Fail("a weight: expected to be packed to FRACTAL_NZ: {}", mlap_last_error());
  return image;
}

}  // namespace mlap::tools
