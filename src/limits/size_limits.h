// The sizes a device accepts.
#ifndef MLAP_LIMITS_SIZE_LIMITS_H_
#define MLAP_LIMITS_SIZE_LIMITS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "limits/cache_mode.h"
#include "limits/version_limits.h"

namespace mlap {

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

// What decides which limits apply.
struct LimitsKind {
  const VersionLimits* version = nullptr;
  Devices device = kA2A3;
  WeightQuant weight_quant = WeightQuant::kNone;
  const CacheMode* cache_mode = nullptr;
};

// What is legal of one size, in words: "one of 1024, 2048".
struct SizeLimit {
  const char* symbol;  // "He"
  int64_t PrologDims::*size;
  std::string legal;
  int64_t only = 0;     // the one legal value; 0 if there are several
  bool is_kept = true;  // by the dims that were asked about
};

// The limits of a kind of call, in the device's order. With `dims`, whether each is kept.
std::vector<SizeLimit> SizeLimits(const LimitsKind& kind, const PrologDims* dims);

}  // namespace mlap

#endif  // MLAP_LIMITS_SIZE_LIMITS_H_
