#include "core/prolog_run.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "base/float_environment.h"
#include "core/cache_writer.h"

namespace mlap {
namespace {

// The stages of one block of tokens [token_begin, token_begin + num_tokens). Row t of every workspace buffer belongs to
// token token_begin + t.
class BlockRun {
 public:
  BlockRun(const PrologArgs& args, const PrologPlan& plan, const KernelTable& kernels, char* workspace,
           int64_t token_begin, int64_t num_tokens)
      : args_(args),
        shape_(args.shape),
        plan_(plan),
        kernels_(kernels),
        workspace_(workspace),
        token_begin_(token_begin),
        num_tokens_(num_tokens) {}

  // x [W_DQ | W_DKV|KR]: one task per group of columns, over all tokens of the block.
  void RunDown(Executor* executor) const {
    const int64_t dq_groups = CeilDiv(shape_.q_rank, plan_.column_group);
    const int64_t kv_groups = CeilDiv(shape_.KvColumns(), plan_.column_group);
    executor->ParallelFor(dq_groups + kv_groups, [&](int64_t task, int worker) {
      if (task < dq_groups) {
        RunDownGroup(args_.weight_dq, task, plan_.layout.c_q_product, worker);
      } else {
        RunDownGroup(args_.weight_dkv_kr, task - dq_groups, plan_.layout.ckv_kr_product, worker);
      }
    });
  }

  // cQ = RmsNorm(x W_DQ), as bf16 or quantised per token.
  void RunNorm(Executor* executor) const {
    executor->ParallelFor(CeilDiv(num_tokens_, plan_.norm_tokens), [&](int64_t task, int worker) {
      const int64_t end = std::min((task + 1) * plan_.norm_tokens, num_tokens_);
      for (int64_t t = task * plan_.norm_tokens; t < end; ++t) RunTokenNorm(t, worker);
    });
  }

  void RunTokenNorm(int64_t t, int worker) const {
    float* row = Scratch<float>(worker, plan_.layout.row);
    FinishDown(plan_.layout.c_q_product, shape_.q_rank, t, args_.dequant_scale_w_dq, row);
    kernels_.rms_norm.run(row, args_.gamma_cq, shape_.q_rank, args_.mode.epsilon_cq, row);
    if (args_.mode.QuantizesCq()) {
      kernels_.quantize_per_token.run(row, args_.smooth_scales_cq, shape_.q_rank, Cq<int8_t>(t), CqScale(t));
    } else {
      kernels_.narrow_to_bf16.run(row, shape_.q_rank, Cq<Bf16>(t));
    }
  }

  // The key as one task beside the heads, so that the rows are written in token order and the last of equal slots wins.
  void RunHeadsAndKey(Executor* executor) const {
    if (plan_.splits_heads) return RunSplitHeadsAndKey(executor);
    const int64_t pieces = CeilDiv(num_tokens_, plan_.head_tokens);
    executor->ParallelFor(1 + shape_.heads * pieces, [&](int64_t task, int worker) {
      if (task == 0) {
        RunKey(worker);
      } else {
        const int64_t begin = (task - 1) % pieces * plan_.head_tokens;
        RunHead((task - 1) / pieces, begin, std::min(begin + plan_.head_tokens, num_tokens_), worker);
      }
    });
  }

