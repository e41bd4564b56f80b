#include "cann/ops/scenario.h"

namespace mlap::cann {
namespace {

constexpr Presence kNo = Presence::kForbidden;
constexpr Presence kMay = Presence::kOptional;
constexpr Presence kMust = Presence::kRequired;

constexpr Scenario kNonQuant = {"non-quant",
                                true,
                                WeightQuant::kNone,
                                KvQuant::kNone,
                                ACL_BF16,
                                ACL_BF16,
                                ACL_BF16,
                                ACL_BF16,
                                ACL_BF16,
                                kNo,
                                kNo,
                                kNo,
                                kNo,
                                kNo};
constexpr Scenario kPartial = {"partial",
                               true,
                               WeightQuant::kUqQr,
                               KvQuant::kNone,
                               ACL_BF16,
                               ACL_INT8,
                               ACL_BF16,
                               ACL_BF16,
                               ACL_BF16,
                               kNo,
                               kMust,
                               kNo,
                               kNo,
                               kMay};
constexpr Scenario kPartialInt8Caches = {"partial, int8 caches",
                                         true,
                                         WeightQuant::kUqQr,
                                         KvQuant::kPerChannel,
                                         ACL_BF16,
                                         ACL_INT8,
                                         ACL_INT8,
                                         ACL_INT8,
                                         ACL_BF16,
                                         kNo,
                                         kMust,
                                         kMust,
                                         kMust,
                                         kMay};
constexpr Scenario kFull = {"int8 full", false,    WeightQuant::kFull, KvQuant::kNone, ACL_INT8, ACL_INT8,
                            ACL_BF16,    ACL_BF16, ACL_BF16,           kMust,          kMust,    kNo,
                            kNo,         kMay};
constexpr Scenario kFullPerTensor = {"int8 full, per-tensor int8 cache",
                                     false,
                                     WeightQuant::kFull,
                                     KvQuant::kPerTensor,
                                     ACL_INT8,
                                     ACL_INT8,
                                     ACL_INT8,
                                     ACL_BF16,
                                     ACL_INT8,
                                     kMust,
                                     kMust,
                                     kMust,
                                     kNo,
                                     kMay};

struct DtypeColumn {
  aclDataType token_x, weight_dq, weight_uq_qr, weight_dkv_kr, kv_cache, kr_cache, query;
  bool has_kernel;
};

// What V1's definition lists. The all-int8 column exists although no scenario fits it.
constexpr DtypeColumn kColumns[] = {
    {ACL_BF16, ACL_BF16, ACL_BF16, ACL_BF16, ACL_BF16, ACL_BF16, ACL_BF16, true},
    {ACL_BF16, ACL_BF16, ACL_INT8, ACL_BF16, ACL_INT8, ACL_INT8, ACL_BF16, true},
    {ACL_BF16, ACL_BF16, ACL_INT8, ACL_BF16, ACL_BF16, ACL_BF16, ACL_BF16, true},
    {ACL_INT8, ACL_INT8, ACL_INT8, ACL_INT8, ACL_INT8, ACL_INT8, ACL_BF16, true},
    {ACL_INT8, ACL_INT8, ACL_INT8, ACL_INT8, ACL_BF16, ACL_BF16, ACL_BF16, false},
};

}  // namespace

const Scenario& InferScenario(const PrologTensors& tensors) {
  const bool int8_cache = tensors[kKvCache].dtype == ACL_INT8;
  if (tensors[kTokenX].dtype == ACL_INT8) return int8_cache ? kFullPerTensor : kFull;
  if (tensors[kWeightUqQr].dtype == ACL_INT8) return int8_cache ? kPartialInt8Caches : kPartial;
  return kNonQuant;
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
    case kCacheIndex:
      return ACL_INT64;
    case kDequantScaleX:
    case kDequantScaleWDq:
    case kDequantScaleWUqQr:
    case kDequantScaleWDkvKr:
    case kQuantScaleCkv:
    case kQuantScaleCkr:
    case kSmoothScalesCq:
      return ACL_FLOAT;
    default:
      return ACL_BF16;
  }
}

Presence ExpectedPresence(const Scenario& scenario, Param param) {
  switch (param) {
    case kDequantScaleX:
    case kDequantScaleWDq:
    case kDequantScaleWDkvKr:
      return scenario.scale_x;
    case kDequantScaleWUqQr:
      return scenario.scale_w_uq_qr;
    case kQuantScaleCkv:
      return scenario.scale_ckv;
    case kQuantScaleCkr:
      return scenario.scale_ckr;
    case kSmoothScalesCq:
      return scenario.smooth;
    default:
      return Presence::kRequired;
  }
}

ColumnMatch MatchDtypeColumn(const PrologTensors& tensors) {
  for (const Param param : {kWeightUk, kGammaCq, kGammaCkv, kRopeSin, kRopeCos, kQueryRopeOut}) {
    if (tensors[param].dtype != ACL_BF16) return ColumnMatch::kNone;
  }
  if (tensors[kCacheIndex].dtype != ACL_INT64) return ColumnMatch::kNone;
  for (const DtypeColumn& column : kColumns) {
    if (tensors[kTokenX].dtype == column.token_x && tensors[kWeightDq].dtype == column.weight_dq &&
        tensors[kWeightUqQr].dtype == column.weight_uq_qr && tensors[kWeightDkvKr].dtype == column.weight_dkv_kr &&
        tensors[kKvCache].dtype == column.kv_cache && tensors[kKrCache].dtype == column.kr_cache &&
        tensors[kQueryOut].dtype == column.query) {
      return column.has_kernel ? ColumnMatch::kFits : ColumnMatch::kWithoutKernel;
    }
  }
  return ColumnMatch::kNone;
}

}  // namespace mlap::cann
