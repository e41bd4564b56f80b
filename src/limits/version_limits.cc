#include "limits/version_limits.h"

#include <algorithm>

namespace mlap {
namespace {

constexpr auto kNonQuant = WeightQuant::kNone;
constexpr auto kPartial = WeightQuant::kUqQr;
constexpr auto kInt8 = WeightQuant::kFull;
constexpr auto kPlain = KvQuant::kNone;
constexpr auto kPerTensor = KvQuant::kPerTensor;
constexpr auto kPerChannel = KvQuant::kPerChannel;
constexpr auto kPerGroup = KvQuant::kPerGroup;

constexpr Devices kAll = kA2A3 | kAscend950 | kCpu;

// Every scenario; 8-bit floats need their device, or none.
std::vector<VersionScenario> ScenariosOfV3() {
  std::vector<VersionScenario> rows;
  for (const auto& [weight_quant, kv_quant] : QuantPairs()) {
    const bool needs_950 = weight_quant >= WeightQuant::kMxFp8;
    rows.push_back({weight_quant, kv_quant, needs_950 ? kAscend950 | kCpu : kAll, 0});
  }
  return rows;
}

}  // namespace

// Statics are never destroyed, like all of the library: a call may come while the program ends.

const std::vector<std::pair<WeightQuant, KvQuant>>& QuantPairs() {
  static const auto& kPairs = *[] {
    auto* pairs = new std::vector<std::pair<WeightQuant, KvQuant>>{
        {kNonQuant, kPlain}, {kPartial, kPlain}, {kPartial, kPerChannel}, {kPartial, kPerGroup}};
    for (const WeightQuant full : {kInt8, WeightQuant::kMxFp8, WeightQuant::kFp8, WeightQuant::kHiF8}) {
      for (const KvQuant kv : {kPlain, kPerTensor, kPerGroup}) pairs->emplace_back(full, kv);
    }
    return pairs;
  }();
  return kPairs;
}

bool VersionLimits::Offers(WeightQuant weight_quant, KvQuant kv_quant, Devices device) const {
  return std::any_of(scenarios.begin(), scenarios.end(), [&](const VersionScenario& row) {
    return row.weight_quant == weight_quant && row.kv_quant == kv_quant && (row.devices & device) != 0;
  });
}

const VersionLimits& LimitsOfV1() {
  static const auto& kLimits = *new VersionLimits{
      .name = "V1",
      .devices = kA2A3 | kCpu,
      .scenarios = {{kNonQuant, kPlain, kA2A3 | kCpu, 0},
                    {kPartial, kPlain, kA2A3 | kCpu, 0},
                    {kPartial, kPerChannel, kA2A3 | kCpu, 0},
                    {kInt8, kPlain, kCpu, kA2A3}},
      .num_cache_modes = 2,
      .q_ranks = {1536},
      .nopes = {128},
  };
  return kLimits;
}

const VersionLimits& LimitsOfV2() {
  static const auto& kLimits = *new VersionLimits{
      .name = "V2",
      .devices = kA2A3 | kCpu,
      .scenarios = {{kNonQuant, kPlain, kA2A3 | kCpu, 0},
                    {kPartial, kPlain, kA2A3 | kCpu, 0},
                    {kPartial, kPerChannel, kA2A3 | kCpu, 0},
                    {kInt8, kPlain, kA2A3 | kCpu, 0},
                    {kInt8, kPerTensor, kA2A3 | kCpu, 0}},
      .num_cache_modes = 2,
      .q_ranks = {1536},
      .nopes = {128},
  };
  return kLimits;
}

const VersionLimits& LimitsOfV3() {
  static const auto& kLimits = *new VersionLimits{
      .name = "V3",
      .devices = kAll,
      .scenarios = ScenariosOfV3(),
      .num_cache_modes = kCacheModes.size(),
      .q_ranks = {1536, 2048},
      .nopes = {128, 192},
  };
  return kLimits;
}

}  // namespace mlap
