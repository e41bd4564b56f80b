#include "cann/ops/prolog_checks.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "aclnn/aclnn_status.h"
#include "base/weight_view.h"
#include "cann/ops/prolog_presence.h"
#include "cann/ops/prolog_shapes.h"
#include "cann/ops/tensor_memory.h"
#include "cann/runtime/recent_error.h"

namespace mlap::cann {
namespace {

constexpr char kAdviceNull[] = "pass a tensor made by aclCreateTensor";
constexpr char kAdvicePassNull[] = "pass a null pointer";
constexpr char kAdviceSoc[] =
    "check the shape and its order of dimensions; MLAP_SOC=none lifts the device's size limits";

// Formats that mean plain row-major memory. torch_npu tags plain tensors by their rank.
bool IsPlain(aclFormat format) {
  return format == ACL_FORMAT_ND || format == ACL_FORMAT_NCHW || format == ACL_FORMAT_NCL || format == ACL_FORMAT_NCDHW;
}

// Formats the device's kernel lookup takes for plain; the checks behind it are stricter.
bool LookupTakesForPlain(aclFormat format) { return IsPlain(format) || format == ACL_FORMAT_NHWC; }

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  }
  return text;
}

class Checker {
 public:
  Checker(const PrologVersion& version, Soc soc, const PrologParams& params, CheckedCall* call)
      : version_(version), params_(params), call_(*call), kind_(call->kind), tensors_(call->tensors) {
    kind_.version = &version;
    kind_.device = DeviceOf(soc);
  }

