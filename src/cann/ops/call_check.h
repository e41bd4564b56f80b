// What all checks of a call share: the call, and the texts of refusals.
#ifndef MLAP_CANN_OPS_CALL_CHECK_H_
#define MLAP_CANN_OPS_CALL_CHECK_H_

#include <string>
#include <vector>

#include "aclnn/aclnn_status.h"
#include "cann/ops/prolog_checks.h"
#include "cann/ops/scenario.h"

namespace mlap::cann {

inline constexpr char kAdviceNull[] = "pass a tensor made by aclCreateTensor";
inline constexpr char kAdvicePassNull[] = "pass a null pointer";

// Formats that mean plain row-major memory. torch_npu tags plain tensors by their rank.
bool IsPlain(aclFormat format);

// "1, 2 or 3".
std::string Joined(const std::vector<std::string>& words);

class CallCheck {
 public:
  // Fills call->kind as far as it is known: the scenario follows in the checks, then the cache mode.
  CallCheck(const PrologVersion& version, Soc soc, const PrologParams& params, CheckedCall* call);

 protected:
  bool IsPresent(Param param) const { return tensors_.present[param] && !IsIgnored(param); }
  Presence PresenceOf(Param param, bool has_query_norm) const;
  // Outputs that a scenario does not have and a version lets the caller pass all the same: of the right type, but
  // otherwise not looked at and never written.
  bool IsIgnored(Param param) const;

  // " in the scenario '...' (...)". The scenario follows from attributes or types, so the text says from which.
  std::string InScenario() const;
  // What to do about a parameter of another type than its scenario's, by what the call's types have in common: they are
  // those of other modes, or cacheIndex and a cache have changed places.
  std::string TypeAdvice() const;
  // For two parameters in each other's place; `first` is the one that comes first.
  std::string OrderAdvice(Param first, Param second) const;
  // Why a parameter must be there, or must not.
  std::string Why(Param param) const;

  aclnnStatus Refuse(aclnnStatus status, const char* parameter, const std::string& expected, const std::string& found,
                     const std::string& advice) const;
  aclnnStatus Refuse(aclnnStatus status, Param param, const std::string& expected, const std::string& found,
                     const std::string& advice) const;

  const PrologVersion& version_;
  const PrologParams& params_;
  CheckedCall& call_;
  CallKind& kind_;
  PrologTensors& tensors_;
};

}  // namespace mlap::cann

#endif  // MLAP_CANN_OPS_CALL_CHECK_H_
