// The operator's quantisation scenarios: which types, which optional tensors.
#ifndef MLAP_CANN_OPS_SCENARIO_H_
#define MLAP_CANN_OPS_SCENARIO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "aclnn/acl_meta.h"
#include "base/prolog_args.h"
#include "cann/ops/prolog_params.h"

namespace mlap::cann {

// kIgnored: may be there, and is neither looked at nor written.
enum class Presence { kForbidden, kOptional, kRequired, kIgnored };

// What is quantised how. A parameter that is in none of the members has one type in every scenario.
struct Scenario {
  std::string name;
  WeightQuant weight_quant;
  KvQuant kv_quant;
  aclDataType token_x;  // and weightDq, weightDkvKr
  aclDataType weight_uq_qr;
  aclDataType kv_cache;
  aclDataType kr_cache;
  aclDataType query;
  aclDataType query_norm;
  aclDataType scale;     // of the dequantisation scales of tokenX, the weights, and queryNorm
  Presence full_scales;  // of tokenX, weightDq, weightDkvKr
  Presence uq_qr_scale;
  Presence smooth;
  Presence clip_alpha;

  bool HasMxScales() const { return weight_quant == WeightQuant::kMxFp8; }
  bool MergesCaches() const { return kv_quant == KvQuant::kPerGroup; }
};

// All sixteen, ascending in weightQuantMode, then kvCacheQuantMode.
const std::vector<Scenario>& Scenarios();

// The scenario of two modes; null if they do not go together.
const Scenario* FindScenario(WeightQuant weight_quant, KvQuant kv_quant);

// The modes' number in the prototype is their place in the enumerations. Null if a number or the pair is not legal.
const Scenario* FindScenario(int64_t weight_quant_mode, int64_t kv_cache_quant_mode);

// The scenario that the types of tokenX, weightUqQr and kvCache mean where there are no modes to say it.
const Scenario& InferScenario(const PrologTensors& tensors);

// The type a parameter has in a scenario.
aclDataType ExpectedDtype(const Scenario& scenario, Param param);

}  // namespace mlap::cann

#endif  // MLAP_CANN_OPS_SCENARIO_H_
