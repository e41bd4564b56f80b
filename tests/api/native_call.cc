#include "api/native_call.h"

#include <algorithm>
#include <cstring>

#include "base/bf16.h"
#include "base/e4m3.h"
#include "base/hif8.h"
#include "support/random_values.h"

namespace mlap::test {
namespace {

constexpr int64_t kUpColumns = NativeCall::kHeads * (NativeCall::kNope + NativeCall::kRope);
constexpr int64_t kKvColumns = NativeCall::kKvRank + NativeCall::kRope;

std::string Describe(const CallOptions& options) {
  constexpr const char* kWeights[] = {"Bf16", "UqQrInt8", "Int8", "MxFp8", "Fp8", "HiFloat8"};
  constexpr const char* kKv[] = {"KvBf16", "KvPerTensor", "KvPerChannel", "KvPerGroup"};
  constexpr const char* kModes[] = {"PaBsnd", "PaNz", "PaBlkBsnd", "PaBlkNz", "Bsnd", "Tnd"};
  return std::string(kWeights[options.weights]) + "_" + kKv[options.kv] + "_" + kModes[options.mode] +
         (options.has_sequences ? "_BS" : "_T") + (options.has_low_rank ? "" : "_NoLowRank");
}

bool IsBlocks(mlap_cache_mode mode) { return mode == MLAP_PA_BLK_BSND || mode == MLAP_PA_BLK_NZ; }

}  // namespace

size_t DtypeBytes(mlap_dtype dtype) {
  switch (dtype) {
    case MLAP_INT8:
    case MLAP_FLOAT8_E4M3:
    case MLAP_HIFLOAT8:
    case MLAP_FLOAT8_E8M0:
      return 1;
    case MLAP_BF16:
    case MLAP_FLOAT16:
      return 2;
    case MLAP_FLOAT32:
    case MLAP_INT32:
      return 4;
    case MLAP_INT64:
    case MLAP_FLOAT64:
      return 8;
  }
  return 0;
}

std::string CallName(const testing::TestParamInfo<CallOptions>& parameter) { return Describe(parameter.param); }

void PrintTo(const CallOptions& options, std::ostream* out) { *out << Describe(options); }

std::vector<CallOptions> AllCalls() {
  struct Scenario {
    mlap_weight_quant weights;
    mlap_kv_quant kv;
  };
  constexpr Scenario kScenarios[] = {
      {MLAP_WEIGHTS_BF16, MLAP_KV_BF16},
      {MLAP_WEIGHTS_UQ_QR_INT8, MLAP_KV_BF16},
      {MLAP_WEIGHTS_UQ_QR_INT8, MLAP_KV_PER_CHANNEL},
      {MLAP_WEIGHTS_UQ_QR_INT8, MLAP_KV_PER_GROUP},
      {MLAP_WEIGHTS_INT8, MLAP_KV_BF16},
      {MLAP_WEIGHTS_INT8, MLAP_KV_PER_TENSOR},
      {MLAP_WEIGHTS_INT8, MLAP_KV_PER_GROUP},
      {MLAP_WEIGHTS_MXFP8, MLAP_KV_BF16},
      {MLAP_WEIGHTS_MXFP8, MLAP_KV_PER_TENSOR},
      {MLAP_WEIGHTS_MXFP8, MLAP_KV_PER_GROUP},
      {MLAP_WEIGHTS_FP8, MLAP_KV_PER_TENSOR},
      {MLAP_WEIGHTS_FP8, MLAP_KV_PER_GROUP},
      {MLAP_WEIGHTS_HIFLOAT8, MLAP_KV_PER_TENSOR},
      {MLAP_WEIGHTS_HIFLOAT8, MLAP_KV_PER_GROUP},
  };
  std::vector<CallOptions> calls;
  for (const Scenario& scenario : kScenarios) {
    for (const bool has_sequences : {false, true}) {
      calls.push_back({scenario.weights, scenario.kv, MLAP_PA_BSND, has_sequences});
    }
  }
  for (const mlap_cache_mode mode : {MLAP_PA_NZ, MLAP_PA_BLK_BSND, MLAP_PA_BLK_NZ, MLAP_BSND, MLAP_TND}) {
    for (const bool has_sequences : {false, true}) {
      if ((mode == MLAP_BSND && !has_sequences) || (mode == MLAP_TND && has_sequences)) continue;
      calls.push_back({MLAP_WEIGHTS_BF16, MLAP_KV_BF16, mode, has_sequences});
      calls.push_back({MLAP_WEIGHTS_UQ_QR_INT8, MLAP_KV_PER_CHANNEL, mode, has_sequences});
    }
  }
  calls.push_back({MLAP_WEIGHTS_BF16, MLAP_KV_BF16, MLAP_PA_BSND, false, false});
  calls.push_back({MLAP_WEIGHTS_INT8, MLAP_KV_PER_TENSOR, MLAP_PA_BSND, false, false});
  calls.push_back({MLAP_WEIGHTS_MXFP8, MLAP_KV_BF16, MLAP_PA_BSND, false, false});
  return calls;
}

NativeCall::NativeCall(const CallOptions& options) : options_(options) {
  mlap_weights_args_init(&weights_args);
  mlap_run_args_init(&args);
  args.cache_mode = options.mode;
  args.kv_quant = options.kv;
  args.rmsnorm_epsilon_cq = 1e-6;
  args.rmsnorm_epsilon_ckv = 1e-6;
  reference.struct_size = sizeof(reference);
  reference.intermediates = &intermediates;
  intermediates.struct_size = sizeof(intermediates);
  AddWeights();
  AddInputs();
  AddOutputs();
  FillInputs();
}

NativeCall::~NativeCall() { mlap_weights_destroy(weights_); }

mlap_dtype NativeCall::EightBit() const {
  switch (options_.weights) {
    case MLAP_WEIGHTS_MXFP8:
    case MLAP_WEIGHTS_FP8:
      return MLAP_FLOAT8_E4M3;
    case MLAP_WEIGHTS_HIFLOAT8:
      return MLAP_HIFLOAT8;
    default:
      return MLAP_INT8;
  }
}

std::vector<int64_t> NativeCall::Lead(std::vector<int64_t> dims) const {
  const std::vector<int64_t> front =
      options_.has_sequences ? std::vector<int64_t>{options_.tokens, 1} : std::vector<int64_t>{options_.tokens};
  dims.insert(dims.begin(), front.begin(), front.end());
  return dims;
}

void NativeCall::AddWeights() {
  const bool low_rank = options_.has_low_rank;
  const bool quantizes_up = options_.weights != MLAP_WEIGHTS_BF16;
  const mlap_dtype down = IsFull() ? EightBit() : MLAP_BF16;
  const mlap_dtype up = quantizes_up ? EightBit() : MLAP_BF16;
  const int64_t up_rows = low_rank ? kQRank : kHidden;
  mlap_weights_args& w = weights_args;
  const auto use = [](bool is_used) { return is_used ? Use::kRequired : Use::kForbidden; };
  if (low_rank) {
    Add("weight_dq", &w.weight_dq, Use::kRequired, down, {kHidden, kQRank});
    Add("rmsnorm_gamma_cq", &w.rmsnorm_gamma_cq, Use::kRequired, MLAP_BF16, {kQRank});
  } else {
    Add("rmsnorm_gamma_cq", &w.rmsnorm_gamma_cq, Use::kForbidden, MLAP_BF16, {kQRank});
  }
  Add("weight_uq_qr", &w.weight_uq_qr, Use::kRequired, up, {up_rows, kUpColumns});
  Add("weight_uk", &w.weight_uk, Use::kRequired, MLAP_BF16, {kHeads, kNope, kKvRank});
  Add("weight_dkv_kr", &w.weight_dkv_kr, Use::kRequired, down, {kHidden, kKvColumns});
  Add("rmsnorm_gamma_ckv", &w.rmsnorm_gamma_ckv, Use::kRequired, MLAP_BF16, {kKvRank});
  const auto scale = [&](const std::string& name, mlap_tensor* tensor, bool is_used, int64_t k, int64_t n) {
    const mlap_dtype type = IsMx() ? MLAP_FLOAT8_E8M0 : MLAP_FLOAT32;
    Add(name, tensor, use(is_used), type, IsMx() ? std::vector<int64_t>{n, k / 32} : std::vector<int64_t>{1, n});
  };
  scale("dequant_scale_w_dq", &w.dequant_scale_w_dq, IsFull() && low_rank, kHidden, kQRank);
  scale("dequant_scale_w_uq_qr", &w.dequant_scale_w_uq_qr, quantizes_up, up_rows, kUpColumns);
  scale("dequant_scale_w_dkv_kr", &w.dequant_scale_w_dkv_kr, IsFull(), kHidden, kKvColumns);
  Add("smooth_scales_cq", &w.smooth_scales_cq, quantizes_up && !IsMx() && low_rank ? Use::kOptional : Use::kForbidden,
      MLAP_FLOAT32, {1, kQRank});
}

void NativeCall::AddInputs() {
  const int64_t T = options_.tokens;
  const mlap_kv_quant kv = options_.kv;
  const auto use = [](bool is_used) { return is_used ? Use::kRequired : Use::kForbidden; };
  Add("token_x", &args.token_x, Use::kRequired, IsFull() ? EightBit() : MLAP_BF16, Lead({kHidden}));
  Add("dequant_scale_x", &args.dequant_scale_x, use(IsFull()), IsMx() ? MLAP_FLOAT8_E8M0 : MLAP_FLOAT32,
      {T, IsMx() ? kHidden / 32 : 1});
  Add("rope_sin", &args.rope_sin, Use::kRequired, MLAP_BF16, Lead({kRope}));
  Add("rope_cos", &args.rope_cos, Use::kRequired, MLAP_BF16, Lead({kRope}));

  const bool is_per_group = kv == MLAP_KV_PER_GROUP;
  const int64_t row = is_per_group ? kKvRank + 2 * kRope + 4 * 2 : kKvRank;
  const auto pages = [&](int64_t width) {
    return options_.mode == MLAP_BSND || options_.mode == MLAP_TND
               ? Lead({1, width})
               : std::vector<int64_t>{options_.pages, kPageSlots, 1, width};
  };
  Add("kv_cache", &args.kv_cache, Use::kRequired, kv == MLAP_KV_BF16 ? MLAP_BF16 : EightBit(), pages(row), true);
  Add("kr_cache", &args.kr_cache, use(!is_per_group), kv == MLAP_KV_PER_CHANNEL ? MLAP_INT8 : MLAP_BF16, pages(kRope),
      true);
  if (IsBlocks(options_.mode)) {
    // Sequences of one token with (B, S); one sequence with (T).
    Add("cache_index", &args.cache_index, Use::kRequired, MLAP_INT64,
        options_.has_sequences ? std::vector<int64_t>{T, 1} : std::vector<int64_t>{1});
    Add("actual_seq_len", &args.actual_seq_len, use(!options_.has_sequences), MLAP_INT32, {1});
  } else {
    Add("cache_index", &args.cache_index, use(options_.mode == MLAP_PA_BSND || options_.mode == MLAP_PA_NZ), MLAP_INT64,
        Lead({}));
    Add("actual_seq_len", &args.actual_seq_len, Use::kForbidden, MLAP_INT32, {1});
  }
  const bool is_per_tensor = kv == MLAP_KV_PER_TENSOR;
  Add("quant_scale_ckv", &args.quant_scale_ckv, use(is_per_tensor || kv == MLAP_KV_PER_CHANNEL), MLAP_FLOAT32,
      is_per_tensor ? std::vector<int64_t>{1} : std::vector<int64_t>{1, kKvRank});
  Add("quant_scale_ckr", &args.quant_scale_ckr, use(kv == MLAP_KV_PER_CHANNEL), MLAP_FLOAT32, {1, kRope});
  Add("k_nope_clip_alpha", &args.k_nope_clip_alpha, use(is_per_group && EightBit() == MLAP_INT8), MLAP_FLOAT32, {1});
}

void NativeCall::AddOutputs() {
  const int64_t T = options_.tokens;
  const bool is_per_tensor = options_.kv == MLAP_KV_PER_TENSOR;
  const bool quantizes_c_q = options_.weights != MLAP_WEIGHTS_BF16 && options_.has_low_rank;
  const mlap_dtype c_q = options_.weights != MLAP_WEIGHTS_BF16 ? EightBit() : MLAP_BF16;
  Add("query", &args.query, Use::kRequired, is_per_tensor ? EightBit() : MLAP_BF16, Lead({kHeads, kKvRank}), true);
  Add("query_rope", &args.query_rope, Use::kRequired, MLAP_BF16, Lead({kHeads, kRope}), true);
  Add("dequant_scale_q_nope", &args.dequant_scale_q_nope, is_per_tensor ? Use::kRequired : Use::kForbidden,
      MLAP_FLOAT32, {T, kHeads, 1}, true);
  Add("query_norm", &args.query_norm, options_.has_low_rank ? Use::kOptional : Use::kForbidden, c_q, Lead({kQRank}),
      true);
  // Not optional with query_norm, which is given.
  Add("dequant_scale_q_norm", &args.dequant_scale_q_norm, quantizes_c_q ? Use::kRequired : Use::kForbidden,
      IsMx() ? MLAP_FLOAT8_E8M0 : MLAP_FLOAT32, {T, IsMx() ? kQRank / 32 : 1}, true);

  mlap_intermediates& i = intermediates;
  const auto use = [](bool exists) { return exists ? Use::kOptional : Use::kForbidden; };
  Add("intermediates.c_q", &i.c_q, use(options_.has_low_rank), MLAP_FLOAT32, {T, kQRank}, true);
  Add("intermediates.c_q_quantized", &i.c_q_quantized, use(quantizes_c_q), c_q, {T, kQRank}, true);
  Add("intermediates.c_q_scale", &i.c_q_scale, use(quantizes_c_q && !IsMx()), MLAP_FLOAT32, {T}, true);
  Add("intermediates.q_c", &i.q_c, Use::kOptional, MLAP_FLOAT32, {T, kHeads, kNope}, true);
  Add("intermediates.q_r", &i.q_r, Use::kOptional, MLAP_FLOAT32, {T, kHeads, kRope}, true);
  Add("intermediates.c_kv", &i.c_kv, Use::kOptional, MLAP_FLOAT32, {T, kKvRank}, true);
  Add("intermediates.k_r", &i.k_r, Use::kOptional, MLAP_FLOAT32, {T, kRope}, true);
}

void NativeCall::Add(const std::string& name, mlap_tensor* tensor, Use use, mlap_dtype dtype, std::vector<int64_t> dims,
                     bool is_written) {
  entries_.push_back({name, tensor, use, is_written});
  if (use == Use::kForbidden) return;
  size_t bytes = DtypeBytes(dtype);
  for (const int64_t dim : dims) bytes *= static_cast<size_t>(dim);
  GuardedBuffer buffer(bytes);
  buffer.Fill(kPattern);
  tensor->data = buffer.data();
  tensor->dtype = dtype;
  tensor->layout = MLAP_ROW_MAJOR;
  tensor->rank = static_cast<int32_t>(dims.size());
  std::copy(dims.begin(), dims.end(), tensor->dims);
  buffers_[name] = std::move(buffer);
  dtypes_[name] = dtype;
}

void NativeCall::FillInputs() {
  RandomValues random(7);
  for (const Entry& entry : entries_) {
    if (entry.is_written || entry.use == Use::kForbidden) continue;
    GuardedBuffer& buffer = buffers_[entry.name];
    const mlap_dtype dtype = dtypes_[entry.name];
    const size_t count = buffer.size() / DtypeBytes(dtype);
    const bool is_gamma = entry.name.rfind("rmsnorm_gamma", 0) == 0;
    for (size_t i = 0; i < count; ++i) {
      const float value = is_gamma ? 1.0f : random.Normal();
      switch (dtype) {
        case MLAP_BF16:
          buffer.as<Bf16>()[i] = RoundToBf16(value);
          break;
        case MLAP_INT8:
          buffer.as<int8_t>()[i] = static_cast<int8_t>(std::clamp(40.0f * value, -127.0f, 127.0f));
          break;
        case MLAP_FLOAT8_E4M3:
          buffer.as<E4m3>()[i] = RoundToE4m3(value);
          break;
        case MLAP_HIFLOAT8:
          buffer.as<HiF8>()[i] = RoundToHiF8(value);
          break;
        case MLAP_FLOAT8_E8M0:
          buffer.as<uint8_t>()[i] = static_cast<uint8_t>(126 + i % 3);
          break;
        case MLAP_FLOAT32:
          buffer.as<float>()[i] = 0.5f + static_cast<float>(i % 3);
          break;
        case MLAP_INT32:
          buffer.as<int32_t>()[i] = static_cast<int32_t>(options_.tokens);  // one sequence of all tokens
          break;
        default:
          // Distinct slots from 1 on, which the default caches have; pages from 0 on, wherever there are pages.
          buffer.as<int64_t>()[i] = IsBlocks(options_.mode) ? static_cast<int64_t>(i) % 2 : static_cast<int64_t>(i) + 1;
      }
    }
  }
}

mlap_weights* NativeCall::Weights() {
  if (weights_ == nullptr) mlap_weights_create(&weights_args, &weights_);
  return weights_;
}

mlap_status NativeCall::RunReference() {
  if (weights_ == nullptr) {
    const mlap_status status = mlap_weights_create(&weights_args, &weights_);
    if (status != MLAP_OK) return status;
  }
  return mlap_reference_run(weights_, &args, &reference);
}

mlap_status NativeCall::Run(mlap_context* context) {
  if (weights_ == nullptr) {
    const mlap_status status = mlap_weights_create(&weights_args, &weights_);
    if (status != MLAP_OK) return status;
  }
  return mlap_run(context, weights_, &args);
}

std::vector<NamedTensor> NativeCall::WithUse(Use use) {
  std::vector<NamedTensor> tensors;
  for (const Entry& entry : entries_) {
    if (entry.use == use) tensors.push_back({entry.name, entry.tensor});
  }
  return tensors;
}

std::vector<NamedTensor> NativeCall::Given() {
  std::vector<NamedTensor> tensors = Required();
  for (const NamedTensor& tensor : Optional()) tensors.push_back(tensor);
  return tensors;
}

bool NativeCall::IsOfWeights(const std::string& name) {
  return name.rfind("weight_", 0) == 0 || name.rfind("rmsnorm_gamma", 0) == 0 ||
         name.rfind("dequant_scale_w_", 0) == 0 || name == "smooth_scales_cq";
}

bool NativeCall::IsWritten(const std::string& name) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& entry) { return entry.name == name && entry.is_written; });
}

