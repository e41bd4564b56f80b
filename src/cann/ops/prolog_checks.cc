#include "cann/ops/prolog_checks.h"

#include <algorithm>

#include "aclnn/aclnn_status.h"
#include "cann/ops/lookup_check.h"
#include "cann/ops/tiling_check.h"

namespace mlap::cann {
namespace {

bool WritesNothing(const CheckedCall& call) {
  const std::vector<Param>& order = call.kind.version->order;
  return std::all_of(order.begin(), order.end(), [&](Param param) {
    return !(IsOutput(param) || IsCache(param)) || !call.tensors.present[param] || IsEmpty(call.tensors[param]);
  });
}

}  // namespace

aclnnStatus CheckProlog(const PrologVersion& version, Soc soc, const PrologParams& params,
                        const uint64_t* workspace_size, aclOpExecutor* const* executor, CheckedCall* call) {
  const aclnnStatus status = LookupCheck(version, soc, params, call).Run(workspace_size, executor);
  if (status != ACLNN_SUCCESS) return status;
  call->is_all_empty = WritesNothing(*call);
  return call->is_all_empty ? ACLNN_SUCCESS : TilingCheck(version, soc, params, call).Run();
}

}  // namespace mlap::cann
