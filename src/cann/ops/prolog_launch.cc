#include "cann/ops/prolog_launch.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "acl/acl_rt.h"
#include "aclnn/aclnn_status.h"
#include "base/float_environment.h"
#include "cann/ops/last_report.h"
#include "cann/ops/process_pool.h"
#include "cann/ops/tensor_memory.h"
#include "cann/ops/verbose_line.h"
#include "cann/runtime/op_executor.h"
#include "cann/runtime/recent_error.h"
#include "cann/runtime/stream_queue.h"
#include "core/prolog_plan.h"
#include "core/prolog_run.h"
#include "cpu/dispatch.h"

namespace mlap::cann {
namespace {

// Everything about a call that does not depend on where its tensors lie.
struct PreparedCall {
  const char* op_name = nullptr;
  const Scenario* scenario = nullptr;
  const KernelChoice* kernels = nullptr;
  int num_threads = 1;
  PrologShape shape;
  PrologMode mode;
  CacheOrder cache_order = CacheOrder::kRows;
  PrologPlan plan;
  std::array<int64_t, kNumParams> dense_offset{};  // into the workspace, of a strided input's dense copy; -1: none
  int64_t plan_offset = 0;
};

ElementType ToElementType(aclDataType dtype) { return dtype == ACL_INT8 ? ElementType::kInt8 : ElementType::kBf16; }

CacheView ToCacheView(const TensorDescriptor& cache, CacheOrder order) {
  CacheView view;
  view.data = FirstElement(cache);
  view.type = ToElementType(cache.dtype);
  view.order = order;
  view.block_num = cache.view_dims[0];
  view.block_size = cache.view_dims[1];
  view.width = cache.view_dims[3];
  view.block_stride = cache.view_strides[0];
  view.slot_stride = cache.view_strides[1];
  view.element_stride = cache.view_strides[3];
  return view;
}

// The arguments of one launch: the prepared call on the tensors' addresses, or on their dense copies in the workspace.
PrologArgs ToArgs(const PreparedCall& prepared, const std::vector<TensorSlot>& slots, char* workspace) {
  const auto address = [&](Param param) -> char* {
    if (!slots[param].present) return nullptr;
    if (prepared.dense_offset[param] >= 0) return workspace + prepared.dense_offset[param];
    return FirstElement(slots[param].tensor);
  };
  const auto bf16 = [&](Param param) { return reinterpret_cast<Bf16*>(address(param)); };
  const auto f32 = [&](Param param) { return reinterpret_cast<const float*>(address(param)); };
  const auto weight = [&](Param param, int64_t k, int64_t n) {
    return NzWeight(address(param), ToElementType(slots[param].tensor.dtype), k, n);
  };
  const PrologShape& shape = prepared.shape;
  PrologArgs args;
  args.shape = shape;
  args.mode = prepared.mode;
  args.token_x = address(kTokenX);
  args.weight_dq = weight(kWeightDq, shape.hidden, shape.q_rank);
  args.weight_uq_qr = weight(kWeightUqQr, shape.q_rank, shape.heads * shape.HeadColumns());
  args.weight_uk = bf16(kWeightUk);
  args.weight_dkv_kr = weight(kWeightDkvKr, shape.hidden, shape.KvColumns());
  args.gamma_cq = bf16(kGammaCq);
  args.gamma_ckv = bf16(kGammaCkv);
  args.rope_sin = bf16(kRopeSin);
  args.rope_cos = bf16(kRopeCos);
  args.slots.cache_index = reinterpret_cast<const int64_t*>(address(kCacheIndex));
  args.kv_cache = ToCacheView(slots[kKvCache].tensor, prepared.cache_order);
  args.kr_cache = ToCacheView(slots[kKrCache].tensor, prepared.cache_order);
  args.dequant_scale_x = f32(kDequantScaleX);
  args.dequant_scale_w_dq = f32(kDequantScaleWDq);
  args.dequant_scale_w_uq_qr = f32(kDequantScaleWUqQr);
  args.dequant_scale_w_dkv_kr = f32(kDequantScaleWDkvKr);
  args.quant_scale_ckv = f32(kQuantScaleCkv);
  args.quant_scale_ckr = f32(kQuantScaleCkr);
  args.smooth_scales_cq = f32(kSmoothScalesCq);
  args.query = address(kQueryOut);
  args.query_rope = bf16(kQueryRopeOut);
  return args;
}

mlap_cann_report ToReport(const PreparedCall& prepared, const StageTimes& times) {
  const PrologShape& shape = prepared.shape;
  mlap_cann_report report = {};
  report.struct_size = sizeof(report);
  report.op = prepared.op_name;
  report.scenario = prepared.scenario->name;
  report.isa = prepared.kernels->isa;
  const bool quantized = prepared.mode.QuantizesCq();
  report.gemm_kernel = quantized ? prepared.kernels->table.gemm_s8.name : prepared.kernels->table.gemm_bf16.name;
  report.num_threads = prepared.plan.num_workers;
  report.tokens = shape.tokens;
  report.hidden = shape.hidden;
  report.q_rank = shape.q_rank;
  report.heads = shape.heads;
  report.nope = shape.nope;
  report.rope = shape.rope;
  report.kv_rank = shape.kv_rank;
  const auto elements = [](int64_t k, int64_t n) { return static_cast<double>(k) * static_cast<double>(n); };
  const double down = elements(shape.hidden, shape.q_rank + shape.KvColumns());
  const double up = elements(shape.q_rank, shape.heads * shape.HeadColumns());
  const double absorb = elements(shape.heads * shape.nope, shape.kv_rank);
  report.flops = 2.0 * static_cast<double>(shape.tokens) * (down + up + absorb);
  report.weight_bytes = 2.0 * (down + absorb) + (quantized ? 1.0 : 2.0) * up;
  report.num_stages = kNumStages;
  for (int i = 0; i < kNumStages; ++i) {
    report.stage_names[i] = StageName(static_cast<Stage>(i));
    report.stage_seconds[i] = times.seconds[i];
    report.seconds += times.seconds[i];
  }
  return report;
}

TaskResult RunTask(const PreparedCall& prepared, const std::vector<TensorSlot>& slots, char* workspace,
                   aclrtStream stream) {
  workspace = AlignedWorkspace(workspace);
  for (int i = 0; i < kNumParams; ++i) {
    if (prepared.dense_offset[i] >= 0) CopyDense(slots[i].tensor, workspace + prepared.dense_offset[i]);
  }
  const PrologArgs args = ToArgs(prepared, slots, workspace);
  StageTimes times;
  const Status status = RunProlog(args, prepared.plan, prepared.kernels->table, ProcessPool(prepared.num_threads),
                                  workspace + prepared.plan_offset, &times);
  if (!status.ok()) return {ACL_ERROR_RT_AICORE_EXCEPTION, std::string(prepared.op_name) + ": " + status.text()};
  const DefaultFloatEnvironment environment;
  const mlap_cann_report report = ToReport(prepared, times);
  StoreReport(stream, report);
  if (IsVerbose()) PrintVerboseLine(VerboseLine(report, prepared.plan));
  return {};
}

// Queues one launch. The addresses may have been changed since phase 1.
aclnnStatus Launch(std::shared_ptr<const PreparedCall> prepared, void* workspace, aclrtStream stream,
                   const std::vector<TensorSlot>& slots) {
  for (int i = 0; i < kNumParams; ++i) {
    const auto param = static_cast<Param>(i);
    std::string expected, found;
    if (!slots[i].present || CheckTensorMemory(param, slots[i].tensor, &expected, &found)) continue;
    return FailOp(ACLNN_ERR_PARAM_INVALID, RefusalText(prepared->op_name, ParamName(param), expected, found,
                                                       "set its address with aclSetTensorAddr before the second step"));
  }
  if (stream == nullptr) {
    const aclError code = aclrtCtxGetCurrentDefaultStream(&stream);
    if (code != ACL_SUCCESS) return code;
  }
  auto* base = static_cast<char*>(workspace);
  return EnqueueOnStream(stream, [prepared = std::move(prepared), slots, base, stream] {
    return RunTask(*prepared, slots, base, stream);
  });
}

void FillExecutor(const PrologTensors& tensors, OpExecutor* executor) {
  for (int i = 0; i < kNumParams; ++i) {
    executor->slots.push_back({tensors.present[i], tensors.tensor[i], i >= kNumInputs});
    (i < kNumInputs ? executor->input_slots : executor->output_slots).push_back(static_cast<size_t>(i));
  }
  // The caches are outputs, too, behind the others.
  executor->output_slots.push_back(kKvCache);
  executor->output_slots.push_back(kKrCache);
}

}  // namespace

aclnnStatus PublishProlog(const char* function, const char* op_name, const PrologParams& params, CheckedCall call,
                          uint64_t* workspace_size, aclOpExecutor** executor) {
  const DefaultFloatEnvironment environment;  // for the narrowing of the epsilons
  auto prepared = std::make_shared<PreparedCall>();
  prepared->op_name = op_name;
  prepared->scenario = call.scenario;
  prepared->cache_order = call.cache_order;
  prepared->mode = {call.scenario->weight_quant, call.scenario->kv_quant, static_cast<float>(params.rmsnorm_epsilon_cq),
                    static_cast<float>(params.rmsnorm_epsilon_ckv)};
  prepared->dense_offset.fill(-1);

  Status status = ProcessKernels(&prepared->kernels);
  if (status.ok()) status = ProcessThreads(&prepared->num_threads);
  if (!status.ok()) return FailOp(ACLNN_ERR_RUNTIME_ERROR, std::string(function) + ": " + status.text());

  auto published = std::make_unique<OpExecutor>();
  published->op_name = op_name;
  FillExecutor(call.tensors, published.get());

  if (call.is_all_empty || call.dims.T == 0) {
    published->launch = [](void*, aclrtStream stream, const std::vector<TensorSlot>&) -> aclnnStatus {
      return EnqueueOnStream(stream, [] { return TaskResult{}; });
    };
  } else {
    prepared->shape = {call.dims.T, call.dims.He, call.dims.Hcq, call.dims.N,
                       call.dims.D, call.dims.Dr, call.dims.Hckv};
    status = PlanProlog(prepared->shape, prepared->mode, prepared->num_threads, &prepared->plan);
    if (!status.ok()) return FailOp(ACLNN_ERR_INNER_TILING_ERROR, std::string(function) + ": " + status.text());

    int64_t bytes = 0;
    bool overflow = false;
    for (int i = 0; i < kNumParams; ++i) {
      const auto param = static_cast<Param>(i);
      if (!call.tensors.present[param] || !NeedsDenseCopy(param, call.tensors[param])) continue;
      prepared->dense_offset[param] = bytes;
      overflow |= __builtin_add_overflow(bytes, DenseBytes(call.tensors[param]) + kWorkspaceAlignment - 1, &bytes);
      bytes = bytes / kWorkspaceAlignment * kWorkspaceAlignment;
    }
    prepared->plan_offset = bytes;
    overflow |= __builtin_add_overflow(bytes, static_cast<int64_t>(prepared->plan.workspace_bytes), &bytes);
    overflow |= __builtin_add_overflow(bytes, kWorkspaceAlignment - 1, &bytes);  // the workspace may begin anywhere
    if (overflow) {
      return FailOp(ACLNN_ERR_INNER_TILING_ERROR,
                    RefusalText(function, "tokenX", "a call whose workspace fits into memory", "more than 2^63 bytes",
                                "pass contiguous tensors"));
    }
    published->workspace_bytes = static_cast<uint64_t>(bytes);
    published->launch = [prepared = std::shared_ptr<const PreparedCall>(prepared)](
                            void* workspace, aclrtStream stream, const std::vector<TensorSlot>& slots) {
      return Launch(prepared, workspace, stream, slots);
    };
  }
  const uint64_t needed_bytes = published->workspace_bytes;
  *executor = PublishExecutor(std::move(published));
  *workspace_size = needed_bytes;
  return ACLNN_SUCCESS;
}

}  // namespace mlap::cann
