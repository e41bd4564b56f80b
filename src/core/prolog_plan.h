// How one call is cut into pieces: blocks of tokens, column groups, head tasks, and the workspace they need.
#ifndef MLAP_CORE_PROLOG_PLAN_H_
#define MLAP_CORE_PROLOG_PLAN_H_

#include <cstdint>

#include "base/prolog_args.h"
#include "base/status.h"
#include "kernels/kernel_table.h"

namespace mlap {

// Where buffers in a workspace begin: a multiple of this many bytes.
inline constexpr int64_t kWorkspaceAlignment = 64;

// The first aligned byte of memory that may begin anywhere; up to kWorkspaceAlignment - 1 bytes are passed over.
inline char* AlignedWorkspace(void* workspace) {
  constexpr uintptr_t kMask = kWorkspaceAlignment - 1;
  return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(workspace) + kMask) & ~kMask);
}

// Byte offsets into the workspace, each aligned to kWorkspaceAlignment from an aligned start.
struct WorkspaceLayout {
  int64_t c_q_product = 0;     // bf16 or 4-byte sums [token_block, Hcq]         x W_DQ
  int64_t ckv_kr_product = 0;  // bf16 or 4-byte sums [token_block, Hckv + Dr]   x W_DKV|KR
  int64_t c_q = 0;             // bf16 or 8-bit [token_block, c_q_stride]        after RMSNorm
  int64_t c_q_scale = 0;       // f32 [token_block]                              when cQ is quantised
  int64_t c_q_mx_scale = 0;    // E8M0 [token_block, MxGroups(Hcq)]              in its place
  int64_t scratch = 0;         // per worker, scratch_bytes each
  int64_t scratch_bytes = 0;
  // Within a worker's scratch:
  int64_t row = 0;           // f32: one row of the widest step
  int64_t head_product = 0;  // bf16 or 4-byte sums [head_tokens, D + Dr]
  int64_t head_q_c = 0;      // bf16 [head_tokens, D]
  int64_t head_query = 0;    // bf16 [head_tokens, Hckv]               when the query is quantised
  int64_t head_rope = 0;     // bf16 [head_tokens, Dr]                 likewise: it takes a factor of the query's scale
  int64_t key_row = 0;       // KeyRowScratchBytes
  int64_t gemm = 0;          // kGemmScratchBytes for the matrix products
  // When heads are split, for the whole block:
  int64_t split_q_c = 0;    // bf16 [token_block, N, D]
  int64_t split_query = 0;  // bf16 [token_block, N, Hckv]            when the query is quantised
};

struct PrologPlan {
  int num_workers = 1;
  int64_t token_block = 0;   // tokens that go through all stages together; bounds the workspace for any T
  int64_t column_group = 0;  // columns of x [W_DQ | W_DKV|KR] in one task
  int64_t c_q_stride = 0;    // elements from a row of cQ in the workspace to the next
  int64_t norm_tokens = 0;   // tokens of one task of the norms
  int64_t head_tokens = 0;   // tokens of one head in one task
  // Too few heads for the workers: a head's columns are split among tasks, in two steps, W_UQ|QR and W_UK.
  bool splits_heads = false;
  int64_t head_columns = 0;    // columns of one head in one task of a split step
  bool streams_query = false;  // the query is stored past the caches
  WorkspaceLayout layout;
  uint64_t workspace_bytes = 0;  // what RunProlog needs, from any alignment
};

// Fails when a size is not positive, Dr is odd, a tensor's size overflows, or cQ alone is quantised and there is none.
// shape.tokens and shape.q_rank may be 0. `task_columns`: KernelTable::task_columns.
Status PlanProlog(const PrologShape& shape, const PrologMode& mode, int num_workers, PrologPlan* plan,
                  int64_t task_columns = kTaskColumns);

}  // namespace mlap

#endif  // MLAP_CORE_PROLOG_PLAN_H_
