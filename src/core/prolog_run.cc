#include "core/prolog_run.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>

#include "base/float_environment.h"
#include "core/key_row.h"
#include "core/product.h"
#include "core/row_quantizer.h"
#include "core/slot_check.h"
#include "core/write_ahead.h"

namespace mlap {
namespace {

// What is asked for of the next head's W_UQ|QR beside this head's W_UK: so many blocks of columns, so much of each.
constexpr int64_t kUqStartBlocks = 4;
constexpr int64_t kUqStartBytes = 16 * 1024;

// The stages of one block of tokens [token_begin, token_begin + num_tokens). Row t of every workspace buffer, and token
// t wherever nothing else is said, belongs to token token_begin + t of the call.
class BlockRun {
 public:
  BlockRun(const PrologArgs& args, const PrologPlan& plan, const KernelTable& kernels, char* workspace,
           int64_t token_begin, int64_t num_tokens)
      : args_(args),
        shape_(args.shape),
        mode_(args.mode),
        plan_(plan),
        kernels_(kernels),
        workspace_(workspace),
        token_begin_(token_begin),
        num_tokens_(num_tokens),
        x_(TokensOfX()),
        weight_dq_{args.weight_dq, args.dequant_scale_w_dq, args.mx_scale_w_dq},
        weight_dkv_kr_{args.weight_dkv_kr, args.dequant_scale_w_dkv_kr, args.mx_scale_w_dkv_kr},
        weight_uq_qr_{args.weight_uq_qr, args.dequant_scale_w_uq_qr, args.mx_scale_w_uq_qr} {
    // Where the caller wants cQ, it is computed in place.
    c_q_out_ = Buffer<char>(plan.layout.c_q);
    c_q_scale_out_ = Buffer<float>(plan.layout.c_q_scale);
    c_q_mx_scale_out_ = Buffer<uint8_t>(plan.layout.c_q_mx_scale);
    if (args.query_norm != nullptr) {
      const int64_t row_bytes = shape_.q_rank * ElementBytes(mode_.CqType());
      c_q_out_ = static_cast<char*>(args.query_norm) + token_begin * row_bytes;
      if (args.dequant_scale_q_norm != nullptr) c_q_scale_out_ = args.dequant_scale_q_norm + token_begin;
      if (args.mx_scale_q_norm != nullptr) {
        c_q_mx_scale_out_ = args.mx_scale_q_norm + token_begin * MxGroups(shape_.q_rank);
      }
    }
    c_q_ = x_;
    if (shape_.q_rank == 0) return;
    c_q_ = {c_q_out_, mode_.CqType(), shape_.q_rank, args.query_norm != nullptr ? shape_.q_rank : plan.c_q_stride};
    if (mode_.HasMxScales()) {
      c_q_.mx_scale = c_q_mx_scale_out_;
    } else {
      c_q_.scale = c_q_scale_out_;
    }
  }

  // x [W_DQ | W_DKV|KR]: one task per group of columns, over all tokens of the block.
  void RunDown(Executor* executor) const {
    const int64_t dq_groups = CeilDiv(shape_.q_rank, plan_.column_group);
    const int64_t kv_groups = CeilDiv(shape_.KvColumns(), plan_.column_group);
    executor->ParallelFor(dq_groups + kv_groups, [&](int64_t task, int worker) {
      if (task < dq_groups) {
        RunDownGroup(weight_dq_, task, plan_.layout.c_q_product, worker);
      } else {
        RunDownGroup(weight_dkv_kr_, task - dq_groups, plan_.layout.ckv_kr_product, worker);
      }
    });
  }

  // cQ = RmsNorm(x W_DQ), as bf16 or quantised.
  void RunNorm(Executor* executor) const {
    if (shape_.q_rank == 0) return;
    executor->ParallelFor(CeilDiv(num_tokens_, plan_.norm_tokens), [&](int64_t task, int worker) {
      const int64_t end = std::min((task + 1) * plan_.norm_tokens, num_tokens_);
      for (int64_t t = task * plan_.norm_tokens; t < end; ++t) {
        float* row = Scratch<float>(worker, plan_.layout.row);
        FinishDown(weight_dq_, plan_.layout.c_q_product, t, row);
        Normalize(row, args_.gamma_cq, shape_.q_rank, mode_.epsilon_cq, mode_.cq_factor);
        StoreCq(row, t);
      }
    });
  }

