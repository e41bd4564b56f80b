#include "engine/random_call.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/e4m3.h"
#include "base/hif8.h"
#include "support/random_values.h"

namespace mlap::test {
namespace {

template <class T>
bool SameBits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

int64_t NzElements(int64_t k, int64_t n, ElementType type) {
  const int64_t c0 = FractalColumns(type);
  return CeilDiv(n, c0) * CeilDiv(k, kFractalRows) * kFractalRows * c0;
}

bool IsBlocks(CacheMode mode) { return mode == CacheMode::kPaBlkBsnd || mode == CacheMode::kPaBlkNz; }
bool IsTokens(CacheMode mode) { return mode == CacheMode::kBsnd || mode == CacheMode::kTnd; }
bool IsNz(CacheMode mode) { return mode == CacheMode::kPaNz || mode == CacheMode::kPaBlkNz; }

// Distinct numbers below `bound` in random order.
std::vector<int64_t> Shuffled(int64_t bound, RandomValues* random) {
  std::vector<int64_t> numbers(static_cast<size_t>(bound));
  std::iota(numbers.begin(), numbers.end(), 0);
  for (size_t i = numbers.size(); i-- > 1;) {
    std::swap(numbers[i], numbers[static_cast<size_t>(random->Below(static_cast<int64_t>(i) + 1))]);
  }
  return numbers;
}

ElementType KvType(const PrologMode& mode) {
  return mode.kv_quant == KvQuant::kNone ? ElementType::kBf16 : mode.QuantType();
}
ElementType KrType(const PrologMode& mode) {
  return mode.kv_quant == KvQuant::kPerChannel ? ElementType::kInt8 : ElementType::kBf16;
}
ElementType QueryType(const PrologMode& mode) { return mode.QuantizesQuery() ? mode.QuantType() : ElementType::kBf16; }
int64_t KvWidth(const CallOptions& options) {
  const GroupRow group = {options.shape.kv_rank, options.shape.rope};
  return options.mode.kv_quant == KvQuant::kPerGroup ? group.Bytes() : options.shape.kv_rank;
}

}  // namespace

std::string Describe(const CallOptions& options) {
  static constexpr const char* kWeights[] = {"non-quant", "partial", "full int8", "MXFP8", "FP8", "HiFloat8"};
  static constexpr const char* kCaches[] = {"", ", per-tensor cache", ", per-channel caches", ", per-group rows"};
  static constexpr const char* kModes[] = {"PA_BSND", "PA_NZ", "PA_BLK_BSND", "PA_BLK_NZ", "BSND", "TND"};
  const PrologMode& mode = options.mode;
  std::string text = kWeights[static_cast<int>(mode.weight_quant)];
  text += kCaches[static_cast<int>(mode.kv_quant)];
  text += std::string(", ") + kModes[static_cast<int>(options.cache_mode)];
  if (options.lists_sequences) text += ", listed sequences";
  if (options.smooth) text += ", smooth";
  if (options.query_norm) text += ", query_norm";
  if (options.shape.q_rank == 0) text += ", no low rank";
  if (mode.rules == NumericRules::k950) text += ", 950";
  text += ", RoPE style " + std::to_string(static_cast<int>(mode.rope_style));
  return text + ", factors " + std::to_string(mode.cq_factor) + " " + std::to_string(mode.ckv_factor);
}

std::vector<CallOptions> AllScenarios(const PrologShape& shape) {
  struct Row {
    WeightQuant weight_quant;
    std::vector<KvQuant> kv_quants;
  };
  const std::vector<KvQuant> kOfFull = {KvQuant::kNone, KvQuant::kPerTensor, KvQuant::kPerGroup};
  std::vector<CallOptions> all;
  for (const Row& row : {Row{WeightQuant::kNone, {KvQuant::kNone}},
                         Row{WeightQuant::kUqQr, {KvQuant::kNone, KvQuant::kPerChannel, KvQuant::kPerGroup}},
                         Row{WeightQuant::kFull, kOfFull}, Row{WeightQuant::kMxFp8, kOfFull},
                         Row{WeightQuant::kFp8, kOfFull}, Row{WeightQuant::kHiF8, kOfFull}}) {
    for (const KvQuant kv_quant : row.kv_quants) {
      for (const CacheMode cache_mode : {CacheMode::kPaBsnd, CacheMode::kPaNz, CacheMode::kPaBlkBsnd,
                                         CacheMode::kPaBlkNz, CacheMode::kBsnd, CacheMode::kTnd}) {
        if (kv_quant == KvQuant::kPerGroup && IsNz(cache_mode)) continue;
        const size_t turn = all.size();
        CallOptions options;
        options.shape = shape;
        if (kv_quant == KvQuant::kPerGroup) options.shape.kv_rank += kKvGroup;
        if (row.weight_quant != WeightQuant::kUqQr && turn % 5 == 3) options.shape.q_rank = 0;
        options.cache_mode = cache_mode;
        options.lists_sequences = IsBlocks(cache_mode) && turn % 2 == 0;
        options.smooth = row.weight_quant != WeightQuant::kNone && row.weight_quant != WeightQuant::kMxFp8 &&
                         options.shape.q_rank != 0 && turn % 2 == 1;
        options.query_norm = options.shape.q_rank != 0 && turn % 3 != 0;
        PrologMode& mode = options.mode;
        mode.weight_quant = row.weight_quant;
        mode.kv_quant = kv_quant;
        mode.epsilon_ckv = 1e-6f;
        if (turn % 3 == 1) mode.cq_factor = 0.7f;
        if (turn % 4 == 1) mode.ckv_factor = -1.5f;
        const bool is_int8 = mode.QuantType() == ElementType::kInt8;
        mode.rules = is_int8 && turn % 2 == 0 ? NumericRules::kA2 : NumericRules::k950;
        mode.rope_style = static_cast<RopeStyle>(turn % 7 < 4 ? 0 : turn % 7 - 3);
        all.push_back(options);
      }
    }
  }
  return all;
}

RandomCall::RandomCall(const CallOptions& options) : options_(options) {
  RandomValues random(options.seed);
  const PrologShape& shape = options.shape;
  const PrologMode& mode = options.mode;
  const auto fill = [&](std::vector<Bf16>* values, int64_t count, float sigma, float mean = 0.0f) {
    values->resize(static_cast<size_t>(count));
    for (Bf16& value : *values) value = RoundToBf16(mean + random.Normal(sigma));
  };
  // `count` elements of `type`: bf16 of N(0, sigma^2), any int8, or 8-bit floats of N(0, 1).
  const auto fill_type = [&](std::vector<uint8_t>* bytes, int64_t count, ElementType type, float sigma) {
    bytes->resize(static_cast<size_t>(count * ElementBytes(type)));
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      if (type == ElementType::kBf16) {
        const Bf16 value = random.NormalBf16(sigma);
        std::memcpy(bytes->data() + i * sizeof(value), &value, sizeof(value));
      } else {
        (*bytes)[i] = type == ElementType::kInt8   ? static_cast<uint8_t>(random.Int8())
                      : type == ElementType::kE4m3 ? RoundToE4m3(random.Normal()).bits
                                                   : RoundToHiF8(random.Normal()).bits;
      }
    }
  };
  const auto fill_weight = [&](std::vector<uint8_t>* bytes, int64_t k, int64_t n, ElementType type) {
    fill_type(bytes, NzElements(k, n, type), type, k == 0 ? 1.0f : 1.0f / std::sqrt(static_cast<float>(k)));
  };
  const auto fill_scale = [&](std::vector<float>* values, int64_t count, float scale) {
    values->resize(static_cast<size_t>(count));
    for (float& value : *values) value = scale * (0.5f + std::fabs(random.Normal()));
  };
  const auto fill_mx = [&](std::vector<uint8_t>* bytes, int64_t rows, int64_t width) {
    bytes->resize(static_cast<size_t>(rows * MxGroups(width)));
    for (uint8_t& byte : *bytes) byte = static_cast<uint8_t>(123 + random.Below(6));
  };
  const int64_t up_width = shape.q_rank == 0 ? shape.hidden : shape.q_rank;
  const int64_t uq_columns = shape.heads * shape.HeadColumns();
  fill_type(&token_x_, shape.tokens * shape.hidden, mode.TokenType(), 1.0f);
  fill_weight(&weight_dq_, shape.hidden, shape.q_rank, mode.TokenType());
  fill_weight(&weight_uq_qr_, up_width, uq_columns, mode.CqType());
  fill_weight(&weight_dkv_kr_, shape.hidden, shape.KvColumns(), mode.TokenType());
  fill(&weight_uk_, shape.heads * shape.nope * shape.kv_rank, 1.0f / std::sqrt(static_cast<float>(shape.nope)));
  fill(&gamma_cq_, shape.q_rank, 0.1f, 1.0f);
  fill(&gamma_ckv_, shape.kv_rank, 0.1f, 1.0f);
  fill(&sin_, shape.tokens * shape.rope, 0.7f);
  fill(&cos_, shape.tokens * shape.rope, 0.7f);
  // An int8 value is about 74 times as large as one of N(0, 1).
  const float unit = mode.QuantType() == ElementType::kInt8 ? 1.0f : 74.0f;
  const float channel_unit = 0.0015f * unit / std::sqrt(static_cast<float>(shape.hidden));
  fill_scale(&scale_x_, shape.tokens, 0.01f * unit);
  fill_scale(&scale_w_dq_, shape.q_rank, channel_unit);
  fill_scale(&scale_w_uq_qr_, uq_columns, channel_unit);
  fill_scale(&scale_w_dkv_kr_, shape.KvColumns(), channel_unit);
  fill_scale(&scale_ckv_, shape.kv_rank, mode.QuantType() == ElementType::kHiF8 ? 4000.0f : 40.0f);
  fill_scale(&scale_ckr_, shape.rope, 40.0f);
  fill_scale(&smooth_, shape.q_rank, 1.0f);
  clip_alpha_ = {0.85f};
  fill_mx(&mx_x_, shape.tokens, shape.hidden);
  fill_mx(&mx_w_dq_, shape.q_rank, shape.hidden);
  fill_mx(&mx_w_uq_qr_, uq_columns, up_width);
  fill_mx(&mx_w_dkv_kr_, shape.KvColumns(), shape.hidden);
  MakeSlots();
}

