// What the device checks last: attributes, formats and ranks, sizes, and every parameter against its exact expectation.
// A failure is 561002, but for what the device does not look at and would read or write wrongly.
#ifndef MLAP_CANN_OPS_TILING_CHECK_H_
#define MLAP_CANN_OPS_TILING_CHECK_H_

#include <string>
#include <vector>

#include "aclnn/acl_meta.h"
#include "cann/ops/call_check.h"
#include "cann/ops/prolog_limits.h"

namespace mlap::cann {

class TilingCheck : CallCheck {
 public:
  using CallCheck::CallCheck;

  // Needs what LookupCheck found; decides the cache mode and reads the sizes.
  aclnnStatus Run() const;

 private:
  aclnnStatus CheckAttributeRanges() const;
  aclnnStatus CheckSingles() const;
  aclnnStatus CheckCacheMode() const;
  aclnnStatus RefuseCacheMode(const char* mode) const;
  aclnnStatus CheckScenario() const;
  aclnnStatus CheckSizes() const;
  std::string AdviceOnSize(const SizeRefusal& refusal) const;
  aclnnStatus CheckSpecialShapes() const;
  aclnnStatus CheckExpectations() const;
  // The text about a parameter that is not as expected; nothing if it is.
  std::string Mismatch(Param param) const;
  aclnnStatus CheckMemory() const;

  template <class Parameter>
  aclnnStatus RefuseTiling(Parameter parameter, const std::string& expected, const std::string& found,
                           const std::string& advice) const {
    return Refuse(ACLNN_ERR_INNER_TILING_ERROR, parameter, expected, found, advice);
  }
  aclnnStatus RefuseAll(const std::vector<std::string>& texts) const;
};

}  // namespace mlap::cann

#endif  // MLAP_CANN_OPS_TILING_CHECK_H_
