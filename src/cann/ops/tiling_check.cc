#include "cann/ops/tiling_check.h"

#include <algorithm>
#include <cstring>

#include "base/weight_view.h"
#include "cann/ops/prolog_shapes.h"
#include "cann/ops/tensor_memory.h"
#include "cann/runtime/recent_error.h"

namespace mlap::cann {
namespace {

constexpr char kAdviceSize[] = "check the shape and its order of dimensions";
constexpr char kAdviceSoc[] = "; MLAP_SOC=none lifts the device's size limits";

}  // namespace

aclnnStatus TilingCheck::Run() const {
  for (aclnnStatus (TilingCheck::*const step)() const :
       {&TilingCheck::CheckAttributeRanges, &TilingCheck::CheckSingles, &TilingCheck::CheckCacheMode,
        &TilingCheck::CheckScenario, &TilingCheck::CheckSizes, &TilingCheck::CheckSpecialShapes,
        &TilingCheck::CheckExpectations, &TilingCheck::CheckMemory}) {
    const aclnnStatus status = (this->*step)();
    if (status != ACLNN_SUCCESS) return status;
  }
  return ACLNN_SUCCESS;
}

aclnnStatus TilingCheck::CheckAttributeRanges() const {
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
aclnnStatus TilingCheck::CheckSingles() const {
  struct Row {
    Param param;
    size_t rank;
    size_t other_rank;
  };
  const size_t least_cache_rank = version_.has_modes ? 3 : 4;
  const Row rows[] = {
      {kTokenX, 2, 3},
      {kWeightDq, 2, 4},
      {kWeightUqQr, 2, 4},
      {kWeightUk, 3, 3},
      {kWeightDkvKr, 2, 4},
      {kGammaCq, 1, 1},
      {kGammaCkv, 1, 1},
      {kRopeSin, 2, 3},
      {kRopeCos, 2, 3},
      {kCacheIndex, 1, 2},
      {kKvCache, least_cache_rank, 4},
      {kKrCache, least_cache_rank, 4},
  };
  for (const Row& row : rows) {
    if (!version_.Requires(row.param)) continue;
    // Where A2 and A3 merge the caches they look at nothing of krCache but its size.
    if (row.param == kKrCache && kind_.device != kAscend950 && params_.ckvkr_repo_mode == 1) continue;
    const TensorDescriptor& tensor = tensors_[row.param];
    if (!IsNzWeight(row.param) && !IsPlain(tensor.format)) {
      return RefuseTiling(row.param, "format ND", FormatName(tensor.format), "convert the tensor to ND");
    }
    if (tensor.rank == row.rank || tensor.rank == row.other_rank) continue;
    // Here the device admits all the ranks that an empty krCache may have; its final table wants the exact shape.
    if (row.param == kKrCache && (tensor.rank == 1 || tensor.rank == 3)) continue;
    std::string expected = std::to_string(row.rank);
    if (row.other_rank != row.rank) expected += " or " + std::to_string(row.other_rank);
    return RefuseTiling(row.param, expected + " dimensions",
                        std::to_string(tensor.rank) + ", shape " + ViewDimsText(tensor), "check the shape");
  }
  if (tensors_.present[kActualSeqLen] && tensors_[kActualSeqLen].dtype != ACL_INT32) {
    return RefuseTiling(kActualSeqLen, "INT32", DtypeName(tensors_[kActualSeqLen].dtype), "convert the tensor");
  }
  return ACLNN_SUCCESS;
}

aclnnStatus TilingCheck::CheckCacheMode() const {
  const char* mode = params_.cache_mode != nullptr ? params_.cache_mode : version_.default_cache_mode;
  for (size_t i = 0; i < version_.num_cache_modes; ++i) {
    if (std::strcmp(mode, kCacheModes[i].name) == 0) kind_.cache_mode = &kCacheModes[i];
  }
  if (kind_.cache_mode == nullptr) return RefuseCacheMode(mode);
  const CacheMode& cache = *kind_.cache_mode;
  const auto with = [&] { return std::string(" with cacheModeOptional \"") + cache.name + "\""; };
  const size_t token_rank = tensors_[kTokenX].rank;
  if (cache.token_rank != 0 && token_rank != cache.token_rank) {
    return RefuseTiling(kTokenX, (cache.token_rank == 2 ? "(T, He)" : "(B, S, He)") + with(),
                        "shape " + ViewDimsText(tensors_[kTokenX]),
                        cache.token_rank == 2 ? "use BSND for (B, S, He)" : "use TND for (T, He)");
  }
  if (tensors_[kKvCache].rank != cache.cache_rank) {
    return RefuseTiling(kKvCache, std::to_string(cache.cache_rank) + " dimensions" + with(),
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

aclnnStatus TilingCheck::RefuseCacheMode(const char* mode) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < version_.num_cache_modes; ++i) {
    names.push_back(std::string("\"") + kCacheModes[i].name + "\"");
  }
  if (params_.cache_mode == nullptr) {
    return RefuseTiling("cacheModeOptional", Joined(names),
                        std::string("null, which means \"") + mode + "\" to " + version_.name + " and is refused",
                        "pass " + Joined(names));
  }
  constexpr size_t kShown = 40;  // what is shown of a text that may be anything
  std::string found(1, '"');
  found.append(mode, strnlen(mode, kShown)).append(1, '"');
  return RefuseTiling("cacheModeOptional", Joined(names), found, "pass one of these, in capitals");
}

// What modes and forms demand of other attributes and of actualSeqLen.
aclnnStatus TilingCheck::CheckScenario() const {
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

aclnnStatus TilingCheck::CheckSizes() const {
  call_.dims = ReadDims(tensors_, *kind_.cache_mode);
  SizeRefusal refusal;
  if (!FirstRefusedSize(call_.dims, kind_, &refusal)) return ACLNN_SUCCESS;
  return RefuseTiling(refusal.parameter, std::string(refusal.symbol) + " " + refusal.expected,
                      std::to_string(refusal.found) + ", from shape " + ViewDimsText(tensors_[refusal.parameter]),
                      AdviceOnSize(refusal));
}

std::string TilingCheck::AdviceOnSize(const SizeRefusal& refusal) const {
  const PrologDims& dims = call_.dims;
  if (const TensorDescriptor& kr = tensors_[kKrCache];
      refusal.is_row_width && kr.rank > 0 && kr.view_dims[kr.rank - 1] == dims.Hckv && refusal.found == dims.Dr) {
    return OrderAdvice(kKvCache, kKrCache);
  }
  // A size is what is wrong, and not a shape, only if everything fits together.
  CallKind without_device = kind_;
  without_device.device = kCpu;
  SizeRefusal other;
  const bool is_limit = kind_.device != kCpu && !FirstRefusedSize(dims, without_device, &other) &&
                        std::all_of(version_.order.begin(), version_.order.end(), [&](Param param) {
                          return !IsPresent(param) || HasExpectedShape(tensors_[param], param, kind_, dims);
                        });
  return is_limit ? std::string(kAdviceSize) + kAdviceSoc : kAdviceSize;
}

// The shapes that the expectations leave open.
aclnnStatus TilingCheck::CheckSpecialShapes() const {
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
aclnnStatus TilingCheck::CheckExpectations() const {
  std::vector<std::string> texts;
  for (const Param param : version_.order) {
    const std::string text = Mismatch(param);
    if (!text.empty()) texts.push_back(text);
  }
  return RefuseAll(texts);
}

std::string TilingCheck::Mismatch(Param param) const {
  const Presence presence = PresenceOf(param, tensors_.present[kQueryNormOut]);
  const TensorDescriptor& tensor = tensors_[param];
  const auto text = [&](const std::string& expected, const std::string& found, const std::string& advice) {
    return RefusalText(version_.phase1, version_.NameOf(param), expected, found, advice);
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
  if (tensor.dtype != dtype) return text(DtypeName(dtype) + InScenario(), DtypeName(tensor.dtype), TypeAdvice());
  if (!IsNzWeight(param) && !IsPlain(tensor.format)) {
    return text("format ND", FormatName(tensor.format), "convert the tensor to ND");
  }
  if (HasExpectedShape(tensor, param, kind_, call_.dims)) return "";
  return text("shape " + ExpectedShapeText(tensor, param, kind_, call_.dims), ViewDimsText(tensor),
              "check it against the other tensors' sizes");
}

// What the device does not look at and would read or write wrongly.
aclnnStatus TilingCheck::CheckMemory() const {
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
    if (!IsPresent(param)) continue;
    std::string expected, found;
    if (!CheckTensorMemory(param, tensors_[param], &expected, &found)) {
      return Refuse(ACLNN_ERR_PARAM_INVALID, param, expected, found,
                    "check the arguments of aclCreateTensor, and that aclrtMalloc succeeded");
    }
  }
  return ACLNN_SUCCESS;
}

// The thread's texts come back newest first: the first is recorded last.
aclnnStatus TilingCheck::RefuseAll(const std::vector<std::string>& texts) const {
  for (size_t i = texts.size(); i-- > 0;) FailOp(ACLNN_ERR_INNER_TILING_ERROR, texts[i]);
  return texts.empty() ? ACLNN_SUCCESS : ACLNN_ERR_INNER_TILING_ERROR;
}

}  // namespace mlap::cann
