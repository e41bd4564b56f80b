#include "cann/ops/call_check.h"

#include "cann/ops/prolog_presence.h"
#include "cann/runtime/recent_error.h"

namespace mlap::cann {

bool IsPlain(aclFormat format) {
  return format == ACL_FORMAT_ND || format == ACL_FORMAT_NCHW || format == ACL_FORMAT_NCL || format == ACL_FORMAT_NCDHW;
}

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  }
  return text;
}

CallCheck::CallCheck(const PrologVersion& version, Soc soc, const PrologParams& params, CheckedCall* call)
    : version_(version), params_(params), call_(*call), kind_(call->kind), tensors_(call->tensors) {
  kind_.version = &version;
  kind_.device = DeviceOf(soc);
}

Presence CallCheck::PresenceOf(Param param, bool has_query_norm) const {
  return ExpectedPresence(kind_, param, tensors_[kTokenX].rank == 2, has_query_norm);
}

bool CallCheck::IsIgnored(Param param) const {
  return IsOutput(param) && PresenceOf(param, tensors_.present[kQueryNormOut]) == Presence::kIgnored;
}

std::string CallCheck::InScenario() const {
  const std::string scenario = std::string(" in the scenario '") + kind_.scenario->name + "' ";
  if (version_.has_modes) {
    return scenario + "(weightQuantMode " + std::to_string(params_.weight_quant_mode) + ", kvCacheQuantMode " +
           std::to_string(params_.kv_cache_quant_mode) + ")";
  }
  return scenario + "(as tokenX is " + DtypeName(tensors_[kTokenX].dtype) + ", weightUqQr " +
         DtypeName(tensors_[kWeightUqQr].dtype) + ", kvCacheRef " + DtypeName(tensors_[kKvCache].dtype) +
         (version_.Offers(*kind_.scenario, kind_.device)
              ? ")"
              : std::string("), for which ") + version_.name + " has no kernel in any case)");
}

std::string CallCheck::OrderAdvice(Param first, Param second) const {
  return std::string(version_.name) + " takes " + version_.NameOf(first) + " before " + version_.NameOf(second) +
         ": pass them in this order";
}

std::string CallCheck::TypeAdvice() const {
  for (const Scenario& scenario : Scenarios()) {
    if (!version_.Offers(scenario, kind_.device)) continue;
    std::vector<Param> unfit;
    for (const Param param : version_.order) {
      if (IsPresent(param) && tensors_[param].dtype != ExpectedDtype(scenario, param)) unfit.push_back(param);
    }
    const bool fits = unfit.empty() && scenario.MergesCaches() == IsEmpty(tensors_[kKrCache]);
    if (fits && version_.has_modes) {
      return "convert the tensor, or pass the modes that the tensors' types mean: weightQuantMode " +
             std::to_string(static_cast<int>(scenario.weight_quant)) + ", kvCacheQuantMode " +
             std::to_string(static_cast<int>(scenario.kv_quant)) + " ('" + scenario.name + "')";
    }
    // The versions differ in this: the index comes before the caches, or behind them.
    if (unfit.size() == 2 && (unfit[0] == kCacheIndex || unfit[1] == kCacheIndex) &&
        tensors_[unfit[0]].dtype == ExpectedDtype(scenario, unfit[1]) &&
        tensors_[unfit[1]].dtype == ExpectedDtype(scenario, unfit[0])) {
      return OrderAdvice(unfit[0], unfit[1]) + ", or convert the tensor";
    }
  }
  return "convert the tensor";
}

std::string CallCheck::Why(Param param) const {
  if (param == kDequantScaleQNormOut && kind_.scenario->weight_quant != WeightQuant::kNone) {
    return params_.handles[kQueryNormOut] != nullptr ? " beside queryNormOutOptional" : " without queryNormOutOptional";
  }
  if (param == kCacheIndex || param == kActualSeqLen) {
    return std::string(" with cacheModeOptional \"") + kind_.cache_mode->name + "\" and tokens as " +
           (tensors_[kTokenX].rank == 2 ? "(T, He)" : "(B, S, He)");
  }
  return InScenario();
}

aclnnStatus CallCheck::Refuse(aclnnStatus status, const char* parameter, const std::string& expected,
                              const std::string& found, const std::string& advice) const {
  return FailOp(status, RefusalText(version_.phase1, parameter, expected, found, advice));
}

aclnnStatus CallCheck::Refuse(aclnnStatus status, Param param, const std::string& expected, const std::string& found,
                              const std::string& advice) const {
  return Refuse(status, version_.NameOf(param), expected, found, advice);
}

}  // namespace mlap::cann