  // The scenario by attributes, before any tensor is looked at.
  aclnnStatus CheckModes() const {
    if (!version_.has_modes) return ACLNN_SUCCESS;
    std::vector<std::string> weight_modes, kv_modes;
    for (const Scenario& scenario : Scenarios()) {
      if (!version_.Offers(scenario, kind_.device)) continue;
      const auto mode = static_cast<int64_t>(scenario.weight_quant);
      const std::string text = std::to_string(mode);
      if (weight_modes.empty() || weight_modes.back() != text) weight_modes.push_back(text);
      if (mode != params_.weight_quant_mode) continue;
      const auto kv_mode = static_cast<int64_t>(scenario.kv_quant);
      kv_modes.push_back(std::to_string(kv_mode));
      if (kv_mode == params_.kv_cache_quant_mode) kind_.scenario = &scenario;
    }
    if (kv_modes.empty()) {
      return Refuse(
          ACLNN_ERR_PARAM_INVALID, "weightQuantMode", Joined(weight_modes), std::to_string(params_.weight_quant_mode),
          kind_.device == kA2A3 ? "8-bit floats (3, 4, 5) need MLAP_SOC=ascend950 or none" : "choose one of these");
    }
    if (kind_.scenario == nullptr) {
      return Refuse(ACLNN_ERR_PARAM_INVALID, "kvCacheQuantMode",
                    Joined(kv_modes) + " with weightQuantMode " + std::to_string(params_.weight_quant_mode),
                    std::to_string(params_.kv_cache_quant_mode), "choose a mode that goes with weightQuantMode");
    }
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

  aclnnStatus CheckNulls(const uint64_t* workspace_size, aclOpExecutor* const* executor) const {
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
  aclnnStatus ReadDescriptors() const {
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
  aclnnStatus CheckKernelLookup() const {
    const auto is_key = [&](Param param) {
      return tensors_.present[param] && (version_.Requires(param) || IsOutput(param));
    };
    for (const Param param : version_.order) {
      if (!is_key(param) || IsIgnored(param)) continue;
      const aclFormat format = tensors_[param].format;
      if (IsNzWeight(param) ? format != ACL_FORMAT_FRACTAL_NZ : !LookupTakesForPlain(format)) {
        return Refuse(ACLNN_ERR_PARAM_INVALID, param,
                      std::string("format ") + (IsNzWeight(param) ? "FRACTAL_NZ" : "ND"), FormatName(format),
                      "convert the tensor, or tag it with the format it has");
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
      return Refuse(ACLNN_ERR_PARAM_INVALID, param, DtypeName(expected) + InScenario(),
                    DtypeName(tensors_[param].dtype), "convert the tensor");
    }
    std::vector<std::string> names;
    for (const Scenario& scenario : Scenarios()) {
      if (version_.Offers(scenario, kind_.device)) names.push_back(std::string("'") + scenario.name + "'");
    }
    return Refuse(ACLNN_ERR_PARAM_INVALID, kTokenX, std::string("types of a scenario of ") + version_.name,
                  std::string("those of '") + kind_.scenario->name + "'",
                  std::string(version_.name) + " computes " + Joined(names));
  }

  bool IsAllEmpty() const {
    return std::all_of(version_.order.begin(), version_.order.end(), [&](Param param) {
      return !(IsOutput(param) || IsCache(param)) || !tensors_.present[param] || IsEmpty(tensors_[param]);
    });
  }

  aclnnStatus CheckAttributeRanges() const {
    if (!version_.has_modes) return ACLNN_SUCCESS;
    struct Row {
      const char* name;
      int64_t value;
      int64_t least;
      int64_t most;
    };
    const Row rows[] = {{"ckvkrRepoMode", params_.ckvkr_repo_mode, 0, 1},
                        {"quantScaleRepoMode", params_.quant_scale_repo_mode, 0, 1},
                        {"tileSize", params_.tile_size, kKvGroup, kKvGroup}};
    for (const Row& row : rows) {
      if (row.value >= row.least && row.value <= row.most) continue;
      std::string expected = std::to_string(row.least);
      if (row.most != row.least) expected += " or " + std::to_string(row.most);
      return RefuseTiling(row.name, expected, std::to_string(row.value),
                          row.most == row.least ? "pass it in every scenario, also where it has no effect"
                                                : "pass 1 with kvCacheQuantMode 3, otherwise 0");
    }
    return ACLNN_SUCCESS;
  }

  // Each required parameter on its own: format, number of dimensions. Their types have been looked at.
  aclnnStatus CheckSingles() const {
    struct Row {
      Param param;
      std::vector<size_t> ranks;
    };
    const std::vector<size_t> cache_ranks = version_.has_modes ? std::vector<size_t>{3, 4} : std::vector<size_t>{4};
    const Row rows[] = {
        {kTokenX, {2, 3}},      {kWeightDq, {2, 4}},   {kWeightUqQr, {2, 4}},   {kWeightUk, {3}},
        {kWeightDkvKr, {2, 4}}, {kGammaCq, {1}},       {kGammaCkv, {1}},        {kRopeSin, {2, 3}},
        {kRopeCos, {2, 3}},     {kCacheIndex, {1, 2}}, {kKvCache, cache_ranks}, {kKrCache, cache_ranks},
    };
    for (const Row& row : rows) {
      if (!version_.Requires(row.param)) continue;
      // Where A2 and A3 merge the caches they look at nothing of krCache but its size.
      if (row.param == kKrCache && kind_.device != kAscend950 && params_.ckvkr_repo_mode == 1) continue;
      const TensorDescriptor& tensor = tensors_[row.param];
      if (!IsNzWeight(row.param) && !IsPlain(tensor.format)) {
        return RefuseTiling(row.param, "format ND", FormatName(tensor.format), "convert the tensor to ND");
      }
      if (std::find(row.ranks.begin(), row.ranks.end(), tensor.rank) != row.ranks.end()) continue;
      // Here the device admits all the ranks that an empty krCache may have; its final table wants the exact shape.
      if (row.param == kKrCache && (tensor.rank == 1 || tensor.rank == 3)) continue;
      std::vector<std::string> ranks;
      for (const size_t rank : row.ranks) ranks.push_back(std::to_string(rank));
      return RefuseTiling(row.param, Joined(ranks) + " dimensions",
                          std::to_string(tensor.rank) + ", shape " + ViewDimsText(tensor), "check the shape");
    }
    if (tensors_.present[kActualSeqLen] && tensors_[kActualSeqLen].dtype != ACL_INT32) {
      return RefuseTiling(kActualSeqLen, "INT32", DtypeName(tensors_[kActualSeqLen].dtype), "convert the tensor");
    }
    return ACLNN_SUCCESS;
  }

  aclnnStatus CheckCacheMode() const {
    const char* mode = params_.cache_mode != nullptr ? params_.cache_mode : version_.default_cache_mode;
    std::vector<std::string> names;
    for (size_t i = 0; i < version_.num_cache_modes; ++i) {
      names.push_back(std::string("\"") + kCacheModes[i].name + "\"");
      if (std::strcmp(mode, kCacheModes[i].name) == 0) kind_.cache_mode = &kCacheModes[i];
    }
    if (kind_.cache_mode == nullptr && params_.cache_mode == nullptr) {
      return RefuseTiling("cacheModeOptional", Joined(names),
                          std::string("null, which means \"") + mode + "\" to " + version_.name + " and is refused",
                          "pass " + Joined(names));
    }
    if (kind_.cache_mode == nullptr) {
      constexpr size_t kShown = 40;  // what is shown of a text that may be anything
      std::string found(1, '"');
      found.append(mode, strnlen(mode, kShown)).append(1, '"');
      return RefuseTiling("cacheModeOptional", Joined(names), found, "pass one of these, in capitals");
    }
    const CacheMode& cache = *kind_.cache_mode;
    const std::string with = std::string(" with cacheModeOptional \"") + cache.name + "\"";
    const size_t token_rank = tensors_[kTokenX].rank;
    if (cache.token_rank != 0 && token_rank != cache.token_rank) {
      return RefuseTiling(kTokenX, (cache.token_rank == 2 ? "(T, He)" : "(B, S, He)") + with,
                          "shape " + ViewDimsText(tensors_[kTokenX]),
                          cache.token_rank == 2 ? "use BSND for (B, S, He)" : "use TND for (T, He)");
    }
    if (tensors_[kKvCache].rank != cache.cache_rank) {
      return RefuseTiling(kKvCache, std::to_string(cache.cache_rank) + " dimensions" + with,
                          "shape " + ViewDimsText(tensors_[kKvCache]), "check the shape");
    }
    if (version_.has_modes && kind_.scenario->MergesCaches() && !cache.takes_per_group) {
      std::vector<std::string> takers;
      for (const CacheMode& other : kCacheModes) {
        if (other.takes_per_group) takers.push_back(std::string("\"") + other.name + "\"");
      }
      return RefuseTiling("cacheModeOptional", Joined(takers) + InScenario(), std::string("\"") + cache.name + "\"",
                          "choose one of these, or another kvCacheQuantMode");
    }
    return ACLNN_SUCCESS;
  }

  // What modes and forms demand of other attributes and of actualSeqLen.
  aclnnStatus CheckScenario() const {
    const bool is_fused = tensors_[kTokenX].rank == 2;
    if (kind_.cache_mode->ListsSequences(is_fused) && !tensors_.present[kActualSeqLen]) {
      return RefuseTiling(kActualSeqLen, "a tensor" + Why(kActualSeqLen), "null", kAdviceNull);
    }
    if (!version_.has_modes) return ACLNN_SUCCESS;
    struct Row {
      const char* name;
      int64_t value;
      bool is_one;
      const char* when;
    };
    const Row rows[] = {
        {"ckvkrRepoMode", params_.ckvkr_repo_mode, kind_.scenario->MergesCaches(), "kvCacheQuantMode 3"},
        {"quantScaleRepoMode", params_.quant_scale_repo_mode, kind_.scenario->MergesCaches(), "kvCacheQuantMode 3"},
        {"queryQuantMode", params_.query_quant_mode, kind_.scenario->kv_quant == KvQuant::kPerTensor,
         "kvCacheQuantMode 1"},
    };
    std::vector<std::string> texts;
    for (const Row& row : rows) {
      if (row.value == (row.is_one ? 1 : 0)) continue;
      texts.push_back(RefusalText(version_.phase1, row.name, (row.is_one ? "1" : "0") + InScenario(),
                                  std::to_string(row.value), std::string("pass 1 with ") + row.when + ", otherwise 0"));
    }
    return RefuseAll(texts);
  }

  aclnnStatus CheckSizes() const {
    call_.dims = ReadDims(tensors_, *kind_.cache_mode);
    SizeRefusal refusal;
    if (!FirstRefusedSize(call_.dims, kind_, &refusal)) return ACLNN_SUCCESS;
    return RefuseTiling(refusal.parameter, std::string(refusal.symbol) + " " + refusal.expected,
                        std::to_string(refusal.found) + ", from shape " + ViewDimsText(tensors_[refusal.parameter]),
                        kind_.device == kCpu ? "check the shape" : kAdviceSoc);
  }

  // The shapes that the expectations leave open.
  aclnnStatus CheckSpecialShapes() const {
    if (kind_.scenario->MergesCaches() && !IsEmpty(tensors_[kKrCache])) {
      return RefuseTiling(kKrCache, "an empty tensor" + InScenario() + ", as kvCacheRef's rows hold the rope part, too",
                          "shape " + ViewDimsText(tensors_[kKrCache]), "pass a tensor of shape [0]");
    }
    if (!kind_.cache_mode->ListsSequences(call_.dims.is_fused)) return ACLNN_SUCCESS;
    if (!tensors_.present[kCacheIndex]) {
      return RefuseTiling(kCacheIndex, "a tensor" + Why(kCacheIndex), "null", kAdviceNull);
    }
    if (tensors_[kCacheIndex].rank != 1) {
      return RefuseTiling(kCacheIndex, "1 dimension: the pages of all sequences, one after the other",
                          std::to_string(tensors_[kCacheIndex].rank) + ", shape " + ViewDimsText(tensors_[kCacheIndex]),
                          "check the shape");
    }
    return ACLNN_SUCCESS;
  }

  // All parameters against the exact expectation: presence, type, format, every dimension. Every mismatch gets a text.
  aclnnStatus CheckExpectations() const {
    std::vector<std::string> texts;
    for (const Param param : version_.order) {
      const std::string text = Mismatch(param);
      if (!text.empty()) texts.push_back(text);
    }
    return RefuseAll(texts);
  }

  // What the device does not look at and would read or write wrongly.
  aclnnStatus CheckMemory() const {
    const PrologDims& dims = call_.dims;
    if (const int64_t row_width = KvRowWidth(*kind_.scenario, dims); dims.Dtile < row_width) {
      return RefuseTiling(kKvCache, "a last dimension of at least Hckv = " + std::to_string(row_width),
                          std::to_string(dims.Dtile), "a shorter row cannot hold the key");
    }
    if (kind_.cache_mode->order == CacheOrder::kNz) {
      for (const Param param : {kKvCache, kKrCache}) {
        const int64_t c0 = kFractalRowBytes / DtypeBytes(tensors_[param].dtype);
        const int64_t width = tensors_[param].view_dims[3];
        if (width % c0 == 0) continue;
        return RefuseTiling(
            param, "a last dimension that is a multiple of " + std::to_string(c0) + " for " + kind_.cache_mode->name,
            std::to_string(width), "use a mode of rows (BSND), or pad the rows");
      }
    }
    for (const Param param : version_.order) {
      if (!tensors_.present[param] || IsIgnored(param)) continue;
      std::string expected, found;
      if (!CheckTensorMemory(param, tensors_[param], &expected, &found)) {
        return Refuse(ACLNN_ERR_PARAM_INVALID, param, expected, found,
                      "check the arguments of aclCreateTensor, and that aclrtMalloc succeeded");
      }
    }
    return ACLNN_SUCCESS;
  }

 private:
  Presence PresenceOf(Param param, bool has_query_norm) const {
    return ExpectedPresence(kind_, param, tensors_[kTokenX].rank == 2, has_query_norm);
  }
  // Outputs that a scenario does not have and a version lets the caller pass all the same: of the right type, but
  // otherwise not looked at and never written.
  bool IsIgnored(Param param) const {
    return IsOutput(param) && PresenceOf(param, tensors_.present[kQueryNormOut]) == Presence::kIgnored;
  }

  // The text about a parameter that is not as expected; nothing if it is.
  std::string Mismatch(Param param) const {
    const Presence presence = PresenceOf(param, tensors_.present[kQueryNormOut]);
    const TensorDescriptor& tensor = tensors_[param];
    const auto text = [&](const std::string& expected, const std::string& found, const std::string& advice) {
      return RefusalText(version_.phase1, Name(param), expected, found, advice);
    };
    if (!tensors_.present[param]) {
      return presence == Presence::kRequired ? text("a tensor" + Why(param), "null", kAdviceNull) : "";
    }
    if (presence == Presence::kForbidden) {
      return text("null" + Why(param), "a tensor of shape " + ViewDimsText(tensor), kAdvicePassNull);
    }
    if (presence == Presence::kIgnored) return "";
    // An empty krCache has been looked at.
    if (param == kKrCache && kind_.scenario->MergesCaches()) return "";
    const aclDataType dtype = ExpectedDtype(*kind_.scenario, param);
    if (tensor.dtype != dtype)
      return text(DtypeName(dtype) + InScenario(), DtypeName(tensor.dtype), "convert the tensor");
    if (!IsNzWeight(param) && !IsPlain(tensor.format)) {
      return text("format ND", FormatName(tensor.format), "convert the tensor to ND");
    }
    std::string expected;
    for (const ExpectedShape& shape : ExpectedShapes(param, kind_, call_.dims, tensor.dtype)) {
      if (HasShape(tensor, shape)) return "";
      expected +=
          (expected.empty() ? "" : " or ") + DimsText(shape.dims.data(), shape.dims.size()) + " = " + shape.symbols;
    }
    return text("shape " + expected, ViewDimsText(tensor), "check it against the other tensors' sizes");
  }

  // The scenario follows from attributes or types, so a text about it says from which.
  std::string InScenario() const {
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
  // Why a parameter must be there, or must not.
  std::string Why(Param param) const {
    if (param == kDequantScaleQNormOut && kind_.scenario->weight_quant != WeightQuant::kNone) {
      return params_.handles[kQueryNormOut] != nullptr ? " beside queryNormOutOptional"
                                                       : " without queryNormOutOptional";
    }
    if (param == kCacheIndex || param == kActualSeqLen) {
      return std::string(" with cacheModeOptional \"") + kind_.cache_mode->name + "\" and tokens as " +
             (tensors_[kTokenX].rank == 2 ? "(T, He)" : "(B, S, He)");
    }
    return InScenario();
  }
  const char* Name(Param param) const {
    return param == kCacheIndex && !version_.requires_cache_index ? "cacheIndexOptional" : ParamName(param);
  }

  aclnnStatus Refuse(aclnnStatus status, const char* parameter, const std::string& expected, const std::string& found,
                     const std::string& advice) const {
    return FailOp(status, RefusalText(version_.phase1, parameter, expected, found, advice));
  }
  aclnnStatus Refuse(aclnnStatus status, Param param, const std::string& expected, const std::string& found,
                     const std::string& advice) const {
    return Refuse(status, Name(param), expected, found, advice);
  }
  template <class Parameter>
  aclnnStatus RefuseTiling(Parameter parameter, const std::string& expected, const std::string& found,
                           const std::string& advice) const {
    return Refuse(ACLNN_ERR_INNER_TILING_ERROR, parameter, expected, found, advice);
  }
  // The thread's texts come back newest first: the first is recorded last.
  aclnnStatus RefuseAll(const std::vector<std::string>& texts) const {
    for (size_t i = texts.size(); i-- > 0;) FailOp(ACLNN_ERR_INNER_TILING_ERROR, texts[i]);
    return texts.empty() ? ACLNN_SUCCESS : ACLNN_ERR_INNER_TILING_ERROR;
  }

  const PrologVersion& version_;
  const PrologParams& params_;
  CheckedCall& call_;
  CallKind& kind_;
  PrologTensors& tensors_;
};

}  // namespace

aclnnStatus CheckProlog(const PrologVersion& version, Soc soc, const PrologParams& params,
                        const uint64_t* workspace_size, aclOpExecutor* const* executor, CheckedCall* call) {
  const Checker checker(version, soc, params, call);
  aclnnStatus status = checker.CheckModes();
  if (status == ACLNN_SUCCESS) status = checker.CheckNulls(workspace_size, executor);
  if (status == ACLNN_SUCCESS) status = checker.ReadDescriptors();
  if (status == ACLNN_SUCCESS) status = checker.CheckKernelLookup();
  if (status != ACLNN_SUCCESS) return status;
  if (checker.IsAllEmpty()) {
    call->is_all_empty = true;
    return ACLNN_SUCCESS;
  }
  for (aclnnStatus (Checker::*const step)() const :
       {&Checker::CheckAttributeRanges, &Checker::CheckSingles, &Checker::CheckCacheMode, &Checker::CheckScenario,
        &Checker::CheckSizes, &Checker::CheckSpecialShapes, &Checker::CheckExpectations, &Checker::CheckMemory}) {
    if ((status = (checker.*step)()) != ACLNN_SUCCESS) return status;
  }
  return ACLNN_SUCCESS;
}

}  // namespace mlap::cann
