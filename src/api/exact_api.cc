// mlap_exact_run.
#include <memory>
#include <vector>

#include "api/api_function.h"
#include "api/layer_weights.h"
#include "api/run_args_check.h"
#include "base/float_environment.h"
#include "core/prolog_plan.h"
#include "mlaprolog/mlaprolog.h"
#include "reference/exact.h"

namespace mlap {
namespace {

constexpr const char* kExactFunction = "mlap_exact_run";

mlap_status RunExactChecked(const mlap_weights* handle, const mlap_run_args& args, const mlap_exact_results& results) {
  const std::shared_ptr<LayerWeights> weights = ProcessWeights().Find(handle);
  if (weights == nullptr) return FailUnknownWeights(kExactFunction, handle);
  const DefaultFloatEnvironment environment;
  BoundCall call;
  Status status = BindRunArgs(*weights, args, &call, CallParts::kInputsOnly);
  PrologPlan unused;  // planning checks that the sizes multiply without overflow
  if (status.ok()) status = PlanProlog(call.args.shape, call.args.mode, 1, &unused);
  if (!status.ok()) return FailFunction(kExactFunction, status);

  const PrologShape& shape = call.args.shape;
  TensorChecks checks;
  ExactResults exact;
  const auto want = [&](const char* name, const mlap_tensor& tensor, const Dims& dims, double** place) {
    if (IsAbsent(tensor) || !checks.CheckDense(name, tensor, MLAP_FLOAT64, dims, Access::kWrite)) return;
    *place = static_cast<double*>(tensor.data);
  };
  want("results.query", results.query, {shape.tokens, shape.heads, shape.kv_rank}, &exact.query);
  want("results.query_rope", results.query_rope, {shape.tokens, shape.heads, shape.rope}, &exact.query_rope);
  want("results.c_kv", results.c_kv, {shape.tokens, shape.kv_rank}, &exact.c_kv);
  want("results.k_r", results.k_r, {shape.tokens, shape.rope}, &exact.k_r);
  if (!checks.ok()) return FailFunction(kExactFunction, checks.status());
  std::vector<char> memory(call.CopyBytes());
  call.GatherInputs(memory.data());
  RunExact(call.args, exact);
  return MLAP_OK;
}

}  // namespace
}  // namespace mlap

mlap_status mlap_exact_run(const mlap_weights* weights, const mlap_run_args* args, const mlap_exact_results* results) {
  using mlap::CheckStructSize;
  using mlap::kExactFunction;
  return mlap::Guarded(kExactFunction, [&] {
    mlap_status status = CheckStructSize(kExactFunction, "args", args);
    if (status == MLAP_OK) status = CheckStructSize(kExactFunction, "results", results);
    return status == MLAP_OK ? mlap::RunExactChecked(weights, *args, *results) : status;
  });
}
