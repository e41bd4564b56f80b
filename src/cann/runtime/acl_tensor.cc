// Tensor descriptions.
#include <algorithm>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "aclnn/acl_meta.h"
#include "aclnn/aclnn_status.h"
#include "cann/runtime/recent_error.h"
#include "cann/runtime/tensor_table.h"

namespace mlap::cann {

HandleTable<TensorDescriptor>& TensorTable() {
  static HandleTable<TensorDescriptor>* const table = new HandleTable<TensorDescriptor>(HandleKind::kTensor);
  return *table;
}

aclnnStatus RequireOpPointer(const char* function, const char* parameter, const void* pointer) {
  if (pointer != nullptr) return 0;
  return FailOp(ACLNN_ERR_PARAM_NULLPTR, NullPointerText(function, parameter));
}

aclnnStatus RefuseOpHandle(const char* function, const char* parameter, const void* handle, HandleKind expected) {
  return FailOp(
      handle == nullptr ? ACLNN_ERR_PARAM_NULLPTR : ACLNN_ERR_PARAM_INVALID,
      RefusalText(function, parameter, std::string("a live ") + HandleTypeName(expected),
                  DescribeNonHandle(handle, expected), "use each handle between its creation and destruction"));
}

bool CopyDescriptor(const aclTensor* handle, TensorDescriptor* out, std::string* reason) {
  if (TensorTable().Visit(handle, [out](const TensorDescriptor& descriptor) { *out = descriptor; })) return true;
  if (reason != nullptr) *reason = DescribeNonHandle(handle, HandleKind::kTensor);
  return false;
}

namespace {

// Row-major without gaps. Empty dimensions count as 1, as they do in NumPy, so that the strides of an empty tensor are
// those of one that is almost empty. What does not fit into int64 stays at its largest value: such a tensor is refused
// by every operator, and no product here overflows.
void FillContiguousStrides(TensorDescriptor* descriptor) {
  int64_t stride = 1;
  for (size_t i = descriptor->rank; i-- > 0;) {
    descriptor->view_strides[i] = stride;
    const int64_t dim = std::max<int64_t>(descriptor->view_dims[i], 1);
    if (__builtin_mul_overflow(stride, dim, &stride)) stride = std::numeric_limits<int64_t>::max();
  }
}

aclnnStatus CopyDims(const char* function, const char* parameter, const int64_t* dims, uint64_t num_dims,
                     std::array<int64_t, kMaxTensorDims>* out) {
  if (num_dims > kMaxTensorDims) {
    return FailOp(ACLNN_ERR_PARAM_INVALID,
                  RefusalText(function, parameter, "at most 25 dimensions", std::to_string(num_dims), ""));
  }
  if (num_dims == 0) return 0;
  if (const aclnnStatus status = RequireOpPointer(function, parameter, dims)) return status;
  std::copy_n(dims, num_dims, out->begin());
  return 0;
}

aclnnStatus Describe(const char* function, const int64_t* view_dims, uint64_t view_dims_num, aclDataType dtype,
                     const int64_t* stride, int64_t offset, aclFormat format, const int64_t* storage_dims,
                     uint64_t storage_dims_num, void* data, TensorDescriptor* out) {
  TensorDescriptor descriptor;
  if (const aclnnStatus status = CopyDims(function, "viewDims", view_dims, view_dims_num, &descriptor.view_dims)) {
    return status;
  }
  if (const aclnnStatus status =
          CopyDims(function, "storageDims", storage_dims, storage_dims_num, &descriptor.storage_dims)) {
    return status;
  }
  descriptor.rank = view_dims_num;
  descriptor.storage_rank = storage_dims_num;
  descriptor.dtype = dtype;
  descriptor.format = format;
  descriptor.offset = offset;
  descriptor.data = data;
  descriptor.stride_given = stride != nullptr;
  if (stride != nullptr) {
    std::copy_n(stride, descriptor.rank, descriptor.view_strides.begin());
  } else {
    FillContiguousStrides(&descriptor);
  }
  *out = descriptor;
  return 0;
}

// Writes a new array with the first `count` of `values`, which is the caller's.
void HandOver(const std::array<int64_t, kMaxTensorDims>& values, size_t count, int64_t** array, uint64_t* num) {
  *array = new int64_t[count];
  std::copy_n(values.begin(), count, *array);
  *num = count;
}

// A parameter a getter writes to.
struct Result {
  const char* parameter;
  const void* pointer;
};

aclnnStatus FindForGetter(const char* function, const aclTensor* tensor, std::initializer_list<Result> results,
                          TensorDescriptor* out) {
  if (!CopyDescriptor(tensor, out)) return RefuseOpHandle(function, "tensor", tensor, HandleKind::kTensor);
  for (const Result& result : results) {
    if (const aclnnStatus status = RequireOpPointer(function, result.parameter, result.pointer)) return status;
  }
  return 0;
}

}  // namespace
}  // namespace mlap::cann

using namespace mlap::cann;

aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType, const int64_t* stride,
                           int64_t offset, aclFormat format, const int64_t* storageDims, uint64_t storageDimsNum,
                           void* tensorData) {
  return Guarded("aclCreateTensor", [&]() -> aclTensor* {
    auto descriptor = std::make_shared<TensorDescriptor>();
    if (Describe("aclCreateTensor", viewDims, viewDimsNum, dataType, stride, offset, format, storageDims,
                 storageDimsNum, tensorData, descriptor.get()) != 0) {
      return nullptr;
    }
    return static_cast<aclTensor*>(TensorTable().Add(std::move(descriptor)));
  });
}

aclnnStatus aclInitTensor(aclTensor* tensor, const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType,
                          const int64_t* stride, int64_t offset, aclFormat format, const int64_t* storageDims,
                          uint64_t storageDimsNum, void* tensorData) {
  return Guarded("aclInitTensor", [&] {
    if (const aclnnStatus status = RequireOpPointer("aclInitTensor", "tensor", tensor)) return status;
    TensorDescriptor described;
    if (const aclnnStatus status = Describe("aclInitTensor", viewDims, viewDimsNum, dataType, stride, offset, format,
                                            storageDims, storageDimsNum, tensorData, &described)) {
      return status;
    }
    const bool is_live = TensorTable().Visit(tensor, [&](TensorDescriptor& descriptor) {
      if (described.data == nullptr) described.data = descriptor.data;
      descriptor = described;
    });
    return is_live ? 0 : RefuseOpHandle("aclInitTensor", "tensor", tensor, HandleKind::kTensor);
  });
}

aclnnStatus aclDestroyTensor(const aclTensor* tensor) {
  return Guarded("aclDestroyTensor", [&] {
    if (tensor == nullptr || TensorTable().Remove(tensor) != nullptr) return 0;
    return RefuseOpHandle("aclDestroyTensor", "tensor", tensor, HandleKind::kTensor);
  });
}

aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** viewDims, uint64_t* viewDimsNum) {
  return Guarded("aclGetViewShape", [&] {
    TensorDescriptor found;
    if (const aclnnStatus status =
            FindForGetter("aclGetViewShape", tensor, {{"viewDims", viewDims}, {"viewDimsNum", viewDimsNum}}, &found)) {
      return status;
    }
    HandOver(found.view_dims, found.rank, viewDims, viewDimsNum);
    return 0;
  });
}

aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** stridesValue, uint64_t* stridesNum) {
  return Guarded("aclGetViewStrides", [&] {
    TensorDescriptor found;
    if (const aclnnStatus status = FindForGetter(
            "aclGetViewStrides", tensor, {{"stridesValue", stridesValue}, {"stridesNum", stridesNum}}, &found)) {
      return status;
    }
    HandOver(found.view_strides, found.rank, stridesValue, stridesNum);
    return 0;
  });
}

aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** storageDims, uint64_t* storageDimsNum) {
  return Guarded("aclGetStorageShape", [&] {
    TensorDescriptor found;
    if (const aclnnStatus status = FindForGetter(
            "aclGetStorageShape", tensor, {{"storageDims", storageDims}, {"storageDimsNum", storageDimsNum}}, &found)) {
      return status;
    }
    HandOver(found.storage_dims, found.storage_rank, storageDims, storageDimsNum);
    return 0;
  });
}

aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset) {
  return Guarded("aclGetViewOffset", [&] {
    TensorDescriptor found;
    if (const aclnnStatus status = FindForGetter("aclGetViewOffset", tensor, {{"offset", offset}}, &found))
      return status;
    *offset = found.offset;
    return 0;
  });
}

aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format) {
  return Guarded("aclGetFormat", [&] {
    TensorDescriptor found;
    if (const aclnnStatus status = FindForGetter("aclGetFormat", tensor, {{"format", format}}, &found)) return status;
    *format = found.format;
    return 0;
  });
}

aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* dataType) {
  return Guarded("aclGetDataType", [&] {
    TensorDescriptor found;
    if (const aclnnStatus status = FindForGetter("aclGetDataType", tensor, {{"dataType", dataType}}, &found))
      return status;
    *dataType = found.dtype;
    return 0;
  });
}

aclnnStatus aclSetRawTensorAddr(aclTensor* tensor, void* addr) {
  return Guarded("aclSetRawTensorAddr", [&] {
    if (TensorTable().Visit(tensor, [addr](TensorDescriptor& descriptor) { descriptor.data = addr; })) return 0;
    return RefuseOpHandle("aclSetRawTensorAddr", "tensor", tensor, HandleKind::kTensor);
  });
}

aclnnStatus aclGetRawTensorAddr(const aclTensor* tensor, void** addr) {
  return Guarded("aclGetRawTensorAddr", [&] {
    TensorDescriptor found;
    if (const aclnnStatus status = FindForGetter("aclGetRawTensorAddr", tensor, {{"addr", addr}}, &found))
      return status;
    *addr = found.data;
    return 0;
  });
}
