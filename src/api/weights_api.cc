// Weights handles.
#include <memory>
#include <string>

#include "api/api_function.h"
#include "api/layer_weights.h"
#include "core/prolog_plan.h"
#include "mlaprolog/mlaprolog.h"

namespace mlap {
namespace {

mlap_status Create(const mlap_weights_args& args, mlap_weights** out) {
  auto weights = std::make_shared<LayerWeights>();
  Status status = MakeLayerWeights(args, weights.get());
  PrologPlan unused;  // planning refuses what no call can do with these weights
  if (status.ok()) status = PlanProlog(weights->args.shape, weights->args.mode, 1, &unused);
  if (!status.ok()) return FailFunction("mlap_weights_create", status);
  *out = ProcessWeights().Add(std::move(weights));
  return MLAP_OK;
}

mlap_dims ToDims(const PrologShape& shape) {
  return {shape.hidden, shape.q_rank, shape.heads, shape.nope, shape.rope, shape.kv_rank};
}

}  // namespace
}  // namespace mlap

void mlap_weights_args_init(mlap_weights_args* args) {
  if (args == nullptr) return;
  *args = mlap_weights_args{};
  args->struct_size = sizeof(*args);
}

mlap_status mlap_weights_create(const mlap_weights_args* args, mlap_weights** weights) {
  constexpr const char* kFunction = "mlap_weights_create";
  return mlap::Guarded(kFunction, [&] {
    mlap_status status = mlap::CheckStructSize(kFunction, "args", args);
    if (status == MLAP_OK) status = mlap::CheckPlace(kFunction, "weights", weights);
    return status == MLAP_OK ? mlap::Create(*args, weights) : status;
  });
}

mlap_status mlap_weights_destroy(mlap_weights* weights) {
  constexpr const char* kFunction = "mlap_weights_destroy";
  return mlap::Guarded(kFunction, [&] {
    if (weights == nullptr) return MLAP_OK;
    if (!mlap::ProcessWeights().Remove(weights)) return mlap::FailUnknownWeights(kFunction, weights);
    return MLAP_OK;
  });
}

mlap_status mlap_weights_query(const mlap_weights* weights, mlap_weights_facts* facts) {
  constexpr const char* kFunction = "mlap_weights_query";
  return mlap::Guarded(kFunction, [&] {
    const mlap_status status = mlap::CheckStructSize(kFunction, "facts", facts);
    if (status != MLAP_OK) return status;
    const std::shared_ptr<mlap::LayerWeights> found = mlap::ProcessWeights().Find(weights);
    if (found == nullptr) return mlap::FailUnknownWeights(kFunction, weights);
    facts->dims = mlap::ToDims(found->args.shape);
    facts->weight_quant = static_cast<mlap_weight_quant>(found->args.mode.weight_quant);
    facts->ownership = found->ownership;
    facts->owned_bytes = found->memory.num_bytes();
    return MLAP_OK;
  });
}
