// One pair of heads and tokens: all scenarios, the peer and the limits, in the same rounds.
#ifndef MLAP_BENCH_POINT_BENCH_H_
#define MLAP_BENCH_POINT_BENCH_H_

#include <string>
#include <vector>

#include "cann_session.h"
#include "fixture.h"
#include "machine_limits.h"
#include "peer_weights.h"
#include "rounds.h"
#include "work_model.h"

namespace mlap::bench {

struct PeerResult {
  Timing timing;
  std::string implementations;
  double difference = 0.0;  // relative, to the operator's results
};

struct PointResult {
  Point point;
  Work work;
  Rates rates;  // of the same rounds
  Bound bound;
  Timing ours;
  std::vector<PeerResult> peers;  // non-quant only; the fastest first

  double Efficiency() const { return bound.Seconds() / ours.median; }
  double AgainstPeer() const { return peers.empty() ? 0.0 : peers.front().timing.median / ours.median; }
};

struct PointSetup {
  tools::CannSession* session = nullptr;
  Fixture* fixture = nullptr;
  MachineLimits* limits = nullptr;
  PeerWeights* peer_weights = nullptr;  // or null: no peer
  int num_threads = 0;
};

// One result per scenario. Throws ToolError if the peer's results differ from the operator's by more than 1e-2.
std::vector<PointResult> MeasurePoint(const PointSetup& setup, int64_t tokens,
                                      const std::vector<const tools::Scenario*>& scenarios,
                                      const RoundLimits& round_limits);

}  // namespace mlap::bench

#endif  // MLAP_BENCH_POINT_BENCH_H_