  // The key as one task beside the heads, so that the rows are written in token order and the last of equal slots wins.
  // Each worker takes the task after its own in advance, while there are enough for the others, and thus knows what it
  // reads next.
  void RunHeadsAndKey(Executor* executor) const {
    if (plan_.splits_heads) return RunSplitHeadsAndKey(executor);
    const int64_t pieces = CeilDiv(num_tokens_, plan_.head_tokens);
    const int64_t num_tasks = 1 + shape_.heads * pieces;
    const int64_t few_tasks = 2 * executor->num_workers();
    std::atomic<int64_t> taken = 0;
    const auto take = [&taken] { return taken.fetch_add(1, std::memory_order_relaxed); };
    executor->ParallelFor(executor->num_workers(), [&](int64_t, int worker) {
      for (int64_t task = take(); task < num_tasks;) {
        const bool takes_next = num_tasks - taken.load(std::memory_order_relaxed) > few_tasks;
        const int64_t next_task = takes_next ? take() : task;
        if (task == 0) {
          RunKey(worker);
        } else {
          const int64_t head = (task - 1) / pieces, next_head = (next_task - 1) / pieces;
          const int64_t begin = (task - 1) % pieces * plan_.head_tokens;
          RunHead(head, begin, std::min(begin + plan_.head_tokens, num_tokens_), next_head, worker);
        }
        task = takes_next ? next_task : take();
      }
    });
  }

 private:
  template <class T>
  T* Buffer(int64_t offset, int64_t element = 0) const {
    return reinterpret_cast<T*>(workspace_ + offset) + element;
  }
  template <class T>
  T* Scratch(int worker, int64_t offset) const {
    return reinterpret_cast<T*>(workspace_ + plan_.layout.scratch + worker * plan_.layout.scratch_bytes + offset);
  }
  // The token's angles; none are given if nothing is rotated.
  const Bf16* Angles(const Bf16* table, int64_t t) const {
    return table == nullptr ? nullptr : table + (token_begin_ + t) * shape_.rope;
  }
  // The place of a token's head among all heads of the call.
  int64_t TokenHead(int64_t t, int64_t head) const { return (token_begin_ + t) * shape_.heads + head; }

  TokenRows TokensOfX() const {
    TokenRows x = {args_.token_x, mode_.TokenType(), shape_.hidden, shape_.hidden};
    x.data = x.Row(token_begin_);
    if (mode_.HasMxScales()) {
      x.mx_scale = args_.mx_scale_x + token_begin_ * MxGroups(shape_.hidden);
    } else if (mode_.QuantizesX()) {
      x.scale = args_.dequant_scale_x + token_begin_;
    }
    return x;
  }

  WeightView UkOf(int64_t head) const {
    return RowMajorWeight(args_.weight_uk + head * shape_.nope * shape_.kv_rank, ElementType::kBf16, shape_.nope,
                          shape_.kv_rank);
  }

  // One group of columns of a product with x, all tokens of the block, to the product buffer at `product_offset`.
  void RunDownGroup(const ScaledWeight& weight, int64_t group, int64_t product_offset, int worker) const {
    const int64_t begin = group * plan_.column_group;
    const int64_t end = std::min(begin + plan_.column_group, weight.view.n);
    RunProduct(kernels_, x_, weight, {0, num_tokens_, begin, end},
               Buffer<char>(product_offset, begin * ProductBytes(x_.type)), weight.view.n,
               Scratch<void>(worker, plan_.layout.gemm));
  }

  // Row t of a product with x in binary32.
  void FinishDown(const ScaledWeight& weight, int64_t product_offset, int64_t t, float* row) const {
    const int64_t columns = weight.view.n;
    FinishProductRow(kernels_, mode_.rules, x_, t, weight, 0, columns,
                     Buffer<char>(product_offset, t * columns * ProductBytes(x_.type)), row);
  }

  void Normalize(float* row, const Bf16* gamma, int64_t columns, float epsilon, float factor) const {
    kernels_.rms_norm.run(row, gamma, columns, epsilon, row);
    if (IsAppliedFactor(factor)) kernels_.scale.run(row, factor, columns, row);
  }

  // cQ of token t as it enters W_UQ|QR. `row` is overwritten.
  void StoreCq(float* row, int64_t t) const {
    const int64_t columns = shape_.q_rank;
    char* out = c_q_out_ + t * c_q_.stride * ElementBytes(mode_.CqType());
    if (mode_.HasMxScales()) {
      kernels_.quantize_mx.run(row, columns, reinterpret_cast<uint8_t*>(out),
                               c_q_mx_scale_out_ + t * MxGroups(columns));
    } else if (mode_.QuantizesCq()) {
      QuantizeRow(kernels_, mode_.CqType(), mode_.rules, row, args_.smooth_scales_cq, columns, out, c_q_scale_out_ + t);
    } else {
      kernels_.narrow_to_bf16.run(row, columns, reinterpret_cast<Bf16*>(out));
    }
  }