 private:
  template <class T>
  T* Buffer(int64_t offset, int64_t element) const {
    return reinterpret_cast<T*>(workspace_ + offset) + element;
  }
  template <class T>
  T* Scratch(int worker, int64_t offset) const {
    return reinterpret_cast<T*>(workspace_ + plan_.layout.scratch + worker * plan_.layout.scratch_bytes + offset);
  }
  template <class T>
  T* Cq(int64_t t) const {
    return Buffer<T>(plan_.layout.c_q, t * shape_.q_rank);
  }
  float* CqScale(int64_t t) const { return Buffer<float>(plan_.layout.c_q_scale, t); }
  const Bf16* Cos(int64_t t) const { return args_.rope_cos + (token_begin_ + t) * shape_.rope; }
  const Bf16* Sin(int64_t t) const { return args_.rope_sin + (token_begin_ + t) * shape_.rope; }
  // The same with every head split into groups of columns: first qC and query_rope, and the key; then the query.
  void RunSplitHeadsAndKey(Executor* executor) const {
    const int64_t nope_groups = CeilDiv(shape_.nope, plan_.head_columns);
    const int64_t head_tasks = nope_groups + 1;
    executor->ParallelFor(1 + shape_.heads * head_tasks, [&](int64_t task, int worker) {
      if (task == 0) return RunKey(worker);
      const int64_t head = (task - 1) / head_tasks;
      const int64_t group = (task - 1) % head_tasks;
      const int64_t begin = group == nope_groups ? shape_.nope : group * plan_.head_columns;
      const int64_t end =
          group == nope_groups ? shape_.HeadColumns() : std::min(begin + plan_.head_columns, shape_.nope);
      for (int64_t t = 0; t < num_tokens_; t += plan_.head_tokens) {
        RunHeadColumns(head, begin, end, t, std::min(t + plan_.head_tokens, num_tokens_), worker);
      }
    });
    const int64_t kv_groups = CeilDiv(shape_.kv_rank, plan_.head_columns);
    Bf16* query = args_.mode.QuantizesQuery() ? Buffer<Bf16>(plan_.layout.split_query, 0)
                                              : static_cast<Bf16*>(args_.query) + TokenHead(0, 0) * shape_.kv_rank;
    executor->ParallelFor(shape_.heads * kv_groups, [&](int64_t task, int worker) {
      const int64_t head = task / kv_groups;
      const int64_t begin = task % kv_groups * plan_.head_columns;
      kernels_.gemm_bf16.run({Buffer<Bf16>(plan_.layout.split_q_c, head * shape_.nope), shape_.heads * shape_.nope,
                              num_tokens_, UkOf(head), begin, std::min(begin + plan_.head_columns, shape_.kv_rank),
                              query + head * shape_.kv_rank + begin, shape_.heads * shape_.kv_rank,
                              Scratch<void>(worker, plan_.layout.gemm)});
    });
    if (!args_.mode.QuantizesQuery()) return;
    executor->ParallelFor(num_tokens_ * shape_.heads, [&](int64_t task, int worker) {
      QuantizeQuery(query + task * shape_.kv_rank, task / shape_.heads, task % shape_.heads,
                    Scratch<float>(worker, plan_.layout.row));
    });
  }

  // Columns [column_begin, column_end) of cQ W_UQ|QR of one head, all of them of qC or all of qR; tokens [begin, end).
  void RunHeadColumns(int64_t head, int64_t column_begin, int64_t column_end, int64_t begin, int64_t end,
                      int worker) const {
    const int64_t first = head * shape_.HeadColumns();
    const int64_t columns = column_end - column_begin;
    const bool is_nope = column_begin < shape_.nope;
    float* row = Scratch<float>(worker, plan_.layout.row);
    const auto q_c = [&](int64_t t) {
      return Buffer<Bf16>(plan_.layout.split_q_c, (t * shape_.heads + head) * shape_.nope + column_begin);
    };
    if (args_.mode.QuantizesCq()) {
      int32_t* product = Scratch<int32_t>(worker, plan_.layout.head_product);
      kernels_.gemm_s8.run({Cq<int8_t>(begin), shape_.q_rank, end - begin, args_.weight_uq_qr, first + column_begin,
                            first + column_end, product, columns, Scratch<void>(worker, plan_.layout.gemm)});
      for (int64_t t = begin; t < end; ++t) {
        kernels_.dequantize.run(product + (t - begin) * columns, *CqScale(t),
                                args_.dequant_scale_w_uq_qr + first + column_begin, columns, row);
        if (is_nope) {
          kernels_.narrow_to_bf16.run(row, columns, q_c(t));
        } else {
          RunQueryRope(row, t, head);
        }
      }
      return;
    }
    Bf16* product = is_nope ? q_c(begin) : Scratch<Bf16>(worker, plan_.layout.head_product);
    kernels_.gemm_bf16.run({Cq<Bf16>(begin), shape_.q_rank, end - begin, args_.weight_uq_qr, first + column_begin,
                            first + column_end, product, is_nope ? shape_.heads * shape_.nope : columns,
                            Scratch<void>(worker, plan_.layout.gemm)});
    for (int64_t t = begin; !is_nope && t < end; ++t) {
      kernels_.widen_bf16.run(product + (t - begin) * columns, columns, row);
      RunQueryRope(row, t, head);
    }
  }

  WeightView UkOf(int64_t head) const {
    return RowMajorWeight(args_.weight_uk + head * shape_.nope * shape_.kv_rank, ElementType::kBf16, shape_.nope,
                          shape_.kv_rank);
  }

  // The place of a token's head among all heads of the call.
  int64_t TokenHead(int64_t t, int64_t head) const { return (token_begin_ + t) * shape_.heads + head; }

