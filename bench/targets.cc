#include "targets.h"

#include <fmt/format.h>

#include <limits>
#include <span>

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
  kPartial,      // the bf16 operator's time over the partially quantised one's
  kFullInt8,     // the same over the fully quantised one's, with either cache
};

struct Target {
  Metric metric;
  Range heads;
  Range tokens;
  double at_least;
};

constexpr Target kTargets[] = {
    {Metric::kEfficiency, {128, 128}, {1, 4}, 0.90},   {Metric::kEfficiency, {128, 128}, {16, 16}, 0.80},
    {Metric::kEfficiency, {128, 128}, {64, 64}, 0.90}, {Metric::kEfficiency, {128, 128}, {256, kAny}, 0.94},
    {Metric::kEfficiency, {16, 32}, {1, 4}, 0.85},     {Metric::kEfficiency, {16, 32}, {16, 16}, 0.75},
    {Metric::kEfficiency, {16, 32}, {64, 64}, 0.86},   {Metric::kEfficiency, {16, 32}, {256, kAny}, 0.92},
    {Metric::kAgainstPeer, {1, kAny}, {1, 4}, 1.30},   {Metric::kAgainstPeer, {1, kAny}, {16, 16}, 1.25},
    {Metric::kAgainstPeer, {1, kAny}, {64, 64}, 1.10}, {Metric::kAgainstPeer, {1, kAny}, {256, kAny}, 1.07},
    {Metric::kPartial, {128, 128}, {1, 4}, 1.35},      {Metric::kPartial, {128, 128}, {16, 16}, 1.25},
    {Metric::kPartial, {128, 128}, {64, 64}, 1.30},    {Metric::kPartial, {128, 128}, {256, kAny}, 1.35},
    {Metric::kFullInt8, {128, 128}, {1, 4}, 1.65},     {Metric::kFullInt8, {128, 128}, {16, 16}, 1.25},
    {Metric::kFullInt8, {128, 128}, {64, 64}, 1.30},   {Metric::kFullInt8, {128, 128}, {256, kAny}, 1.35},
};

// Efficiency with 256-bit vectors, against what these can do.
constexpr Target kAvx2Targets[] = {
    {Metric::kEfficiency, {1, kAny}, {1, 4}, 0.85},
    {Metric::kEfficiency, {1, kAny}, {16, 16}, 0.70},
    {Metric::kEfficiency, {1, kAny}, {64, 64}, 0.80},
    {Metric::kEfficiency, {1, kAny}, {256, kAny}, 0.85},
};

std::span<const Target> TargetsOf(std::string_view isa) {
  if (isa == "avx2" || isa == "avxvnni") return kAvx2Targets;
  return kTargets;
}

constexpr double kMaxFirstStepSeconds = 20e-6;
constexpr double kMaxEmptyCallSeconds = 10e-6;
constexpr double kMaxHiddenBytes = 32 * kMebibyte;

double MaxWorkspaceBytes(int64_t tokens) { return 64 * kMebibyte + 8192.0 * static_cast<double>(tokens); }

// The bf16 result of a point, null if it was not measured.
const PointResult* FindBf16(const std::vector<PointResult>& results, const Point& point) {
  for (const PointResult& result : results) {
    if (result.point.heads == point.heads && result.point.tokens == point.tokens &&
        result.point.scenario == kNonQuant) {
      return &result;
    }
  }
  return nullptr;
}

// Whether the metric is one of this scenario.
bool IsAbout(Metric metric, const tools::Scenario* scenario) {
  switch (metric) {
    case Metric::kEfficiency:
    case Metric::kAgainstPeer:
      return scenario == kNonQuant;
    case Metric::kPartial:
      return scenario == kPartial;
    case Metric::kFullInt8:
      return scenario == kFullInt8 || scenario == kFullInt8KvInt8;
  }
  return false;
}

// Nothing to check: false.
bool Find(Metric metric, const std::vector<PointResult>& results, const PointResult& result, double* found,
          std::string* what) {
  if (metric == Metric::kEfficiency) {
    *found = result.Efficiency();
    *what = "efficiency of bf16";
    return true;
  }
  if (metric == Metric::kAgainstPeer) {
    *found = result.AgainstPeer();
    *what = "bf16 against oneDNN";
    return !result.peers.empty();
  }
  const PointResult* bf16 = FindBf16(results, result.point);
  if (bf16 == nullptr) return false;
  *found = bf16->ours.median / result.ours.median;
  *what = fmt::format("{} against bf16", result.point.scenario->label);
  return true;
}

TargetResult AtMost(std::string what, std::string unit, double wanted, double found) {
  return {std::move(what), std::move(unit), wanted, found, true, found <= wanted};
}

}  // namespace

std::vector<TargetResult> CheckTargets(std::string_view isa, const std::vector<PointResult>& results,
                                       const CallCosts& costs) {
  std::vector<TargetResult> checked;
  for (const Target& target : TargetsOf(isa)) {
    for (const PointResult& result : results) {
      const Point& point = result.point;
      if (!IsAbout(target.metric, point.scenario)) continue;
      if (!target.heads.Has(point.heads) || !target.tokens.Has(point.tokens)) continue;
      double found = 0.0;
      std::string what;
      if (!Find(target.metric, results, result, &found, &what)) continue;
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
