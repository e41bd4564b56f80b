// The cache rows of one token's key, in every way of storing them.
#ifndef MLAP_CORE_KEY_ROW_H_
#define MLAP_CORE_KEY_ROW_H_

#include <cstdint>

#include "base/prolog_args.h"
#include "kernels/kernel_table.h"

namespace mlap {

// The memory that WriteKeyRow borrows.
int64_t KeyRowScratchBytes(const PrologShape& shape);

// kv_cache[slot] = cKV and kr_cache[slot] = RoPE(kR), in the caches' types, or both in one kPerGroup row. `c_kv_k_r`
// [Hckv + Dr] holds cKV after RMSNorm and kR before RoPE, and is overwritten. `cos` and `sin` [Dr] are the token's.
void WriteKeyRow(const PrologArgs& args, const KernelTable& kernels, int64_t slot, float* c_kv_k_r, const Bf16* cos,
                 const Bf16* sin, void* scratch);

}  // namespace mlap

#endif  // MLAP_CORE_KEY_ROW_H_