  // One group of columns of a product with x, all tokens of the block, to the product buffer at `product_offset`.
  void RunDownGroup(const WeightView& weight, int64_t group, int64_t product_offset, int worker) const {
    const int64_t begin = group * plan_.column_group;
    const int64_t end = std::min(begin + plan_.column_group, weight.n);
    const int64_t first_x = token_begin_ * shape_.hidden;
    if (args_.mode.QuantizesX()) {
      kernels_.gemm_s8.run({static_cast<const int8_t*>(args_.token_x) + first_x, shape_.hidden, num_tokens_, weight,
                            begin, end, Buffer<int32_t>(product_offset, begin), weight.n,
                            Scratch<void>(worker, plan_.layout.gemm)});
    } else {
      kernels_.gemm_bf16.run({static_cast<const Bf16*>(args_.token_x) + first_x, shape_.hidden, num_tokens_, weight,
                              begin, end, Buffer<Bf16>(product_offset, begin), weight.n,
                              Scratch<void>(worker, plan_.layout.gemm)});
    }
  }

  // Row t of a product with x [., columns] in binary32: widened, or dequantised.
  void FinishDown(int64_t product_offset, int64_t columns, int64_t t, const float* channel_scale, float* row) const {
    if (args_.mode.QuantizesX()) {
      kernels_.dequantize.run(Buffer<int32_t>(product_offset, t * columns), args_.dequant_scale_x[token_begin_ + t],
                              channel_scale, columns, row);
    } else {
      kernels_.widen_bf16.run(Buffer<Bf16>(product_offset, t * columns), columns, row);
    }
  }

  // kv_cache[slot] = RmsNorm(cKV), kr_cache[slot] = RoPE(kR), in the types of the caches.
  void RunKey(int worker) const {
    if (args_.kv_cache.block_num == 0) return;
    float* c_kv = Scratch<float>(worker, plan_.layout.row);
    float* k_r = c_kv + shape_.kv_rank;
    Bf16* bf16_row = Scratch<Bf16>(worker, plan_.layout.cache_row);
    int8_t* int8_row = Scratch<int8_t>(worker, plan_.layout.cache_row);
    for (int64_t t = 0; t < num_tokens_; ++t) {
      const int64_t slot = args_.slots.cache_index[token_begin_ + t];
      // Checked before anything ran, and again here: the index is the caller's memory and may have changed since.
      if (slot < 0 || slot >= args_.kv_cache.Capacity()) continue;
      FinishDown(plan_.layout.ckv_kr_product, shape_.KvColumns(), t, args_.dequant_scale_w_dkv_kr, c_kv);
      kernels_.rms_norm.run(c_kv, args_.gamma_ckv, shape_.kv_rank, args_.mode.epsilon_ckv, c_kv);
      switch (args_.mode.kv_quant) {
        case KvQuant::kNone:
          kernels_.narrow_to_bf16.run(c_kv, shape_.kv_rank, bf16_row);
          break;
        case KvQuant::kPerTensor:
          kernels_.scale.run(c_kv, args_.quant_scale_ckv[0], shape_.kv_rank, c_kv);
          kernels_.narrow_to_int8.run(c_kv, shape_.kv_rank, int8_row);
          break;
        case KvQuant::kPerChannel:
          kernels_.quantize_per_channel.run(c_kv, args_.quant_scale_ckv, shape_.kv_rank, int8_row);
          break;
        case KvQuant::kPerGroup:
          break;
      }
      WriteCacheRow(args_.kv_cache, slot, bf16_row, shape_.kv_rank);

      kernels_.rope.run(k_r, Cos(t), Sin(t), shape_.rope, bf16_row);
      if (args_.mode.kv_quant == KvQuant::kPerChannel) {
        kernels_.widen_bf16.run(bf16_row, shape_.rope, k_r);
        kernels_.quantize_per_channel.run(k_r, args_.quant_scale_ckr, shape_.rope, int8_row);
      }
      WriteCacheRow(args_.kr_cache, slot, bf16_row, shape_.rope);
    }
  }

