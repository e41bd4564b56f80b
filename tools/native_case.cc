#include "native_case.h"

#include <cmath>
#include <limits>
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
    {"dequant_scale_w_dq", &mlap_weights_args::dequant_scale_w_dq},
    {"dequant_scale_w_uq_qr", &mlap_weights_args::dequant_scale_w_uq_qr},
    {"dequant_scale_w_dkv_kr", &mlap_weights_args::dequant_scale_w_dkv_kr},
    {"smooth_scales_cq", &mlap_weights_args::smooth_scales_cq},
};

constexpr NamedField<mlap_run_args> kRunFields[] = {
    {"token_x", &mlap_run_args::token_x},
    {"rope_sin", &mlap_run_args::rope_sin},
    {"rope_cos", &mlap_run_args::rope_cos},
    {"cache_index", &mlap_run_args::cache_index},
    {"kv_cache", &mlap_run_args::kv_cache},
    {"kr_cache", &mlap_run_args::kr_cache},
    {"dequant_scale_x", &mlap_run_args::dequant_scale_x},
    {"actual_seq_len", &mlap_run_args::actual_seq_len},
    {"k_nope_clip_alpha", &mlap_run_args::k_nope_clip_alpha},
    {"quant_scale_ckv", &mlap_run_args::quant_scale_ckv},
    {"quant_scale_ckr", &mlap_run_args::quant_scale_ckr},
    {"query", &mlap_run_args::query},
    {"query_rope", &mlap_run_args::query_rope},
    {"dequant_scale_q_nope", &mlap_run_args::dequant_scale_q_nope},
    {"query_norm", &mlap_run_args::query_norm},
    {"dequant_scale_q_norm", &mlap_run_args::dequant_scale_q_norm},
};

template <class Struct, size_t count>
mlap_tensor* FindField(const NamedField<Struct> (&fields)[count], Struct* args, std::string_view name) {
  for (const NamedField<Struct>& field : fields) {
    if (field.name == name) return &(args->*field.field);
  }
  return nullptr;
}

mlap_tensor InputTensor(const TensorSpec& spec, const CaseTensor& input) {
  mlap_tensor native = NativeTensor(input.view, spec.dtype);
  if (spec.role == TensorRole::kNzWeight && input.view.shape.size() == 4) native.layout = MLAP_FRACTAL_NZ;
  return native;
}

// New memory for a result of the native interface.
mlap_tensor NewResult(TensorMap* results, const std::string& name, mlap_dtype dtype, std::vector<int64_t> shape) {
  std::byte* bytes = nullptr;
  return NativeTensor(((*results)[name] = NewTensor(dtype, std::move(shape), &bytes)).view, dtype);
}

// The native interface wants its callers to have meant their factors. The operator takes a NaN for 1, and a 0 for what
// it is; so does the native interface with what a binary32 rounds to 0.
double NativeFactor(double factor) {
  if (std::isnan(factor)) return 1.0;
  return factor == 0.0 ? std::numeric_limits<double>::min() : factor;
}

void Require(const PrologCase& prolog_case, std::string_view who, mlap_status status) {
  if (status != MLAP_OK) Fail("{}: {} refuses it: {}", prolog_case.name, who, mlap_last_error());
}

}  // namespace

NativeCase::NativeCase(const PrologCase& prolog_case, mlap_numeric_rules rules) : case_(prolog_case) {
  mlap_weights_args weights;
  mlap_weights_args_init(&weights);
  mlap_run_args_init(&args_);
  for (const TensorSpec& spec : InputSpecs(case_.shape)) {
    if (IsCacheName(spec.name)) continue;
    mlap_tensor* field = FindField(kWeightFields, &weights, spec.name);
    if (field == nullptr) field = FindField(kRunFields, &args_, spec.name);
    if (field == nullptr) Fail("the native interface has no argument '{}'", spec.name);
    *field = InputTensor(spec, case_.Input(spec.name));
  }
  if (case_.shape.scenario->IsPerTensor()) {  // of a row of scales the first counts
    args_.quant_scale_ckv.rank = 1;
    args_.quant_scale_ckv.dims[0] = 1;
  }
  const LayerDims& dims = case_.shape.dims;
  weights.ownership = MLAP_BORROW;
  weights.dims = {dims.hidden, dims.q_rank, dims.heads, dims.nope, dims.rope, dims.kv_rank};
  args_.rmsnorm_epsilon_cq = case_.epsilon_cq;
  args_.rmsnorm_epsilon_ckv = case_.epsilon_ckv;
  args_.qc_qr_scale = NativeFactor(case_.qc_qr_scale);
  args_.kc_scale = NativeFactor(case_.kc_scale);
  args_.cache_mode = case_.shape.cache_mode;
  args_.kv_quant = case_.shape.scenario->kv_quant;
  args_.rules = rules;
  mlap_weights* handle = nullptr;
  Require(case_, "the reference", mlap_weights_create(&weights, &handle));
  weights_ = std::shared_ptr<mlap_weights>(handle, &mlap_weights_destroy);
}

mlap_run_args NativeCase::BindOutputs(CaseOutputs* outputs) const {
  mlap_run_args args = args_;
  for (const TensorSpec& spec : InputSpecs(case_.shape)) {
    if (!IsCacheName(spec.name)) continue;
    std::byte* bytes = nullptr;
    *FindField(kRunFields, &args, spec.name) =
        NativeTensor(((*outputs)[spec.name] = CopyTensor(case_.Input(spec.name), &bytes)).view, spec.dtype);
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
    wanted.c_q = NewResult(intermediates, "c_q", MLAP_FLOAT32, {T, d.q_rank});
    if (case_.shape.scenario->CqType() == MLAP_INT8) {
      wanted.c_q_quantized = NewResult(intermediates, "c_q_int8", MLAP_INT8, {T, d.q_rank});
      wanted.c_q_scale = NewResult(intermediates, "c_q_scale", MLAP_FLOAT32, {T});
    }
    wanted.q_c = NewResult(intermediates, "q_c", MLAP_FLOAT32, {T, d.heads, d.nope});
    wanted.q_r = NewResult(intermediates, "q_r", MLAP_FLOAT32, {T, d.heads, d.rope});
    wanted.c_kv = NewResult(intermediates, "c_kv", MLAP_FLOAT32, {T, d.kv_rank});
    wanted.k_r = NewResult(intermediates, "k_r", MLAP_FLOAT32, {T, d.rope});
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
  results.query = NewResult(&exact, "query", MLAP_FLOAT64, {T, d.heads, d.kv_rank});
  results.query_rope = NewResult(&exact, "query_rope", MLAP_FLOAT64, {T, d.heads, d.rope});
  results.c_kv = NewResult(&exact, "c_kv", MLAP_FLOAT64, {T, d.kv_rank});
  results.k_r = NewResult(&exact, "k_r", MLAP_FLOAT64, {T, d.rope});
  Require(case_, "the exact formula", mlap_exact_run(weights_.get(), &args_, &results));
  return exact;
}

CaseOutputs RunReferenceOnCase(const PrologCase& prolog_case, mlap_numeric_rules rules) {
  return NativeCase(prolog_case, rules).RunReference(nullptr);
}

}  // namespace mlap::tools
