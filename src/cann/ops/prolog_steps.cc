#include "cann/ops/prolog_steps.h"

#include <string>

#include "aclnn/aclnn_status.h"
#include "cann/ops/prolog_checks.h"
#include "cann/ops/prolog_launch.h"
#include "cann/runtime/op_executor.h"
#include "cann/runtime/recent_error.h"
#include "cann/runtime/soc.h"

namespace mlap::cann {
namespace {

aclnnStatus CheckDevice(const PrologVersion& version, const char* function, Soc soc) {
  if ((version.devices & DeviceOf(soc)) != 0) return ACLNN_SUCCESS;
  return FailOp(ACLNN_ERR_RUNTIME_ERROR,
                RefusalText(function, "MLAP_SOC", std::string("a device that has ") + version.name + " of the operator",
                            "ascend950", "use ascend910b or ascend910_93, or call aclnnMlaPrologV3WeightNz"));
}

}  // namespace

aclnnStatus FirstStep(const PrologVersion& version, std::initializer_list<const aclTensor*> tensors,
                      PrologParams attributes, uint64_t* workspace_size, aclOpExecutor** executor) {
  return Guarded(version.phase1, [&]() -> aclnnStatus {
    Soc soc;
    std::string error;
    if (!ChosenSoc(&soc, &error)) {
      return FailOp(ACLNN_ERR_RUNTIME_ERROR, std::string(version.phase1) + ": " + error);
    }
    aclnnStatus status = CheckDevice(version, version.phase1, soc);
    if (status != ACLNN_SUCCESS) return status;
    auto param = version.order.begin();
    for (const aclTensor* tensor : tensors) attributes.handles[*param++] = tensor;
    CheckedCall call;
    status = CheckProlog(version, soc, attributes, workspace_size, executor, &call);
    if (status != ACLNN_SUCCESS) return status;
    return PublishProlog(attributes, call, workspace_size, executor);
  });
}

aclnnStatus SecondStep(const PrologVersion& version, void* workspace, uint64_t workspace_size, aclOpExecutor* executor,
                       aclrtStream stream) {
  return Guarded(version.phase2, [&]() -> aclnnStatus {
    Soc soc;
    std::string error;
    // What the first step decided holds, unless the device does not have the function at all.
    if (ChosenSoc(&soc, &error)) {
      const aclnnStatus status = CheckDevice(version, version.phase2, soc);
      if (status != ACLNN_SUCCESS) return status;
    }
    return RunExecutor(version.phase2, workspace, workspace_size, executor, stream);
  });
}

}  // namespace mlap::cann
