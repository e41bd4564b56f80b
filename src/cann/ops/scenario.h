// The operator's quantisation scenarios: which types, which optional tensors.
#ifndef MLAP_CANN_OPS_SCENARIO_H_
#define MLAP_CANN_OPS_SCENARIO_H_

#include "aclnn/acl_meta.h"
#include "base/prolog_args.h"
#include "cann/ops/prolog_params.h"

namespace mlap::cann {

enum class Presence { kForbidden, kOptional, kRequired };

// One row of the scenario table. A parameter that is in none of its members has one type in every scenario.
struct Scenario {
  const char* name;
  // Whether the CPU operator computes it; the others exist to be refused as the device refuses them.
  bool is_offered;
  WeightQuant weight_quant;
  KvQuant kv_quant;
  aclDataType token_x;  // and weightDq, weightDkvKr
  aclDataType weight_uq_qr;
  aclDataType kv_cache;
  aclDataType kr_cache;
  aclDataType query;
  Presence scale_x;  // and of weightDq, weightDkvKr
  Presence scale_w_uq_qr;
  Presence scale_ckv;
  Presence scale_ckr;
  Presence smooth;
};

// V1 infers the scenario from the types of tokenX, weightUqQr and kvCache.
const Scenario& InferScenario(const PrologTensors& tensors);

// The type a parameter has in a scenario.
aclDataType ExpectedDtype(const Scenario& scenario, Param param);
Presence ExpectedPresence(const Scenario& scenario, Param param);

// The dtype columns of the operator's definition. `binary` says whether V1 has a kernel for the column.
enum class ColumnMatch { kNone, kWithoutKernel, kFits };
ColumnMatch MatchDtypeColumn(const PrologTensors& tensors);

}  // namespace mlap::cann

#endif  // MLAP_CANN_OPS_SCENARIO_H_
