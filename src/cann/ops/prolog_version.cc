#include "cann/ops/prolog_version.h"

#include <algorithm>

namespace mlap::cann {
namespace {

std::vector<Param> OrderOfV1() {
  return {kTokenX,         kWeightDq,        kWeightUqQr,        kWeightUk,           kWeightDkvKr,   kGammaCq,
          kGammaCkv,       kRopeSin,         kRopeCos,           kCacheIndex,         kKvCache,       kKrCache,
          kDequantScaleX,  kDequantScaleWDq, kDequantScaleWUqQr, kDequantScaleWDkvKr, kQuantScaleCkv, kQuantScaleCkr,
          kSmoothScalesCq, kQueryOut,        kQueryRopeOut};
}

std::vector<Param> OrderOfV2() {
  std::vector<Param> order = OrderOfV1();
  order.push_back(kDequantScaleQNopeOut);
  return order;
}

// The caches stand before cacheIndex.
std::vector<Param> OrderOfV3() {
  return {kTokenX,
          kWeightDq,
          kWeightUqQr,
          kWeightUk,
          kWeightDkvKr,
          kGammaCq,
          kGammaCkv,
          kRopeSin,
          kRopeCos,
          kKvCache,
          kKrCache,
          kCacheIndex,
          kDequantScaleX,
          kDequantScaleWDq,
          kDequantScaleWUqQr,
          kDequantScaleWDkvKr,
          kQuantScaleCkv,
          kQuantScaleCkr,
          kSmoothScalesCq,
          kActualSeqLen,
          kKNopeClipAlpha,
          kQueryOut,
          kQueryRopeOut,
          kDequantScaleQNopeOut,
          kQueryNormOut,
          kDequantScaleQNormOut};
}

// Whether every required input and every output has the type the column gives it; optional inputs are no part of a
// column. The caches' types come from elsewhere if `int8_caches`.
bool Fits(const PrologVersion& version, Devices device, const PrologTensors& tensors, const Scenario& modes,
          const Scenario& column, bool int8_caches) {
  return std::all_of(version.order.begin(), version.order.end(), [&](Param param) {
    if (!IsOutput(param) && !version.Requires(param)) return true;
    // Without a device's kernels an empty cache may be of any type.
    if (param == kKrCache && device == kCpu && modes.MergesCaches()) return true;
    const aclDataType expected = int8_caches && IsCache(param) ? ACL_INT8 : ExpectedDtype(column, param);
    return (tensors.present[param] ? tensors[param].dtype : ExpectedDtype(modes, param)) == expected;
  });
}

}  // namespace

const char* PrologVersion::NameOf(Param param) const {
  return param == kCacheIndex && !requires_cache_index ? "cacheIndexOptional" : ParamName(param);
}

bool PrologVersion::Requires(Param param) const {
  if (param == kCacheIndex) return requires_cache_index;
  return param <= kKrCache || param == kQueryOut || param == kQueryRopeOut;
}

bool PrologVersion::Offers(const Scenario& scenario, Devices device) const {
  return VersionLimits::Offers(scenario.weight_quant, scenario.kv_quant, device);
}

// The versions are never destroyed, like every static of the library: a call may come while the program ends.

const PrologVersion& VersionV1() {
  static const PrologVersion& kVersion = *new PrologVersion{LimitsOfV1(),
                                                            "aclnnMlaPrologGetWorkspaceSize",
                                                            "aclnnMlaProlog",
                                                            OrderOfV1(),
                                                            /*has_modes=*/false,
                                                            /*requires_cache_index=*/true,
                                                            /*default_cache_mode=*/"BNSD",
                                                            /*checks_row_width=*/false,
                                                            /*takes_one_ckv_scale=*/false};
  return kVersion;
}

const PrologVersion& VersionV2() {
  static const PrologVersion& kVersion = *new PrologVersion{LimitsOfV2(),
                                                            "aclnnMlaPrologV2WeightNzGetWorkspaceSize",
                                                            "aclnnMlaPrologV2WeightNz",
                                                            OrderOfV2(),
                                                            /*has_modes=*/false,
                                                            /*requires_cache_index=*/true,
                                                            /*default_cache_mode=*/"BNSD",
                                                            /*checks_row_width=*/false,
                                                            /*takes_one_ckv_scale=*/false};
  return kVersion;
}

const PrologVersion& VersionV3() {
  static const PrologVersion& kVersion = *new PrologVersion{LimitsOfV3(),
                                                            "aclnnMlaPrologV3WeightNzGetWorkspaceSize",
                                                            "aclnnMlaPrologV3WeightNz",
                                                            OrderOfV3(),
                                                            /*has_modes=*/true,
                                                            /*requires_cache_index=*/false,
                                                            /*default_cache_mode=*/"PA_BSND",
                                                            /*checks_row_width=*/true,
                                                            /*takes_one_ckv_scale=*/true};
  return kVersion;
}

ColumnMatch MatchDtypeColumn(const PrologVersion& version, Devices device, const PrologTensors& tensors,
                             const Scenario& modes) {
  for (const VersionScenario& row : version.scenarios) {
    if (((row.devices | row.listed_only) & device) == 0) continue;
    if (Fits(version, device, tensors, modes, *FindScenario(row.weight_quant, row.kv_quant), false)) {
      return (row.devices & device) != 0 ? ColumnMatch::kFits : ColumnMatch::kWithoutKernel;
    }
  }
  // The definitions for A2 and A3 list int8 for everything, too, although no scenario stores int8 tokens' keys so.
  const Scenario& full = *FindScenario(WeightQuant::kFull, KvQuant::kNone);
  if (device == kA2A3 && Fits(version, device, tensors, modes, full, true)) return ColumnMatch::kFits;
  return ColumnMatch::kNone;
}

}  // namespace mlap::cann
