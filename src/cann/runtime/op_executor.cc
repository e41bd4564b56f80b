#include "cann/runtime/op_executor.h"

#include <string>

#include "acl/acl_base.h"
#include "aclnn/aclnn_status.h"
#include "cann/runtime/executor_table.h"
#include "cann/runtime/recent_error.h"

namespace mlap::cann {
namespace {

bool IsOperatorStatus(aclnnStatus status) {
  const int family = status / 1000;
  return status == 0 || family == 161 || family == 361 || family == 561;
}

aclnnStatus RefuseExecutor(const char* op_name, const aclOpExecutor* executor) {
  const std::string found = DescribeNonHandle(executor, HandleKind::kExecutor);
  return FailOp(
      ACLNN_ERR_PARAM_NULLPTR,
      RefusalText(
          op_name, "executor", "a live executor from " + std::string(op_name) + "GetWorkspaceSize",
          executor != nullptr && found == "a destroyed aclOpExecutor" ? "one that is used up or destroyed" : found,
          "a one-shot executor serves one call: run GetWorkspaceSize again, or call "
          "aclSetAclOpExecutorRepeatable before the first call"));
}

aclnnStatus CheckRun(const char* op_name, const OpExecutor& executor, const void* workspace, uint64_t workspace_size) {
  if (executor.op_name != op_name) {
    return FailOp(ACLNN_ERR_PARAM_INVALID,
                  RefusalText(op_name, "executor", "an executor of this operator", "one of " + executor.op_name,
                              "pass it to the operator that made it"));
  }
  const std::string needed = std::to_string(executor.workspace_bytes) + " bytes of device memory";
  if (executor.workspace_bytes > 0 && workspace == nullptr) {
    return FailOp(ACLNN_ERR_PARAM_NULLPTR,
                  RefusalText(op_name, "workspace", needed, "NULL", "allocate it with aclrtMalloc"));
  }
  if (workspace_size < executor.workspace_bytes) {
    return FailOp(ACLNN_ERR_PARAM_INVALID,
                  RefusalText(op_name, "workspaceSize", "at least " + needed, std::to_string(workspace_size),
                              "pass the size GetWorkspaceSize returned; the executor is still good"));
  }
  return 0;
}

aclnnStatus Run(const char* op_name, void* workspace, uint64_t workspace_size, aclOpExecutor* handle,
                aclrtStream stream) {
  const std::shared_ptr<LiveExecutor> live = ExecutorTable().Find(handle);
  if (live == nullptr) return RefuseExecutor(op_name, handle);
  std::vector<TensorSlot> slots;
  bool is_repeatable = false;
  {
    const std::lock_guard<std::mutex> lock(live->mutex);
    if (const aclnnStatus status = CheckRun(op_name, live->executor, workspace, workspace_size)) return status;
    slots = live->executor.slots;
    is_repeatable = live->executor.repeatable;
  }
  // Of several threads with the same one-shot executor exactly one gets past this.
  if (!is_repeatable && ExecutorTable().Remove(handle) == nullptr) return RefuseExecutor(op_name, handle);

  aclnnStatus status = 0;
  {
    const std::lock_guard<std::mutex> lock(live->launch_mutex);
    status = live->executor.launch(workspace, stream, slots);
  }
  if (IsOperatorStatus(status)) return status;
  return FailOp(
      ACLNN_ERR_RUNTIME_ERROR,
      std::string(op_name) + ": the runtime refused the launch with code " + std::to_string(status) +
          (status == ACL_ERROR_RT_CONTEXT_NULL ? ", as the thread has no context; call aclrtSetDevice(0) on it first"
                                               : "; the text that follows says why"));
}

}  // namespace

HandleTable<LiveExecutor>& ExecutorTable() {
  static HandleTable<LiveExecutor>* const table = new HandleTable<LiveExecutor>(HandleKind::kExecutor);
  return *table;
}

aclOpExecutor* PublishExecutor(std::unique_ptr<OpExecutor> executor) {
  return static_cast<aclOpExecutor*>(ExecutorTable().Add(std::make_shared<LiveExecutor>(std::move(*executor))));
}

aclnnStatus RunExecutor(const char* op_name, void* workspace, uint64_t workspace_size, aclOpExecutor* executor,
                        aclrtStream stream) {
  return Guarded(op_name, [&] { return Run(op_name, workspace, workspace_size, executor, stream); });
}

}  // namespace mlap::cann
