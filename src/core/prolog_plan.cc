#include "core/prolog_plan.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "core/key_row.h"
#include "core/product.h"
#include "kernels/gemm/gemm.h"

namespace mlap {
namespace {

// Enough tokens that streaming all weights again for the next block is a small part of the block's arithmetic; it
// bounds the workspace to about 10 MB.
constexpr int64_t kTokenBlock = 1024;
// Columns of one task of a product: fewer than the kernels take where many workers would wait for the last task.
constexpr int64_t kFewestColumns = 32;
// From so many tokens on the kernels' own number of columns pays.
constexpr int64_t kManyTokens = 192;
constexpr int64_t kTasksPerWorker = 4;
// Below this a region with a barrier costs more than the norms.
constexpr int64_t kNormTokens = 8;
// The rows of one head's products stay in the second-level cache beside the head's weights, which are read again for
// the next piece of tokens.
constexpr int64_t kMostHeadTokens = 256;
constexpr int64_t kFewestHeadTokens = 64;
// From this size on the query is stored past the caches. Rows of one head are far apart in it, so that ordinary stores
// read every line first and crowd into a few sets of the caches; measured with N = 128: 5.8 ms instead of 6.9 at T =
// 32, 19 instead of 23 at T = 256.
constexpr int64_t kStreamedQueryBytes = 2 << 20;

// Columns per task such that `columns` make enough tasks for all workers.
int64_t ColumnsPerTask(int64_t columns, int64_t workers, int64_t most_columns) {
  const int64_t wanted = columns / (workers * kTasksPerWorker) / kFewestColumns * kFewestColumns;
  return std::clamp(wanted, kFewestColumns, most_columns);
}

// The distance of rows that are read side by side: an odd number of lines, so that they do not meet in a few sets of
// the caches.
int64_t RowStride(int64_t columns, int64_t element_bytes) {
  const int64_t lines = CeilDiv(columns * element_bytes, kWorkspaceAlignment) | 1;
  return lines * kWorkspaceAlignment / element_bytes;
}

// Hands out consecutive aligned pieces and remembers an overflow.
class Layout {
 public:
  int64_t Take(int64_t rows, int64_t columns, int64_t element_bytes) {
    int64_t bytes = 0;
    overflow_ |= __builtin_mul_overflow(rows, columns, &bytes) ||
                 __builtin_mul_overflow(bytes, element_bytes, &bytes) ||
                 __builtin_add_overflow(bytes, kWorkspaceAlignment - 1, &bytes);
    const int64_t begin = size_;
    overflow_ |= __builtin_add_overflow(size_, bytes / kWorkspaceAlignment * kWorkspaceAlignment, &size_);
    return begin;
  }
  int64_t size() const { return size_; }
  bool overflow() const { return overflow_; }

