// The peer's weights: row-major, and packed as oneDNN prefers them.
#ifndef MLAP_BENCH_PEER_WEIGHTS_H_
#define MLAP_BENCH_PEER_WEIGHTS_H_

#include <array>
#include <dnnl.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "fixture.h"
#include "huge_buffer.h"

namespace mlap::bench {

enum PeerMatrix { kPeerDq, kPeerDkvKr, kPeerUqQr, kPeerUk, kNumPeerMatrices };

// Where MLAP_MAX_ISA limits the operator, the peer is limited likewise. Returns an empty text, or why oneDNN cannot
// compute bf16 products then. Before the first use of oneDNN.
std::string LimitPeerIsa(std::string_view isa);

class PeerWeights {
 public:
  PeerWeights(const Fixture& fixture, const dnnl::engine& engine);

  const dnnl::memory::desc& plain_desc(PeerMatrix matrix) const { return plain_.descs[matrix]; }
  dnnl::memory Plain(PeerMatrix matrix, int copy) const { return plain_.At(engine_, matrix, copy); }

  // In the layout `desc`; what was packed in another layout before is gone. Packs now if needed.
  dnnl::memory Packed(PeerMatrix matrix, const dnnl::memory::desc& desc, int copy);

  int num_copies() const { return num_copies_; }

 private:
  struct Copies {
    std::array<dnnl::memory::desc, kNumPeerMatrices> descs;
    std::array<std::vector<HugeBuffer>, kNumPeerMatrices> buffers;

    dnnl::memory At(const dnnl::engine& engine, PeerMatrix matrix, int copy) const;
  };

  void Pack(PeerMatrix matrix, const dnnl::memory::desc& desc);

  dnnl::engine engine_;
  int num_copies_;
  Copies plain_;
  Copies packed_;
};

}  // namespace mlap::bench

#endif  // MLAP_BENCH_PEER_WEIGHTS_H_
