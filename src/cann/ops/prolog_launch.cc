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
#include "cann/ops/prolog_presence.h"
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
  CallKind kind;
  const KernelChoice* kernels = nullptr;
  int num_threads = 1;
  PrologShape shape;
  PrologMode mode;
  TokenSlots slots;  // all but the lists' addresses
  PrologPlan plan;
  std::array<int64_t, kNumParams> dense_offset{};  // into the workspace, of a strided input's dense copy; -1: none
  int64_t plan_offset = 0;
  std::array<bool, kNumParams> ignored{};  // outputs that are there, but not the scenario's
};

ElementType ToElementType(aclDataType dtype) {
  switch (dtype) {
    case ACL_INT8:
      return ElementType::kInt8;
    case ACL_FLOAT8_E4M3FN:
      return ElementType::kE4m3;
    case ACL_HIFLOAT8:
      return ElementType::kHiF8;
    default:
      return ElementType::kBf16;
  }
}

CacheView ToCacheView(const TensorDescriptor& cache, CacheOrder order) {
  CacheView view;
  view.type = ToElementType(cache.dtype);
  view.order = order;
  // An empty krCache may have any number of dimensions.
  if (cache.rank < 3) return view;
  // (T, Nkv, W) is one page of all tokens.
  const bool is_paged = cache.rank == 4;
  const size_t slot = cache.rank - 3;
  view.block_size = cache.view_dims[slot];
  if (IsEmpty(cache)) return view;
  view.data = FirstElement(cache);
  view.block_num = is_paged ? cache.view_dims[0] : 1;
  view.width = cache.view_dims[cache.rank - 1];
  view.block_stride = is_paged ? cache.view_strides[0] : 0;
  view.slot_stride = cache.view_strides[slot];
  view.element_stride = cache.view_strides[cache.rank - 1];
  return view;
}

