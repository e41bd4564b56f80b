// All a run found, and its two forms.
#ifndef MLAP_BENCH_BENCH_REPORT_H_
#define MLAP_BENCH_BENCH_REPORT_H_

#include <string>
#include <vector>

#include "bench_options.h"
#include "call_costs.h"
#include "machine_facts.h"
#include "machine_limits.h"
#include "point_bench.h"
#include "targets.h"

namespace mlap::bench {

struct BenchReport {
  BenchOptions options;
  MachineFacts machine;
  std::vector<MachineLimits::Rate> limits;
  std::string isa_bf16_key;  // which of the limits bound this run
  std::string isa_int8_key;
  double read_buffer_bytes = 0.0;
  double huge_share = 0.0;  // of the resident memory
  std::string peer_version;
  std::string why_no_peer;  // empty if there is one
  CallCosts costs;
  std::vector<PointResult> points;
  std::vector<TargetResult> targets;
  double seconds = 0.0;
};

// Whether the limits that bound this run reached, in the median, 80 % of their best. If not, something else ran on the
// machine, or it changes its speed; efficiencies mean little then.
bool IsSteady(const BenchReport& report);

std::string FormatReport(const BenchReport& report);

// Throws ToolError if the file cannot be written.
void WriteJson(const BenchReport& report, const std::string& path);

}  // namespace mlap::bench

#endif  // MLAP_BENCH_BENCH_REPORT_H_
