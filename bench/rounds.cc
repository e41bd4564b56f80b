#include "rounds.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace mlap::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kOutlierFactor = 3.0;
constexpr double kTurnSeconds = 0.025;  // short calls are repeated within a turn
constexpr int kMaxCallsPerTurn = 16;
// A turn begins with calls that do not count: until its threads have run for a while, as what the contender before has
// left behind is nobody's own; and until all of its memory has been touched, for as long as that is quick. In virtual
// machines the memory that was used last is faster (measured: 28 GB/s against 20 after five seconds without use), so
// that otherwise who has more memory, or fewer turns on it, would be slower for that alone. A model's weights are in
// use all the time.
constexpr double kWarmSeconds = 0.015;
constexpr double kMostPassSeconds = 0.150;

double MedianOfSorted(const std::vector<double>& sorted) {
  const size_t n = sorted.size();
  return n % 2 != 0 ? sorted[n / 2] : 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]);
}

}  // namespace

Timing Summarise(std::string name, std::vector<double> seconds) {
  Timing timing;
  timing.name = std::move(name);
  timing.num_calls = static_cast<int>(seconds.size());
  if (seconds.empty()) return timing;
  std::sort(seconds.begin(), seconds.end());
  const double limit = kOutlierFactor * MedianOfSorted(seconds);
  const auto kept = std::upper_bound(seconds.begin(), seconds.end(), limit);
  timing.num_rejected = static_cast<int>(seconds.end() - kept);
  seconds.erase(kept, seconds.end());
  timing.median = MedianOfSorted(seconds);
  timing.min = seconds.front();
  return timing;
}

std::vector<Timing> RunRounds(std::span<Contender* const> contenders, const RoundLimits& limits) {
  const size_t count = contenders.size();
  std::vector<std::vector<double>> seconds(count);
  std::vector<int> calls_per_turn(count, 1);
  const Clock::time_point start = Clock::now();
  for (size_t i = 0; i < count; ++i) {
    contenders[i]->RunOnce();
    const double one = contenders[i]->RunOnce();
    contenders[i]->EndTurn();
    calls_per_turn[i] = std::clamp(static_cast<int>(kTurnSeconds / std::max(one, 1e-6)), 1, kMaxCallsPerTurn);
  }
  for (int round = 0; round < limits.max_rounds; ++round) {
    const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
    if (round >= limits.min_rounds && elapsed >= limits.seconds) break;
    for (size_t turn = 0; turn < count; ++turn) {
      const size_t i = (turn + static_cast<size_t>(round)) % count;  // nobody always follows the same neighbour's start
      double warm = 0.0;
      for (int run = 0; warm < kWarmSeconds || (run < contenders[i]->RunsPerPass() && warm < kMostPassSeconds); ++run) {
        warm += contenders[i]->RunOnce();
      }
      for (int call = 0; call < calls_per_turn[i]; ++call) seconds[i].push_back(contenders[i]->RunOnce());
      contenders[i]->EndTurn();
    }
  }
  std::vector<Timing> timings;
  for (size_t i = 0; i < count; ++i) timings.push_back(Summarise(contenders[i]->name(), std::move(seconds[i])));
  return timings;
}

}  // namespace mlap::bench
