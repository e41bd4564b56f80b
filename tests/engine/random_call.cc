#include "engine/random_call.h"

#include <cmath>
#include <cstring>
#include <numeric>

#include "engine/random_values.h"

namespace mlap::test {
namespace {

template <class T>
bool SameBits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

size_t NzElements(int64_t k, int64_t n, ElementType type) {
  const int64_t c0 = FractalColumns(type);
  return static_cast<size_t>(CeilDiv(n, c0) * CeilDiv(k, kFractalRows) * kFractalRows * c0);
}

}  // namespace

std::string Describe(const CallOptions& options) {
  static constexpr const char* kWeights[] = {"non-quant", "partial", "full int8"};
  static constexpr const char* kCaches[] = {"", ", per-tensor int8 cache", ", int8 caches"};
  std::string text = kWeights[static_cast<int>(options.weight_quant)];
  text += kCaches[static_cast<int>(options.kv_quant)];
  if (options.smooth) text += ", smooth";
  return text + (options.cache_order == CacheOrder::kNz ? ", PA_NZ" : ", PA_BSND");
}

std::vector<CallOptions> AllScenarios(const PrologShape& shape) {
  struct Row {
    WeightQuant weight_quant;
    KvQuant kv_quant;
  };
  std::vector<CallOptions> all;
  for (const Row& row : {Row{WeightQuant::kNone, KvQuant::kNone}, Row{WeightQuant::kUqQr, KvQuant::kNone},
                         Row{WeightQuant::kUqQr, KvQuant::kPerChannel}, Row{WeightQuant::kFull, KvQuant::kNone},
                         Row{WeightQuant::kFull, KvQuant::kPerTensor}}) {
    for (const CacheOrder order : {CacheOrder::kRows, CacheOrder::kNz}) {
      for (const bool smooth : {false, true}) {
        if (smooth && row.weight_quant == WeightQuant::kNone) continue;
        all.push_back({shape, row.weight_quant, row.kv_quant, smooth, order});
      }
    }
  }
  return all;
}

RandomCall::RandomCall(const CallOptions& options) : options_(options) {
  RandomValues random(options.seed);
  const PrologShape& shape = options.shape;
  const bool full = options.weight_quant == WeightQuant::kFull;
  const auto fill = [&](std::vector<Bf16>* values, size_t count, float sigma, float mean = 0.0f) {
    values->resize(count);
    for (Bf16& value : *values) value = RoundToBf16(mean + random.Normal(sigma));
  };
  // `count` elements of bf16, N(0, sigma^2), or of int8.
  const auto fill_either = [&](std::vector<uint8_t>* bytes, size_t count, bool is_int8, float sigma) {
    if (is_int8) {
      bytes->resize(count);
      for (uint8_t& value : *bytes) value = static_cast<uint8_t>(random.Int8());
      return;
    }
    std::vector<Bf16> values;
    fill(&values, count, sigma);
    bytes->resize(count * sizeof(Bf16));
    std::memcpy(bytes->data(), values.data(), bytes->size());
  };
  const auto fill_weight = [&](std::vector<uint8_t>* bytes, int64_t k, int64_t n, bool is_int8) {
    fill_either(bytes, NzElements(k, n, is_int8 ? ElementType::kInt8 : ElementType::kBf16), is_int8,
                1.0f / std::sqrt(static_cast<float>(k)));
  };
  const auto fill_scale = [&](std::vector<float>* values, int64_t count, float scale) {
    values->resize(static_cast<size_t>(count));
    for (float& value : *values) value = scale * (0.5f + std::fabs(random.Normal()));
  };
  const auto tokens = static_cast<size_t>(shape.tokens);
  const int64_t uq_columns = shape.heads * shape.HeadColumns();
  fill_either(&token_x_, tokens * static_cast<size_t>(shape.hidden), full, 1.0f);
  fill_weight(&weight_dq_, shape.hidden, shape.q_rank, full);
  fill_weight(&weight_uq_qr_, shape.q_rank, uq_columns, options.weight_quant != WeightQuant::kNone);
  fill_weight(&weight_dkv_kr_, shape.hidden, shape.KvColumns(), full);
  fill(&weight_uk_, static_cast<size_t>(shape.heads * shape.nope * shape.kv_rank),
       1.0f / std::sqrt(static_cast<float>(shape.nope)));
  fill(&gamma_cq_, static_cast<size_t>(shape.q_rank), 0.1f, 1.0f);
  fill(&gamma_ckv_, static_cast<size_t>(shape.kv_rank), 0.1f, 1.0f);
  fill(&sin_, tokens * static_cast<size_t>(shape.rope), 0.7f);
  fill(&cos_, tokens * static_cast<size_t>(shape.rope), 0.7f);
  fill_scale(&scale_x_, shape.tokens, 0.01f);
  fill_scale(&scale_w_dq_, shape.q_rank, 0.0003f);
  fill_scale(&scale_w_uq_qr_, uq_columns, 0.0003f);
  fill_scale(&scale_w_dkv_kr_, shape.KvColumns(), 0.0003f);
  fill_scale(&scale_ckv_, shape.kv_rank, 40.0f);
  fill_scale(&scale_ckr_, shape.rope, 40.0f);
  fill_scale(&smooth_, shape.q_rank, 1.0f);

  // Distinct slots, scattered; every ninth token writes none.
  const int64_t capacity = options.block_num * options.block_size;
  std::vector<int64_t> slots(static_cast<size_t>(capacity));
  std::iota(slots.begin(), slots.end(), 0);
  for (size_t i = slots.size(); i-- > 1;)
    std::swap(slots[i], slots[static_cast<size_t>(random.Below(static_cast<int64_t>(i) + 1))]);
  for (size_t t = 0; t < tokens; ++t) cache_index_.push_back(t % 9 == 7 ? -1 : slots[t % slots.size()]);
}

bool RandomCall::Outputs::operator==(const Outputs& other) const {
  return query == other.query && SameBits(query_rope, other.query_rope) && kv_cache == other.kv_cache &&
         kr_cache == other.kr_cache && SameBits(dequant_scale_q_nope, other.dequant_scale_q_nope);
}

RandomCall::Outputs RandomCall::FreshOutputs() const {
  const PrologShape& shape = options_.shape;
  const int64_t kv_bytes = options_.kv_quant == KvQuant::kNone ? 2 : 1;
  const int64_t kr_bytes = options_.kv_quant == KvQuant::kPerChannel ? 1 : 2;
  const int64_t query_bytes = options_.kv_quant == KvQuant::kPerTensor ? 1 : 2;
  const int64_t slots = options_.block_num * options_.block_size;
  const int64_t token_heads = shape.tokens * shape.heads;
  Outputs out;
  out.query.assign(static_cast<size_t>(token_heads * shape.kv_rank * query_bytes), 0xff);
  out.query_rope.assign(static_cast<size_t>(token_heads * shape.rope), Bf16{0x7fc1});
  out.dequant_scale_q_nope.assign(static_cast<size_t>(token_heads), -1.0f);
  out.kv_cache.assign(static_cast<size_t>(slots * shape.kv_rank * kv_bytes), 0x55);
  out.kr_cache.assign(static_cast<size_t>(slots * shape.rope * kr_bytes), 0x55);
  return out;
}

PrologArgs RandomCall::Args(int64_t begin, int64_t end, Outputs* out) const {
  const PrologShape& shape = options_.shape;
  const bool full = options_.weight_quant == WeightQuant::kFull;
  const bool quantized = options_.weight_quant != WeightQuant::kNone;
  const auto type = [](bool is_int8) { return is_int8 ? ElementType::kInt8 : ElementType::kBf16; };
  const ElementType kv_type = type(options_.kv_quant != KvQuant::kNone);
  const ElementType kr_type = type(options_.kv_quant == KvQuant::kPerChannel);
  PrologArgs args;
  args.shape = shape;
  args.shape.tokens = end - begin;
  args.mode = {options_.weight_quant, options_.kv_quant, 1e-5f, 1e-6f};
  args.token_x = token_x_.data() + begin * shape.hidden * ElementBytes(type(full));
  args.weight_dq = NzWeight(weight_dq_.data(), type(full), shape.hidden, shape.q_rank);
  args.weight_uq_qr = NzWeight(weight_uq_qr_.data(), type(quantized), shape.q_rank, shape.heads * shape.HeadColumns());
  args.weight_uk = weight_uk_.data();
  args.weight_dkv_kr = NzWeight(weight_dkv_kr_.data(), type(full), shape.hidden, shape.KvColumns());
  args.gamma_cq = gamma_cq_.data();
  args.gamma_ckv = gamma_ckv_.data();
  args.rope_sin = sin_.data() + begin * shape.rope;
  args.rope_cos = cos_.data() + begin * shape.rope;
  args.slots.cache_index = cache_index_.data() + begin;
  args.kv_cache = ContiguousCache(out->kv_cache.data(), kv_type, options_.cache_order, options_.block_num,
                                  options_.block_size, shape.kv_rank);
  args.kr_cache = ContiguousCache(out->kr_cache.data(), kr_type, options_.cache_order, options_.block_num,
                                  options_.block_size, shape.rope);
  if (full) {
    args.dequant_scale_x = scale_x_.data() + begin;
    args.dequant_scale_w_dq = scale_w_dq_.data();
    args.dequant_scale_w_dkv_kr = scale_w_dkv_kr_.data();
  }
  if (quantized) args.dequant_scale_w_uq_qr = scale_w_uq_qr_.data();
  if (options_.kv_quant != KvQuant::kNone) args.quant_scale_ckv = scale_ckv_.data();
  if (options_.kv_quant == KvQuant::kPerChannel) args.quant_scale_ckr = scale_ckr_.data();
  if (options_.smooth) args.smooth_scales_cq = smooth_.data();
  const int64_t first_head = begin * shape.heads;
  const int64_t query_bytes = options_.kv_quant == KvQuant::kPerTensor ? 1 : 2;
  args.query = out->query.data() + first_head * shape.kv_rank * query_bytes;
  args.query_rope = out->query_rope.data() + first_head * shape.rope;
  args.dequant_scale_q_nope = out->dequant_scale_q_nope.data() + first_head;
  return args;
}

}  // namespace mlap::test
