// The sizes a device accepts.
#ifndef MLAP_CANN_OPS_PROLOG_LIMITS_H_
#define MLAP_CANN_OPS_PROLOG_LIMITS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cann/ops/cache_mode.h"
#include "cann/ops/prolog_params.h"
#include "cann/ops/prolog_version.h"
#include "cann/ops/scenario.h"
#include "cann/runtime/soc.h"

namespace mlap::cann {

// What a call is, apart from its sizes.
struct CallKind {
  const PrologVersion* version = nullptr;
  Devices device = kA2A3;
  const Scenario* scenario = nullptr;
  const CacheMode* cache_mode = nullptr;
};

// The sizes of a call as its tensors say; the form of the tokens is (T) or (B, S).
struct PrologDims {
  bool is_fused = true;  // tokenX is (T, He), not (B, S, He)
  int64_t B = 0;         // when fused, the number of listed sequences, or 0
  int64_t S = 0;
  int64_t T = 0;  // B * S when not fused
  int64_t He = 0;
  int64_t Hcq = 0;
  int64_t N = 0;
  int64_t D = 0;
  int64_t Hckv = 0;
  int64_t Dr = 0;
  int64_t Nkv = 0;
  int64_t BlockNum = 0;   // kvCache's first dimension
  int64_t BlockSize = 0;  // of a paged cache
  int64_t Dtile = 0;      // kvCache's last dimension
};

// The elements of a kvCache row: Hckv, or the bytes of a merged row (656 for the device's sizes).
int64_t KvRowWidth(const Scenario& scenario, const PrologDims& dims);

// A size that breaks a limit: "He", the tensor that gave it, what is legal, what was found.
struct SizeRefusal {
  const char* symbol;
  Param parameter;
  std::string expected;
  int64_t found;
};

// What is legal of one size: "He", "one of 1024, 2048".
struct SizeLimit {
  const char* symbol;
  std::string legal;
};

// The limits of a kind of call, in the device's order.
std::vector<SizeLimit> SizeLimits(const CallKind& kind);

// The first size, in the device's order, that is not accepted; false when all are. Without a device whatever the CPU
// operator can compute is.
bool FirstRefusedSize(const PrologDims& dims, const CallKind& kind, SizeRefusal* refusal);

}  // namespace mlap::cann

#endif  // MLAP_CANN_OPS_PROLOG_LIMITS_H_
