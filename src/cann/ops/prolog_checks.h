// What the first step of the operator refuses, in the device's order and with its statuses.
#ifndef MLAP_CANN_OPS_PROLOG_CHECKS_H_
#define MLAP_CANN_OPS_PROLOG_CHECKS_H_

#include <cstdint>

#include "aclnn/acl_meta.h"
#include "cann/ops/prolog_limits.h"
#include "cann/ops/prolog_params.h"
#include "cann/ops/prolog_version.h"
#include "cann/runtime/soc.h"

namespace mlap::cann {

// A call that passed.
struct CheckedCall {
  CallKind kind;
  PrologTensors tensors;
  PrologDims dims;
  // Every output is empty: no shape has been looked at and there is nothing to run.
  bool is_all_empty = false;
};

// Checks one call of `version`; on success fills *call. A refusal leaves its texts with the calling thread and returns
//   161001  a null pointer
//   161002  modes, types or formats for which the operator has no kernel; outputs that the modes want or do not want;
//           tensors the CPU cannot read or write as described
//   561002  sizes, shapes, other attributes and optional tensors
//   561003  a scenario whose types the device lists, but has no kernel for
aclnnStatus CheckProlog(const PrologVersion& version, Soc soc, const PrologParams& params,
                        const uint64_t* workspace_size, aclOpExecutor* const* executor, CheckedCall* call);

}  // namespace mlap::cann

#endif  // MLAP_CANN_OPS_PROLOG_CHECKS_H_
