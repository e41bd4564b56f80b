#include "reference_case.h"

#include <mlaprolog/mlaprolog.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "progress_line.h"
#include "tool_error.h"

namespace mlap::tools {
namespace {

// `bytes` replaces the tensor's own if it is not null.
mlap_tensor NativeTensor(const CaseTensor& tensor, const TensorSpec& spec, std::byte* bytes = nullptr) {
  mlap_tensor native = {};
  // Inputs are never written; the interface has one type for inputs and outputs.
  native.data = bytes != nullptr ? bytes : const_cast<std::byte*>(tensor.view.bytes);
  native.dtype = spec.dtype;
  native.layout =
      spec.role == TensorRole::kNzWeight && tensor.view.shape.size() == 4 ? MLAP_FRACTAL_NZ : MLAP_ROW_MAJOR;
  native.rank = static_cast<int32_t>(tensor.view.shape.size());
  std::copy(tensor.view.shape.begin(), tensor.view.shape.end(), native.dims);
  return native;
}

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

// The weights and arguments of the native interface for one case. Everything is borrowed.
struct NativeCall {
  mlap_weights_args weights;
  mlap_run_args run;

  mlap_tensor* Field(std::string_view name) {
    for (const auto& field : kWeightFields) {
      if (field.name == name) return &(weights.*field.field);
    }
    for (const auto& field : kRunFields) {
      if (field.name == name) return &(run.*field.field);
    }
    Fail("the reference has no argument '{}'", name);
  }
};

// The native interface wants its callers to have meant their factors. The operator takes a NaN for 1, and a 0 for what
// it is; so does the reference for what a binary32 rounds to 0.
double NativeFactor(double factor) {
  if (std::isnan(factor)) return 1.0;
  return factor == 0.0 ? std::numeric_limits<double>::min() : factor;
}

using WeightsHandle = std::unique_ptr<mlap_weights, decltype(&mlap_weights_destroy)>;

WeightsHandle MakeWeights(const PrologCase& prolog_case, const mlap_weights_args& args) {
  mlap_weights* weights = nullptr;
  if (mlap_weights_create(&args, &weights) != MLAP_OK) {
    Fail("{}: the reference refuses it: {}", prolog_case.name, mlap_last_error());
  }
  return {weights, &mlap_weights_destroy};
}

}  // namespace

CaseOutputs RunReferenceOnCase(const PrologCase& prolog_case, mlap_numeric_rules rules) {
  CaseOutputs outputs;
  NativeCall call;
  const CaseShape& shape = prolog_case.shape;
  mlap_weights_args_init(&call.weights);
  mlap_run_args_init(&call.run);
  for (TensorSpec& spec : InputSpecs(shape)) {
    CaseTensor input = prolog_case.Input(spec.name);
    std::byte* copy = nullptr;
    if (IsCacheName(spec.name)) outputs[spec.name] = CopyTensor(input, &copy);
    // Of a row of per-tensor scales the first counts.
    if (shape.scenario->IsPerTensor() && spec.name == std::string_view("quant_scale_ckv")) input.view.shape = {1};
    *call.Field(spec.name) = NativeTensor(input, spec, copy);
  }
  for (const TensorSpec& spec : OutputSpecs(shape)) {
    std::byte* bytes = nullptr;
    CaseTensor& output = outputs[spec.name] = NewTensor(spec.dtype, spec.shape, &bytes);
    *call.Field(spec.name) = NativeTensor(output, spec, bytes);
  }
  const LayerDims& dims = shape.dims;
  call.weights.ownership = MLAP_BORROW;
  call.weights.dims = {dims.hidden, dims.q_rank, dims.heads, dims.nope, dims.rope, dims.kv_rank};
  call.run.rmsnorm_epsilon_cq = prolog_case.epsilon_cq;
  call.run.rmsnorm_epsilon_ckv = prolog_case.epsilon_ckv;
  call.run.qc_qr_scale = NativeFactor(prolog_case.qc_qr_scale);
  call.run.kc_scale = NativeFactor(prolog_case.kc_scale);
  call.run.cache_mode = shape.cache_mode;
  call.run.kv_quant = shape.scenario->kv_quant;
  call.run.rules = rules;
  ProgressLine progress("running the reference");
  mlap_reference_args reference = {};
  reference.struct_size = sizeof(reference);
  reference.progress = &ProgressLine::UpdateCallback;
  reference.progress_context = &progress;
  const WeightsHandle weights = MakeWeights(prolog_case, call.weights);
  if (mlap_reference_run(weights.get(), &call.run, &reference) != MLAP_OK) {
    Fail("{}: the reference refuses it: {}", prolog_case.name, mlap_last_error());
  }
  return outputs;
}

}  // namespace mlap::tools
