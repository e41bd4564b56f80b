// The peer: the bf16 prologue composed of oneDNN's matrix products and the loops of peer_rows.h, with the operator's
// roundings between them. x W_DQ and x W_DKV|KR, norms and RoPE and cache rows, cQ W_UQ|QR, RoPE, qC W_UK by heads.
#ifndef MLAP_BENCH_PEER_ONEDNN_H_
#define MLAP_BENCH_PEER_ONEDNN_H_

#include <array>
#include <dnnl.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "contender.h"
#include "fixture.h"
#include "huge_buffer.h"
#include "peer_weights.h"

namespace mlap::bench {

enum class PeerLayout { kPlain, kPacked };  // of the weights

// How qC W_UK finds its operands: where they are, with strides, or gathered by heads and the result spread again.
// oneDNN has a faster product for the latter.
enum class PeerHeads { kStrided, kGathered };

class OneDnnPeer : public Contender {
 public:
  // Both must outlive the object. Throws dnnl::error where oneDNN does not offer it.
  OneDnnPeer(const Fixture& fixture, PeerWeights* weights, int64_t tokens, int num_threads, PeerLayout layout,
             PeerHeads heads);

  double RunOnce() override;
  int RunsPerPass() const override { return weights_->num_copies(); }
  void EndTurn() override;

  // oneDNN's names of the products' implementations.
  std::string Implementations() const;

  // The largest relative Frobenius difference of the four outputs to the operator's, whose caches are the fixture's.
  double DifferenceTo(const uint16_t* query, const uint16_t* query_rope) const;

 private:
  using Arguments = std::unordered_map<int, dnnl::memory>;

  void AddProduct(PeerMatrix matrix, const dnnl::memory::desc& from, const void* in, const dnnl::memory::desc& to,
                  void* out);
  void Execute(PeerMatrix matrix) { products_[matrix].execute(stream_, arguments_[matrix][copy_]); }

  const Fixture& fixture_;
  PeerWeights* weights_;
  PeerLayout layout_;
  PeerHeads heads_;
  tools::CaseShape shape_;
  int64_t tokens_;
  int num_threads_;
  size_t copy_ = 0;
  dnnl::engine engine_;
  dnnl::stream stream_;
  HugeBuffer c_q_raw_;  // [T, Hcq]
  HugeBuffer c_q_;
  HugeBuffer c_kv_k_r_;  // [T, Hckv + Dr]
  HugeBuffer q_;         // [T, N, D + Dr]
  HugeBuffer q_c_;       // [N, T, D] if gathered
  HugeBuffer by_heads_;  // [N, T, Hckv] if gathered
  HugeBuffer query_;
  HugeBuffer query_rope_;
  HugeBuffer kv_cache_;
  HugeBuffer kr_cache_;
  std::array<dnnl::matmul, kNumPeerMatrices> products_;
  std::array<std::string, kNumPeerMatrices> implementations_;
  std::array<std::vector<Arguments>, kNumPeerMatrices> arguments_;  // one per copy of the weights
};

}  // namespace mlap::bench

#endif  // MLAP_BENCH_PEER_ONEDNN_H_
