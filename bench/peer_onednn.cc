#include "peer_onednn.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "bf16_convert.h"
#include "peer_rows.h"
#include "thread_timing.h"

namespace mlap::bench {
namespace {

using dnnl::memory;
using Clock = std::chrono::steady_clock;

std::string NameOf(PeerLayout layout, PeerHeads heads) {
  return fmt::format("oneDNN, {} weights, {} heads", layout == PeerLayout::kPlain ? "plain" : "packed",
                     heads == PeerHeads::kStrided ? "strided" : "gathered");
}

memory::desc RowMajor(int64_t rows, int64_t columns) {
  return memory::desc({rows, columns}, memory::data_type::bf16, memory::format_tag::ab);
}

memory::desc Strided(const memory::dims& dims, const memory::dims& strides) {
  return memory::desc(dims, memory::data_type::bf16, strides);
}

size_t Bf16Bytes(int64_t rows, int64_t columns) { return static_cast<size_t>(rows * columns) * 2; }

struct Difference {
  double squares = 0.0;
  double reference = 0.0;

  void Add(const uint16_t* got, const uint16_t* want, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const double b = tools::FloatFromBf16(want[i]);
      const double a = tools::FloatFromBf16(got[i]) - b;
      squares += a * a;
      reference += b * b;
    }
  }
  // Infinite rather than accepted if there is a NaN.
  double Relative() const {
    const double relative = std::sqrt(squares / reference);
    return relative >= 0.0 ? relative : HUGE_VAL;
  }
};

}  // namespace

OneDnnPeer::OneDnnPeer(const Fixture& fixture, PeerWeights* weights, int64_t tokens, int num_threads, PeerLayout layout,
                       PeerHeads heads)
    : Contender(NameOf(layout, heads)),
      fixture_(fixture),
      weights_(weights),
      layout_(layout),
      heads_(heads),
      shape_(ShapeOf({kNonQuant, fixture.heads(), tokens}, fixture.block_num(), kBlockSize)),
      tokens_(tokens),
      num_threads_(num_threads),
      engine_(dnnl::engine::kind::cpu, 0),
      stream_(engine_) {
  const tools::LayerDims& d = shape_.dims;
  const int64_t t = tokens;
  const int64_t head = d.nope + d.rope;
  const int64_t slots = shape_.block_num * shape_.block_size;
  c_q_raw_ = HugeBuffer(Bf16Bytes(t, d.q_rank));
  c_q_ = HugeBuffer(Bf16Bytes(t, d.q_rank));
  c_kv_k_r_ = HugeBuffer(Bf16Bytes(t, d.KvColumns()));
  q_ = HugeBuffer(Bf16Bytes(t, d.QueryColumns()));
  query_ = HugeBuffer(Bf16Bytes(t, d.heads * d.kv_rank));
  query_rope_ = HugeBuffer(Bf16Bytes(t, d.heads * d.rope));
  kv_cache_ = HugeBuffer(Bf16Bytes(slots, d.kv_rank));
  kr_cache_ = HugeBuffer(Bf16Bytes(slots, d.rope));

  omp_set_num_threads(num_threads_);
  const void* x = fixture_.Data(shape_, "token_x", 0);
  AddProduct(kPeerDq, RowMajor(t, d.hidden), x, RowMajor(t, d.q_rank), c_q_raw_.data());
  AddProduct(kPeerDkvKr, RowMajor(t, d.hidden), x, RowMajor(t, d.KvColumns()), c_kv_k_r_.data());
  AddProduct(kPeerUqQr, RowMajor(t, d.q_rank), c_q_.data(), RowMajor(t, d.QueryColumns()), q_.data());
  if (heads_ == PeerHeads::kStrided) {
    AddProduct(kPeerUk, Strided({d.heads, t, d.nope}, {head, d.heads * head, 1}), q_.data(),
               Strided({d.heads, t, d.kv_rank}, {d.kv_rank, d.heads * d.kv_rank, 1}), query_.data());
  } else {
    q_c_ = HugeBuffer(Bf16Bytes(t, d.heads * d.nope));
    by_heads_ = HugeBuffer(Bf16Bytes(t, d.heads * d.kv_rank));
    AddProduct(kPeerUk, Strided({d.heads, t, d.nope}, {t * d.nope, d.nope, 1}), q_c_.data(),
               Strided({d.heads, t, d.kv_rank}, {t * d.kv_rank, d.kv_rank, 1}), by_heads_.data());
  }
}

