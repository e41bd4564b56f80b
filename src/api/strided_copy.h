// Copies between tensors of one shape with any strides.
#ifndef MLAP_API_STRIDED_COPY_H_
#define MLAP_API_STRIDED_COPY_H_

#include "api/tensor_checks.h"

namespace mlap {

// Copies every element of `from` to its place in `to`; both have the same dimensions and element size. They must not
// overlap, unless they are the same.
void CopyStrided(const StridedView& from, const StridedView& to);

// What the copies work on: steps in bytes, so that elements may lie at any address.
struct ByteView {
  char* data = nullptr;
  int64_t element_bytes = 0;
  Dims dims;
  int64_t steps[MLAP_MAX_RANK] = {};
};
ByteView ToByteView(const StridedView& view);
void CopyBytes(const ByteView& from, const ByteView& to);

// A dense view of the same dimensions at `data`.
StridedView DenseView(const StridedView& like, void* data);

}  // namespace mlap

#endif  // MLAP_API_STRIDED_COPY_H_
