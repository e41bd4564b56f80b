#include <mlaprolog/mlaprolog.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "bench_report.h"
#include "tool_error.h"

namespace mlap::bench {
namespace {

using Json = nlohmann::ordered_json;

Json ToJson(const Timing& timing) {
  return {{"name", timing.name},
          {"median_seconds", timing.median},
          {"min_seconds", timing.min},
          {"calls", timing.num_calls},
          {"rejected", timing.num_rejected}};
}

Json ToJson(const MachineFacts& m, const BenchReport& report) {
  return {{"cpu", m.cpu},
          {"flags", m.flags},
          {"isa", m.isa},
          {"threads", m.num_threads},
          {"cpus", m.num_cpus},
          {"load_at_start", m.load},
          {"last_level_cache_bytes", m.cache_bytes},
          {"last_level_cache_source", m.cache_source},
          {"memory_bytes", m.memory_bytes},
          {"huge_pages", m.huge_pages},
          {"huge_page_share", report.huge_share},
          {"kernel", m.kernel},
          {"compiler", m.compiler}};
}

Json ToJson(const PointResult& r) {
  Json peers = Json::array();
  for (const PeerResult& peer : r.peers) {
    Json item = ToJson(peer.timing);
    item["implementations"] = peer.implementations;
    item["relative_difference"] = peer.difference;
    peers.push_back(std::move(item));
  }
  return {{"heads", r.point.heads},
          {"tokens", r.point.tokens},
          {"scenario", r.point.scenario->label},
          {"ours", ToJson(r.ours)},
          {"weight_bytes", r.work.weight_bytes},
          {"other_bytes", r.work.other_bytes},
          {"bf16_flops", r.work.bf16_flops},
          {"int8_ops", r.work.int8_ops},
          {"read_bytes_per_second", r.rates.read},
          {"bf16_flops_per_second", r.rates.bf16},
          {"int8_ops_per_second", r.rates.int8},
          {"memory_bound_seconds", r.bound.memory_seconds},
          {"compute_bound_seconds", r.bound.compute_seconds},
          {"bound", r.bound.IsMemory() ? "memory" : "compute"},
          {"efficiency", r.Efficiency()},
          {"against_peer", r.peers.empty() ? Json(nullptr) : Json(r.AgainstPeer())},
          {"peers", std::move(peers)}};
}

Json ToJson(const CallCosts& costs) {
  Json workspace = Json::array();
  for (const CallCosts::Workspace& one : costs.workspace) {
    workspace.push_back({{"tokens", one.tokens}, {"bytes", one.bytes}});
  }
  return {{"first_step_seconds", costs.first_step_seconds},
          {"empty_call_seconds", costs.empty_call_seconds},
          {"workspace", std::move(workspace)},
          {"memory_tokens", costs.memory_tokens},
          {"hidden_bytes", costs.has_hidden_bytes ? Json(costs.hidden_bytes) : Json(nullptr)}};
}

}  // namespace

void WriteJson(const BenchReport& report, const std::string& path) {
  Json limits = Json::array();
  for (const MachineLimits::Rate& rate : report.limits) {
    limits.push_back({{"key", rate.key},
                      {"what", rate.what},
                      {"median_per_second", rate.per_second},
                      {"best_per_second", rate.best}});
  }
  Json points = Json::array();
  for (const PointResult& point : report.points) points.push_back(ToJson(point));
  Json targets = Json::array();
  for (const TargetResult& t : report.targets) {
    targets.push_back({{"what", t.what},
                       {"unit", t.unit},
                       {"relation", t.is_at_most ? "at most" : "at least"},
                       {"wanted", t.wanted},
                       {"found", t.found},
                       {"met", t.is_met}});
  }
  const Json document = {{"format", 1},
                         {"version", mlap_version_string()},
                         {"date", report.machine.date},
                         {"command", report.options.command},
                         {"seconds", report.seconds},
                         {"steady", IsSteady(report)},
                         {"seconds_per_point", report.options.seconds_per_point},
                         {"machine", ToJson(report.machine, report)},
                         {"limits", std::move(limits)},
                         {"bf16_limit", report.isa_bf16_key},
                         {"int8_limit", report.isa_int8_key},
                         {"read_buffer_bytes", report.read_buffer_bytes},
                         {"peer", report.why_no_peer.empty() ? Json(report.peer_version) : Json(nullptr)},
                         {"why_no_peer", report.why_no_peer},
                         {"call_costs", ToJson(report.costs)},
                         {"points", std::move(points)},
                         {"targets", std::move(targets)}};
  std::ofstream file(path);
  file << document.dump(1) << '\n';
  file.close();
  if (!file) tools::Fail("--json: expected a file that can be written, found {}", path);
}

}  // namespace mlap::bench
