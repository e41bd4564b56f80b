// From a checked call to an executor: what is computed once, and what each launch does.
#ifndef MLAP_CANN_OPS_PROLOG_LAUNCH_H_
#define MLAP_CANN_OPS_PROLOG_LAUNCH_H_

#include "aclnn/acl_meta.h"
#include "cann/ops/prolog_checks.h"

namespace mlap::cann {

// Plans the call and publishes its executor.
aclnnStatus PublishProlog(const PrologParams& params, const CheckedCall& call, uint64_t* workspace_size,
                          aclOpExecutor** executor);

}  // namespace mlap::cann

#endif  // MLAP_CANN_OPS_PROLOG_LAUNCH_H_
