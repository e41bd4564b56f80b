#include "native_case.h"

#include <string>
#include <vector>

#include "native_tensor.h"
#include "progress_line.h"
#include "tool_error.h"

namespace mlap::tools {
namespace {

template <class Struct>
struct NamedField {
  std::string_view name;
  mlap_tensor Struct::*field;
};

constexpr NamedField<mlap_weights_args> kWeightFields[] = {
    {"weight_dq", &mlap_weights_args::weight_dq},
    {"weight_uq_qr", &mlap_weights_args::weight_uq_qr},
    {"weight_uk", &mlap_weights_args::weight_uk},
    {"weight_dkv_kr", &mlap_weights_args::weight_dkv_kr},
    {"rmsnorm_gamma_cq", &mlap_weights_args::rmsnorm_gamma_cq},
    {"rmsnorm_gamma_ckv", &mlap_weights_args::rmsnorm_gamma_ckv},
    {"dequant_scale_w_uq_qr", &mlap_weights_args::dequant_scale_w_uq_qr},
    {"smooth_scales_cq", &mlap_weights_args::smooth_scales_cq},
};

constexpr NamedField<mlap_run_args> kRunFields[] = {
    {"token_x", &mlap_run_args::token_x},
    {"rope_sin", &mlap_run_args::rope_sin},
    {"rope_cos", &mlap_run_args::rope_cos},
    {"cache_index", &mlap_run_args::cache_index},
    {"kv_cache", &mlap_run_args::kv_cache},
    {"kr_cache", &mlap_run_args::kr_cache},
    {"quant_scale_ckv", &mlap_run_args::quant_scale_ckv},
    {"quant_scale_ckr", &mlap_run_args::quant_scale_ckr},
    {"query", &mlap_run_args::query},
    {"query_rope", &mlap_run_args::query_rope},
};

template <class Struct, size_t count>
mlap_tensor* FindField(const NamedField<Struct> (&fields)[count], Struct* args, std::string_view name) {
  for (const NamedField<Struct>& field : fields) {
    if (field.name == name) return &(args->*field.field);
  }
  return nullptr;
}

mlap_tensor InputTensor(const TensorSpec& spec, const CaseTensor& input) {
  mlap_tensor native = NativeTensor(input.view);
  if (spec.role == TensorRole::kNzWeight && input.view.shape.size() == 4) native.layout = MLAP_FRACTAL_NZ;
  return native;
}

bool IsCache(std::string_view name) { return name.ends_with("_cache"); }

// New memory for a result of the native interface.
mlap_tensor NewResult(TensorMap* results, const std::string& name, Dtype dtype, std::vector<int64_t> shape) {
  std::byte* bytes = nullptr;
  return NativeTensor(((*results)[name] = NewTensor(dtype, std::move(shape), &bytes)).view);
}

void Require(const PrologCase& prolog_case, std::string_view who, mlap_status status) {
  if (status != MLAP_OK) Fail("{}: {} refuses it: {}", prolog_case.name, who, mlap_last_error());
}

}  // namespace

NativeCase::NativeCase(const PrologCase& prolog_case) : case_(prolog_case) {
  mlap_weights_args weights;
  mlap_weights_args_init(&weights);
  mlap_run_args_init(&args_);
  for (const TensorSpec& spec : InputSpecs(case_.shape)) {
    if (IsCache(spec.name)) continue;
    mlap_tensor* field = FindField(kWeightFields, &weights, spec.name);
    if (field == nullptr) field = FindField(kRunFields, &args_, spec.name);
    if (field == nullptr) Fail("the native interface has no argument '{}'", spec.name);
    *field = InputTensor(spec, case_.Input(spec.name));
  }
  const LayerDims& dims = case_.shape.dims;
  weights.ownership = MLAP_BORROW;
  weights.dims = {dims.hidden, dims.q_rank, dims.heads, dims.nope, dims.rope, dims.kv_rank};
  args_.rmsnorm_epsilon_cq = case_.epsilon_cq;
  args_.rmsnorm_epsilon_ckv = case_.epsilon_ckv;
  args_.cache_mode = case_.shape.cache_mode == CacheMode::kPaNz ? MLAP_PA_NZ : MLAP_PA_BSND;
  if (case_.shape.HasInt8Cache()) args_.kv_quant = MLAP_KV_PER_CHANNEL;
  mlap_weights* handle = nullptr;
  Require(case_, "the reference", mlap_weights_create(&weights, &handle));
  weights_ = std::shared_ptr<mlap_weights>(handle, &mlap_weights_destroy);
}

mlap_run_args NativeCase::BindOutputs(CaseOutputs* outputs) const {
  mlap_run_args args = args_;
  for (const TensorSpec& spec : InputSpecs(case_.shape)) {
    if (!IsCache(spec.name)) continue;
    std::byte* bytes = nullptr;
    *FindField(kRunFields, &args, spec.name) =
        NativeTensor(((*outputs)[spec.name] = CopyTensor(case_.Input(spec.name), &bytes)).view);
  }
  for (const TensorSpec& spec : OutputSpecs(case_.shape)) {
    *FindField(kRunFields, &args, spec.name) = NewResult(outputs, spec.name, spec.dtype, spec.shape);
  }
  return args;
}

CaseOutputs NativeCase::RunReference(TensorMap* intermediates) const {
  CaseOutputs outputs;
  const mlap_run_args args = BindOutputs(&outputs);
  mlap_intermediates wanted = {};
  wanted.struct_size = sizeof(wanted);
  if (intermediates != nullptr) {
    const LayerDims& d = case_.shape.dims;
    const int64_t T = case_.shape.Tokens();
    wanted.c_q = NewResult(intermediates, "c_q", Dtype::kF32, {T, d.q_rank});
    if (case_.shape.HasInt8Weight()) {
      wanted.c_q_quantized = NewResult(intermediates, "c_q_int8", Dtype::kI8, {T, d.q_rank});
      wanted.c_q_scale = NewResult(intermediates, "c_q_scale", Dtype::kF32, {T});
    }
    wanted.q_c = NewResult(intermediates, "q_c", Dtype::kF32, {T, d.heads, d.nope});
    wanted.q_r = NewResult(intermediates, "q_r", Dtype::kF32, {T, d.heads, d.rope});
    wanted.c_kv = NewResult(intermediates, "c_kv", Dtype::kF32, {T, d.kv_rank});
    wanted.k_r = NewResult(intermediates, "k_r", Dtype::kF32, {T, d.rope});
  }
  ProgressLine progress("running the reference");
  mlap_reference_args reference = {};
  reference.struct_size = sizeof(reference);
  reference.intermediates = intermediates != nullptr ? &wanted : nullptr;
  reference.progress = &ProgressLine::UpdateCallback;
  reference.progress_context = &progress;
  Require(case_, "the reference", mlap_reference_run(weights_.get(), &args, &reference));
  if (intermediates != nullptr && intermediates->contains("c_q_scale")) {
    (*intermediates)["c_q_scale"].view.shape.push_back(1);  // as the operator's own scale outputs
  }
  return outputs;
}

CaseOutputs NativeCase::RunOperator() const {
  CaseOutputs outputs;
  const mlap_run_args args = BindOutputs(&outputs);
  mlap_context* context = nullptr;
  Require(case_, "the operator", mlap_context_create(nullptr, &context));
  const std::shared_ptr<mlap_context> owner(context, &mlap_context_destroy);
  Require(case_, "the operator", mlap_run(context, weights_.get(), &args));
  return outputs;
}

TensorMap NativeCase::RunExact() const {
  const LayerDims& d = case_.shape.dims;
  const int64_t T = case_.shape.Tokens();
  TensorMap exact;
  mlap_exact_results results = {};
  results.struct_size = sizeof(results);
  results.query = NewResult(&exact, "query", Dtype::kF64, {T, d.heads, d.kv_rank});
  results.query_rope = NewResult(&exact, "query_rope", Dtype::kF64, {T, d.heads, d.rope});
  results.c_kv = NewResult(&exact, "c_kv", Dtype::kF64, {T, d.kv_rank});
  results.k_r = NewResult(&exact, "k_r", Dtype::kF64, {T, d.rope});
  Require(case_, "the exact formula", mlap_exact_run(weights_.get(), &args_, &results));
  return exact;
}

CaseOutputs RunReferenceOnCase(const PrologCase& prolog_case) { return NativeCase(prolog_case).RunReference(nullptr); }

}  // namespace mlap::tools
