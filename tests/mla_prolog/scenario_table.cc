#include "scenario_table.h"

#include <algorithm>

namespace mlap::prolog_test {
namespace {

constexpr std::array<const char*, kNumParams> kParamNames = {"tokenX",
                                                             "weightDq",
                                                             "weightUqQr",
                                                             "weightUk",
                                                             "weightDkvKr",
                                                             "rmsnormGammaCq",
                                                             "rmsnormGammaCkv",
                                                             "ropeSin",
                                                             "ropeCos",
                                                             "cacheIndex",
                                                             "kvCache",
                                                             "krCache",
                                                             "dequantScaleX",
                                                             "dequantScaleWDq",
                                                             "dequantScaleWUqQr",
                                                             "dequantScaleWDkvKr",
                                                             "quantScaleCkv",
                                                             "quantScaleCkr",
                                                             "smoothScalesCq",
                                                             "actualSeqLen",
                                                             "kNopeClipAlpha",
                                                             "queryOut",
                                                             "queryRopeOut",
                                                             "dequantScaleQNopeOut",
                                                             "queryNormOut",
                                                             "dequantScaleQNormOut"};

}  // namespace

bool IsWritten(Param param) { return std::find(kWritten.begin(), kWritten.end(), param) != kWritten.end(); }
bool IsNzWeight(Param param) { return std::find(kNzWeights.begin(), kNzWeights.end(), param) != kNzWeights.end(); }
const char* ParamName(Param param) { return kParamNames[param]; }

const char* VersionName(Version version) {
  constexpr const char* kNames[] = {"V1", "V2", "V3"};
  return kNames[static_cast<int>(version)];
}

const std::vector<Param>& ParamsOf(Version version) {
  static const std::vector<Param> kV1 = {kTokenX,   kWeightDq, kWeightUqQr,  kWeightUk,    kWeightDkvKr, kGammaCq,
                                         kGammaCkv, kRopeSin,  kRopeCos,     kCacheIndex,  kKvCache,     kKrCache,
                                         kScaleX,   kScaleWDq, kScaleWUqQr,  kScaleWDkvKr, kScaleCkv,    kScaleCkr,
                                         kSmooth,   kQueryOut, kQueryRopeOut};
  static const std::vector<Param> kV2 = [] {
    std::vector<Param> params = kV1;
    params.push_back(kScaleQNope);
    return params;
  }();
  static const std::vector<Param> kV3 = {
      kTokenX,  kWeightDq,     kWeightUqQr, kWeightUk, kWeightDkvKr,  kGammaCq,    kGammaCkv,    kRopeSin,   kRopeCos,
      kKvCache, kKrCache,      kCacheIndex, kScaleX,   kScaleWDq,     kScaleWUqQr, kScaleWDkvKr, kScaleCkv,  kScaleCkr,
      kSmooth,  kActualSeqLen, kClipAlpha,  kQueryOut, kQueryRopeOut, kScaleQNope, kQueryNorm,   kScaleQNorm};
  return version == Version::kV1 ? kV1 : version == Version::kV2 ? kV2 : kV3;
}

int64_t PositionOf(Version version, Param param) {
  const std::vector<Param>& params = ParamsOf(version);
  return std::find(params.begin(), params.end(), param) - params.begin();
}

std::vector<Param> RequiredOf(Version version) {
  std::vector<Param> result;
  for (const Param param : ParamsOf(version)) {
    if (param == kCacheIndex && version == Version::kV3) continue;
    if (param <= kKrCache || param == kQueryOut || param == kQueryRopeOut) result.push_back(param);
  }
  return result;
}

std::vector<Param> OptionalInputsOf(Version version) {
  std::vector<Param> result;
  for (const Param param : ParamsOf(version)) {
    if (param >= kQueryOut || param < kCacheIndex || IsWritten(param)) continue;
    if (param != kCacheIndex || version == Version::kV3) result.push_back(param);
  }
  return result;
}

const std::array<ScenarioRow, 16>& ScenarioTable() {
  constexpr aclDataType kBf = ACL_BF16;
  constexpr aclDataType kI8 = ACL_INT8;
  constexpr aclDataType kF8 = ACL_FLOAT8_E4M3FN;
  constexpr aclDataType kH8 = ACL_HIFLOAT8;
  constexpr aclDataType kF32 = ACL_FLOAT;
  constexpr aclDataType kE8 = ACL_FLOAT8_E8M0;
  static const std::array<ScenarioRow, 16> kRows = {{
      {0, 0, kBf, kBf, kBf, kBf, kBf, kBf, kF32, false, false},
      {1, 0, kBf, kI8, kBf, kBf, kBf, kI8, kF32, true, false},
      {1, 2, kBf, kI8, kI8, kI8, kBf, kI8, kF32, true, false},
      {1, 3, kBf, kI8, kI8, kBf, kBf, kI8, kF32, true, true},
      {2, 0, kI8, kI8, kBf, kBf, kBf, kI8, kF32, true, false},
      {2, 1, kI8, kI8, kI8, kBf, kI8, kI8, kF32, true, false},
      {2, 3, kI8, kI8, kI8, kBf, kBf, kI8, kF32, true, true},
      {3, 0, kF8, kF8, kBf, kBf, kBf, kF8, kE8, false, false},
      {3, 1, kF8, kF8, kF8, kBf, kF8, kF8, kE8, false, false},
      {3, 3, kF8, kF8, kF8, kBf, kBf, kF8, kE8, false, false},
      {4, 0, kF8, kF8, kBf, kBf, kBf, kF8, kF32, true, false},
      {4, 1, kF8, kF8, kF8, kBf, kF8, kF8, kF32, true, false},
      {4, 3, kF8, kF8, kF8, kBf, kBf, kF8, kF32, true, false},
      {5, 0, kH8, kH8, kBf, kBf, kBf, kH8, kF32, true, false},
      {5, 1, kH8, kH8, kH8, kBf, kH8, kH8, kF32, true, false},
      {5, 3, kH8, kH8, kH8, kBf, kBf, kH8, kF32, true, false},
  }};
  return kRows;
}

const ScenarioRow& RowOf(const Scenario& scenario) {
  return *std::find_if(ScenarioTable().begin(), ScenarioTable().end(), [&](const ScenarioRow& row) {
    return row.weight_mode == scenario.weight_mode && row.kv_mode == scenario.kv_mode;
  });
}

std::vector<Scenario> AllScenarios() {
  std::vector<Scenario> scenarios(kScenarios.begin(), kScenarios.end());
  scenarios.insert(scenarios.end(), kScenarios950.begin(), kScenarios950.end());
  return scenarios;
}

std::string ScenarioName(const Scenario& scenario) {
  constexpr const char* kWeights[] = {"non-quant", "partial", "int8", "mxfp8", "fp8", "hif8"};
  constexpr const char* kKv[] = {"", ", per-tensor", ", per-channel", ", per-group"};
  return std::string(VersionName(scenario.version)) + " " + kWeights[scenario.weight_mode] + kKv[scenario.kv_mode] +
         (scenario.smooth ? "+smooth" : "") + (scenario.query_norm ? "+queryNorm" : "");
}

std::vector<const char*> IndexModesOf(const Scenario& scenario) {
  if (scenario.kv_mode == 3) return {"PA_BSND"};
  return {"PA_BSND", "PA_NZ"};
}

std::vector<const char*> ModesOf(const Scenario& scenario) {
  if (scenario.version != Version::kV3) return {"PA_BSND", "PA_NZ"};
  if (scenario.kv_mode == 3) return {"PA_BSND", "BSND", "TND"};
  return {"PA_BSND", "PA_NZ", "PA_BLK_BSND", "PA_BLK_NZ", "BSND", "TND"};
}

}  // namespace mlap::prolog_test
