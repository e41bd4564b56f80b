// The operator, straight from its definition: the specification that every kernel is compared with.
#ifndef MLAP_REFERENCE_REFERENCE_H_
#define MLAP_REFERENCE_REFERENCE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "base/prolog_args.h"

namespace mlap {

// What the operator computes on the way, for who debugs one. Values are given in binary32, as they enter the next step.
struct Intermediates {
  std::vector<float> c_q;              // [T, Hcq]    after RMSNorm, rounded to bf16 unless quantised; before smoothing
  std::vector<uint8_t> c_q_quantized;  // [T, Hcq]    when cQ is quantised, in its 8-bit type
  std::vector<float> c_q_scale;        // [T]         then: its dynamic dequantisation scale
  std::vector<float> q_c;              // [T, N, D]   as it enters W_UK
  std::vector<float> q_r;              // [T, N, Dr]  before RoPE
  std::vector<float> c_kv;             // [T, Hckv]   after RMSNorm, before the cache's rounding
  std::vector<float> k_r;              // [T, Dr]     before RoPE
};

struct ReferenceOptions {
  Intermediates* intermediates = nullptr;  // filled when given
  // Called now and then with the share that is done, in [0, 1].
  std::function<void(double)> progress;
};

// Computes the whole call: query, query_rope, the rows of both caches, and query_norm if it is given. Matrix products
// accumulate in binary64; everything else is binary32 with one rounding per operation, in the order given in
// docs/numerics.md. Tokens are taken in ascending order: the last of several tokens with one slot wins. A slot outside
// the cache is none; the caller refuses such calls.
void RunReference(const PrologArgs& args, const ReferenceOptions& options);

}  // namespace mlap

#endif  // MLAP_REFERENCE_REFERENCE_H_
