#include "cann/ops/prolog_version.h"

#include <algorithm>

namespace mlap::cann {
namespace {

constexpr auto kNonQuant = WeightQuant::kNone;
constexpr auto kPartial = WeightQuant::kUqQr;
constexpr auto kInt8 = WeightQuant::kFull;
constexpr auto kPlain = KvQuant::kNone;
constexpr auto kPerTensor = KvQuant::kPerTensor;
constexpr auto kPerChannel = KvQuant::kPerChannel;

constexpr Devices kAll = kA2A3 | kAscend950 | kCpu;

// Every scenario; 8-bit floats need their device, or none.
std::vector<VersionScenario> ScenariosOfV3() {
  std::vector<VersionScenario> rows;
  for (const Scenario& scenario : Scenarios()) {
    const bool needs_950 = scenario.weight_quant >= WeightQuant::kMxFp8;
    rows.push_back({scenario.weight_quant, scenario.kv_quant, needs_950 ? kAscend950 | kCpu : kAll, 0});
  }
  return rows;
}

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
  return std::any_of(scenarios.begin(), scenarios.end(), [&](const VersionScenario& row) {
    return row.weight_quant == scenario.weight_quant && row.kv_quant == scenario.kv_quant &&
           (row.devices & device) != 0;
  });
}

// The versions are never destroyed, like every static of the library: a call may come while the program ends.

const PrologVersion& VersionV1() {
  static const PrologVersion& kVersion = *new PrologVersion{
      .name = "V1",
      .phase1 = "aclnnMlaPrologGetWorkspaceSize",
      .phase2 = "aclnnMlaProlog",
      .order = OrderOfV1(),
      .devices = kA2A3 | kCpu,
      .scenarios = {{kNonQuant, kPlain, kA2A3 | kCpu, 0},
                    {kPartial, kPlain, kA2A3 | kCpu, 0},
                    {kPartial, kPerChannel, kA2A3 | kCpu, 0},
                    {kInt8, kPlain, kCpu, kA2A3}},
      .has_modes = false,
      .requires_cache_index = true,
      .num_cache_modes = 2,
      .default_cache_mode = "BNSD",
      .q_ranks = {1536},
      .nopes = {128},
      .checks_row_width = false,
      .takes_one_ckv_scale = false,
  };
  return kVersion;
}

const PrologVersion& VersionV2() {
  static const PrologVersion& kVersion = *new PrologVersion{
      .name = "V2",
      .phase1 = "aclnnMlaPrologV2WeightNzGetWorkspaceSize",
      .phase2 = "aclnnMlaPrologV2WeightNz",
      .order = OrderOfV2(),
      .devices = kA2A3 | kCpu,
      .scenarios = {{kNonQuant, kPlain, kA2A3 | kCpu, 0},
                    {kPartial, kPlain, kA2A3 | kCpu, 0},
                    {kPartial, kPerChannel, kA2A3 | kCpu, 0},
                    {kInt8, kPlain, kA2A3 | kCpu, 0},
                    {kInt8, kPerTensor, kA2A3 | kCpu, 0}},
      .has_modes = false,
      .requires_cache_index = true,
      .num_cache_modes = 2,
      .default_cache_mode = "BNSD",
      .q_ranks = {1536},
      .nopes = {128},
      .checks_row_width = false,
      .takes_one_ckv_scale = false,
  };
  return kVersion;
}

const PrologVersion& VersionV3() {
  static const PrologVersion& kVersion = *new PrologVersion{
      .name = "V3",
      .phase1 = "aclnnMlaPrologV3WeightNzGetWorkspaceSize",
      .phase2 = "aclnnMlaPrologV3WeightNz",
      .order = OrderOfV3(),
      .devices = kAll,
      .scenarios = ScenariosOfV3(),
      .has_modes = true,
      .requires_cache_index = false,
      .num_cache_modes = kCacheModes.size(),
      .default_cache_mode = "PA_BSND",
      .q_ranks = {1536, 2048},
      .nopes = {128, 192},
      .checks_row_width = true,
      .takes_one_ckv_scale = true,
  };
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
