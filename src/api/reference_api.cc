// mlap_reference_run.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "api/api_function.h"
#include "api/layer_weights.h"
#include "api/run_args_check.h"
#include "base/float_environment.h"
#include "core/prolog_plan.h"
#include "core/slot_check.h"
#include "mlaprolog/mlaprolog.h"
#include "reference/reference.h"

namespace mlap {
namespace {

constexpr const char* kFunction = "mlap_reference_run";

// The wanted intermediates and where the reference leaves them.
struct Wanted {
  const char* name;
  const mlap_tensor& tensor;
  mlap_dtype dtype;
  Dims dims;
  bool exists;
  const void* values;
  size_t bytes;
};

template <class T>
Wanted Want(const char* name, const mlap_tensor& tensor, mlap_dtype dtype, const Dims& dims, bool exists,
            const std::vector<T>& values) {
  return {name, tensor, dtype, dims, exists, values.data(), values.size() * sizeof(T)};
}

std::vector<Wanted> WantedOf(const mlap_intermediates& out, const PrologArgs& args, const Intermediates& seen) {
  const PrologShape& shape = args.shape;
  const int64_t T = shape.tokens;
  const bool has_c_q = shape.q_rank > 0;
  const bool has_quantized = has_c_q && args.mode.QuantizesCq();
  const bool has_scale = has_quantized && args.mode.weight_quant != WeightQuant::kMxFp8;
  return {
      Want("intermediates.c_q", out.c_q, MLAP_FLOAT32, {T, shape.q_rank}, has_c_q, seen.c_q),
      Want("intermediates.c_q_quantized", out.c_q_quantized, ToDtype(args.mode.CqType()), {T, shape.q_rank},
           has_quantized, seen.c_q_quantized),
      Want("intermediates.c_q_scale", out.c_q_scale, MLAP_FLOAT32, {T}, has_scale, seen.c_q_scale),
      Want("intermediates.q_c", out.q_c, MLAP_FLOAT32, {T, shape.heads, shape.nope}, true, seen.q_c),
      Want("intermediates.q_r", out.q_r, MLAP_FLOAT32, {T, shape.heads, shape.rope}, true, seen.q_r),
      Want("intermediates.c_kv", out.c_kv, MLAP_FLOAT32, {T, shape.kv_rank}, true, seen.c_kv),
      Want("intermediates.k_r", out.k_r, MLAP_FLOAT32, {T, shape.rope}, true, seen.k_r),
  };
}

Status CheckWanted(const std::vector<Wanted>& all) {
  TensorChecks checks;
  for (const Wanted& wanted : all) {
    if (IsAbsent(wanted.tensor)) continue;
    if (!wanted.exists) checks.Refuse(wanted.name, "none with weights of these types", "a tensor");
    checks.CheckDense(wanted.name, wanted.tensor, wanted.dtype, wanted.dims, Access::kWrite);
  }
  return checks.status();
}

mlap_status Run(const mlap_weights* handle, const mlap_run_args& args, const mlap_reference_args& reference) {
  const std::shared_ptr<LayerWeights> weights = ProcessWeights().Find(handle);
  if (weights == nullptr) return FailUnknownWeights(kFunction, handle);
  const DefaultFloatEnvironment environment;
  BoundCall call;
  Status status = BindRunArgs(*weights, args, &call);
  PrologPlan unused;  // planning checks that the sizes multiply without overflow
  if (status.ok()) status = PlanProlog(call.args.shape, call.args.mode, 1, &unused);
  Intermediates seen;
  if (status.ok() && reference.intermediates != nullptr) {
    status = CheckWanted(WantedOf(*reference.intermediates, call.args, seen));
  }
  if (!status.ok()) return FailFunction(kFunction, status);

  std::vector<char> memory(call.CopyBytes());
  call.GatherInputs(memory.data());
  status = CheckSlots(call.args);
  if (!status.ok()) return FailFunction(kFunction, status);
  ReferenceOptions options;
  options.intermediates = reference.intermediates != nullptr ? &seen : nullptr;
  if (reference.progress != nullptr) {
    options.progress = [&](double done) { reference.progress(reference.progress_context, done); };
  }
  RunReference(call.args, options);
  call.ScatterOutputs();
  if (reference.intermediates == nullptr) return MLAP_OK;
  for (const Wanted& wanted : WantedOf(*reference.intermediates, call.args, seen)) {
    if (wanted.tensor.data != nullptr && wanted.bytes != 0) {
      std::memcpy(wanted.tensor.data, wanted.values, wanted.bytes);
    }
  }
  return MLAP_OK;
}

}  // namespace
}  // namespace mlap

mlap_status mlap_reference_run(const mlap_weights* weights, const mlap_run_args* args,
                               const mlap_reference_args* reference) {
  using mlap::CheckStructSize;
  using mlap::kFunction;
  return mlap::Guarded(kFunction, [&] {
    const mlap_reference_args defaults = {sizeof(mlap_reference_args), nullptr, nullptr, nullptr};
    const mlap_reference_args* wanted = reference != nullptr ? reference : &defaults;
    mlap_status status = CheckStructSize(kFunction, "args", args);
    if (status == MLAP_OK) status = CheckStructSize(kFunction, "reference", wanted);
    if (status == MLAP_OK && wanted->intermediates != nullptr) {
      status = CheckStructSize(kFunction, "intermediates", wanted->intermediates);
    }
    return status == MLAP_OK ? mlap::Run(weights, *args, *wanted) : status;
  });
}