mlap_tensor* NativeCall::Tensor(const std::string& name) {
  for (const Entry& entry : entries_) {
    if (entry.name == name) return entry.tensor;
  }
  return nullptr;
}

std::map<std::string, std::vector<uint8_t>> NativeCall::WritableBytes() const {
  std::map<std::string, std::vector<uint8_t>> bytes;
  for (const Entry& entry : entries_) {
    if (entry.is_written && Has(entry.name)) bytes[entry.name] = buffers_.at(entry.name).Bytes();
  }
  return bytes;
}

std::vector<float> NativeCall::Values(const std::string& name) const {
  const GuardedBuffer& buffer = buffers_.at(name);
  const mlap_dtype dtype = dtypes_.at(name);
  std::vector<float> values(buffer.size() / DtypeBytes(dtype));
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == MLAP_BF16) values[i] = ToFloat(buffer.as<Bf16>()[i]);
    if (dtype == MLAP_INT8) values[i] = buffer.as<int8_t>()[i];
    if (dtype == MLAP_FLOAT8_E4M3) values[i] = ToFloat(buffer.as<E4m3>()[i]);
    if (dtype == MLAP_HIFLOAT8) values[i] = ToFloat(buffer.as<HiF8>()[i]);
    if (dtype == MLAP_FLOAT32) values[i] = buffer.as<float>()[i];
    if (dtype == MLAP_INT64) values[i] = static_cast<float>(buffer.as<int64_t>()[i]);
  }
  return values;
}

}  // namespace mlap::test
