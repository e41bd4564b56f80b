// What the device checks before it looks at shapes: modes, null pointers, and whether it has a kernel for the types.
#ifndef MLAP_CANN_OPS_LOOKUP_CHECK_H_
#define MLAP_CANN_OPS_LOOKUP_CHECK_H_

#include <cstdint>

#include "aclnn/acl_meta.h"
#include "cann/ops/call_check.h"

namespace mlap::cann {

class LookupCheck : CallCheck {
 public:
  using CallCheck::CallCheck;

  // Reads the tensors' descriptors and decides the scenario. The first failing rule's text is the calling thread's.
  aclnnStatus Run(const uint64_t* workspace_size, aclOpExecutor* const* executor) const;

 private:
  aclnnStatus CheckModes() const;
  aclnnStatus RefuseModes() const;
  aclnnStatus CheckNulls(const uint64_t* workspace_size, aclOpExecutor* const* executor) const;
  aclnnStatus ReadDescriptors() const;
  aclnnStatus CheckKernelLookup() const;
};

}  // namespace mlap::cann

#endif  // MLAP_CANN_OPS_LOOKUP_CHECK_H_
