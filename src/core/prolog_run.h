// Runs a planned call.
#ifndef MLAP_CORE_PROLOG_RUN_H_
#define MLAP_CORE_PROLOG_RUN_H_

#include <array>
#include <cstdint>

#include "base/prolog_args.h"
#include "base/status.h"
#include "core/prolog_plan.h"
#include "core/slot_check.h"
#include "kernels/kernel_table.h"
#include "parallel/executor.h"

namespace mlap {

enum Stage : int { kStageDown, kStageNorm, kStageHeads, kNumStages };

// Names of the stages in reports: "x W_DQ|W_DKV|KR", "RMSNorm", "heads and key".
const char* StageName(Stage stage);

struct StageTimes {
  std::array<double, kNumStages> seconds{};
};

// Writes query, query_rope and the cache rows of args. `workspace` has plan.workspace_bytes bytes of any alignment and
// content. Fails, with nothing written, if CheckSlots does or query_norm is asked of a query without low rank;
// otherwise the call cannot fail. Results are bit-identical for any number of tokens around a token, any plan and any
// executor, given one kernel table.
Status RunProlog(const PrologArgs& args, const PrologPlan& plan, const KernelTable& kernels, Executor* executor,
                 void* workspace, StageTimes* times);

}  // namespace mlap

#endif  // MLAP_CORE_PROLOG_RUN_H_
