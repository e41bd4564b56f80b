#include "peer_weights.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "parallel_for.h"
#include "tool_error.h"

namespace mlap::bench {
namespace {

using dnnl::memory;

// The row-major matrix (k, n) of a FRACTAL_NZ image in bf16.
void UnpackNz(const tools::CaseTensor& image, int64_t k, int64_t n, uint16_t* out) {
  constexpr int64_t kC0 = 16;
  const auto* in = reinterpret_cast<const uint16_t*>(image.view.bytes);
  const int64_t padded_k = image.view.shape[1] * 16;
  tools::ParallelFor(k, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t first = 0; first < n; first += kC0) {
        const int64_t columns = std::min(kC0, n - first);
        std::memcpy(out + i * n + first, in + first * padded_k + i * kC0, static_cast<size_t>(columns) * 2);
      }
    }
  });
}

}  // namespace

std::string LimitPeerIsa(std::string_view isa) {
  if (std::getenv("MLAP_MAX_ISA") == nullptr || isa == "amx") return "";
#if defined(__x86_64__)
  if (isa == "scalar" || isa == "avx2" || isa == "avxvnni") {
    return "oneDNN has no bf16 products below AVX-512, to which MLAP_MAX_ISA limits this run";
  }
  const dnnl::cpu_isa limit = isa == "avx512bf16"   ? dnnl::cpu_isa::avx512_core_bf16
                              : isa == "avx512vnni" ? dnnl::cpu_isa::avx512_core_vnni
                                                    : dnnl::cpu_isa::avx512_core;
  if (dnnl::set_max_cpu_isa(limit) != dnnl::status::success) return "oneDNN refuses the limit of MLAP_MAX_ISA";
#endif
  return "";
}

memory PeerWeights::Copies::At(const dnnl::engine& engine, PeerMatrix matrix, int copy) const {
  return memory(descs[matrix], engine, buffers[matrix][static_cast<size_t>(copy)].data());
}

PeerWeights::PeerWeights(const Fixture& fixture, const dnnl::engine& engine)
    : engine_(engine), num_copies_(fixture.num_copies()) {
  const tools::LayerDims d = fixture.host().shape.dims;
  const auto matrix = [](int64_t k, int64_t n) {
    return memory::desc({k, n}, memory::data_type::bf16, memory::format_tag::ab);
  };
  plain_.descs = {matrix(d.hidden, d.q_rank), matrix(d.hidden, d.KvColumns()), matrix(d.q_rank, d.QueryColumns()),
                  memory::desc({d.heads, d.nope, d.kv_rank}, memory::data_type::bf16, memory::format_tag::abc)};
  const char* names[] = {"weight_dq", "weight_dkv_kr", "weight_uq_qr", "weight_uk"};
  for (int i = 0; i < kNumPeerMatrices; ++i) {
    const tools::CaseTensor& tensor = fixture.host().Input(names[i]);
    std::vector<HugeBuffer>& buffers = plain_.buffers[static_cast<size_t>(i)];
    const memory::desc& desc = plain_.descs[static_cast<size_t>(i)];
    for (int copy = 0; copy < num_copies_; ++copy) {
      buffers.emplace_back(desc.get_size());
      if (copy > 0) {
        CopyInParallel(buffers.back().data(), buffers.front().data(), desc.get_size());
      } else if (i == kPeerUk) {
        CopyInParallel(buffers.back().data(), tensor.view.bytes, desc.get_size());
      } else {
        UnpackNz(tensor, desc.dims()[0], desc.dims()[1], buffers.back().bf16());
      }
    }
  }
}

memory PeerWeights::Packed(PeerMatrix matrix, const memory::desc& desc, int copy) {
  if (desc == plain_.descs[matrix]) return Plain(matrix, copy);
  if (packed_.buffers[matrix].empty() || packed_.descs[matrix] != desc) Pack(matrix, desc);
  return packed_.At(engine_, matrix, copy);
}

void PeerWeights::Pack(PeerMatrix matrix, const memory::desc& desc) {
  std::vector<HugeBuffer>& buffers = packed_.buffers[matrix];
  if (!buffers.empty() && buffers.front().num_bytes() != desc.get_size()) buffers.clear();
  while (buffers.size() < static_cast<size_t>(num_copies_)) buffers.emplace_back(desc.get_size());
  packed_.descs[matrix] = desc;
  memory from = Plain(matrix, 0);
  memory to = packed_.At(engine_, matrix, 0);
  dnnl::stream stream(engine_);
  dnnl::reorder(from, to).execute(stream, from, to);
  stream.wait();
  for (size_t copy = 1; copy < buffers.size(); ++copy) {
    CopyInParallel(buffers[copy].data(), buffers[0].data(), desc.get_size());
  }
}

}  // namespace mlap::bench