// The arguments of one launch: the prepared call on the tensors' addresses, or on their dense copies in the workspace.
PrologArgs ToArgs(const PreparedCall& prepared, const PrologTensors& tensors, char* workspace) {
  const auto address = [&](Param param) -> char* {
    if (!tensors.present[param]) return nullptr;
    if (prepared.dense_offset[param] >= 0) return workspace + prepared.dense_offset[param];
    return FirstElement(tensors[param]);
  };
  const auto bf16 = [&](Param param) { return reinterpret_cast<Bf16*>(address(param)); };
  const auto f32 = [&](Param param) { return reinterpret_cast<float*>(address(param)); };
  const auto e8m0 = [&](Param param) { return reinterpret_cast<uint8_t*>(address(param)); };
  const auto weight = [&](Param param, int64_t k, int64_t n) {
    return NzWeight(address(param), ToElementType(tensors[param].dtype), k, n);
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
  args.slots = prepared.slots;
  args.slots.cache_index = reinterpret_cast<const int64_t*>(address(kCacheIndex));
  args.slots.sequence_ends = reinterpret_cast<const int32_t*>(address(kActualSeqLen));
  args.kv_cache = ToCacheView(tensors[kKvCache], prepared.kind.cache_mode->order);
  args.kr_cache = ToCacheView(tensors[kKrCache], prepared.kind.cache_mode->order);
  if (prepared.kind.scenario->HasMxScales()) {
    args.mx_scale_x = e8m0(kDequantScaleX);
    args.mx_scale_w_dq = e8m0(kDequantScaleWDq);
    args.mx_scale_w_uq_qr = e8m0(kDequantScaleWUqQr);
    args.mx_scale_w_dkv_kr = e8m0(kDequantScaleWDkvKr);
    args.mx_scale_q_norm = e8m0(kDequantScaleQNormOut);
  } else {
    args.dequant_scale_x = f32(kDequantScaleX);
    args.dequant_scale_w_dq = f32(kDequantScaleWDq);
    args.dequant_scale_w_uq_qr = f32(kDequantScaleWUqQr);
    args.dequant_scale_w_dkv_kr = f32(kDequantScaleWDkvKr);
    args.dequant_scale_q_norm = f32(kDequantScaleQNormOut);
  }
  args.quant_scale_ckv = f32(kQuantScaleCkv);
  args.quant_scale_ckr = f32(kQuantScaleCkr);
  args.smooth_scales_cq = f32(kSmoothScalesCq);
  args.k_nope_clip_alpha = f32(kKNopeClipAlpha);
  args.query = address(kQueryOut);
  args.query_rope = bf16(kQueryRopeOut);
  // A version may let the caller pass the scale where there is none.
  if (args.mode.QuantizesQuery()) args.dequant_scale_q_nope = f32(kDequantScaleQNopeOut);
  args.query_norm = address(kQueryNormOut);
  return args;
}

mlap_cann_report ToReport(const PreparedCall& prepared, const StageTimes& times) {
  const PrologShape& shape = prepared.shape;
  mlap_cann_report report = {};
  report.struct_size = sizeof(report);
  report.op = prepared.kind.version->phase2;
  report.scenario = prepared.kind.scenario->name.c_str();
  report.isa = prepared.kernels->isa;
  const KernelTable& kernels = prepared.kernels->table;
  switch (prepared.mode.CqType()) {
    case ElementType::kBf16:
      report.gemm_kernel = kernels.gemm_bf16.name;
      break;
    case ElementType::kInt8:
      report.gemm_kernel = kernels.gemm_s8.name;
      break;
    default:
      report.gemm_kernel = kernels.gemm_f8.name;
  }
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
  report.weight_bytes = static_cast<double>(ElementBytes(prepared.mode.TokenType())) * down +
                        static_cast<double>(ElementBytes(prepared.mode.CqType())) * up + 2.0 * absorb;
  report.num_stages = kNumStages;
  for (int i = 0; i < kNumStages; ++i) {
    report.stage_names[i] = StageName(static_cast<Stage>(i));
    report.stage_seconds[i] = times.seconds[i];
    report.seconds += times.seconds[i];
  }
  return report;
}

TaskResult RunTask(const PreparedCall& prepared, const PrologTensors& tensors, char* workspace, aclrtStream stream) {
  workspace = AlignedWorkspace(workspace);
  for (const Param param : prepared.kind.version->order) {
    if (prepared.dense_offset[param] >= 0) CopyDense(tensors[param], workspace + prepared.dense_offset[param]);
  }
  const PrologArgs args = ToArgs(prepared, tensors, workspace);
  StageTimes times;
  const Status status = RunProlog(args, prepared.plan, prepared.kernels->table, ProcessPool(prepared.num_threads),
                                  workspace + prepared.plan_offset, &times);
  if (!status.ok())
    return {ACL_ERROR_RT_AICORE_EXCEPTION, std::string(prepared.kind.version->phase2) + ": " + status.text()};
  const DefaultFloatEnvironment environment;
  const mlap_cann_report report = ToReport(prepared, times);
  StoreReport(stream, report);
  if (IsVerbose()) PrintVerboseLine(VerboseLine(report, prepared.plan));
  return {};
}

// Null stands for the context's default stream.
aclError ResolveStream(aclrtStream* stream) {
  return *stream == nullptr ? aclrtCtxGetCurrentDefaultStream(stream) : ACL_SUCCESS;
}

// Queues one launch. The addresses may have been changed since phase 1.
aclnnStatus Launch(std::shared_ptr<const PreparedCall> prepared, void* workspace, aclrtStream stream,
                   const std::vector<TensorSlot>& slots) {
  const PrologVersion& version = *prepared->kind.version;
  auto tensors = std::make_shared<PrologTensors>();
  for (size_t i = 0; i < slots.size(); ++i) {
    const Param param = version.order[i];
    tensors->present[param] = slots[i].present && !prepared->ignored[param];
    tensors->tensor[param] = slots[i].tensor;
    std::string expected, found;
    if (!tensors->present[param] || CheckTensorMemory(param, slots[i].tensor, &expected, &found)) continue;
    return FailOp(ACLNN_ERR_PARAM_INVALID, RefusalText(version.phase2, version.NameOf(param), expected, found,
                                                       "set its address with aclSetTensorAddr before the second step"));
  }
  if (const aclError code = ResolveStream(&stream)) return code;
  auto* base = static_cast<char*>(workspace);
  return EnqueueOnStream(stream, [prepared = std::move(prepared), tensors = std::move(tensors), base, stream] {
    return RunTask(*prepared, *tensors, base, stream);
  });
}

void FillExecutor(const PrologVersion& version, const PrologTensors& tensors, OpExecutor* executor) {
  executor->op_name = version.phase2;
  size_t kv_cache = 0;
  size_t kr_cache = 0;
  for (size_t i = 0; i < version.order.size(); ++i) {
    const Param param = version.order[i];
    executor->slots.push_back({tensors.present[param], tensors[param], IsOutput(param)});
    (IsOutput(param) ? executor->output_slots : executor->input_slots).push_back(i);
    if (param == kKvCache) kv_cache = i;
    if (param == kKrCache) kr_cache = i;
  }
  // The caches are outputs, too: the operator's definition has them behind query and queryRope.
  executor->output_slots.insert(executor->output_slots.begin() + 2, {kv_cache, kr_cache});
}

PrologMode ModeOf(const PrologParams& params, const CallKind& kind) {
  PrologMode mode;
  mode.weight_quant = kind.scenario->weight_quant;
  mode.kv_quant = kind.scenario->kv_quant;
  mode.epsilon_cq = static_cast<float>(params.rmsnorm_epsilon_cq);
  mode.epsilon_ckv = static_cast<float>(params.rmsnorm_epsilon_ckv);
  mode.cq_factor = static_cast<float>(params.qc_qr_scale);
  mode.ckv_factor = static_cast<float>(params.kc_scale);
  // 8-bit floats exist with the later device's rules only.
  const bool is_950 = kind.device == kAscend950 || mode.weight_quant >= WeightQuant::kMxFp8;
  mode.rules = is_950 ? NumericRules::k950 : NumericRules::kA2;
  return mode;
}

TokenSlots SlotsOf(const CheckedCall& call) {
  TokenSlots slots;
  slots.rule = call.kind.cache_mode->slots;
  slots.num_sequences = call.dims.B;
  slots.sequence_length = call.dims.S;
  ElementCount(call.tensors[kCacheIndex], &slots.num_indices);
  return slots;
}

}  // namespace

