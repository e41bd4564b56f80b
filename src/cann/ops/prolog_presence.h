// Which parameters a call must have, may have, and must not have.
#ifndef MLAP_CANN_OPS_PROLOG_PRESENCE_H_
#define MLAP_CANN_OPS_PROLOG_PRESENCE_H_

#include "cann/ops/prolog_limits.h"
#include "cann/ops/prolog_params.h"
#include "cann/ops/scenario.h"

namespace mlap::cann {

// `is_fused`: tokens are (T, He). The cache mode of `kind` matters for cacheIndex and actualSeqLen only.
Presence ExpectedPresence(const CallKind& kind, Param param, bool is_fused, bool has_query_norm);

}  // namespace mlap::cann

#endif  // MLAP_CANN_OPS_PROLOG_PRESENCE_H_
