#include "reference_case.h"

#include <mlaprolog/mlaprolog.h>

#include <algorithm>
#include <memory>

#include "progress_line.h"
#include "tool_error.h"

namespace mlap::tools {
namespace {

mlap_dtype NativeDtype(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBF16:
      return MLAP_BF16;
    case Dtype::kI8:
      return MLAP_INT8;
    case Dtype::kI64:
      return MLAP_INT64;
    default:
      return MLAP_FLOAT32;
  }
}

// `bytes` replaces the tensor's own if it is not null.
mlap_tensor NativeTensor(const CaseTensor* tensor, const TensorSpec& spec, std::byte* bytes = nullptr) {
  mlap_tensor native = {};
  if (tensor == nullptr) return native;
  // Inputs are never written; the interface has one type for inputs and outputs.
  native.data = bytes != nullptr ? bytes : const_cast<std::byte*>(tensor->view.bytes);
  native.dtype = NativeDtype(tensor->view.dtype);
  native.layout =
      spec.role == TensorRole::kNzWeight && tensor->view.shape.size() == 4 ? MLAP_FRACTAL_NZ : MLAP_ROW_MAJOR;
  native.rank = static_cast<int32_t>(tensor->view.shape.size());
  std::copy(tensor->view.shape.begin(), tensor->view.shape.end(), native.dims);
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

using WeightsHandle = std::unique_ptr<mlap_weights, decltype(&mlap_weights_destroy)>;

WeightsHandle MakeWeights(const PrologCase& prolog_case, const mlap_weights_args& args) {
  mlap_weights* weights = nullptr;
  if (mlap_weights_create(&args, &weights) != MLAP_OK) {
    Fail("{}: the reference refuses it: {}", prolog_case.name, mlap_last_error());
  }
  return {weights, &mlap_weights_destroy};
}

}  // namespace

CaseOutputs RunReferenceOnCase(const PrologCase& prolog_case) {
  CaseOutputs outputs;
  NativeCall call;
  mlap_weights_args_init(&call.weights);
  mlap_run_args_init(&call.run);
  for (const TensorSpec& spec : InputSpecs(prolog_case.shape)) {
    const CaseTensor& input = prolog_case.Input(spec.name);
    std::byte* copy = nullptr;
    if (std::string_view(spec.name).ends_with("_cache")) outputs[spec.name] = CopyTensor(input, &copy);
    *call.Field(spec.name) = NativeTensor(&input, spec, copy);
  }
  for (const TensorSpec& spec : OutputSpecs(prolog_case.shape)) {
    std::byte* bytes = nullptr;
    CaseTensor& output = outputs[spec.name] = NewTensor(spec.dtype, spec.shape, &bytes);
    *call.Field(spec.name) = NativeTensor(&output, spec, bytes);
  }
  const LayerDims& dims = prolog_case.shape.dims;
  call.weights.ownership = MLAP_BORROW;
  call.weights.dims = {dims.hidden, dims.q_rank, dims.heads, dims.nope, dims.rope, dims.kv_rank};
  call.run.rmsnorm_epsilon_cq = prolog_case.epsilon_cq;
  call.run.rmsnorm_epsilon_ckv = prolog_case.epsilon_ckv;
  call.run.cache_mode = prolog_case.shape.cache_mode == CacheMode::kPaNz ? MLAP_PA_NZ : MLAP_PA_BSND;
  if (prolog_case.shape.scenario == Scenario::kPartialKvInt8) call.run.kv_quant = MLAP_KV_PER_CHANNEL;
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