aclnnStatus PublishProlog(const PrologParams& params, const CheckedCall& call, uint64_t* workspace_size,
                          aclOpExecutor** executor) {
  const PrologVersion& version = *call.kind.version;
  const char* function = version.phase1;
  const DefaultFloatEnvironment environment;  // for the narrowing of the attributes
  auto prepared = std::make_shared<PreparedCall>();
  prepared->kind = call.kind;
  prepared->mode = ModeOf(params, call.kind);
  prepared->dense_offset.fill(-1);

  Status status = ProcessKernels(&prepared->kernels);
  if (status.ok()) status = ProcessThreads(&prepared->num_threads);
  if (!status.ok()) return FailOp(ACLNN_ERR_RUNTIME_ERROR, std::string(function) + ": " + status.text());

  auto published = std::make_unique<OpExecutor>();
  FillExecutor(version, call.tensors, published.get());

  if (call.is_all_empty || call.dims.T == 0) {
    published->launch = [](void*, aclrtStream stream, const std::vector<TensorSlot>&) -> aclnnStatus {
      if (const aclError code = ResolveStream(&stream)) return code;
      return RequireLaunchStream(stream);  // nothing to run, nothing to wait for
    };
  } else {
    prepared->shape = {call.dims.T, call.dims.He, call.dims.Hcq, call.dims.N,
                       call.dims.D, call.dims.Dr, call.dims.Hckv};
    prepared->slots = SlotsOf(call);
    for (const Param param : version.order) {
      prepared->ignored[param] =
          IsOutput(param) && ExpectedPresence(call.kind, param, call.dims.is_fused,
                                              call.tensors.present[kQueryNormOut]) == Presence::kIgnored;
    }
    status = PlanProlog(prepared->shape, prepared->mode, prepared->num_threads, &prepared->plan,
                        prepared->kernels->table.task_columns);
    if (!status.ok()) return FailOp(ACLNN_ERR_INNER_TILING_ERROR, std::string(function) + ": " + status.text());

    int64_t bytes = 0;
    bool overflow = false;
    for (const Param param : version.order) {
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