void OneDnnPeer::AddProduct(PeerMatrix matrix, const memory::desc& from, const void* in, const memory::desc& to,
                            void* out) {
  const memory::desc plain = weights_->plain_desc(matrix);
  const memory::desc any(plain.dims(), memory::data_type::bf16, memory::format_tag::any);
  const dnnl::matmul::primitive_desc product({from, layout_ == PeerLayout::kPlain ? plain : any, to}, engine_);
  products_[matrix] = dnnl::matmul(product);
  implementations_[matrix] = product.impl_info_str();
  for (int copy = 0; copy < weights_->num_copies(); ++copy) {
    arguments_[matrix].push_back({{DNNL_ARG_SRC, memory(from, engine_, const_cast<void*>(in))},
                                  {DNNL_ARG_WEIGHTS, weights_->Packed(matrix, product.weights_desc(), copy)},
                                  {DNNL_ARG_DST, memory(to, engine_, out)}});
  }
}

double OneDnnPeer::RunOnce() {
  const tools::LayerDims& d = shape_.dims;
  const auto input = [this](const char* name) { return static_cast<const uint16_t*>(fixture_.Data(shape_, name, 0)); };
  const uint16_t* gamma_cq = input("rmsnorm_gamma_cq");
  const uint16_t* gamma_ckv = input("rmsnorm_gamma_ckv");
  const uint16_t* sin = input("rope_sin");
  const uint16_t* cos = input("rope_cos");
  const auto* slots = static_cast<const int64_t*>(fixture_.Data(shape_, "cache_index", 0));
  const auto epsilon = static_cast<float>(fixture_.epsilon());
  const int64_t head = d.nope + d.rope;
  copy_ = (copy_ + 1) % static_cast<size_t>(weights_->num_copies());

  omp_set_num_threads(num_threads_);
  const Clock::time_point start = Clock::now();
  Execute(kPeerDq);
  Execute(kPeerDkvKr);
  PeerRmsNorm(c_q_raw_.bf16(), d.q_rank, gamma_cq, tokens_, d.q_rank, epsilon, c_q_.bf16(), nullptr);
  PeerRmsNorm(c_kv_k_r_.bf16(), d.KvColumns(), gamma_ckv, tokens_, d.kv_rank, epsilon, kv_cache_.bf16(), slots);
  PeerRope(c_kv_k_r_.bf16() + d.kv_rank, d.KvColumns(), 0, sin, cos, tokens_, 1, d.rope, kr_cache_.bf16(), slots);
  Execute(kPeerUqQr);
  PeerRope(q_.bf16() + d.nope, d.heads * head, head, sin, cos, tokens_, d.heads, d.rope, query_rope_.bf16(), nullptr);
  if (heads_ == PeerHeads::kGathered) {
    PeerGatherHeads(q_.bf16(), d.heads * head, head, tokens_, d.heads, d.nope, q_c_.bf16());
  }
  Execute(kPeerUk);
  if (heads_ == PeerHeads::kGathered) {
    PeerSpreadHeads(by_heads_.bf16(), tokens_, d.heads, d.kv_rank, query_.bf16());
  }
  stream_.wait();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void OneDnnPeer::EndTurn() { EndOpenMpThreads(); }

std::string OneDnnPeer::Implementations() const {
  std::vector<std::string> names(implementations_.begin(), implementations_.end());
  return fmt::format("{}", fmt::join(names, ", "));
}

double OneDnnPeer::DifferenceTo(const uint16_t* query, const uint16_t* query_rope) const {
  const tools::LayerDims& d = shape_.dims;
  Difference query_part;
  query_part.Add(query_.bf16(), query, tokens_ * d.heads * d.kv_rank);
  Difference rope_part;
  rope_part.Add(query_rope_.bf16(), query_rope, tokens_ * d.heads * d.rope);
  Difference kv_part;
  Difference kr_part;
  const auto* slots = static_cast<const int64_t*>(fixture_.Data(shape_, "cache_index", 0));
  const auto* kv = static_cast<const uint16_t*>(fixture_.Data(shape_, "kv_cache", 0));
  const auto* kr = static_cast<const uint16_t*>(fixture_.Data(shape_, "kr_cache", 0));
  for (int64_t t = 0; t < tokens_; ++t) {
    kv_part.Add(kv_cache_.bf16() + slots[t] * d.kv_rank, kv + slots[t] * d.kv_rank, d.kv_rank);
    kr_part.Add(kr_cache_.bf16() + slots[t] * d.rope, kr + slots[t] * d.rope, d.rope);
  }
  return std::max({query_part.Relative(), rope_part.Relative(), kv_part.Relative(), kr_part.Relative()});
}

}  // namespace mlap::bench
