// The versions of the operator: a row of data each. Everything else is common to all.
#ifndef MLAP_CANN_OPS_PROLOG_VERSION_H_
#define MLAP_CANN_OPS_PROLOG_VERSION_H_

#include <cstddef>
#include <initializer_list>
#include <vector>

#include "cann/ops/cache_mode.h"
#include "cann/ops/prolog_params.h"
#include "cann/ops/scenario.h"
#include "cann/runtime/soc.h"

namespace mlap::cann {

// Sets of devices. The CPU without a device's limits (MLAP_SOC=none) counts as one.
using Devices = unsigned;
inline constexpr Devices kA2A3 = 1;
inline constexpr Devices kAscend950 = 2;
inline constexpr Devices kCpu = 4;
constexpr Devices DeviceOf(Soc soc) { return soc == Soc::kNone ? kCpu : soc == Soc::kAscend950 ? kAscend950 : kA2A3; }

// A scenario of a version: the devices that have a kernel for its types, and those whose definition of the operator
// lists the types although there is no kernel.
struct VersionScenario {
  WeightQuant weight_quant;
  KvQuant kv_quant;
  Devices devices;
  Devices listed_only;
};

struct PrologVersion {
  const char* name;    // "V1"
  const char* phase1;  // the first step's function
  const char* phase2;
  std::vector<Param> order;  // the prototype's tensors, inputs before outputs
  Devices devices;           // that have the version
  std::vector<VersionScenario> scenarios;
  // Whether attributes choose the scenario. Otherwise types do, and there are neither modes nor factors.
  bool has_modes;
  bool requires_cache_index;
  size_t num_cache_modes;          // the first of kCacheModes
  const char* default_cache_mode;  // what null means
  std::vector<int64_t> q_ranks;    // Hcq
  std::vector<int64_t> nopes;      // D
  bool checks_row_width;           // whether kvCacheRef's last dimension is the scenario's; otherwise any that suffices
  bool takes_one_ckv_scale;        // per tensor: quantScaleCkv is (1), otherwise (1, Hckv) with one value of use

  // The parameter's name in the version's prototype.
  const char* NameOf(Param param) const;
  bool Requires(Param param) const;
  bool Offers(const Scenario& scenario, Devices device) const;
};

const PrologVersion& VersionV1();
const PrologVersion& VersionV2();
const PrologVersion& VersionV3();

// Whether the types of a call are those of a column of the version's definition on `device`. An absent output of a
// version with modes counts as of the type that `modes`, the scenario the attributes chose, gives it.
enum class ColumnMatch { kNone, kWithoutKernel, kFits };
ColumnMatch MatchDtypeColumn(const PrologVersion& version, Devices device, const PrologTensors& tensors,
                             const Scenario& modes);

}  // namespace mlap::cann

#endif  // MLAP_CANN_OPS_PROLOG_VERSION_H_
