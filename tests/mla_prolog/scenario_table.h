// The versions of the operator and what the contract says about their tensors, scenarios and cache modes, as the tests
// know it: written down apart from the library's own tables.
#ifndef MLAP_TESTS_MLA_PROLOG_SCENARIO_TABLE_H_
#define MLAP_TESTS_MLA_PROLOG_SCENARIO_TABLE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "acl/acl.h"

namespace mlap::prolog_test {

// The tensors that some version has: inputs, then outputs.
enum Param {
  kTokenX,
  kWeightDq,
  kWeightUqQr,
  kWeightUk,
  kWeightDkvKr,
  kGammaCq,
  kGammaCkv,
  kRopeSin,
  kRopeCos,
  kCacheIndex,
  kKvCache,
  kKrCache,
  kScaleX,
  kScaleWDq,
  kScaleWUqQr,
  kScaleWDkvKr,
  kScaleCkv,
  kScaleCkr,
  kSmooth,
  kActualSeqLen,
  kClipAlpha,
  kQueryOut,
  kQueryRopeOut,
  kScaleQNope,
  kQueryNorm,
  kScaleQNorm,
  kNumParams
};

inline constexpr std::array<Param, 3> kNzWeights = {kWeightDq, kWeightUqQr, kWeightDkvKr};
// What a call writes.
inline constexpr std::array<Param, 7> kWritten = {kKvCache,    kKrCache,   kQueryOut,  kQueryRopeOut,
                                                  kScaleQNope, kQueryNorm, kScaleQNorm};

bool IsWritten(Param param);
bool IsNzWeight(Param param);

// The part of the prototype's name that a text must contain: without the endings "Optional" and "Ref".
const char* ParamName(Param param);

enum class Version { kV1, kV2, kV3 };
inline constexpr std::array<Version, 3> kVersions = {Version::kV1, Version::kV2, Version::kV3};
const char* VersionName(Version version);
// The version's tensors in the order of its prototype, inputs before outputs. Also the index of aclSetTensorAddr.
const std::vector<Param>& ParamsOf(Version version);
int64_t PositionOf(Version version, Param param);
// Those that may not be null whatever the call is.
std::vector<Param> RequiredOf(Version version);
// The inputs that may be null.
std::vector<Param> OptionalInputsOf(Version version);

// A way to call a version: the modes that V3 takes and the other versions infer, and what may be left out.
struct Scenario {
  Version version = Version::kV1;
  int64_t weight_mode = 0;  // weightQuantMode
  int64_t kv_mode = 0;      // kvCacheQuantMode
  bool smooth = false;
  bool query_norm = false;

  bool operator==(const Scenario&) const = default;
  static const Scenario kNonQuant, kPartial, kPartialSmooth, kPerChannel, kPerChannelSmooth;  // of V1
};
inline constexpr Scenario Scenario::kNonQuant = {Version::kV1, 0, 0};
inline constexpr Scenario Scenario::kPartial = {Version::kV1, 1, 0};
inline constexpr Scenario Scenario::kPartialSmooth = {Version::kV1, 1, 0, true};
inline constexpr Scenario Scenario::kPerChannel = {Version::kV1, 1, 2};
inline constexpr Scenario Scenario::kPerChannelSmooth = {Version::kV1, 1, 2, true};

// What A2 and A3 compute.
inline constexpr std::array<Scenario, 24> kScenarios = {{
    Scenario::kNonQuant,
    Scenario::kPartial,
    Scenario::kPartialSmooth,
    Scenario::kPerChannel,
    Scenario::kPerChannelSmooth,
    {Version::kV2, 0, 0},
    {Version::kV2, 1, 0, true},
    {Version::kV2, 1, 2},
    {Version::kV2, 2, 0},
    {Version::kV2, 2, 0, true},
    {Version::kV2, 2, 1},
    {Version::kV2, 2, 1, true},
    {Version::kV3, 0, 0},
    {Version::kV3, 0, 0, false, true},
    {Version::kV3, 1, 0},
    {Version::kV3, 1, 0, true, true},
    {Version::kV3, 1, 2, true},
    {Version::kV3, 1, 3},
    {Version::kV3, 1, 3, true, true},
    {Version::kV3, 2, 0, false, true},
    {Version::kV3, 2, 0, true},
    {Version::kV3, 2, 1, false, true},
    {Version::kV3, 2, 1, true},
    {Version::kV3, 2, 3, true},
}};
// What V3 computes on the 950: every legal pair of modes.
inline constexpr std::array<Scenario, 16> kScenarios950 = {{
    {Version::kV3, 0, 0},
    {Version::kV3, 1, 0},
    {Version::kV3, 1, 2, true, true},
    {Version::kV3, 1, 3},
    {Version::kV3, 2, 0},
    {Version::kV3, 2, 1, true, true},
    {Version::kV3, 2, 3},
    {Version::kV3, 3, 0},
    {Version::kV3, 3, 1, false, true},
    {Version::kV3, 3, 3},
    {Version::kV3, 4, 0, true},
    {Version::kV3, 4, 1, false, true},
    {Version::kV3, 4, 3},
    {Version::kV3, 5, 0},
    {Version::kV3, 5, 1, true, true},
    {Version::kV3, 5, 3},
}};
// Both: what MLAP_SOC=none computes.
std::vector<Scenario> AllScenarios();
std::string ScenarioName(const Scenario& scenario);

// What the contract says about a pair of modes.
struct ScenarioRow {
  int64_t weight_mode;
  int64_t kv_mode;
  aclDataType token_x;  // and weightDq, weightDkvKr
  aclDataType weight_uq_qr;
  aclDataType kv_cache;
  aclDataType kr_cache;
  aclDataType query;
  aclDataType query_norm;
  aclDataType scale;  // of the tokens' and the weights' dequantisation, and of queryNorm
  bool may_smooth;
  bool clips;
};
const std::array<ScenarioRow, 16>& ScenarioTable();
const ScenarioRow& RowOf(const Scenario& scenario);

// The cache modes of a version and scenario in which cacheIndex lists the tokens' rows.
std::vector<const char*> IndexModesOf(const Scenario& scenario);
// All of its cache modes.
std::vector<const char*> ModesOf(const Scenario& scenario);

}  // namespace mlap::prolog_test

#endif  // MLAP_TESTS_MLA_PROLOG_SCENARIO_TABLE_H_
