// Executors: what an operator's first step hands to its second.
#ifndef MLAP_CANN_RUNTIME_OP_EXECUTOR_H_
#define MLAP_CANN_RUNTIME_OP_EXECUTOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "aclnn/acl_meta.h"
#include "cann/runtime/tensor_descriptor.h"

namespace mlap::cann {

// One tensor parameter of the operator.
struct TensorSlot {
  bool present = false;  // false: an optional parameter that was null
  TensorDescriptor tensor;
  bool is_output = false;
};

struct OpExecutor {
  // The name of the second step, for example "aclnnMlaProlog".
  std::string op_name;
  // In the operator's parameter order: inputs, then outputs. What aclSetTensorAddr indexes.
  std::vector<TensorSlot> slots;
  // Positions in `slots`: what aclSetInputTensorAddr and aclSetOutputTensorAddr index.
  std::vector<size_t> input_slots;
  std::vector<size_t> output_slots;
  uint64_t workspace_bytes = 0;
  // Queues the work. Must copy what the queued task needs of the slots: they are gone when it returns. It is called on
  // one thread at a time. A runtime code (IsRuntimeCode) it returns reaches the program as 361001.
  std::function<aclnnStatus(void* workspace, aclrtStream stream, const std::vector<TensorSlot>& slots)> launch;
  bool repeatable = false;
};

// Takes the executor over and returns its handle.
aclOpExecutor* PublishExecutor(std::unique_ptr<OpExecutor> executor);

// The whole of the second step of the operator whose second step is called `op_name`:
//   null executor                                        161001
//   used up, destroyed, or no executor                   161001
//   another operator's executor                          161002
//   workspace needed and null                            161001
//   workspace_size < workspace_bytes                     161002, the executor stays usable
// then launch, which uses a one-shot executor up whatever it returns. Never throws.
aclnnStatus RunExecutor(const char* op_name, void* workspace, uint64_t workspace_size, aclOpExecutor* executor,
                        aclrtStream stream);

}  // namespace mlap::cann

#endif  // MLAP_CANN_RUNTIME_OP_EXECUTOR_H_
