#include "cann/ops/scenario.h"

#include <iterator>

namespace mlap::cann {
namespace {

constexpr Presence kNo = Presence::kForbidden;
constexpr Presence kMay = Presence::kOptional;
constexpr Presence kMust = Presence::kRequired;

constexpr aclDataType kE4m3 = ACL_FLOAT8_E4M3FN;

constexpr auto kPlain = KvQuant::kNone;
constexpr auto kTensor = KvQuant::kPerTensor;
constexpr auto kChannel = KvQuant::kPerChannel;
constexpr auto kGroup = KvQuant::kPerGroup;

// What weightQuantMode decides. In the order of WeightQuant.
struct WeightQuantRow {
  const char* name;
  aclDataType token_x;
  aclDataType weight_uq_qr;  // and cQ's; the key's and the query's where kvCacheQuantMode quantises them
  aclDataType scale;
  Presence smooth;
  Presence clip_alpha;  // with a per-group cache
  std::initializer_list<KvQuant> kv_quants;
};

const WeightQuantRow kWeightQuants[] = {
    {"non-quant", ACL_BF16, ACL_BF16, ACL_FLOAT, kNo, kNo, {kPlain}},
    {"partial", ACL_BF16, ACL_INT8, ACL_FLOAT, kMay, kMust, {kPlain, kChannel, kGroup}},
    {"int8 full", ACL_INT8, ACL_INT8, ACL_FLOAT, kMay, kMust, {kPlain, kTensor, kGroup}},
    {"mxfp8 full", kE4m3, kE4m3, ACL_FLOAT8_E8M0, kNo, kNo, {kPlain, kTensor, kGroup}},
    {"fp8 full", kE4m3, kE4m3, ACL_FLOAT, kMay, kNo, {kPlain, kTensor, kGroup}},
    {"hif8 full", ACL_HIFLOAT8, ACL_HIFLOAT8, ACL_FLOAT, kMay, kNo, {kPlain, kTensor, kGroup}},
};

// What kvCacheQuantMode decides. In the order of KvQuant.
struct KvQuantRow {
  const char* suffix;
  bool kv_is_8_bit;
  bool kr_is_8_bit;
  bool query_is_8_bit;
};

constexpr KvQuantRow kKvQuants[] = {
    {"", false, false, false},
    {", per-tensor cache", true, false, true},
    {", int8 caches", true, true, false},
    {", per-group cache", true, false, false},
};

Scenario MakeScenario(size_t weight_quant, KvQuant kv_quant) {
  const WeightQuantRow& weights = kWeightQuants[weight_quant];
  const KvQuantRow& kv = kKvQuants[static_cast<size_t>(kv_quant)];
  const auto type = [&](bool is_8_bit) { return is_8_bit ? weights.weight_uq_qr : ACL_BF16; };
  Scenario scenario = {};
  scenario.name = std::string(weights.name) + kv.suffix;
  scenario.weight_quant = static_cast<WeightQuant>(weight_quant);
  scenario.kv_quant = kv_quant;
  scenario.token_x = weights.token_x;
  scenario.weight_uq_qr = weights.weight_uq_qr;
  scenario.kv_cache = type(kv.kv_is_8_bit);
  scenario.kr_cache = type(kv.kr_is_8_bit);
  scenario.query = type(kv.query_is_8_bit);
  scenario.query_norm = weights.weight_uq_qr;
  scenario.scale = weights.scale;
  scenario.full_scales = weights.token_x == ACL_BF16 ? kNo : kMust;
  scenario.uq_qr_scale = weights.weight_uq_qr == ACL_BF16 ? kNo : kMust;
  scenario.smooth = weights.smooth;
  scenario.clip_alpha = kv_quant == KvQuant::kPerGroup ? weights.clip_alpha : kNo;
  return scenario;
}

}  // namespace

const std::vector<Scenario>& Scenarios() {
  // Never destroyed, like every static of the library: a call may come while the program ends.
  static const std::vector<Scenario>& kScenarios = *[] {
    auto* scenarios = new std::vector<Scenario>;
    for (size_t i = 0; i < std::size(kWeightQuants); ++i) {
      for (const KvQuant kv_quant : kWeightQuants[i].kv_quants) scenarios->push_back(MakeScenario(i, kv_quant));
    }
    return scenarios;
  }();
  return kScenarios;
}

const Scenario* FindScenario(WeightQuant weight_quant, KvQuant kv_quant) {
  for (const Scenario& scenario : Scenarios()) {
    if (scenario.weight_quant == weight_quant && scenario.kv_quant == kv_quant) return &scenario;
  }
  return nullptr;
}

const Scenario* FindScenario(int64_t weight_quant_mode, int64_t kv_cache_quant_mode) {
  for (const Scenario& scenario : Scenarios()) {
    if (static_cast<int64_t>(scenario.weight_quant) == weight_quant_mode &&
        static_cast<int64_t>(scenario.kv_quant) == kv_cache_quant_mode) {
      return &scenario;
    }
  }
  return nullptr;
}

const Scenario& InferScenario(const PrologTensors& tensors) {
  const bool int8_cache = tensors[kKvCache].dtype == ACL_INT8;
  if (tensors[kTokenX].dtype == ACL_INT8) {
    return *FindScenario(WeightQuant::kFull, int8_cache ? KvQuant::kPerTensor : KvQuant::kNone);
  }
  if (tensors[kWeightUqQr].dtype == ACL_INT8) {
    return *FindScenario(WeightQuant::kUqQr, int8_cache ? KvQuant::kPerChannel : KvQuant::kNone);
  }
  return *FindScenario(WeightQuant::kNone, KvQuant::kNone);
}

aclDataType ExpectedDtype(const Scenario& scenario, Param param) {
  switch (param) {
    case kTokenX:
    case kWeightDq:
    case kWeightDkvKr:
      return scenario.token_x;
    case kWeightUqQr:
      return scenario.weight_uq_qr;
    case kKvCache:
      return scenario.kv_cache;
    case kKrCache:
      return scenario.kr_cache;
    case kQueryOut:
      return scenario.query;
    case kQueryNormOut:
      return scenario.query_norm;
    case kDequantScaleX:
    case kDequantScaleWDq:
    case kDequantScaleWUqQr:
    case kDequantScaleWDkvKr:
    case kDequantScaleQNormOut:
      return scenario.scale;
    case kCacheIndex:
      return ACL_INT64;
    case kActualSeqLen:
      return ACL_INT32;
    case kQuantScaleCkv:
    case kQuantScaleCkr:
    case kSmoothScalesCq:
    case kKNopeClipAlpha:
    case kDequantScaleQNopeOut:
      return ACL_FLOAT;
    default:
      return ACL_BF16;
  }
}

}  // namespace mlap::cann
