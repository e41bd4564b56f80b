// The limits of a device as a CANN call meets them.
#ifndef MLAP_CANN_OPS_PROLOG_LIMITS_H_
#define MLAP_CANN_OPS_PROLOG_LIMITS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cann/ops/prolog_params.h"
#include "cann/ops/prolog_version.h"
#include "cann/ops/scenario.h"
#include "cann/runtime/soc.h"
#include "limits/cache_mode.h"
#include "limits/size_limits.h"

namespace mlap::cann {

// What a call is, apart from its sizes.
struct CallKind {
  const PrologVersion* version = nullptr;
  Devices device = kA2A3;
  const Scenario* scenario = nullptr;
  const CacheMode* cache_mode = nullptr;
};

// The elements of a kvCache row: Hckv, or the bytes of a merged row (656 for the device's sizes).
int64_t KvRowWidth(const Scenario& scenario, const PrologDims& dims);

// A size that breaks a limit: "He", the tensor that gave it, what is legal, what was found.
struct SizeRefusal {
  const char* symbol = nullptr;  // what the size is
  Param parameter = kTokenX;
  std::string expected;
  int64_t found = 0;
  bool is_row_width = false;  // of kvCacheRef's rows, which is no limit but follows from other sizes
};

// The limits of a kind of call, in the device's order.
std::vector<SizeLimit> SizeLimits(const CallKind& kind);

// The first size, in the device's order, that is not accepted; false when all are. Without a device whatever the CPU
// operator can compute is.
bool FirstRefusedSize(const PrologDims& dims, const CallKind& kind, SizeRefusal* refusal);

}  // namespace mlap::cann

#endif  // MLAP_CANN_OPS_PROLOG_LIMITS_H_
