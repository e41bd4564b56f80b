// mlaprolog_bench: how fast the operator is, against the machine's limits and against a peer.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <dnnl.hpp>
#include <exception>
#include <fstream>
#include <memory>

#include "bench_options.h"
#include "bench_report.h"
#include "fixture.h"
#include "memory_budget.h"
#include "tool_error.h"

namespace mlap::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMebibyte = 1024.0 * 1024.0;
constexpr double kLeastStreamBytes = 256 * kMebibyte;  // even where caches are small
constexpr double kLeastReadBytes = 1024 * kMebibyte;
constexpr int kMostCopies = 64;

void Say(const std::string& text) {
  std::fprintf(stderr, "%s\n", text.c_str());
  std::fflush(stderr);
}

// Twice the last-level cache, unless the memory is too small.
size_t ReadBufferBytes(const MachineFacts& machine) {
  const double wanted = std::max(kLeastReadBytes, 2.0 * static_cast<double>(machine.cache_bytes));
  const double bytes = std::min(wanted, 0.2 * tools::AvailableBytes());
  return static_cast<size_t>(bytes / kMebibyte) << 20;
}

// So many copies of the weights that the last-level cache holds at most half of those of any scenario.
int NumCopies(const MachineFacts& machine, int64_t heads, bool has_peer) {
  const double weights = WorkOf({kFullInt8, heads, 1}).weight_bytes;
  const double all_scenarios = WorkOf({kNonQuant, heads, 1}).weight_bytes * (has_peer ? 3.5 : 1.5);
  const double wanted = std::max(kLeastStreamBytes, 2.0 * static_cast<double>(machine.cache_bytes)) / weights;
  const double possible = 0.6 * tools::AvailableBytes() / all_scenarios;
  return static_cast<int>(std::clamp(std::ceil(std::min(wanted, possible)), 2.0, static_cast<double>(kMostCopies)));
}

std::string PeerVersion() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
}

class Bench {
 public:
  explicit Bench(const BenchOptions& options) : session_(0) {
    report_.options = options;
    report_.machine = AskMachine();
    report_.peer_version = PeerVersion();
    report_.why_no_peer = options.has_peer ? LimitPeerIsa(report_.machine.isa) : "--no-peer";
  }

  BenchReport Run() {
    const Clock::time_point start = Clock::now();
    Say("costs of a call");
    report_.costs = MeasureCallCosts(&session_, report_.options.is_full ? 1024 : 256);
    Say("limits of the machine");
    limits_ = std::make_unique<MachineLimits>(ReadBufferBytes(report_.machine), report_.machine.num_threads,
                                              report_.machine.isa);
    report_.limits = limits_->MeasureAll(report_.options.is_full ? 10.0 : 3.0);
    report_.isa_bf16_key = limits_->bf16()->name();
    report_.isa_int8_key = limits_->int8()->name();
    report_.read_buffer_bytes = static_cast<double>(limits_->read()->buffer_bytes());
    for (const int64_t heads : report_.options.heads) MeasureHeads(heads);
    report_.targets = CheckTargets(report_.machine.isa, report_.points, report_.costs);
    report_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return report_;
  }

 private:
  void MeasureHeads(int64_t heads) {
    const BenchOptions& options = report_.options;
    const bool has_bf16 = options.scenarios.front() == kNonQuant;
    const bool has_peer = has_bf16 && report_.why_no_peer.empty();
    FixtureRecipe recipe;
    recipe.heads = heads;
    recipe.max_tokens = options.tokens.back();
    recipe.num_copies = NumCopies(report_.machine, heads, has_peer);
    recipe.scenarios = options.scenarios;
    Say(fmt::format("N = {}: {} copies of the weights", heads, recipe.num_copies));
    Fixture fixture(recipe);
    std::unique_ptr<PeerWeights> peer_weights;
    if (has_peer) {
      try {
        peer_weights = std::make_unique<PeerWeights>(fixture, dnnl::engine(dnnl::engine::kind::cpu, 0));
      } catch (const dnnl::error& error) {
        report_.why_no_peer = error.what();
      }
    }
    RoundLimits limits;
    limits.seconds = options.seconds_per_point;
    for (const int64_t tokens : options.tokens) {
      Say(fmt::format("[{}/{}] N = {}, T = {}", ++num_done_, options.heads.size() * options.tokens.size(), heads,
                      tokens));
      PointSetup setup = {&session_, &fixture, limits_.get(), peer_weights.get(), report_.machine.num_threads};
      std::vector<PointResult> results;
      try {
        results = MeasurePoint(setup, tokens, options.scenarios, limits);
      } catch (const dnnl::error& error) {
        report_.why_no_peer = fmt::format("oneDNN refuses: {}", error.what());
        Say("no peer: " + report_.why_no_peer);
        peer_weights.reset();
        setup.peer_weights = nullptr;
        results = MeasurePoint(setup, tokens, options.scenarios, limits);
      }
      report_.points.insert(report_.points.end(), results.begin(), results.end());
    }
    const MemoryUse use = ReadMemoryUse();
    if (use.resident > 0.0) report_.huge_share = use.huge / use.resident;
  }

  tools::CannSession session_;
  BenchReport report_;
  std::unique_ptr<MachineLimits> limits_;
  size_t num_done_ = 0;
};

int Main(int argc, char** argv) {
  BenchOptions options;
  int exit_code = 0;
  if (!ParseOptions(argc, argv, &options, &exit_code)) return exit_code;
  // Better now than after 15 minutes.
  if (!options.json.empty() && !std::ofstream(options.json, std::ios::app)) {
    tools::Fail("--json: expected a file that can be written, found {}", options.json);
  }
  const BenchReport report = Bench(options).Run();
  std::fputs(FormatReport(report).c_str(), stdout);
  if (!options.json.empty()) WriteJson(report, options.json);
  return 0;
}

}  // namespace
}  // namespace mlap::bench

int main(int argc, char** argv) {
  try {
    return mlap::bench::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "mlaprolog_bench: %s\n", error.what());
    return 2;
  }
}
