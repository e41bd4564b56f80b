#include "run_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "cann_session.h"
#include "progress_line.h"
#include "text_format.h"

namespace mlap::tools {
namespace {

std::string HowManyRuns(const RunSummary& summary) {
  if (summary.is_first_run) return "first run: it also touches memory and starts threads; --repeat 20 tells more";
  return summary.num_runs == 1 ? "one run" : fmt::format("medians of {} runs", summary.num_runs);
}

}  // namespace

RunSummary RunRepeatedly(CannCase* device_case, int num_runs, double max_seconds) {
  using Clock = std::chrono::steady_clock;
  const bool is_first = !device_case->HasRun();
  const Clock::time_point start = Clock::now();
  std::vector<std::pair<double, mlap_cann_report>> second_steps;
  std::vector<double> first_steps;
  ProgressLine progress("running the operator");
  for (int run = 0; run < num_runs; ++run) {
    const CallTimes times = device_case->Run();
    first_steps.push_back(times.first_step);
    second_steps.emplace_back(times.second_step, device_case->Report());
    progress.Update(static_cast<double>(run + 1) / num_runs);
    if (std::chrono::duration<double>(Clock::now() - start).count() > max_seconds) break;
  }
  const auto middle = static_cast<std::ptrdiff_t>(first_steps.size() / 2);
  std::nth_element(first_steps.begin(), first_steps.begin() + middle, first_steps.end());
  std::nth_element(second_steps.begin(), second_steps.begin() + middle, second_steps.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto count = static_cast<int>(first_steps.size());
  return {count, is_first && count == 1, first_steps[static_cast<size_t>(middle)],
          second_steps[static_cast<size_t>(middle)].first, second_steps[static_cast<size_t>(middle)].second};
}

std::string FormatSummary(const RunSummary& summary) {
  const mlap_cann_report& report = summary.report;
  if (report.op == nullptr) return "  ran      nothing: there are no tokens\n";
  const char* const first = summary.is_first_run ? " (first run)" : "";
  std::string text = fmt::format("  ran      {} as {}, {}, {}, up-projection {}\n", report.op, CannSession::SocName(),
                                 Counted(report.num_threads, "thread"), report.isa, report.gemm_kernel);
  text += fmt::format("  steps    first {}, second {} ({})\n", FormatSeconds(summary.first_step),
                      FormatSeconds(summary.second_step), HowManyRuns(summary));
  if (report.num_stages > 0) {
    text += "  stages  ";
    double sum = 0.0;
    for (int i = 0; i < report.num_stages && i < MLAP_CANN_MAX_STAGES; ++i) {
      text += fmt::format("{} {} {}", i == 0 ? "" : ",", report.stage_names[i], FormatSeconds(report.stage_seconds[i]));
      sum += report.stage_seconds[i];
    }
    text += fmt::format("; sum {}\n", FormatSeconds(sum));
  }
  if (summary.second_step > 0.0) {
    text += fmt::format("  rates    {:.1f} GB/s ({} of weights), {:.1f} GFLOP/s ({:.3g} GFLOP){}\n",
                        report.weight_bytes / summary.second_step * 1e-9, FormatBytes(report.weight_bytes),
                        report.flops / summary.second_step * 1e-9, report.flops * 1e-9, first);
  }
  return text;
}

}  // namespace mlap::tools
