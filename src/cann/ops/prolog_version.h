// The versions of the operator: a row of data each. Everything else is common to all.
#ifndef MLAP_CANN_OPS_PROLOG_VERSION_H_
#define MLAP_CANN_OPS_PROLOG_VERSION_H_

#include <cstddef>
#include <initializer_list>
#include <vector>

#include "cann/ops/prolog_params.h"
#include "cann/ops/scenario.h"
#include "cann/runtime/soc.h"
#include "limits/version_limits.h"

namespace mlap::cann {

constexpr Devices DeviceOf(Soc soc) { return soc == Soc::kNone ? kCpu : soc == Soc::kAscend950 ? kAscend950 : kA2A3; }

struct PrologVersion : VersionLimits {
  const char* phase1 = nullptr;  // the first step's function
  const char* phase2 = nullptr;
  std::vector<Param> order = {};  // the prototype's tensors, inputs before outputs
  // Whether attributes choose the scenario. Otherwise types do, and there are neither modes nor factors.
  bool has_modes = false;
  bool requires_cache_index = false;
  const char* default_cache_mode = nullptr;  // what null means
  bool checks_row_width = false;  // whether kvCacheRef's last dimension is the scenario's; otherwise any that suffices
  bool takes_one_ckv_scale = false;  // per tensor: quantScaleCkv is (1), otherwise (1, Hckv) with one value of use

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