void RandomCall::MakeSlots() {
  RandomValues random(options_.seed + 1);
  const int64_t tokens = options_.shape.tokens;
  block_num_ = options_.block_num;
  block_size_ = options_.block_size;
  if (IsTokens(options_.cache_mode)) {
    block_size_ = options_.cache_mode == CacheMode::kBsnd && tokens % 2 == 0 ? tokens / 2 : 1;
    block_num_ = tokens / block_size_;
    slot_of_token_.resize(static_cast<size_t>(tokens));
    std::iota(slot_of_token_.begin(), slot_of_token_.end(), 0);
    return;
  }
  if (!IsBlocks(options_.cache_mode)) {
    // Distinct slots, scattered; every ninth token writes none.
    const std::vector<int64_t> slots = Shuffled(block_num_ * block_size_, &random);
    for (size_t t = 0; t < static_cast<size_t>(tokens); ++t) {
      slot_of_token_.push_back(t % 9 == 7 ? -1 : slots[t % slots.size()]);
    }
    return;
  }
  // A sequence takes a page from the list whenever its last one is full, and it begins with a new one.
  if (options_.lists_sequences) {
    for (const int64_t end : {int64_t{0}, tokens / 3, tokens / 3, tokens / 3 + 1, tokens}) {
      sequence_ends_.push_back(static_cast<int32_t>(std::min(end, tokens)));
    }
  } else if (tokens % 2 == 0) {
    sequence_ends_ = {static_cast<int32_t>(tokens / 2), static_cast<int32_t>(tokens)};
  } else {
    sequence_ends_ = {static_cast<int32_t>(tokens)};
  }
  block_size_ = 16;
  block_num_ = tokens / block_size_ + 8;
  const std::vector<int64_t> pages = Shuffled(block_num_, &random);
  int64_t begin = 0;
  for (const int32_t end : sequence_ends_) {
    for (int64_t position = 0; position < end - begin; ++position) {
      if (position % block_size_ == 0) pages_.push_back(pages_.size() % 4 == 2 ? -3 : pages[pages_.size()]);
      slot_of_token_.push_back(pages_.back() < 0 ? -1 : pages_.back() * block_size_ + position % block_size_);
    }
    begin = end;
  }
}