  // The key's cache rows, in token order.
  void RunKey(int worker) const {
    if (args_.kv_cache.block_num == 0) return;
    float* row = Scratch<float>(worker, plan_.layout.row);
    SlotCursor slots(args_.slots, args_.kv_cache, token_begin_);
    for (int64_t t = 0; t < num_tokens_; ++t) {
      const int64_t slot = slots.Next();
      if (slot == SlotCursor::kNoSlot) continue;
      FinishDown(weight_dkv_kr_, plan_.layout.ckv_kr_product, t, row);
      Normalize(row, args_.gamma_ckv, shape_.kv_rank, mode_.epsilon_ckv, mode_.ckv_factor);
      WriteKeyRow(args_, kernels_, slot, row, Angles(args_.rope_cos, t), Angles(args_.rope_sin, t),
                  Scratch<void>(worker, plan_.layout.key_row));
    }
  }

  // The beginning of a head's W_UQ|QR, in its first blocks of columns.
  NextRead UqStart(int64_t head) const {
    const WeightView& view = weight_uq_qr_.view;
    if (!view.HasAdjacentRows()) return {};
    const int64_t column = head * shape_.HeadColumns();
    const int64_t first = column - column % view.block_columns;
    const int64_t blocks = CeilDiv(column + shape_.HeadColumns() - first, view.block_columns);
    const int64_t element_bytes = ElementBytes(view.type);
    return {static_cast<const char*>(view.data) + view.Offset(0, first) * element_bytes,
            std::min(kUqStartBytes, view.k * view.row_stride * element_bytes), std::min(kUqStartBlocks, blocks),
            view.block_stride * element_bytes};
  }

  // One head: qC | qR = cQ W_UQ|QR, query = qC W_UK, query_rope = RoPE(qR); tokens [begin, end) of the block. The
  // worker goes on with `next_head`, which is this one or past the last if it has no other.
  void RunHead(int64_t head, int64_t begin, int64_t end, int64_t next_head, int worker) const {
    const bool is_bf16 = c_q_.type == ElementType::kBf16;
    Bf16* q_c = Scratch<Bf16>(worker, is_bf16 ? plan_.layout.head_product : plan_.layout.head_q_c);
    const int64_t q_c_stride = is_bf16 ? shape_.HeadColumns() : shape_.nope;
    const WeightView w_uk = UkOf(head);
    RunHeadColumns(head, 0, shape_.HeadColumns(), begin, end, q_c, q_c_stride, worker,
                   {w_uk.data, shape_.nope * shape_.kv_rank * ElementBytes(w_uk.type)});
    // The kernels of 8-bit floats ask for nothing.
    const bool was_next = is_bf16 || c_q_.type == ElementType::kInt8;
    const bool has_next = next_head != head && next_head < shape_.heads;
    const NextRead next = has_next ? UqStart(next_head) : NextRead{};
    if (!mode_.QuantizesQuery()) {
      kernels_.gemm_bf16.run({q_c, q_c_stride, end - begin, w_uk, 0, shape_.kv_rank,
                              static_cast<Bf16*>(args_.query) + TokenHead(begin, head) * shape_.kv_rank,
                              shape_.heads * shape_.kv_rank, Scratch<void>(worker, plan_.layout.gemm), next, was_next,
                              plan_.streams_query});
      return;
    }
    Bf16* query = Scratch<Bf16>(worker, plan_.layout.head_query);
    kernels_.gemm_bf16.run({q_c, q_c_stride, end - begin, w_uk, 0, shape_.kv_rank, query, shape_.kv_rank,
                            Scratch<void>(worker, plan_.layout.gemm), next, was_next});
    for (int64_t t = begin; t < end; ++t) {
      AskToWriteQuery(std::min(t + kRowsAhead, end - 1), head);
      QuantizeQuery(query + (t - begin) * shape_.kv_rank, RopeRow(t, head, begin, worker), t, head, worker);
    }
  }

