#include "cann/ops/tensor_memory.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace mlap::cann {
namespace {

std::string StridesText(const TensorDescriptor& tensor) { return DimsText(tensor.view_strides.data(), tensor.rank); }

// Whether a view that is not empty begins at or behind the data pointer and ends where a byte offset can reach.
bool Extent(const TensorDescriptor& tensor) {
  int64_t low = tensor.offset;
  int64_t high = tensor.offset;
  bool overflow = false;
  for (size_t i = 0; i < tensor.rank; ++i) {
    int64_t reach = 0;
    overflow |= __builtin_mul_overflow(tensor.view_dims[i] - 1, tensor.view_strides[i], &reach);
    int64_t& bound = reach < 0 ? low : high;
    overflow |= __builtin_add_overflow(bound, reach, &bound);
  }
  constexpr int64_t kLimit = INT64_MAX / 16;
  return !overflow && low >= 0 && high < kLimit;
}

// Sufficient for distinct addresses: each dimension steps over all that the smaller-strided ones span.
bool ElementsAreDistinct(const TensorDescriptor& tensor) {
  std::vector<std::pair<int64_t, int64_t>> by_stride;  // |stride|, dimension
  for (size_t i = 0; i < tensor.rank; ++i) {
    if (tensor.view_dims[i] > 1) by_stride.emplace_back(std::abs(tensor.view_strides[i]), tensor.view_dims[i]);
  }
  std::sort(by_stride.begin(), by_stride.end());
  int64_t span = 0;
  for (const auto& [stride, dim] : by_stride) {
    if (stride <= span) return false;
    span += stride * (dim - 1);
  }
  return true;
}

}  // namespace

bool CheckTensorMemory(Param param, const TensorDescriptor& tensor, std::string* expected, std::string* found) {
  if (IsEmpty(tensor)) return true;
  if (tensor.data == nullptr) {
    *expected = "a data pointer";
    *found = "null behind shape " + ViewDimsText(tensor);
    return false;
  }
  if (reinterpret_cast<uintptr_t>(tensor.data) % static_cast<uintptr_t>(DtypeBytes(tensor.dtype)) != 0) {
    *expected = "a data pointer aligned to the elements' " + std::to_string(DtypeBytes(tensor.dtype)) + " bytes";
    *found = "an address that is not";
    return false;
  }
  if (!Extent(tensor)) {
    *expected = "strides and an offset that stay in memory";
    *found = "strides " + StridesText(tensor) + ", offset " + std::to_string(tensor.offset);
    return false;
  }
  const bool is_output = IsOutput(param);
  const bool is_matrix_of_fractals = IsNzWeight(param) && tensor.rank == 2;
  if ((is_output || is_matrix_of_fractals) && !IsContiguous(tensor)) {
    *expected = is_output ? "a contiguous output" : "a contiguous view, as strides cannot address FRACTAL_NZ memory";
    *found = "strides " + StridesText(tensor) + " of shape " + ViewDimsText(tensor);
    return false;
  }
  if (IsCache(param) && !ElementsAreDistinct(tensor)) {
    *expected = "strides that give every element its own place";
    *found = "strides " + StridesText(tensor) + " of shape " + ViewDimsText(tensor);
    return false;
  }
  return true;
}

bool NeedsDenseCopy(Param param, const TensorDescriptor& tensor) {
  return !IsOutput(param) && !IsCache(param) && !IsContiguous(tensor);
}

int64_t DenseBytes(const TensorDescriptor& tensor) {
  int64_t count = 0;
  ElementCount(tensor, &count);
  return count * DtypeBytes(tensor.dtype);
}

void CopyDense(const TensorDescriptor& tensor, char* dense) {
  if (IsEmpty(tensor)) return;
  const int64_t element_bytes = DtypeBytes(tensor.dtype);
  const size_t last = tensor.rank - 1;
  const int64_t row = tensor.view_dims[last];
  const int64_t row_stride = tensor.view_strides[last];
  std::array<int64_t, kMaxTensorDims> position{};
  for (;;) {
    int64_t offset = 0;
    for (size_t i = 0; i < last; ++i) offset += position[i] * tensor.view_strides[i];
    const char* source = FirstElement(tensor) + offset * element_bytes;
    if (row_stride == 1) {
      std::memcpy(dense, source, static_cast<size_t>(row * element_bytes));
      dense += row * element_bytes;
    } else {
      for (int64_t j = 0; j < row; ++j, dense += element_bytes) {
        std::memcpy(dense, source + j * row_stride * element_bytes, static_cast<size_t>(element_bytes));
      }
    }
    size_t axis = last;
    while (axis > 0 && ++position[axis - 1] == tensor.view_dims[axis - 1]) position[--axis] = 0;
    if (axis == 0) return;
  }
}

}  // namespace mlap::cann
