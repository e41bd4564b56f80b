// What a call costs beside its arithmetic: the first step, a call without tokens, the workspace, hidden memory.
#ifndef MLAP_BENCH_CALL_COSTS_H_
#define MLAP_BENCH_CALL_COSTS_H_

#include <cstdint>
#include <vector>

#include "cann_session.h"

namespace mlap::bench {

struct CallCosts {
  double first_step_seconds = 0.0;  // median, N = 128, T = 16
  double empty_call_seconds = 0.0;  // median of both steps and the synchronisation with T = 0
  struct Workspace {
    int64_t tokens = 0;
    double bytes = 0.0;
  };
  std::vector<Workspace> workspace;  // N = 128, the larger one of the scenarios
  int64_t memory_tokens = 0;
  double hidden_bytes = 0.0;  // what the first call of the process added to the resident memory at its peak
  bool has_hidden_bytes = false;
};

// Must run before any other call of the operator: the first one starts its threads.
CallCosts MeasureCallCosts(tools::CannSession* session, int64_t memory_tokens);

}  // namespace mlap::bench

#endif  // MLAP_BENCH_CALL_COSTS_H_