  // The same with every head split into groups of columns: first qC and query_rope, and the key; then the query.
  void RunSplitHeadsAndKey(Executor* executor) const {
    const int64_t nope_groups = CeilDiv(shape_.nope, plan_.head_columns);
    const int64_t head_tasks = nope_groups + 1;
    executor->ParallelFor(1 + shape_.heads * head_tasks, [&](int64_t task, int worker) {
      if (task == 0) return RunKey(worker);
      const int64_t head = (task - 1) / head_tasks;
      const int64_t group = (task - 1) % head_tasks;
      const bool is_rope = group == nope_groups;
      const int64_t begin = is_rope ? shape_.nope : group * plan_.head_columns;
      const int64_t end = is_rope ? shape_.HeadColumns() : std::min(begin + plan_.head_columns, shape_.nope);
      const int64_t stride = is_rope ? end - begin : shape_.heads * shape_.nope;
      for (int64_t t = 0; t < num_tokens_; t += plan_.head_tokens) {
        Bf16* q_c = is_rope ? Scratch<Bf16>(worker, plan_.layout.head_product)
                            : Buffer<Bf16>(plan_.layout.split_q_c, t * stride + head * shape_.nope + begin);
        RunHeadColumns(head, begin, end, t, std::min(t + plan_.head_tokens, num_tokens_), q_c, stride, worker);
      }
    });
    const int64_t kv_groups = CeilDiv(shape_.kv_rank, plan_.head_columns);
    Bf16* query = mode_.QuantizesQuery() ? Buffer<Bf16>(plan_.layout.split_query)
                                         : static_cast<Bf16*>(args_.query) + TokenHead(0, 0) * shape_.kv_rank;
    executor->ParallelFor(shape_.heads * kv_groups, [&](int64_t task, int worker) {
      const int64_t head = task / kv_groups;
      const int64_t begin = task % kv_groups * plan_.head_columns;
      kernels_.gemm_bf16.run({Buffer<Bf16>(plan_.layout.split_q_c, head * shape_.nope), shape_.heads * shape_.nope,
                              num_tokens_, UkOf(head), begin, std::min(begin + plan_.head_columns, shape_.kv_rank),
                              query + head * shape_.kv_rank + begin, shape_.heads * shape_.kv_rank,
                              Scratch<void>(worker, plan_.layout.gemm)});
    });
    if (!mode_.QuantizesQuery()) return;
    executor->ParallelFor(num_tokens_ * shape_.heads, [&](int64_t task, int worker) {
      const int64_t t = task / shape_.heads, head = task % shape_.heads;
      QuantizeQuery(query + task * shape_.kv_rank, RopeRow(t, head, 0, worker), t, head, worker);
    });
  }

  // Columns [column_begin, column_end) of one head of cQ W_UQ|QR, tokens [begin, end): those of qC to `q_c`, rows
  // q_c_stride elements apart, and query_rope = RoPE(qR) if the columns end with those of qR. A bf16 product goes to
  // `q_c` as it is, the columns of qR behind those of qC.
  void RunHeadColumns(int64_t head, int64_t column_begin, int64_t column_end, int64_t begin, int64_t end, Bf16* q_c,
                      int64_t q_c_stride, int worker, const NextRead& next = {}) const {
    const bool is_bf16 = c_q_.type == ElementType::kBf16;
    const int64_t first = head * shape_.HeadColumns() + column_begin;
    const int64_t columns = column_end - column_begin;
    const int64_t nope_columns = std::clamp<int64_t>(shape_.nope - column_begin, 0, columns);
    char* product = is_bf16 ? reinterpret_cast<char*>(q_c) : Scratch<char>(worker, plan_.layout.head_product);
    const int64_t product_stride = is_bf16 ? q_c_stride : columns;
    RunProduct(kernels_, c_q_, weight_uq_qr_, {begin, end, first, first + columns}, product, product_stride,
               Scratch<void>(worker, plan_.layout.gemm), next);

    const int64_t finished = is_bf16 ? nope_columns : 0;
    if (finished == columns) return;
    float* row = Scratch<float>(worker, plan_.layout.row);
    for (int64_t t = begin; t < end; ++t) {
      const int64_t element = (t - begin) * product_stride + finished;
      FinishProductRow(kernels_, mode_.rules, c_q_, t, weight_uq_qr_, first + finished, first + columns,
                       product + element * ProductBytes(c_q_.type), row);
      if (!is_bf16 && nope_columns > 0) {
        kernels_.narrow_to_bf16.run(row, nope_columns, q_c + (t - begin) * q_c_stride);
      }
      if (nope_columns == columns) continue;
      kernels_.rope.run(row + nope_columns - finished, Angles(args_.rope_cos, t), Angles(args_.rope_sin, t),
                        shape_.rope, mode_.rope_style, RopeRow(t, head, begin, worker));
    }
  }

