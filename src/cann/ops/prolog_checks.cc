#include "cann/ops/prolog_checks.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "aclnn/aclnn_status.h"
#include "cann/ops/prolog_shapes.h"
#include "cann/ops/tensor_memory.h"
#include "cann/runtime/recent_error.h"

namespace mlap::cann {
namespace {

constexpr char kAdviceNull[] = "pass a tensor made by aclCreateTensor";
constexpr char kAdviceSoc[] =
    "check the shape and its order of dimensions; MLAP_SOC=none lifts the device's size limits";

// Formats that mean plain row-major memory. torch_npu tags plain tensors by their rank.
bool IsPlain(aclFormat format) {
  return format == ACL_FORMAT_ND || format == ACL_FORMAT_NCHW || format == ACL_FORMAT_NCL || format == ACL_FORMAT_NCDHW;
}

// Formats the device's kernel lookup takes for plain; the checks behind it are stricter.
bool LookupTakesForPlain(aclFormat format) { return IsPlain(format) || format == ACL_FORMAT_NHWC; }

class Checker {
 public:
  Checker(const char* function, Soc soc, const PrologParams& params, CheckedCall* call)
      : function_(function), soc_(soc), params_(params), call_(*call), tensors_(call->tensors) {}

  aclnnStatus CheckNulls(const uint64_t* workspace_size, aclOpExecutor* const* executor) const {
    for (int i = 0; i < kNumParams; ++i) {
      const auto param = static_cast<Param>(i);
      if (IsRequired(param) && params_.handles[param] == nullptr) {
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
    for (int i = 0; i < kNumParams; ++i) {
      const auto param = static_cast<Param>(i);
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
    return ACLNN_SUCCESS;
  }

  // The device looks its kernel up by the types and formats of the required tensors.
  aclnnStatus CheckKernelLookup() const {
    for (int i = 0; i < kNumParams; ++i) {
      const auto param = static_cast<Param>(i);
      if (!IsRequired(param)) continue;
      const aclFormat format = tensors_[param].format;
      if (IsNzWeight(param) ? format != ACL_FORMAT_FRACTAL_NZ : !LookupTakesForPlain(format)) {
        return Refuse(ACLNN_ERR_PARAM_INVALID, param,
                      std::string("format ") + (IsNzWeight(param) ? "FRACTAL_NZ" : "ND"), FormatName(format),
                      "convert the tensor, or tag it with the format it has");
      }
    }
    switch (MatchDtypeColumn(tensors_)) {
      case ColumnMatch::kFits:
        return ACLNN_SUCCESS;
      case ColumnMatch::kWithoutKernel:
        return Refuse(ACLNN_ERR_INNER_FIND_KERNEL_ERROR, kTokenX, "BF16, as V1 has no kernel for int8 tokens", "INT8",
                      "fully quantised calls need a later version of the operator");
      case ColumnMatch::kNone:
        break;
    }
    const Scenario& scenario = InferScenario(tensors_);
    for (int i = 0; i < kNumParams; ++i) {
      const auto param = static_cast<Param>(i);
      if (!IsRequired(param) || tensors_[param].dtype == ExpectedDtype(scenario, param)) continue;
      return Refuse(ACLNN_ERR_PARAM_INVALID, param, DtypeName(ExpectedDtype(scenario, param)) + InScenario(scenario),
                    DtypeName(tensors_[param].dtype), "convert the tensor");
    }
    return Refuse(ACLNN_ERR_PARAM_INVALID, kTokenX, "types of a scenario of V1", scenario.name,
                  "V1 computes non-quant, partial, and partial with int8 caches");
  }

  bool IsAllEmpty() const {
    return IsEmpty(tensors_[kQueryOut]) && IsEmpty(tensors_[kQueryRopeOut]) && IsEmpty(tensors_[kKvCache]) &&
           IsEmpty(tensors_[kKrCache]);
  }

  // Each required parameter on its own: type, format, number of dimensions.
  aclnnStatus CheckSingles() const {
    struct Row {
      Param param;
      bool may_be_int8;
      size_t rank;
      size_t other_rank;
    };
    static constexpr Row kRows[] = {
        {kTokenX, true, 2, 3},      {kWeightDq, true, 2, 4},    {kWeightUqQr, true, 2, 4}, {kWeightUk, true, 3, 3},
        {kWeightDkvKr, true, 2, 4}, {kGammaCq, false, 1, 1},    {kGammaCkv, false, 1, 1},  {kRopeSin, false, 2, 3},
        {kRopeCos, false, 2, 3},    {kCacheIndex, false, 1, 2}, {kKvCache, true, 4, 4},    {kKrCache, true, 4, 4},
    };
    for (const Row& row : kRows) {
      const TensorDescriptor& tensor = tensors_[row.param];
      if (!IsNzWeight(row.param) && !IsPlain(tensor.format)) {
        return RefuseTiling(row.param, "format ND", FormatName(tensor.format), "convert the tensor to ND");
      }
      // The device's first look at krCache admits ranks 1 and 3 for later versions; the final table wants 4.
      const bool rank_ok = tensor.rank == row.rank || tensor.rank == row.other_rank ||
                           (row.param == kKrCache && (tensor.rank == 1 || tensor.rank == 3));
      if (!rank_ok) {
        std::string expected = std::to_string(row.rank);
        if (row.other_rank != row.rank) expected += " or " + std::to_string(row.other_rank);
        return RefuseTiling(row.param, expected + " dimensions",
                            std::to_string(tensor.rank) + ", shape " + ViewDimsText(tensor), "check the shape");
      }
    }
    return ACLNN_SUCCESS;
  }

  aclnnStatus CheckCacheMode() const {
    const char* mode = params_.cache_mode;
    if (mode == nullptr) {
      return RefuseTiling("cacheModeOptional", "\"PA_BSND\" or \"PA_NZ\"",
                          "null, which means \"BNSD\" to V1 and is refused", "pass \"PA_BSND\" or \"PA_NZ\"");
    }
    if (std::strcmp(mode, "PA_BSND") == 0) {
      call_.cache_order = CacheOrder::kRows;
      return ACLNN_SUCCESS;
    }
    if (std::strcmp(mode, "PA_NZ") == 0) {
      call_.cache_order = CacheOrder::kNz;
      return ACLNN_SUCCESS;
    }
    constexpr size_t kShown = 40;  // what is shown of a text that may be anything
    std::string found(1, '"');
    found.append(mode, strnlen(mode, kShown)).append(1, '"');
    return RefuseTiling("cacheModeOptional", "\"PA_BSND\" or \"PA_NZ\"", found, "pass one of these, in capitals");
  }

  aclnnStatus CheckSizes() const {
    call_.dims = ReadDims(tensors_);
    SizeRefusal refusal;
    if (!FirstRefusedSize(call_.dims, soc_, &refusal)) return ACLNN_SUCCESS;
    return RefuseTiling(refusal.parameter, std::string(refusal.symbol) + " " + refusal.expected,
                        std::to_string(refusal.found) + ", from shape " + ViewDimsText(tensors_[refusal.parameter]),
                        soc_ == Soc::kNone ? "check the shape" : kAdviceSoc);
  }

  // All parameters against the exact expectation: presence, type, format, every dimension. Every mismatch gets a text.
  aclnnStatus CheckExpectations() const {
    const Scenario& scenario = *call_.scenario;
    std::vector<std::string> texts;
    const auto note = [&](Param param, const std::string& expected, const std::string& found,
                          const std::string& advice) {
      texts.push_back(RefusalText(function_, ParamName(param), expected, found, advice));
    };
    for (int i = 0; i < kNumParams; ++i) {
      const auto param = static_cast<Param>(i);
      const Presence presence = ExpectedPresence(scenario, param);
      const TensorDescriptor& tensor = tensors_[param];
      if (!tensors_.present[param]) {
        if (presence == Presence::kRequired) {
          note(param, "a tensor" + InScenario(scenario), "null", kAdviceNull);
        }
        continue;
      }
      if (presence == Presence::kForbidden) {
        note(param, "null" + InScenario(scenario), "a tensor of shape " + ViewDimsText(tensor), "pass a null pointer");
        continue;
      }
      if (tensor.dtype != ExpectedDtype(scenario, param)) {
        note(param, DtypeName(ExpectedDtype(scenario, param)) + InScenario(scenario), DtypeName(tensor.dtype),
             "convert the tensor");
        continue;
      }
      if (!IsNzWeight(param) && !IsPlain(tensor.format)) {
        note(param, "format ND", FormatName(tensor.format), "convert the tensor to ND");
        continue;
      }
      const std::vector<ExpectedShape> shapes = ExpectedShapes(param, call_.dims, tensor.dtype);
      const auto fits = [&](const ExpectedShape& shape) {
        return std::equal(shape.dims.begin(), shape.dims.end(), tensor.view_dims.begin(),
                          tensor.view_dims.begin() + static_cast<std::ptrdiff_t>(tensor.rank));
      };
      if (std::any_of(shapes.begin(), shapes.end(), fits)) continue;
      std::string expected;
      for (const ExpectedShape& shape : shapes) {
        expected +=
            (expected.empty() ? "" : " or ") + DimsText(shape.dims.data(), shape.dims.size()) + " = " + shape.symbols;
      }
      note(param, "shape " + expected, ViewDimsText(tensor), "check it against the other tensors' sizes");
    }
    if (texts.empty()) return ACLNN_SUCCESS;
    // The thread's texts come back newest first: the first mismatch is recorded last.
    for (size_t i = texts.size(); i-- > 1;) FailOp(ACLNN_ERR_INNER_TILING_ERROR, texts[i]);
    return FailOp(ACLNN_ERR_INNER_TILING_ERROR, texts[0]);
  }

  // What the device does not look at and would read or write wrongly.
  aclnnStatus CheckMemory() const {
    const PrologDims& dims = call_.dims;
    if (dims.Dtile < dims.Hckv) {
      return RefuseTiling(kKvCache, "a last dimension of at least Hckv = " + std::to_string(dims.Hckv),
                          std::to_string(dims.Dtile), "a shorter row cannot hold the key");
    }
    if (call_.cache_order == CacheOrder::kNz) {
      const int64_t c0 = kFractalRowBytes / DtypeBytes(tensors_[kKvCache].dtype);
      for (const Param param : {kKvCache, kKrCache}) {
        const int64_t width = tensors_[param].view_dims[3];
        if (width % c0 == 0) continue;
        return RefuseTiling(param, "a last dimension that is a multiple of " + std::to_string(c0) + " for PA_NZ",
                            std::to_string(width), "use PA_BSND, or pad the rows");
      }
    }
    for (int i = 0; i < kNumParams; ++i) {
      const auto param = static_cast<Param>(i);
      if (!tensors_.present[param]) continue;
      std::string expected, found;
      if (!CheckTensorMemory(param, tensors_[param], &expected, &found)) {
        return Refuse(ACLNN_ERR_PARAM_INVALID, param, expected, found,
                      "check the arguments of aclCreateTensor, and that aclrtMalloc succeeded");
      }
    }
    return ACLNN_SUCCESS;
  }

 private:
  // The scenario follows from types, so a text about it says from which.
  std::string InScenario(const Scenario& scenario) const {
    return std::string(" in the scenario '") + scenario.name + "' (as tokenX is " + DtypeName(tensors_[kTokenX].dtype) +
           ", weightUqQr " + DtypeName(tensors_[kWeightUqQr].dtype) + ", kvCacheRef " +
           DtypeName(tensors_[kKvCache].dtype) +
           (scenario.is_offered ? ")" : "), for which V1 has no kernel in any case)");
  }
  aclnnStatus Refuse(aclnnStatus status, const char* parameter, const std::string& expected, const std::string& found,
                     const std::string& advice) const {
    return FailOp(status, RefusalText(function_, parameter, expected, found, advice));
  }
  aclnnStatus Refuse(aclnnStatus status, Param param, const std::string& expected, const std::string& found,
                     const std::string& advice) const {
    return Refuse(status, ParamName(param), expected, found, advice);
  }
  template <class Parameter>
  aclnnStatus RefuseTiling(Parameter parameter, const std::string& expected, const std::string& found,
                           const std::string& advice) const {
    return Refuse(ACLNN_ERR_INNER_TILING_ERROR, parameter, expected, found, advice);
  }

  const char* function_;
  Soc soc_;
  const PrologParams& params_;
  CheckedCall& call_;
  PrologTensors& tensors_;
};

}  // namespace

aclnnStatus CheckProlog(const char* function, Soc soc, const PrologParams& params, const uint64_t* workspace_size,
                        aclOpExecutor* const* executor, CheckedCall* call) {
  const Checker checker(function, soc, params, call);
  aclnnStatus status = checker.CheckNulls(workspace_size, executor);
  if (status != ACLNN_SUCCESS) return status;
  if ((status = checker.ReadDescriptors()) != ACLNN_SUCCESS) return status;
  if ((status = checker.CheckKernelLookup()) != ACLNN_SUCCESS) return status;
  call->scenario = &InferScenario(call->tensors);
  if (checker.IsAllEmpty()) {
    call->is_all_empty = true;
    return ACLNN_SUCCESS;
  }
  if ((status = checker.CheckSingles()) != ACLNN_SUCCESS) return status;
  if ((status = checker.CheckCacheMode()) != ACLNN_SUCCESS) return status;
  if ((status = checker.CheckSizes()) != ACLNN_SUCCESS) return status;
  if ((status = checker.CheckExpectations()) != ACLNN_SUCCESS) return status;
  return checker.CheckMemory();
}

}  // namespace mlap::cann
