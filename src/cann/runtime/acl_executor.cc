// Functions on executors.
#include <algorithm>
#include <memory>
#include <mutex>
#include <string>

#include "aclnn/acl_meta.h"
#include "aclnn/aclnn_status.h"
#include "cann/runtime/executor_table.h"
#include "cann/runtime/recent_error.h"
#include "cann/runtime/tensor_table.h"

namespace mlap::cann {
namespace {

// Which of the operator's tensors an index counts.
enum class Numbering { kInputs, kOutputs, kAll };

aclnnStatus RefuseExecutor(const char* function, const aclOpExecutor* executor) {
  const aclnnStatus status = executor == nullptr ? ACLNN_ERR_INNER_NULLPTR : ACLNN_ERR_INNER;
  return FailOp(status, RefusalText(function, "executor", "a live aclOpExecutor",
                                    DescribeNonHandle(executor, HandleKind::kExecutor),
                                    "call this after GetWorkspaceSize, and before a one-shot executor is used up"));
}

aclnnStatus RequireInnerPointer(const char* function, const char* parameter, const void* pointer) {
  if (pointer != nullptr) return 0;
  return FailOp(ACLNN_ERR_INNER_NULLPTR, NullPointerText(function, parameter));
}

bool IsEmpty(const TensorDescriptor& tensor) {
  const auto* const end = tensor.view_dims.data() + tensor.rank;
  return std::find(tensor.view_dims.data(), end, 0) != end;
}

// The slot `index` counts; null, with `*num_slots` as the number of legal indices, if there is none.
TensorSlot* FindSlot(OpExecutor& executor, Numbering numbering, size_t index, size_t* num_slots) {
  if (numbering == Numbering::kAll) {
    *num_slots = executor.slots.size();
    return index < *num_slots ? &executor.slots[index] : nullptr;
  }
  const std::vector<size_t>& positions = numbering == Numbering::kInputs ? executor.input_slots : executor.output_slots;
  *num_slots = positions.size();
  if (index >= *num_slots || positions[index] >= executor.slots.size()) return nullptr;
  return &executor.slots[positions[index]];
}

aclnnStatus SetAddr(const char* function, Numbering numbering, aclOpExecutor* executor, size_t index, aclTensor* tensor,
                    void* addr) {
  const std::shared_ptr<LiveExecutor> live = ExecutorTable().Find(executor);
  if (live == nullptr) return RefuseExecutor(function, executor);
  if (const aclnnStatus status = RequireInnerPointer(function, "tensor", tensor)) return status;
  const std::lock_guard<std::mutex> lock(live->mutex);
  size_t num_slots = 0;
  TensorSlot* const slot = FindSlot(live->executor, numbering, index, &num_slots);
  if (slot == nullptr) {
    return FailOp(ACLNN_ERR_PARAM_INVALID,
                  RefusalText(function, "index", "less than " + std::to_string(num_slots), std::to_string(index), ""));
  }
  if (!slot->present) {
    return FailOp(ACLNN_ERR_PARAM_INVALID,
                  RefusalText(function, "index", "one of a tensor that GetWorkspaceSize was given",
                              std::to_string(index) + ", where it was given NULL", "run GetWorkspaceSize again"));
  }
  if (addr == nullptr && !IsEmpty(slot->tensor)) return RequireInnerPointer(function, "addr", addr);
  if (!TensorTable().Visit(tensor, [addr](TensorDescriptor& descriptor) { descriptor.data = addr; })) {
    return RefuseOpHandle(function, "tensor", tensor, HandleKind::kTensor);
  }
  slot->tensor.data = addr;
  return 0;
}

aclnnStatus RefuseDynamic(const char* function, const aclOpExecutor* executor, const aclTensorList* tensors) {
  const std::shared_ptr<LiveExecutor> live = ExecutorTable().Find(executor);
  if (live == nullptr) return RefuseExecutor(function, executor);
  if (const aclnnStatus status = RequireInnerPointer(function, "tensors", tensors)) return status;
  return FailOp(ACLNN_ERR_PARAM_INVALID, RefusalText(function, "irIndex", "the position of a tensor list",
                                                     "an operator without tensor lists, " + live->executor.op_name,
                                                     "use the function without Dynamic in its name"));
}

}  // namespace
}  // namespace mlap::cann