 private:
  int64_t size_ = 0;
  bool overflow_ = false;
};

// Whether every tensor of the call can be addressed in bytes of a signed 64-bit offset.
bool SizesFit(const PrologShape& shape) {
  int64_t uq_columns, weight, query;
  return !__builtin_mul_overflow(shape.heads, shape.HeadColumns(), &uq_columns) &&
         !__builtin_mul_overflow(uq_columns, std::max({shape.hidden, shape.q_rank, shape.kv_rank}) * 8, &weight) &&
         !__builtin_mul_overflow(std::max<int64_t>(shape.tokens, 1), uq_columns, &query) &&
         !__builtin_mul_overflow(query, shape.kv_rank * 8, &query) &&
         !__builtin_mul_overflow(std::max<int64_t>(shape.tokens, 1), shape.hidden * 8, &query) &&
         !__builtin_mul_overflow(shape.hidden, (shape.q_rank + shape.KvColumns()) * 8, &weight);
}

}  // namespace

Status PlanProlog(const PrologShape& shape, const PrologMode& mode, int num_workers, PrologPlan* plan,
                  int64_t task_columns) {
  struct Named {
    const char* name;
    int64_t value;
    int64_t least;
  };
  constexpr int64_t kLargest = int64_t{1} << 40;
  for (const Named& size : {Named{"T", shape.tokens, 0}, Named{"He", shape.hidden, 1}, Named{"Hcq", shape.q_rank, 0},
                            Named{"N", shape.heads, 1}, Named{"D", shape.nope, 1}, Named{"Dr", shape.rope, 2},
                            Named{"Hckv", shape.kv_rank, 1}}) {
    if (size.value < size.least || size.value > kLargest) {
      return Status(StatusCode::kInvalidArgument, std::string(size.name) + ": expected a size from " +
                                                      std::to_string(size.least) + " to 2^40, found " +
                                                      std::to_string(size.value) + "; check the shapes");
    }
  }
  if (shape.rope % 2 != 0) {
    return Status(StatusCode::kInvalidArgument, "Dr: RoPE rotates pairs, expected an even size, found " +
                                                    std::to_string(shape.rope) + "; check the shapes");
  }
  if (shape.q_rank == 0 && mode.QuantizesCq() && !mode.QuantizesX()) {
    return Status(StatusCode::kInvalidArgument,
                  "Hcq: the int8 weightUqQr of a bf16 tokenX multiplies a quantised cQ, so the query needs a low rank; "
                  "expected a size of at least 1, found 0. Pass bf16 weights, or quantise tokenX and all weights");
  }
  if (!SizesFit(shape)) {
    return Status(StatusCode::kInvalidArgument,
                  "the sizes of the call multiply to more bytes than 2^63; pass fewer tokens");
  }

  PrologPlan result;
  result.num_workers = std::max(num_workers, 1);
  result.token_block = std::min(shape.tokens, kTokenBlock);
  result.column_group = ColumnsPerTask(shape.q_rank + shape.KvColumns(), result.num_workers,
                                       result.token_block >= kManyTokens ? task_columns : kTaskColumns);
  result.norm_tokens = kNormTokens;
  const int64_t wanted_tasks = result.num_workers * kTasksPerWorker;
  const int64_t pieces = CeilDiv(wanted_tasks, shape.heads);
  result.head_tokens = std::clamp(result.token_block / pieces, std::min(result.token_block, kFewestHeadTokens),
                                  std::min(std::max<int64_t>(result.token_block, 1), kMostHeadTokens));
  const int64_t head_tasks = shape.heads * CeilDiv(result.token_block, std::max<int64_t>(result.head_tokens, 1));
  result.splits_heads = result.num_workers > 1 && head_tasks < 2 * result.num_workers;
  result.head_columns = kFewestColumns;
  result.streams_query =
      shape.tokens * shape.heads * shape.kv_rank * static_cast<int64_t>(sizeof(Bf16)) >= kStreamedQueryBytes;

  WorkspaceLayout& layout = result.layout;
  Layout shared;
  const int64_t down_bytes = ProductBytes(mode.TokenType());
  layout.c_q_product = shared.Take(result.token_block, shape.q_rank, down_bytes);
  layout.ckv_kr_product = shared.Take(result.token_block, shape.KvColumns(), down_bytes);
  result.c_q_stride = RowStride(shape.q_rank, ElementBytes(mode.CqType()));
  layout.c_q = shared.Take(result.token_block, result.c_q_stride, ElementBytes(mode.CqType()));
  layout.c_q_scale = shared.Take(result.token_block, 1, sizeof(float));
  layout.c_q_mx_scale = shared.Take(mode.HasMxScales() ? result.token_block : 0, MxGroups(shape.q_rank), 1);

  Layout scratch;
  layout.row = scratch.Take(1, std::max({shape.q_rank, shape.KvColumns(), shape.HeadColumns()}), sizeof(float));
  layout.head_product = scratch.Take(result.head_tokens, shape.HeadColumns(), ProductBytes(mode.CqType()));
  layout.head_q_c = scratch.Take(result.head_tokens, shape.nope, sizeof(Bf16));
  layout.head_query = scratch.Take(mode.QuantizesQuery() ? result.head_tokens : 0, shape.kv_rank, sizeof(Bf16));
  layout.head_rope = scratch.Take(mode.QuantizesQuery() ? result.head_tokens : 0, shape.rope, sizeof(Bf16));
  layout.key_row = scratch.Take(1, KeyRowScratchBytes(shape), 1);
  layout.gemm = scratch.Take(kGemmScratchBytes, 1, 1);
  layout.scratch_bytes = scratch.size();
  if (result.splits_heads) {
    layout.split_q_c = shared.Take(result.token_block, shape.heads * shape.nope, sizeof(Bf16));
    layout.split_query =
        shared.Take(mode.QuantizesQuery() ? result.token_block : 0, shape.heads * shape.kv_rank, sizeof(Bf16));
  }
  layout.scratch = shared.Take(result.num_workers, scratch.size(), 1);

  if (shared.overflow() || scratch.overflow()) {
    return Status(StatusCode::kInvalidArgument,
                  "the sizes of the call ask for a workspace of more than 2^63 bytes; pass fewer tokens");
  }
  result.workspace_bytes = shape.tokens == 0 ? 0 : static_cast<uint64_t>(shared.size() + kWorkspaceAlignment);
  *plan = result;
  return Status();
}

}  // namespace mlap
