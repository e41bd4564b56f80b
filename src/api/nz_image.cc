#include "api/nz_image.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/weight_view.h"

namespace mlap {
namespace {

// Runs `body(column, row, image_offset, columns)` for each row of each block of C0 columns; the offset is in bytes, and
// `columns` those of the block that the matrix has.
template <class Body>
void ForEachRun(const StridedView& matrix, const Body& body) {
  const int64_t k = matrix.dims.size[0];
  const int64_t n = matrix.dims.size[1];
  const int64_t c0 = kFractalRowBytes / matrix.element_bytes;
  const int64_t block_bytes = CeilDiv(k, kFractalRows) * kFractalRows * kFractalRowBytes;
  for (int64_t column = 0; column < n; column += c0) {
    const int64_t columns = std::min(c0, n - column);
    for (int64_t row = 0; row < k; ++row) {
      body(column, row, column / c0 * block_bytes + row * kFractalRowBytes, columns);
    }
  }
}

// Copies `count` elements that are `from_step` and `to_step` bytes apart.
template <class Element>
void CopyElements(const char* from, int64_t from_step, char* to, int64_t to_step, int64_t count) {
  for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * to_step, from + i * from_step, sizeof(Element));
}

void CopyRun(const char* from, int64_t from_step, char* to, int64_t to_step, int64_t count, int64_t bytes) {
  if (from_step == bytes && to_step == bytes) {
    std::memcpy(to, from, static_cast<size_t>(count * bytes));
  } else if (bytes == 1) {
    CopyElements<uint8_t>(from, from_step, to, to_step, count);
  } else {
    CopyElements<uint16_t>(from, from_step, to, to_step, count);
  }
}

}  // namespace

Dims NzDims(int64_t element_bytes, int64_t k, int64_t n) {
  const int64_t c0 = kFractalRowBytes / element_bytes;
  return {CeilDiv(n, c0), CeilDiv(k, kFractalRows), kFractalRows, c0};
}

int64_t NzBytes(int64_t element_bytes, int64_t k, int64_t n) {
  return NzDims(element_bytes, k, n).Count() * element_bytes;
}

StridedView MatrixView(const mlap_tensor& tensor) {
  StridedView view = ViewOf(tensor);
  if (tensor.layout == MLAP_OUT_IN) {
    std::swap(view.dims.size[0], view.dims.size[1]);
    std::swap(view.strides[0], view.strides[1]);
  }
  return view;
}

void PackNz(const StridedView& matrix, void* image) {
  char* const out = static_cast<char*>(image);
  const int64_t k = matrix.dims.size[0];
  const int64_t n = matrix.dims.size[1];
  const int64_t bytes = matrix.element_bytes;
  if (k % kFractalRows != 0 || n % (kFractalRowBytes / bytes) != 0) {
    std::memset(out, 0, static_cast<size_t>(NzBytes(bytes, k, n)));
  }
  ForEachRun(matrix, [&](int64_t column, int64_t row, int64_t offset, int64_t columns) {
    const char* from = matrix.data + (row * matrix.strides[0] + column * matrix.strides[1]) * bytes;
    CopyRun(from, matrix.strides[1] * bytes, out + offset, bytes, columns, bytes);
  });
}

void UnpackNz(const void* image, const StridedView& matrix) {
  const char* const in = static_cast<const char*>(image);
  const int64_t bytes = matrix.element_bytes;
  ForEachRun(matrix, [&](int64_t column, int64_t row, int64_t offset, int64_t columns) {
    char* to = matrix.data + (row * matrix.strides[0] + column * matrix.strides[1]) * bytes;
    CopyRun(in + offset, bytes, to, matrix.strides[1] * bytes, columns, bytes);
  });
}

}  // namespace mlap
