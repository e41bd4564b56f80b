// FRACTAL_NZ images of matrices.
#ifndef MLAP_API_NZ_IMAGE_H_
#define MLAP_API_NZ_IMAGE_H_

#include "api/tensor_checks.h"

namespace mlap {

// [ceil(n / C0), ceil(k / 16), 16, C0] for elements of 1 or 2 bytes.
Dims NzDims(int64_t element_bytes, int64_t k, int64_t n);

// The bytes of that image.
int64_t NzBytes(int64_t element_bytes, int64_t k, int64_t n);

// A matrix's view as (k, n), whether it lies as (k, n) or, MLAP_OUT_IN, as (n, k). `tensor` has two dimensions.
StridedView MatrixView(const mlap_tensor& tensor);

// Writes the whole image of `matrix` (k, n), with zeros where it is padded.
void PackNz(const StridedView& matrix, void* image);

// The reverse.
void UnpackNz(const void* image, const StridedView& matrix);

}  // namespace mlap

#endif  // MLAP_API_NZ_IMAGE_H_
