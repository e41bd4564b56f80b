#include "targets.h"

#include <fmt/format.h>

#include <limits>

namespace mlap::bench {
namespace {

constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
constexpr double kMebibyte = 1024.0 * 1024.0;

struct Range {
  int64_t first;
  int64_t last;  // included

  bool Has(int64_t value) const { return value >= first && value <= last; }
};

enum class Metric {
  kEfficiency,   // of the bf16 operator
  kAgainstPeer,  // the best oneDNN composition's time over the bf16 operator's
  kAgainstBf16,  // the bf16 operator's time over the partially quantised one's
};

struct Target {
  Metric metric;
  Range heads;
  Range tokens;
  double at_least;
};

constexpr Target kTargets[] = {
    {Metric::kEfficiency, {128, 128}, {1, 4}, 0.90},    {Metric::kEfficiency, {128, 128}, {16, 16}, 0.80},
    {Metric::kEfficiency, {128, 128}, {64, 64}, 0.90},  {Metric::kEfficiency, {128, 128}, {256, kAny}, 0.94},
    {Metric::kEfficiency, {16, 32}, {1, 4}, 0.85},      {Metric::kEfficiency, {16, 32}, {16, 16}, 0.75},
    {Metric::kEfficiency, {16, 32}, {64, 64}, 0.86},    {Metric::kEfficiency, {16, 32}, {256, kAny}, 0.92},
    {Metric::kAgainstPeer, {1, kAny}, {1, 4}, 1.30},    {Metric::kAgainstPeer, {1, kAny}, {16, 16}, 1.25},
    {Metric::kAgainstPeer, {1, kAny}, {64, 64}, 1.10},  {Metric::kAgainstPeer, {1, kAny}, {256, kAny}, 1.07},
    {Metric::kAgainstBf16, {128, 128}, {1, 4}, 1.35},   {Metric::kAgainstBf16, {128, 128}, {16, 16}, 1.25},
    {Metric::kAgainstBf16, {128, 128}, {64, 64}, 1.30}, {Metric::kAgainstBf16, {128, 128}, {256, kAny}, 1.35},
};

constexpr double kMaxFirstStepSeconds = 20e-6;
constexpr double kMaxEmptyCallSeconds = 10e-6;
constexpr double kMaxHiddenBytes = 32 * kMebibyte;

double MaxWorkspaceBytes(int64_t tokens) { return 64 * kMebibyte + 8192.0 * static_cast<double>(tokens); }

const PointResult* FindScenario(const std::vector<PointResult>& results, const Point& point, tools::Scenario scenario) {
  for (const PointResult& result : results) {
    if (result.point.heads == point.heads && result.point.tokens == point.tokens && result.point.scenario == scenario) {
      return &result;
    }
  }
  return nullptr;
}

// Nothing to check: false.
bool Find(const Target& target, const std::vector<PointResult>& results, const PointResult& bf16, double* found,
          std::string* what) {
  switch (target.metric) {
    case Metric::kEfficiency:
      *found = bf16.Efficiency();
      *what = "efficiency of bf16";
      return true;
    case Metric::kAgainstPeer:
      *found = bf16.AgainstPeer();
      *what = "bf16 against oneDNN";
      return !bf16.peers.empty();
    case Metric::kAgainstBf16: {
      const PointResult* partial = FindScenario(results, bf16.point, tools::Scenario::kPartial);
      if (partial == nullptr) return false;
      *found = bf16.ours.median / partial->ours.median;
      *what = "partial against bf16";
      return true;
    }
  }
  return false;
}

TargetResult AtMost(std::string what, std::string unit, double wanted, double found) {
  return {std::move(what), std::move(unit), wanted, found, true, found <= wanted};
}

}  // namespace

std::vector<TargetResult> CheckTargets(const std::vector<PointResult>& results, const CallCosts& costs) {
  std::vector<TargetResult> checked;
  for (const Target& target : kTargets) {
    for (const PointResult& result : results) {
      const Point& point = result.point;
      if (point.scenario != tools::Scenario::kNonQuant) continue;
      if (!target.heads.Has(point.heads) || !target.tokens.Has(point.tokens)) continue;
      double found = 0.0;
      std::string what;
      if (!Find(target, results, result, &found, &what)) continue;
      checked.push_back({fmt::format("{}, N = {}, T = {}", what, point.heads, point.tokens),
                         target.metric == Metric::kEfficiency ? "" : "x", target.at_least, found, false,
                         found >= target.at_least});
    }
  }
  checked.push_back(AtMost("first step", "us", kMaxFirstStepSeconds * 1e6, costs.first_step_seconds * 1e6));
  checked.push_back(
      AtMost("call without tokens, both steps", "us", kMaxEmptyCallSeconds * 1e6, costs.empty_call_seconds * 1e6));
  for (const CallCosts::Workspace& workspace : costs.workspace) {
    checked.push_back(AtMost(fmt::format("workspace, N = 128, T = {}", workspace.tokens), "MiB",
                             MaxWorkspaceBytes(workspace.tokens) / kMebibyte, workspace.bytes / kMebibyte));
  }
  if (costs.has_hidden_bytes) {
    checked.push_back(AtMost(fmt::format("memory beside tensors and workspace, N = 128, T = {}", costs.memory_tokens),
                             "MiB", kMaxHiddenBytes / kMebibyte, costs.hidden_bytes / kMebibyte));
  }
  return checked;
}

}  // namespace mlap::bench