  // qC | qR = cQ W_UQ|QR of one head; query = bf(qC) W_UK; query_rope = RoPE(qR); tokens [begin, end) of the block.
  void RunHead(int64_t head, int64_t begin, int64_t end, int worker) const {
    const int64_t columns = shape_.HeadColumns();
    const int64_t column = head * columns;
    float* row = Scratch<float>(worker, plan_.layout.row);
    const Bf16* q_c = nullptr;
    int64_t q_c_stride = 0;
    if (args_.mode.QuantizesCq()) {
      int32_t* product = Scratch<int32_t>(worker, plan_.layout.head_product);
      kernels_.gemm_s8.run({Cq<int8_t>(begin), shape_.q_rank, end - begin, args_.weight_uq_qr, column, column + columns,
                            product, columns, Scratch<void>(worker, plan_.layout.gemm)});
      Bf16* dequantized = Scratch<Bf16>(worker, plan_.layout.head_q_c);
      for (int64_t t = begin; t < end; ++t) {
        kernels_.dequantize.run(product + (t - begin) * columns, *CqScale(t), args_.dequant_scale_w_uq_qr + column,
                                columns, row);
        kernels_.narrow_to_bf16.run(row, shape_.nope, dequantized + (t - begin) * shape_.nope);
        RunQueryRope(row + shape_.nope, t, head);
      }
      q_c = dequantized;
      q_c_stride = shape_.nope;
    } else {
      Bf16* product = Scratch<Bf16>(worker, plan_.layout.head_product);
      kernels_.gemm_bf16.run({Cq<Bf16>(begin), shape_.q_rank, end - begin, args_.weight_uq_qr, column, column + columns,
                              product, columns, Scratch<void>(worker, plan_.layout.gemm)});
      for (int64_t t = begin; t < end; ++t) {
        kernels_.widen_bf16.run(product + (t - begin) * columns + shape_.nope, shape_.rope, row);
        RunQueryRope(row, t, head);
      }
      q_c = product;
      q_c_stride = columns;
    }
    const WeightView w_uk = UkOf(head);
    if (!args_.mode.QuantizesQuery()) {
      kernels_.gemm_bf16.run({q_c, q_c_stride, end - begin, w_uk, 0, shape_.kv_rank,
                              static_cast<Bf16*>(args_.query) + TokenHead(begin, head) * shape_.kv_rank,
                              shape_.heads * shape_.kv_rank, Scratch<void>(worker, plan_.layout.gemm)});
      return;
    }
    Bf16* query = Scratch<Bf16>(worker, plan_.layout.head_query);
    kernels_.gemm_bf16.run({q_c, q_c_stride, end - begin, w_uk, 0, shape_.kv_rank, query, shape_.kv_rank,
                            Scratch<void>(worker, plan_.layout.gemm)});
    for (int64_t t = begin; t < end; ++t) QuantizeQuery(query + (t - begin) * shape_.kv_rank, t, head, row);
  }

  void RunQueryRope(const float* q_r, int64_t t, int64_t head) const {
    kernels_.rope.run(q_r, Cos(t), Sin(t), shape_.rope, args_.query_rope + TokenHead(t, head) * shape_.rope);
  }

  // query = int8 with its scale s; query_rope is multiplied by quantScaleCkv / s, so that both parts of a logit have
  // one factor. An all-zero query has scale 0 and makes query_rope infinite or a NaN, as on the device.
  void QuantizeQuery(const Bf16* query, int64_t t, int64_t head, float* row) const {
    const int64_t token_head = TokenHead(t, head);
    float* scale = args_.dequant_scale_q_nope + token_head;
    kernels_.widen_bf16.run(query, shape_.kv_rank, row);
    kernels_.quantize_query.run(row, shape_.kv_rank, static_cast<int8_t*>(args_.query) + token_head * shape_.kv_rank,
                                scale);
    Bf16* query_rope = args_.query_rope + token_head * shape_.rope;
    kernels_.widen_bf16.run(query_rope, shape_.rope, row);
    kernels_.scale.run(row, args_.quant_scale_ckv[0] / *scale, shape_.rope, row);
    kernels_.narrow_to_bf16.run(row, shape_.rope, query_rope);
  }

  const PrologArgs& args_;
  const PrologShape& shape_;
  const PrologPlan& plan_;
  const KernelTable& kernels_;
  char* workspace_;
  int64_t token_begin_;
  int64_t num_tokens_;
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

Status CheckCacheIndex(const PrologArgs& args) {
  if (args.kv_cache.block_num == 0) return Status();
  const int64_t capacity = args.kv_cache.Capacity();
  for (int64_t t = 0; t < args.shape.tokens; ++t) {
    if (args.slots.cache_index[t] >= capacity) {
      return Status(StatusCode::kIndexOutOfRange,
                    "cacheIndex: token " + std::to_string(t) + " has index " + std::to_string(args.slots.cache_index[t]) +
                        ", but the cache holds " + std::to_string(capacity) + " slots (BlockNum " +
                        std::to_string(args.kv_cache.block_num) + " x BlockSize " +
                        std::to_string(args.kv_cache.block_size) +
                        "); nothing was written. Pass an index below that, or a negative one to write no row");
    }
  }
  return Status();
}

Status RunProlog(const PrologArgs& args, const PrologPlan& plan, const KernelTable& kernels, Executor* executor,
                 void* workspace, StageTimes* times) {
  if (args.shape.tokens == 0) return Status();
  Status status = CheckCacheIndex(args);
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