bool RandomCall::Outputs::operator==(const Outputs& other) const {
  return query == other.query && SameBits(query_rope, other.query_rope) && kv_cache == other.kv_cache &&
         kr_cache == other.kr_cache && SameBits(dequant_scale_q_nope, other.dequant_scale_q_nope) &&
         query_norm == other.query_norm && SameBits(dequant_scale_q_norm, other.dequant_scale_q_norm) &&
         mx_scale_q_norm == other.mx_scale_q_norm;
}

RandomCall::Outputs RandomCall::FreshOutputs() const {
  const PrologShape& shape = options_.shape;
  const PrologMode& mode = options_.mode;
  const int64_t slots = block_num_ * block_size_;
  const int64_t token_heads = shape.tokens * shape.heads;
  Outputs out;
  out.query.assign(static_cast<size_t>(token_heads * shape.kv_rank * ElementBytes(QueryType(mode))), 0xff);
  out.query_rope.assign(static_cast<size_t>(token_heads * shape.rope), Bf16{0x7fc1});
  out.dequant_scale_q_nope.assign(static_cast<size_t>(token_heads), -1.0f);
  out.kv_cache.assign(static_cast<size_t>(slots * KvWidth(options_) * ElementBytes(KvType(mode))), 0x55);
  if (mode.kv_quant != KvQuant::kPerGroup) {
    out.kr_cache.assign(static_cast<size_t>(slots * shape.rope * ElementBytes(KrType(mode))), 0x55);
  }
  if (!options_.query_norm) return out;
  out.query_norm.assign(static_cast<size_t>(shape.tokens * shape.q_rank * ElementBytes(mode.CqType())), 0xff);
  if (mode.HasMxScales()) {
    out.mx_scale_q_norm.assign(static_cast<size_t>(shape.tokens * MxGroups(shape.q_rank)), 0x77);
  } else if (mode.QuantizesCq()) {
    out.dequant_scale_q_norm.assign(static_cast<size_t>(shape.tokens), -1.0f);
  }
  return out;
}

