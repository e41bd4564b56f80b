// What the project wants to reach, as a table, and whether a run reached it.
#ifndef MLAP_BENCH_TARGETS_H_
#define MLAP_BENCH_TARGETS_H_

#include <string>
#include <string_view>
#include <vector>

#include "call_costs.h"
#include "point_bench.h"

namespace mlap::bench {

struct TargetResult {
  std::string what;  // "efficiency, non-quant, N = 128, T = 1"
  std::string unit;  // "", "x", "us", ...
  double wanted = 0.0;
  double found = 0.0;
  bool is_at_most = false;  // otherwise at least
  bool is_met = false;
};

// `isa`: the instruction set the operator used.
std::vector<TargetResult> CheckTargets(std::string_view isa, const std::vector<PointResult>& results,
                                       const CallCosts& costs);

}  // namespace mlap::bench

#endif  // MLAP_BENCH_TARGETS_H_
