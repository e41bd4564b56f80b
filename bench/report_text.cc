#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "bench_report.h"

namespace mlap::bench {
namespace {

constexpr double kMebibyte = 1024.0 * 1024.0;

using Out = std::back_insert_iterator<std::string>;

void WriteMachine(const BenchReport& report, Out out) {
  const MachineFacts& m = report.machine;
  fmt::format_to(out, "machine\n  CPU        {}\n  sets       {}\n  ISA used   {}\n", m.cpu, m.flags, m.isa);
  fmt::format_to(out, "  threads    {} of {} CPUs; load {:.1f} at the start\n", m.num_threads, m.num_cpus, m.load);
  fmt::format_to(out, "  cache      {:.0f} MiB last level, {}\n", static_cast<double>(m.cache_bytes) / kMebibyte,
                 m.cache_source);
  fmt::format_to(out, "  pages      {:.0f} % of the memory on huge pages; kernel setting {}\n",
                 100.0 * report.huge_share, m.huge_pages);
  fmt::format_to(out, "  system     {}, {:.1f} GiB, {}\n", m.kernel, m.memory_bytes / (1024.0 * kMebibyte), m.compiler);
  fmt::format_to(out, "  peer       {}\n",
                 report.why_no_peer.empty() ? report.peer_version : "none: " + report.why_no_peer);
  fmt::format_to(out, "\nlimits, {} threads                         median     best\n", m.num_threads);
  for (const MachineLimits::Rate& rate : report.limits) {
    const bool is_read = rate.key == "read";
    const bool is_bound = is_read || rate.key == report.isa_bf16_key || rate.key == report.isa_int8_key;
    fmt::format_to(out, "  {:<14} {:<24} {:>8.{}f} {:>8.{}f} {}{}\n", rate.key, is_read ? "streaming read" : rate.what,
                   rate.per_second / 1e9, is_read ? 1 : 0, rate.best / 1e9, is_read ? 1 : 0, is_read ? "GB/s" : "Gop/s",
                   is_bound ? "  *" : "");
  }
  fmt::format_to(out, "  * bounds the operator here; reading: {}, from {:.0f} MiB\n", report.limits.front().what,
                 report.read_buffer_bytes / kMebibyte);
}

void WriteTable(const BenchReport& report, Out out) {
  fmt::format_to(out, "\n{:>4} {:>5} {:<17} {:>9} {:>9} {:>9} {:<7} {:>6} {:>7} {:>8} {:>9} {:>6} {:>9}\n", "N", "T",
                 "scenario", "ours ms", "min ms", "bound ms", "by", "eff.", "GB/s", "Gop/s", "oneDNN ms", "ratio",
                 "calls");
  for (const PointResult& r : report.points) {
    const std::string peer = r.peers.empty() ? "-" : fmt::format("{:.3f}", r.peers.front().timing.median * 1e3);
    const std::string ratio = r.peers.empty() ? "-" : fmt::format("{:.2f}", r.AgainstPeer());
    const std::string calls = fmt::format("{}{}", r.ours.num_calls,
                                          r.ours.num_rejected > 0 ? fmt::format(" (-{})", r.ours.num_rejected) : "");
    fmt::format_to(out,
                   "{:>4} {:>5} {:<17} {:>9.3f} {:>9.3f} {:>9.3f} {:<7} {:>6.2f} {:>7.1f} {:>8.0f} {:>9} {:>6} {:>9}\n",
                   r.point.heads, r.point.tokens, r.point.scenario->label, r.ours.median * 1e3, r.ours.min * 1e3,
                   r.bound.Seconds() * 1e3, r.bound.IsMemory() ? "memory" : "compute", r.Efficiency(),
                   r.work.Bytes() / r.ours.median / 1e9, r.work.Ops() / r.ours.median / 1e9, peer, ratio, calls);
  }
  fmt::format_to(out,
                 "eff.: bound / median. ratio: oneDNN's median / ours. (-n): n calls beyond 3 medians, rejected.\n");
}

void WriteCosts(const CallCosts& costs, Out out) {
  fmt::format_to(out, "\na call: first step {:.1f} us; without tokens {:.1f} us in both steps",
                 costs.first_step_seconds * 1e6, costs.empty_call_seconds * 1e6);
  if (costs.has_hidden_bytes) {
    fmt::format_to(out, "; {:.1f} MiB beside tensors and workspace", costs.hidden_bytes / kMebibyte);
  }
  fmt::format_to(out, "\n");
}

void WriteTargets(const std::vector<TargetResult>& targets, Out out) {
  const auto num_met = std::count_if(targets.begin(), targets.end(), [](const TargetResult& t) { return t.is_met; });
  fmt::format_to(out, "\ntargets: {} of {} met\n", num_met, targets.size());
  for (const TargetResult& t : targets) {
    fmt::format_to(out, "  {} {:<58} {} {:>7.2f} {:<3} found {:>7.2f}\n", t.is_met ? "pass" : "MISS", t.what,
                   t.is_at_most ? "<=" : ">=", t.wanted, t.unit, t.found);
  }
}

}  // namespace

bool IsSteady(const BenchReport& report) {
  constexpr double kSteadyShare = 0.8;
  double best_read = 0.0;
  double best_bf16 = 0.0;
  for (const MachineLimits::Rate& rate : report.limits) {
    if (rate.key == "read") best_read = rate.best;
    if (rate.key == report.isa_bf16_key) best_bf16 = rate.best;
  }
  return std::all_of(report.points.begin(), report.points.end(), [&](const PointResult& point) {
    return point.rates.read >= kSteadyShare * best_read && point.rates.bf16 >= kSteadyShare * best_bf16;
  });
}

std::string FormatReport(const BenchReport& report) {
  std::string text;
  const Out out = std::back_inserter(text);
  WriteMachine(report, out);
  WriteTable(report, out);
  if (!IsSteady(report)) {
    fmt::format_to(out,
                   "UNSTEADY: some points' limits are below 80 % of the best ones; their efficiency means little.\n");
  }
  WriteCosts(report.costs, out);
  WriteTargets(report.targets, out);
  fmt::format_to(out, "\n{:.0f} s: {}\n", report.seconds, report.options.command);
  return text;
}

}  // namespace mlap::bench
