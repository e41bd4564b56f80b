#include "nz_packing.h"

#include <algorithm>
#include <cstring>

namespace mlap::tools {

CaseTensor PackNz(const CaseTensor& matrix, mlap_dtype dtype) {
  const int64_t k = matrix.view.shape[0];
  const int64_t n = matrix.view.shape[1];
  const int64_t c0 = FractalColumns(dtype);
  std::byte* out = nullptr;
  CaseTensor image = NewTensor(dtype, NzShape(k, n, dtype), &out);
  const auto element = ElementBytes(dtype);
  const int64_t padded_k = image.view.shape[1] * 16;
  for (int64_t first = 0; first < n; first += c0) {
    const auto run = static_cast<size_t>(std::min(c0, n - first) * element);
    for (int64_t i = 0; i < k; ++i) {
      std::memcpy(out + (first * padded_k + i * c0) * element, matrix.view.bytes + (i * n + first) * element, run);
    }
  }
  return image;
}

}  // namespace mlap::tools