  // Where the rotated qR of a token goes, in a task that begins with token `begin`: to query_rope, or first to scratch
  // if it takes the query's scale, as rows of query_rope are far apart.
  Bf16* RopeRow(int64_t t, int64_t head, int64_t begin, int worker) const {
    if (!mode_.QuantizesQuery() || plan_.splits_heads) return QueryRope(t, head);
    return Scratch<Bf16>(worker, plan_.layout.head_rope) + (t - begin) * shape_.rope;
  }
  Bf16* QueryRope(int64_t t, int64_t head) const { return args_.query_rope + TokenHead(t, head) * shape_.rope; }

  // A token's rows of the outputs lie apart from the next one's, where no processor expects them.
  static constexpr int64_t kRowsAhead = 2;
  void AskToWriteQuery(int64_t t, int64_t head) const {
    AskToWrite(static_cast<char*>(args_.query) + TokenHead(t, head) * shape_.kv_rank, shape_.kv_rank);
    AskToWrite(QueryRope(t, head), shape_.rope * static_cast<int64_t>(sizeof(Bf16)));
  }

  // The 8-bit query with its scale s; query_rope is `rope`, the rotated qR, multiplied by quantScaleCkv / s, so that
  // both parts of a logit have one factor. An all-zero query has scale 0 and makes query_rope infinite or a NaN, as on
  // the device.
  void QuantizeQuery(const Bf16* query, const Bf16* rope, int64_t t, int64_t head, int worker) const {
    const int64_t token_head = TokenHead(t, head);
    const int64_t columns = shape_.kv_rank;
    float* row = Scratch<float>(worker, plan_.layout.row);
    float* scale = args_.dequant_scale_q_nope + token_head;
    QuantizeQueryRow(kernels_, mode_.QuantType(), mode_.rules, query, columns, row,
                     static_cast<char*>(args_.query) + token_head * columns, scale);
    kernels_.widen_bf16.run(rope, shape_.rope, row);
    kernels_.scale.run(row, args_.quant_scale_ckv[0] / *scale, shape_.rope, row);
    kernels_.narrow_to_bf16.run(row, shape_.rope, QueryRope(t, head));
  }

  const PrologArgs& args_;
  const PrologShape& shape_;
  const PrologMode& mode_;
  const PrologPlan& plan_;
  const KernelTable& kernels_;
  char* workspace_;
  int64_t token_begin_;
  int64_t num_tokens_;
  TokenRows x_;
  TokenRows c_q_;  // what W_UQ|QR multiplies: cQ, or x if the query has no low rank
  ScaledWeight weight_dq_, weight_dkv_kr_, weight_uq_qr_;
  char* c_q_out_;
  float* c_q_scale_out_;
  uint8_t* c_q_mx_scale_out_;
};

// Adds the time since the last call to a stage.
class StageClock {
 public:
  explicit StageClock(StageTimes* times) : times_(times), last_(Clock::now()) {}
  void Finish(Stage stage) {
    const Clock::time_point now = Clock::now();
    if (times_ != nullptr) times_->seconds[stage] += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }

 private:
  using Clock = std::chrono::steady_clock;
  StageTimes* times_;
  Clock::time_point last_;
};

}  // namespace

const char* StageName(Stage stage) {
  static constexpr const char* kNames[kNumStages] = {"x W_DQ|W_DKV|KR", "RMSNorm", "heads and key"};
  return kNames[stage];
}

Status RunProlog(const PrologArgs& args, const PrologPlan& plan, const KernelTable& kernels, Executor* executor,
                 void* workspace, StageTimes* times) {
  if (args.shape.tokens == 0) return Status();
  if (args.shape.q_rank == 0 && args.query_norm != nullptr) {
    return Status(
        StatusCode::kInvalidArgument,
        "queryNorm: the query has no low rank (Hcq = 0) and thus no cQ; expected no tensor, found one; leave it out");
  }
  Status status = CheckSlots(args);
  if (!status.ok()) return status;
  char* aligned = AlignedWorkspace(workspace);
  const DefaultFloatEnvironment environment;
  // The workspace has scratch for the plan's workers and no more.
  SerialExecutor serial;
  if (executor->num_workers() > plan.num_workers) executor = &serial;
  StageClock clock(times);
  for (int64_t begin = 0; begin < args.shape.tokens; begin += plan.token_block) {
    const BlockRun block(args, plan, kernels, aligned, begin, std::min(plan.token_block, args.shape.tokens - begin));
    block.RunDown(executor);
    clock.Finish(kStageDown);
    block.RunNorm(executor);
    clock.Finish(kStageNorm);
    block.RunHeadsAndKey(executor);
    clock.Finish(kStageHeads);
  }
  return Status();
}

}  // namespace mlap
