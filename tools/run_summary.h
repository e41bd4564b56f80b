// What ran and how long it took, as text.
#ifndef MLAP_TOOLS_RUN_SUMMARY_H_
#define MLAP_TOOLS_RUN_SUMMARY_H_

#include <string>
#include <vector>

#include "cann_case.h"

namespace mlap::tools {

// `runs` calls of the operator, and the report of the one with the median time of the second step.
struct RunSummary {
  int num_runs = 0;
  bool is_first_run = false;  // one run only, and none before it: slower than later ones
  double first_step = 0.0;    // median, in seconds
  double second_step = 0.0;   // median, in seconds
  mlap_cann_report report = {};
};

// Runs at least once. Stops early once `max_seconds` have passed. Throws as CannCase::Run does.
RunSummary RunRepeatedly(CannCase* device_case, int num_runs, double max_seconds);

// Several lines: the device and kernels, the times in total and by stage, the rates. Indented by two.
std::string FormatSummary(const RunSummary& summary);

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_RUN_SUMMARY_H_
