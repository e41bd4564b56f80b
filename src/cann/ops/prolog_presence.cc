#include "cann/ops/prolog_presence.h"

namespace mlap::cann {

Presence ExpectedPresence(const CallKind& kind, Param param, bool is_fused, bool has_query_norm) {
  const Scenario& scenario = *kind.scenario;
  const auto required_if = [](bool condition) { return condition ? Presence::kRequired : Presence::kForbidden; };
  switch (param) {
    case kDequantScaleX:
    case kDequantScaleWDq:
    case kDequantScaleWDkvKr:
      return scenario.full_scales;
    case kDequantScaleWUqQr:
      return scenario.uq_qr_scale;
    case kQuantScaleCkv:
      return required_if(scenario.kv_quant == KvQuant::kPerTensor || scenario.kv_quant == KvQuant::kPerChannel);
    case kQuantScaleCkr:
      return required_if(scenario.kv_quant == KvQuant::kPerChannel);
    case kSmoothScalesCq:
      return scenario.smooth;
    case kKNopeClipAlpha:
      return scenario.clip_alpha;
    case kCacheIndex:
      return required_if(kind.cache_mode->IsPaged());
    case kActualSeqLen:
      return required_if(kind.cache_mode->ListsSequences(is_fused));
    case kDequantScaleQNopeOut:
      if (scenario.kv_quant == KvQuant::kPerTensor) return Presence::kRequired;
      return kind.version->has_modes ? Presence::kForbidden : Presence::kIgnored;
    case kQueryNormOut:
      return Presence::kOptional;
    case kDequantScaleQNormOut:
      return required_if(has_query_norm && scenario.weight_quant != WeightQuant::kNone);
    default:
      return Presence::kRequired;
  }
}

}  // namespace mlap::cann
