// What devices accept of each version of the operator, apart from single sizes.
#ifndef MLAP_LIMITS_VERSION_LIMITS_H_
#define MLAP_LIMITS_VERSION_LIMITS_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/prolog_args.h"
#include "limits/cache_mode.h"

namespace mlap {

// Sets of devices. The CPU without a device's limits (MLAP_SOC=none) counts as one.
using Devices = unsigned;
inline constexpr Devices kA2A3 = 1;
inline constexpr Devices kAscend950 = 2;
inline constexpr Devices kCpu = 4;

// The pairs of modes that go together, ascending.
const std::vector<std::pair<WeightQuant, KvQuant>>& QuantPairs();

// A scenario of a version: the devices that have a kernel for its types, and those whose definition of the operator
// lists the types although there is no kernel.
struct VersionScenario {
  WeightQuant weight_quant;
  KvQuant kv_quant;
  Devices devices;
  Devices listed_only;
};

struct VersionLimits {
  const char* name;  // "V1"
  Devices devices;   // that have the version
  std::vector<VersionScenario> scenarios;
  size_t num_cache_modes;        // the first of kCacheModes
  std::vector<int64_t> q_ranks;  // Hcq
  std::vector<int64_t> nopes;    // D

  bool Offers(WeightQuant weight_quant, KvQuant kv_quant, Devices device) const;
};

const VersionLimits& LimitsOfV1();
const VersionLimits& LimitsOfV2();
const VersionLimits& LimitsOfV3();

}  // namespace mlap

#endif  // MLAP_LIMITS_VERSION_LIMITS_H_
