// A sequence decoded token by token through the C++ wrapper: a prompt in one call, then one token a call into a paged
// cache that grows by a page when it must. At the end all tokens at once must have given the same bits.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mlaprolog/mlaprolog.hpp>
#include <random>
#include <vector>

namespace {

constexpr int64_t kHidden = 256, kQRank = 96, kHeads = 5, kNope = 32, kRope = 16, kKvRank = 64;
constexpr int64_t kPageSlots = 16, kPrompt = 20, kTokens = 40;

using Bf16s = std::vector<uint16_t>;

Bf16s Random(int64_t count, float deviation) {
  static std::mt19937 engine(1);
  std::normal_distribution<float> normal(0.0f, deviation);
  Bf16s values(static_cast<size_t>(count));
  for (uint16_t& value : values) {
    const float number = normal(engine);
    uint32_t bits;
    std::memcpy(&bits, &number, sizeof(bits));
    value = static_cast<uint16_t>(bits >> 16);
  }
  return values;
}

// The layer's weights, as (k, n) matrices. The handle keeps copies.
mlap::Weights MakeLayer() {
  const Bf16s dq = Random(kHidden * kQRank, 0.05f), uq_qr = Random(kQRank * kHeads * (kNope + kRope), 0.05f);
  const Bf16s uk = Random(kHeads * kNope * kKvRank, 0.05f), dkv_kr = Random(kHidden * (kKvRank + kRope), 0.05f);
  const Bf16s gamma_cq = Random(kQRank, 1.0f), gamma_ckv = Random(kKvRank, 1.0f);
  mlap::WeightsArgs layer;
  layer.weight_dq = mlap::Matrix(dq.data(), MLAP_BF16, kHidden, kQRank);
  layer.weight_uq_qr = mlap::Matrix(uq_qr.data(), MLAP_BF16, kQRank, kHeads * (kNope + kRope));
  layer.weight_uk = mlap::Tensor(uk.data(), MLAP_BF16, {kHeads, kNope, kKvRank});
  layer.weight_dkv_kr = mlap::Matrix(dkv_kr.data(), MLAP_BF16, kHidden, kKvRank + kRope);
  layer.rmsnorm_gamma_cq = mlap::Tensor(gamma_cq.data(), MLAP_BF16, {kQRank});
  layer.rmsnorm_gamma_ckv = mlap::Tensor(gamma_ckv.data(), MLAP_BF16, {kKvRank});
  return mlap::Weights(layer);
}

// What a sequence leaves behind.
struct Sequence {
  Bf16s kv_cache, kr_cache, query, query_rope;

  bool operator==(const Sequence& other) const {
    return kv_cache == other.kv_cache && kr_cache == other.kr_cache && query == other.query &&
           query_rope == other.query_rope;
  }
};

// Appends tokens [first, first + count) of x to the sequence.
void Append(mlap::Context* context, const mlap::Weights& weights, const Bf16s& x, int64_t first, int64_t count,
            Sequence* sequence) {
  const int64_t pages = (first + count + kPageSlots - 1) / kPageSlots;
  sequence->kv_cache.resize(static_cast<size_t>(pages * kPageSlots * kKvRank));
  sequence->kr_cache.resize(static_cast<size_t>(pages * kPageSlots * kRope));
  sequence->query.resize(static_cast<size_t>((first + count) * kHeads * kKvRank));
  sequence->query_rope.resize(static_cast<size_t>((first + count) * kHeads * kRope));

  std::vector<int64_t> slots;
  for (int64_t t = first; t < first + count; ++t) slots.push_back(t);
  const mlap_tensor positions = mlap::Tensor(slots.data(), MLAP_INT64, {count});
  Bf16s sin(static_cast<size_t>(count * kRope)), cos(sin.size());
  mlap::RunArgs args;
  args.rope_sin = mlap::Tensor(sin.data(), MLAP_BF16, {count, kRope});
  args.rope_cos = mlap::Tensor(cos.data(), MLAP_BF16, {count, kRope});
  mlap::RopeTableArgs rope;
  rope.factor = 40.0;  // YaRN, as DeepSeek-V3 uses it
  mlap::Check(mlap_rope_table(&rope, &positions, &args.rope_sin, &args.rope_cos));

  args.token_x = mlap::Tensor(x.data() + first * kHidden, MLAP_BF16, {count, kHidden});
  args.cache_index = positions;  // this sequence's pages lie in order: a token's slot is its position
  args.kv_cache = mlap::Tensor(sequence->kv_cache.data(), MLAP_BF16, {pages, kPageSlots, 1, kKvRank});
  args.kr_cache = mlap::Tensor(sequence->kr_cache.data(), MLAP_BF16, {pages, kPageSlots, 1, kRope});
  args.query = mlap::Tensor(sequence->query.data() + first * kHeads * kKvRank, MLAP_BF16, {count, kHeads, kKvRank});
  args.query_rope =
      mlap::Tensor(sequence->query_rope.data() + first * kHeads * kRope, MLAP_BF16, {count, kHeads, kRope});
  args.rmsnorm_epsilon_cq = args.rmsnorm_epsilon_ckv = 1e-6;
  context->Run(weights, args);
}

}  // namespace

int main() {
  try {
    mlap::Context context;
    const mlap::Weights weights = MakeLayer();
    const Bf16s x = Random(kTokens * kHidden, 1.0f);

    Sequence decoded;
    Append(&context, weights, x, 0, kPrompt, &decoded);
    for (int64_t t = kPrompt; t < kTokens; ++t) Append(&context, weights, x, t, 1, &decoded);

    Sequence at_once;
    Append(&context, weights, x, 0, kTokens, &at_once);
    const bool is_same = decoded == at_once;
    std::printf("%d tokens with %d threads and %s: one by one and at once give %s\n", static_cast<int>(kTokens),
                static_cast<int>(context.facts().num_threads), context.facts().isa,
                is_same ? "the same bits" : "DIFFERENT BITS");
    return is_same ? 0 : 1;
  } catch (const mlap::Error& error) {
    std::fprintf(stderr, "failed: %s\n", error.what());
    return 1;
  }
}