using namespace mlap::cann;

aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) {
  return Guarded("aclSetAclOpExecutorRepeatable", [&] {
    const std::shared_ptr<LiveExecutor> live = ExecutorTable().Find(executor);
    if (live == nullptr) return RefuseExecutor("aclSetAclOpExecutorRepeatable", executor);
    const std::lock_guard<std::mutex> lock(live->mutex);
    live->executor.repeatable = true;
    return 0;
  });
}

aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor) {
  return Guarded("aclDestroyAclOpExecutor", [&] {
    if (ExecutorTable().Remove(executor) != nullptr) return 0;
    return RefuseExecutor("aclDestroyAclOpExecutor", executor);
  });
}

aclnnStatus aclSetInputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor, void* addr) {
  return Guarded("aclSetInputTensorAddr",
                 [&] { return SetAddr("aclSetInputTensorAddr", Numbering::kInputs, executor, index, tensor, addr); });
}

aclnnStatus aclSetOutputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor, void* addr) {
  return Guarded("aclSetOutputTensorAddr",
                 [&] { return SetAddr("aclSetOutputTensorAddr", Numbering::kOutputs, executor, index, tensor, addr); });
}

aclnnStatus aclSetTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor, void* addr) {
  return Guarded("aclSetTensorAddr",
                 [&] { return SetAddr("aclSetTensorAddr", Numbering::kAll, executor, index, tensor, addr); });
}

aclnnStatus aclSetDynamicInputTensorAddr(aclOpExecutor* executor, size_t, const size_t, aclTensorList* tensors, void*) {
  return Guarded("aclSetDynamicInputTensorAddr",
                 [&] { return RefuseDynamic("aclSetDynamicInputTensorAddr", executor, tensors); });
}

aclnnStatus aclSetDynamicOutputTensorAddr(aclOpExecutor* executor, size_t, const size_t, aclTensorList* tensors,
                                          void*) {
  return Guarded("aclSetDynamicOutputTensorAddr",
                 [&] { return RefuseDynamic("aclSetDynamicOutputTensorAddr", executor, tensors); });
}

aclnnStatus aclSetDynamicTensorAddr(aclOpExecutor* executor, size_t, const size_t, aclTensorList* tensors, void*) {
  return Guarded("aclSetDynamicTensorAddr",
                 [&] { return RefuseDynamic("aclSetDynamicTensorAddr", executor, tensors); });
}

aclnnStatus AclSetInputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor, void* addr) {
  return aclSetInputTensorAddr(executor, index, tensor, addr);
}

aclnnStatus AclSetOutputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor, void* addr) {
  return aclSetOutputTensorAddr(executor, index, tensor, addr);
}

aclnnStatus AclSetTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor, void* addr) {
  return aclSetTensorAddr(executor, index, tensor, addr);
}

aclnnStatus AclSetDynamicInputTensorAddr(aclOpExecutor* executor, size_t irIndex, const size_t relativeIndex,
                                         aclTensorList* tensors, void* addr) {
  return aclSetDynamicInputTensorAddr(executor, irIndex, relativeIndex, tensors, addr);
}

aclnnStatus AclSetDynamicOutputTensorAddr(aclOpExecutor* executor, size_t irIndex, const size_t relativeIndex,
                                          aclTensorList* tensors, void* addr) {
  return aclSetDynamicOutputTensorAddr(executor, irIndex, relativeIndex, tensors, addr);
}

aclnnStatus AclSetDynamicTensorAddr(aclOpExecutor* executor, size_t irIndex, const size_t relativeIndex,
                                    aclTensorList* tensors, void* addr) {
  return aclSetDynamicTensorAddr(executor, irIndex, relativeIndex, tensors, addr);
}