CacheView RandomCall::Cache(std::vector<uint8_t>* memory, ElementType type, int64_t width) const {
  const CacheOrder order = IsNz(options_.cache_mode) ? CacheOrder::kNz : CacheOrder::kRows;
  return ContiguousCache(memory->data(), type, order, block_num_, block_size_, width);
}

PrologArgs RandomCall::Args(int64_t begin, int64_t end, Outputs* out) const {
  const PrologShape& shape = options_.shape;
  const PrologMode& mode = options_.mode;
  const bool is_whole = begin == 0 && end == shape.tokens;
  PrologArgs args;
  args.shape = shape;
  args.shape.tokens = end - begin;
  args.mode = mode;
  args.token_x = token_x_.data() + begin * shape.hidden * ElementBytes(mode.TokenType());
  args.weight_dq = NzWeight(weight_dq_.data(), mode.TokenType(), shape.hidden, shape.q_rank);
  args.weight_uq_qr = NzWeight(weight_uq_qr_.data(), mode.CqType(), shape.q_rank == 0 ? shape.hidden : shape.q_rank,
                               shape.heads * shape.HeadColumns());
  args.weight_uk = weight_uk_.data();
  args.weight_dkv_kr = NzWeight(weight_dkv_kr_.data(), mode.TokenType(), shape.hidden, shape.KvColumns());
  args.gamma_cq = gamma_cq_.data();
  args.gamma_ckv = gamma_ckv_.data();
  if (mode.rope_style != RopeStyle::kNone) {
    args.rope_sin = sin_.data() + begin * shape.rope;
    args.rope_cos = cos_.data() + begin * shape.rope;
  }
  args.kv_cache = Cache(&out->kv_cache, KvType(mode), KvWidth(options_));
  if (mode.kv_quant != KvQuant::kPerGroup) args.kr_cache = Cache(&out->kr_cache, KrType(mode), shape.rope);
  if (IsTokens(options_.cache_mode)) {
    args.slots.rule = SlotRule::kTokens;
    if (!is_whole) {  // rows from that of the first token on
      for (CacheView* cache : {&args.kv_cache, &args.kr_cache}) {
        if (cache->data == nullptr) continue;
        void* first = static_cast<char*>(cache->data) + begin * cache->width * ElementBytes(cache->type);
        *cache = ContiguousCache(first, cache->type, cache->order, shape.tokens - begin, 1, cache->width);
      }
    }
  } else if (IsBlocks(options_.cache_mode) && is_whole) {
    args.slots.rule = SlotRule::kBlocks;
    args.slots.cache_index = pages_.data();
    args.slots.num_indices = static_cast<int64_t>(pages_.size());
    args.slots.num_sequences = static_cast<int64_t>(sequence_ends_.size());
    if (options_.lists_sequences) {
      args.slots.sequence_ends = sequence_ends_.data();
    } else {
      args.slots.sequence_length = sequence_ends_[0];
    }
  } else {
    args.slots.cache_index = slot_of_token_.data() + begin;
  }
  if (mode.HasMxScales()) {
    args.mx_scale_x = mx_x_.data() + begin * MxGroups(shape.hidden);
    args.mx_scale_w_dq = mx_w_dq_.data();
    args.mx_scale_w_uq_qr = mx_w_uq_qr_.data();
    args.mx_scale_w_dkv_kr = mx_w_dkv_kr_.data();
  } else if (mode.QuantizesCq()) {
    args.dequant_scale_w_uq_qr = scale_w_uq_qr_.data();
    if (mode.QuantizesX()) {
      args.dequant_scale_x = scale_x_.data() + begin;
      args.dequant_scale_w_dq = scale_w_dq_.data();
      args.dequant_scale_w_dkv_kr = scale_w_dkv_kr_.data();
    }
  }
  if (mode.kv_quant == KvQuant::kPerTensor || mode.kv_quant == KvQuant::kPerChannel) {
    args.quant_scale_ckv = scale_ckv_.data();
  }
  if (mode.kv_quant == KvQuant::kPerChannel) args.quant_scale_ckr = scale_ckr_.data();
  if (mode.kv_quant == KvQuant::kPerGroup && mode.QuantType() == ElementType::kInt8) {
    args.k_nope_clip_alpha = clip_alpha_.data();
  }
  if (options_.smooth) args.smooth_scales_cq = smooth_.data();
  const int64_t first_head = begin * shape.heads;
  args.query = out->query.data() + first_head * shape.kv_rank * ElementBytes(QueryType(mode));
  args.query_rope = out->query_rope.data() + first_head * shape.rope;
  args.dequant_scale_q_nope = out->dequant_scale_q_nope.data() + first_head;
  if (!options_.query_norm) return args;
  args.query_norm = out->query_norm.data() + begin * shape.q_rank * ElementBytes(mode.CqType());
  if (mode.HasMxScales()) {
    args.mx_scale_q_norm = out->mx_scale_q_norm.data() + begin * MxGroups(shape.q_rank);
  } else if (mode.QuantizesCq()) {
    args.dequant_scale_q_norm = out->dequant_scale_q_norm.data() + begin;
  }
  return args;
}

}  // namespace mlap::test
