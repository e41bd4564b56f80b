// The operator's formula without any rounding on the way: what errors are measured against.
#ifndef MLAP_REFERENCE_EXACT_H_
#define MLAP_REFERENCE_EXACT_H_

#include "base/prolog_args.h"

namespace mlap {

// Where results go; null: not wanted.
struct ExactResults {
  double* query = nullptr;       // [T, N, Hckv]
  double* query_rope = nullptr;  // [T, N, Dr]
  double* c_kv = nullptr;        // [T, Hckv] what goes to kv_cache
  double* k_r = nullptr;         // [T, Dr]   what goes to kr_cache, after RoPE
};

// Computes in binary64 from the given inputs, of which 8-bit ones are dequantised first; nothing else is quantised.
// Smooth scales multiply cQ, as they do in the operator; the factor that a per-tensor key puts on query_rope is left
// out. Reads neither slots, caches nor outputs.
void RunExact(const PrologArgs& args, const ExactResults& results);

}  // namespace mlap

#endif  // MLAP_REFERENCE_EXACT_H_
