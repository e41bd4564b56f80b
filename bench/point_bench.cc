#include "point_bench.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "our_operator.h"
#include "peer_onednn.h"
#include "tool_error.h"

namespace mlap::bench {
namespace {

constexpr double kAcceptedDifference = 1e-2;

using Peers = std::vector<std::unique_ptr<OneDnnPeer>>;

Peers MakePeers(const PointSetup& setup, int64_t tokens) {
  Peers peers;
  const auto add = [&](PeerLayout layout, PeerHeads heads) {
    peers.push_back(
        std::make_unique<OneDnnPeer>(*setup.fixture, setup.peer_weights, tokens, setup.num_threads, layout, heads));
  };
  add(PeerLayout::kPacked, PeerHeads::kStrided);
  add(PeerLayout::kPlain, PeerHeads::kStrided);
  add(PeerLayout::kPacked, PeerHeads::kGathered);
  return peers;
}

double CheckPeer(OneDnnPeer* peer, const OurOperator& ours) {
  peer->RunOnce();
  peer->EndTurn();
  const double difference = peer->DifferenceTo(ours.query(), ours.query_rope());
  if (difference > kAcceptedDifference) {
    tools::Fail("{}: expected results within {} of the operator's, found {}", peer->name(), kAcceptedDifference,
                difference);
  }
  return difference;
}

}  // namespace

std::vector<PointResult> MeasurePoint(const PointSetup& setup, int64_t tokens,
                                      const std::vector<const tools::Scenario*>& scenarios,
                                      const RoundLimits& round_limits) {
  std::vector<std::unique_ptr<OurOperator>> ours;
  for (const tools::Scenario* scenario : scenarios) {
    ours.push_back(
        std::make_unique<OurOperator>(setup.session, setup.fixture, Point{scenario, setup.fixture->heads(), tokens}));
  }
  Peers peers;
  std::vector<double> differences;
  if (setup.peer_weights != nullptr && scenarios.front() == kNonQuant) {
    peers = MakePeers(setup, tokens);
    ours.front()->RunOnce();
    ours.front()->EndTurn();
    for (const auto& peer : peers) differences.push_back(CheckPeer(peer.get(), *ours.front()));
  }

  std::vector<Contender*> contenders = {setup.limits->read(), setup.limits->bf16(), setup.limits->int8()};
  for (const auto& one : ours) contenders.push_back(one.get());
  for (const auto& peer : peers) contenders.push_back(peer.get());
  const std::vector<Timing> timings = RunRounds(contenders, round_limits);

  const Rates rates = {setup.limits->read()->bytes_per_run() / timings[0].median,
                       setup.limits->bf16()->ops_per_run() / timings[1].median,
                       setup.limits->int8()->ops_per_run() / timings[2].median};
  std::vector<PointResult> results;
  for (size_t i = 0; i < ours.size(); ++i) {
    PointResult result;
    result.point = {scenarios[i], setup.fixture->heads(), tokens};
    result.work = WorkOf(result.point);
    result.rates = rates;
    result.bound = BoundOf(result.work, rates);
    result.ours = timings[3 + i];
    results.push_back(std::move(result));
  }
  for (size_t i = 0; i < peers.size(); ++i) {
    results.front().peers.push_back({timings[3 + ours.size() + i], peers[i]->Implementations(), differences[i]});
  }
  std::sort(results.front().peers.begin(), results.front().peers.end(),
            [](const PeerResult& a, const PeerResult& b) { return a.timing.median < b.timing.median; });
  return results;
}

}  // namespace mlap::bench
