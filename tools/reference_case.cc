#include "reference_case.h"

#include <mlaprolog/mlaprolog.h>

#include <algorithm>

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

struct NamedField {
  std::string_view name;
  mlap_tensor mlap_prolog_args::*field;
};

constexpr NamedField kFields[] = {
    {"token_x", &mlap_prolog_args::token_x},
    {"weight_dq", &mlap_prolog_args::weight_dq},
    {"weight_uq_qr", &mlap_prolog_args::weight_uq_qr},
    {"weight_uk", &mlap_prolog_args::weight_uk},
    {"weight_dkv_kr", &mlap_prolog_args::weight_dkv_kr},
    {"rmsnorm_gamma_cq", &mlap_prolog_args::rmsnorm_gamma_cq},
    {"rmsnorm_gamma_ckv", &mlap_prolog_args::rmsnorm_gamma_ckv},
    {"rope_sin", &mlap_prolog_args::rope_sin},
    {"rope_cos", &mlap_prolog_args::rope_cos},
    {"cache_index", &mlap_prolog_args::cache_index},
    {"kv_cache", &mlap_prolog_args::kv_cache},
    {"kr_cache", &mlap_prolog_args::kr_cache},
    {"dequant_scale_w_uq_qr", &mlap_prolog_args::dequant_scale_w_uq_qr},
    {"quant_scale_ckv", &mlap_prolog_args::quant_scale_ckv},
    {"quant_scale_ckr", &mlap_prolog_args::quant_scale_ckr},
    {"smooth_scales_cq", &mlap_prolog_args::smooth_scales_cq},
    {"query", &mlap_prolog_args::query},
    {"query_rope", &mlap_prolog_args::query_rope},
};

mlap_tensor* Field(mlap_prolog_args* args, std::string_view name) {
  for (const NamedField& field : kFields) {
    if (field.name == name) return &(args->*field.field);
  }
  Fail("the reference has no argument '{}'", name);
}

}  // namespace

CaseOutputs RunReferenceOnCase(const PrologCase& prolog_case) {
  CaseOutputs outputs;
  mlap_prolog_args args = {};
  args.struct_size = sizeof(args);
  for (const TensorSpec& spec : InputSpecs(prolog_case.shape)) {
    const CaseTensor& input = prolog_case.Input(spec.name);
    std::byte* copy = nullptr;
    if (std::string_view(spec.name).ends_with("_cache")) outputs[spec.name] = CopyTensor(input, &copy);
    *Field(&args, spec.name) = NativeTensor(&input, spec, copy);
  }
  for (const TensorSpec& spec : OutputSpecs(prolog_case.shape)) {
    std::byte* bytes = nullptr;
    CaseTensor& output = outputs[spec.name] = NewTensor(spec.dtype, spec.shape, &bytes);
    *Field(&args, spec.name) = NativeTensor(&output, spec, bytes);
  }
  args.rmsnorm_epsilon_cq = prolog_case.epsilon_cq;
  args.rmsnorm_epsilon_ckv = prolog_case.epsilon_ckv;
  args.cache_mode = prolog_case.shape.cache_mode == CacheMode::kPaNz ? MLAP_PA_NZ : MLAP_PA_BSND;
  ProgressLine progress("running the reference");
  args.progress = &ProgressLine::UpdateCallback;
  args.progress_context = &progress;
  if (mlap_reference_run(&args) != MLAP_OK)
    Fail("{}: the reference refuses it: {}", prolog_case.name, mlap_last_error());
  return outputs;
}

}  // namespace mlap::tools
