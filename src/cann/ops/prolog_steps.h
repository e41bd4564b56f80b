// The two steps of every version of the operator.
#ifndef MLAP_CANN_OPS_PROLOG_STEPS_H_
#define MLAP_CANN_OPS_PROLOG_STEPS_H_

#include <initializer_list>

#include "acl/acl_rt.h"
#include "aclnn/acl_meta.h"
#include "cann/ops/prolog_params.h"
#include "cann/ops/prolog_version.h"

namespace mlap::cann {

// Checks a call and publishes its executor. `tensors` are in the order of the version's prototype, `attributes` are the
// parameters without them. Never throws.
aclnnStatus FirstStep(const PrologVersion& version, std::initializer_list<const aclTensor*> tensors,
                      PrologParams attributes, uint64_t* workspace_size, aclOpExecutor** executor);

// Runs an executor of the version. Never throws.
aclnnStatus SecondStep(const PrologVersion& version, void* workspace, uint64_t workspace_size, aclOpExecutor* executor,
                       aclrtStream stream);

}  // namespace mlap::cann

#endif  // MLAP_CANN_OPS_PROLOG_STEPS_H_
