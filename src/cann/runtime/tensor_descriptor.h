// What stands behind an aclTensor handle.
//
// Handles are numbers, not addresses, so a destroyed one is recognised for ever: `aclTensor` has no definition, and a
// handle is only good for CopyDescriptor.
#ifndef MLAP_CANN_RUNTIME_TENSOR_DESCRIPTOR_H_
#define MLAP_CANN_RUNTIME_TENSOR_DESCRIPTOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "aclnn/acl_meta.h"

namespace mlap::cann {

inline constexpr size_t kMaxTensorDims = 25;

// The arguments of aclCreateTensor, unchecked: dimensions, strides and offset may be negative or huge.
struct TensorDescriptor {
  std::array<int64_t, kMaxTensorDims> view_dims{};     // [rank]
  std::array<int64_t, kMaxTensorDims> view_strides{};  // [rank], in elements
  std::array<int64_t, kMaxTensorDims> storage_dims{};  // [storage_rank]
  size_t rank = 0;
  size_t storage_rank = 0;
  aclDataType dtype = ACL_DT_UNDEFINED;
  aclFormat format = ACL_FORMAT_UNDEFINED;
  int64_t offset = 0;    // of the first element from `data`, in elements
  void* data = nullptr;  // the caller's
  // False: view_strides was computed, row-major without gaps, products beyond int64 held at its largest value.
  bool stride_given = false;
};

// Copies the descriptor behind `handle`. Returns false if it is not a live aclTensor, and says what it is instead in
// `*reason` if that is given. Thread-safe.
bool CopyDescriptor(const aclTensor* handle, TensorDescriptor* out, std::string* reason = nullptr);

}  // namespace mlap::cann

#endif  // MLAP_CANN_RUNTIME_TENSOR_DESCRIPTOR_H_
