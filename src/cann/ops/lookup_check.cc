#include "cann/ops/lookup_check.h"

#include <string>
#include <vector>

#include "cann/ops/prolog_version.h"

namespace mlap::cann {
namespace {

// Formats the device's kernel lookup takes for plain; the checks behind it are stricter.
bool LookupTakesForPlain(aclFormat format) { return IsPlain(format) || format == ACL_FORMAT_NHWC; }

}  // namespace

aclnnStatus LookupCheck::Run(const uint64_t* workspace_size, aclOpExecutor* const* executor) const {
  aclnnStatus status = CheckModes();
  if (status == ACLNN_SUCCESS) status = CheckNulls(workspace_size, executor);
  if (status == ACLNN_SUCCESS) status = ReadDescriptors();
  if (status == ACLNN_SUCCESS) status = CheckKernelLookup();
  return status;
}

// The scenario by attributes, before any tensor is looked at.
aclnnStatus LookupCheck::CheckModes() const {
  if (!version_.has_modes) return ACLNN_SUCCESS;
  kind_.scenario = FindScenario(params_.weight_quant_mode, params_.kv_cache_quant_mode);
  if (kind_.scenario == nullptr || !version_.Offers(*kind_.scenario, kind_.device)) return RefuseModes();
  if (params_.query_quant_mode != 0 && params_.query_quant_mode != 1) {
    return Refuse(ACLNN_ERR_PARAM_INVALID, "queryQuantMode", "0 or 1", std::to_string(params_.query_quant_mode),
                  "pass 1 with kvCacheQuantMode 1, otherwise 0");
  }
  for (const Param param : {kDequantScaleQNopeOut, kDequantScaleQNormOut}) {
    const Presence presence = PresenceOf(param, params_.handles[kQueryNormOut] != nullptr);
    const bool present = params_.handles[param] != nullptr;
    if (presence == Presence::kRequired && !present) {
      return Refuse(ACLNN_ERR_PARAM_INVALID, param, "a tensor" + Why(param), "null", kAdviceNull);
    }
    if (presence == Presence::kForbidden && present) {
      return Refuse(ACLNN_ERR_PARAM_INVALID, param, "null" + Why(param), "a tensor", kAdvicePassNull);
    }
  }
  return ACLNN_SUCCESS;
}

// The modes are not a scenario's: the first is none of any, or the second does not go with it.
aclnnStatus LookupCheck::RefuseModes() const {
  std::vector<std::string> weight_modes, kv_modes;
  bool is_another_devices = false;
  for (const Scenario& scenario : Scenarios()) {
    is_another_devices |= static_cast<int64_t>(scenario.weight_quant) == params_.weight_quant_mode;
    if (!version_.Offers(scenario, kind_.device)) continue;
    const std::string mode = std::to_string(static_cast<int>(scenario.weight_quant));
    if (weight_modes.empty() || weight_modes.back() != mode) weight_modes.push_back(mode);
    if (mode != std::to_string(params_.weight_quant_mode)) continue;
    kv_modes.push_back(std::to_string(static_cast<int>(scenario.kv_quant)));
  }
  if (kv_modes.empty()) {
    return Refuse(ACLNN_ERR_PARAM_INVALID, "weightQuantMode", Joined(weight_modes),
                  std::to_string(params_.weight_quant_mode),
                  is_another_devices ? "8-bit floats need MLAP_SOC=ascend950 or none" : "choose one of these");
  }
  return Refuse(ACLNN_ERR_PARAM_INVALID, "kvCacheQuantMode",
                Joined(kv_modes) + " with weightQuantMode " + std::to_string(params_.weight_quant_mode),
                std::to_string(params_.kv_cache_quant_mode), "choose a mode that goes with weightQuantMode");
}

aclnnStatus LookupCheck::CheckNulls(const uint64_t* workspace_size, aclOpExecutor* const* executor) const {
  for (const Param param : version_.order) {
    if (version_.Requires(param) && params_.handles[param] == nullptr) {
      return Refuse(ACLNN_ERR_PARAM_NULLPTR, param, "a tensor", "null", kAdviceNull);
    }
  }
  if (executor == nullptr) {
    return Refuse(ACLNN_ERR_PARAM_NULLPTR, "executor", "a place for the executor", "null",
                  "pass the address of an aclOpExecutor*");
  }
  if (workspace_size == nullptr) {
    return Refuse(ACLNN_ERR_PARAM_NULLPTR, "workspaceSize", "a place for the size", "null",
                  "pass the address of a uint64_t");
  }
  return ACLNN_SUCCESS;
}

// Copies the descriptors, so that nothing the caller does to its tensors afterwards matters.
aclnnStatus LookupCheck::ReadDescriptors() const {
  for (const Param param : version_.order) {
    tensors_.present[param] = params_.handles[param] != nullptr;
    if (!tensors_.present[param]) continue;
    std::string reason;
    TensorDescriptor& tensor = tensors_.tensor[param];
    if (!CopyDescriptor(params_.handles[param], &tensor, &reason)) {
      return Refuse(ACLNN_ERR_PARAM_INVALID, param, "a live tensor", reason, kAdviceNull);
    }
    int64_t count = 0;
    if (!ElementCount(tensor, &count) || count > INT64_MAX / 16) {
      return Refuse(ACLNN_ERR_PARAM_INVALID, param, "dimensions that are not negative and fit into memory",
                    ViewDimsText(tensor), "check the shape given to aclCreateTensor");
    }
  }
  if (!version_.has_modes) kind_.scenario = &InferScenario(tensors_);
  return ACLNN_SUCCESS;
}

// The device looks its kernel up by the types and formats of the required inputs and of the outputs.
aclnnStatus LookupCheck::CheckKernelLookup() const {
  const auto is_key = [&](Param param) {
    return tensors_.present[param] && (version_.Requires(param) || IsOutput(param));
  };
  for (const Param param : version_.order) {
    if (!is_key(param) || IsIgnored(param)) continue;
    const aclFormat format = tensors_[param].format;
    if (IsNzWeight(param) ? format != ACL_FORMAT_FRACTAL_NZ : !LookupTakesForPlain(format)) {
      return Refuse(ACLNN_ERR_PARAM_INVALID, param, std::string("format ") + (IsNzWeight(param) ? "FRACTAL_NZ" : "ND"),
                    FormatName(format), "convert the tensor, or tag it with the format it has");
    }
  }
  switch (MatchDtypeColumn(version_, kind_.device, tensors_, *kind_.scenario)) {
    case ColumnMatch::kFits:
      return ACLNN_SUCCESS;
    case ColumnMatch::kWithoutKernel:
      return Refuse(ACLNN_ERR_INNER_FIND_KERNEL_ERROR, kTokenX,
                    std::string("BF16, as ") + version_.name + " has no kernel for int8 tokens", "INT8",
                    "fully quantised calls need a later version of the operator, or MLAP_SOC=none");
    case ColumnMatch::kNone:
      break;
  }
  for (const Param param : version_.order) {
    const aclDataType expected = ExpectedDtype(*kind_.scenario, param);
    if (!is_key(param) || tensors_[param].dtype == expected) continue;
    return Refuse(ACLNN_ERR_PARAM_INVALID, param, DtypeName(expected) + InScenario(), DtypeName(tensors_[param].dtype),
                  TypeAdvice());
  }
  std::vector<std::string> names;
  for (const Scenario& scenario : Scenarios()) {
    if (version_.Offers(scenario, kind_.device)) names.push_back(std::string("'") + scenario.name + "'");
  }
  return Refuse(ACLNN_ERR_PARAM_INVALID, kTokenX, std::string("types of a scenario of ") + version_.name,
                std::string("those of '") + kind_.scenario->name + "'",
                std::string(version_.name) + " computes " + Joined(names));
}

}  // namespace mlap::cann
