// The sizes a device accepts, per operator version.
#ifndef MLAP_CANN_OPS_PROLOG_LIMITS_H_
#define MLAP_CANN_OPS_PROLOG_LIMITS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cann/ops/prolog_params.h"
#include "cann/runtime/soc.h"

namespace mlap::cann {

// The sizes of a call as its tensors say; the form of the tokens is (T) or (B, S).
struct PrologDims {
  bool is_fused = true;  // tokenX is (T, He), not (B, S, He)
  int64_t B = 0;         // 0 when fused
  int64_t S = 0;
  int64_t T = 0;  // B * S when not fused
  int64_t He = 0;
  int64_t Hcq = 0;
  int64_t N = 0;
  int64_t D = 0;
  int64_t Hckv = 0;
  int64_t Dr = 0;
  int64_t Nkv = 0;
  int64_t BlockNum = 0;
  int64_t BlockSize = 0;
  int64_t Dtile = 0;  // kvCache's last dimension
};

// A size that breaks a limit: "He", the tensor that gave it, what is legal, what was found.
struct SizeRefusal {
  const char* symbol;
  Param parameter;
  std::string expected;
  int64_t found;
};

// The first size, in the device's order, that `soc` does not accept; false when all are. Soc::kNone accepts whatever
// the CPU operator can compute.
bool FirstRefusedSize(const PrologDims& dims, Soc soc, SizeRefusal* refusal);

}  // namespace mlap::cann

#endif  // MLAP_CANN_OPS_PROLOG_LIMITS_H_
