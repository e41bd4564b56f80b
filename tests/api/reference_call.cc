#include "api/reference_call.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "base/bf16.h"

namespace mlap::test {
namespace {

const char* const kWritable[] = {"query",
                                 "query_rope",
                                 "kv_cache",
                                 "kr_cache",
                                 "intermediates.c_q",
                                 "intermediates.c_q_int8",
                                 "intermediates.c_q_scale",
                                 "intermediates.q_c",
                                 "intermediates.q_r",
                                 "intermediates.c_kv",
                                 "intermediates.k_r"};

size_t DtypeBytes(mlap_dtype dtype) {
  switch (dtype) {
    case MLAP_BF16:
      return 2;
    case MLAP_INT8:
      return 1;
    case MLAP_FLOAT32:
    case MLAP_INT32:
      return 4;
    case MLAP_INT64:
      return 8;
  }
  return 0;
}

bool IsWritable(const std::string& name) {
  return std::find(std::begin(kWritable), std::end(kWritable), name) != std::end(kWritable);
}

std::string Describe(const CallOptions& options) {
  const char* const names[] = {"NonQuant", "Partial", "PartialInt8Caches"};
  return std::string(names[static_cast<int>(options.scenario)]) + (options.has_sequences ? "_BS" : "_T");
}

}  // namespace

std::string CallName(const testing::TestParamInfo<CallOptions>& parameter) { return Describe(parameter.param); }

void PrintTo(const CallOptions& options, std::ostream* out) { *out << Describe(options); }

std::vector<CallOptions> AllCalls() {
  std::vector<CallOptions> calls;
  for (const Scenario scenario : {Scenario::kNonQuant, Scenario::kPartial, Scenario::kPartialInt8Caches}) {
    for (const bool has_sequences : {false, true}) calls.push_back({scenario, has_sequences});
  }
  return calls;
}

ReferenceCall::ReferenceCall(const CallOptions& options) : options_(options) {
  const int64_t T = options.tokens;
  const auto lead = [&](std::vector<int64_t> dims) {
    const std::vector<int64_t> front = options.has_sequences ? std::vector<int64_t>{T, 1} : std::vector<int64_t>{T};
    dims.insert(dims.begin(), front.begin(), front.end());
    return dims;
  };
  const bool int8_weight = options.scenario != Scenario::kNonQuant;
  const bool int8_caches = options.scenario == Scenario::kPartialInt8Caches;
  const mlap_dtype cache_dtype = int8_caches ? MLAP_INT8 : MLAP_BF16;
  constexpr int64_t kUqColumns = kHeads * (kNope + kRope);

  args.struct_size = sizeof(args);
  Place("token_x", &args.token_x, MLAP_BF16, lead({kHidden}));
  Place("weight_dq", &args.weight_dq, MLAP_BF16, {kHidden, kQRank});
  Place("weight_uq_qr", &args.weight_uq_qr, int8_weight ? MLAP_INT8 : MLAP_BF16, {kQRank, kUqColumns});
  Place("weight_uk", &args.weight_uk, MLAP_BF16, {kHeads, kNope, kKvRank});
  Place("weight_dkv_kr", &args.weight_dkv_kr, MLAP_BF16, {kHidden, kKvRank + kRope});
  Place("rmsnorm_gamma_cq", &args.rmsnorm_gamma_cq, MLAP_BF16, {kQRank});
  Place("rmsnorm_gamma_ckv", &args.rmsnorm_gamma_ckv, MLAP_BF16, {kKvRank});
  Place("rope_sin", &args.rope_sin, MLAP_BF16, lead({kRope}));
  Place("rope_cos", &args.rope_cos, MLAP_BF16, lead({kRope}));
  Place("cache_index", &args.cache_index, MLAP_INT64, lead({}));
  Place("kv_cache", &args.kv_cache, cache_dtype, {options.pages, kPageSlots, 1, kKvRank});
  Place("kr_cache", &args.kr_cache, cache_dtype, {options.pages, kPageSlots, 1, kRope});
  if (int8_weight) {
    Place("dequant_scale_w_uq_qr", &args.dequant_scale_w_uq_qr, MLAP_FLOAT32, {1, kUqColumns});
    Place("smooth_scales_cq", &args.smooth_scales_cq, MLAP_FLOAT32, {1, kQRank});
  }
  if (int8_caches) {
    Place("quant_scale_ckv", &args.quant_scale_ckv, MLAP_FLOAT32, {1, kKvRank});
    Place("quant_scale_ckr", &args.quant_scale_ckr, MLAP_FLOAT32, {1, kRope});
  }
  args.rmsnorm_epsilon_cq = 1e-6;
  args.rmsnorm_epsilon_ckv = 1e-6;
  args.cache_mode = MLAP_PA_BSND;
  Place("query", &args.query, MLAP_BF16, lead({kHeads, kKvRank}));
  Place("query_rope", &args.query_rope, MLAP_BF16, lead({kHeads, kRope}));

  args.intermediates = &intermediates;
  intermediates.struct_size = sizeof(intermediates);
  Place("intermediates.c_q", &intermediates.c_q, MLAP_FLOAT32, {T, kQRank});
  if (int8_weight) {
    Place("intermediates.c_q_int8", &intermediates.c_q_int8, MLAP_INT8, {T, kQRank});
    Place("intermediates.c_q_scale", &intermediates.c_q_scale, MLAP_FLOAT32, {T});
  }
  Place("intermediates.q_c", &intermediates.q_c, MLAP_FLOAT32, {T, kHeads, kNope});
  Place("intermediates.q_r", &intermediates.q_r, MLAP_FLOAT32, {T, kHeads, kRope});
  Place("intermediates.c_kv", &intermediates.c_kv, MLAP_FLOAT32, {T, kKvRank});
  Place("intermediates.k_r", &intermediates.k_r, MLAP_FLOAT32, {T, kRope});
  FillInputs();
}

void ReferenceCall::Place(const std::string& name, mlap_tensor* tensor, mlap_dtype dtype, std::vector<int64_t> dims) {
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

void ReferenceCall::FillInputs() {
  std::mt19937 engine(7);
  std::normal_distribution<float> normal;
  for (auto& [name, buffer] : buffers_) {
    if (IsWritable(name)) continue;
    const size_t count = buffer.size() / DtypeBytes(dtypes_[name]);
    for (size_t i = 0; i < count; ++i) {
      const float value = name.rfind("rmsnorm_gamma", 0) == 0 ? 1.0f : normal(engine);
      switch (dtypes_[name]) {
        case MLAP_BF16:
          buffer.as<Bf16>()[i] = RoundToBf16(value);
          break;
        case MLAP_INT8:
          buffer.as<int8_t>()[i] = static_cast<int8_t>(std::clamp(40.0f * value, -127.0f, 127.0f));
          break;
        case MLAP_FLOAT32:
          buffer.as<float>()[i] = 0.5f + static_cast<float>(i % 3);
          break;
        default:
          // Distinct slots, beginning with 1; the caches have room for those of the default call.
          buffer.as<int64_t>()[i] = static_cast<int64_t>(i) + 1;
      }
    }
  }
}

std::vector<NamedTensor> ReferenceCall::Required() {
  std::vector<NamedTensor> tensors = {{"token_x", &args.token_x},
                                      {"weight_dq", &args.weight_dq},
                                      {"weight_uq_qr", &args.weight_uq_qr},
                                      {"weight_uk", &args.weight_uk},
                                      {"weight_dkv_kr", &args.weight_dkv_kr},
                                      {"rmsnorm_gamma_cq", &args.rmsnorm_gamma_cq},
                                      {"rmsnorm_gamma_ckv", &args.rmsnorm_gamma_ckv},
                                      {"rope_sin", &args.rope_sin},
                                      {"rope_cos", &args.rope_cos},
                                      {"cache_index", &args.cache_index},
                                      {"kv_cache", &args.kv_cache},
                                      {"kr_cache", &args.kr_cache},
                                      {"query", &args.query},
                                      {"query_rope", &args.query_rope}};
  if (options_.scenario != Scenario::kNonQuant) {
    tensors.push_back({"dequant_scale_w_uq_qr", &args.dequant_scale_w_uq_qr});
  }
  if (options_.scenario == Scenario::kPartialInt8Caches) {
    tensors.push_back({"quant_scale_ckv", &args.quant_scale_ckv});
    tensors.push_back({"quant_scale_ckr", &args.quant_scale_ckr});
  }
  return tensors;
}

std::vector<NamedTensor> ReferenceCall::Optional() {
  if (options_.scenario == Scenario::kNonQuant) return {};
  return {{"smooth_scales_cq", &args.smooth_scales_cq}};
}

std::vector<NamedTensor> ReferenceCall::Forbidden() {
  std::vector<NamedTensor> tensors;
  if (options_.scenario == Scenario::kNonQuant) {
    tensors = {{"dequant_scale_w_uq_qr", &args.dequant_scale_w_uq_qr},
               {"smooth_scales_cq", &args.smooth_scales_cq},
               {"c_q_int8", &intermediates.c_q_int8},
               {"c_q_scale", &intermediates.c_q_scale}};
  }
  if (options_.scenario != Scenario::kPartialInt8Caches) {
    tensors.push_back({"quant_scale_ckv", &args.quant_scale_ckv});
    tensors.push_back({"quant_scale_ckr", &args.quant_scale_ckr});
  }
  return tensors;
}

std::vector<NamedTensor> ReferenceCall::WantedIntermediates() {
  std::vector<NamedTensor> tensors = {{"intermediates.c_q", &intermediates.c_q},
                                      {"intermediates.q_c", &intermediates.q_c},
                                      {"intermediates.q_r", &intermediates.q_r},
                                      {"intermediates.c_kv", &intermediates.c_kv},
                                      {"intermediates.k_r", &intermediates.k_r}};
  if (options_.scenario != Scenario::kNonQuant) {
    tensors.push_back({"intermediates.c_q_int8", &intermediates.c_q_int8});
    tensors.push_back({"intermediates.c_q_scale", &intermediates.c_q_scale});
  }
  return tensors;
}

std::map<std::string, std::vector<uint8_t>> ReferenceCall::WritableBytes() const {
  std::map<std::string, std::vector<uint8_t>> bytes;
  for (const char* name : kWritable) {
    if (buffers_.count(name) != 0) bytes[name] = buffers_.at(name).Bytes();
  }
  return bytes;
}

std::vector<float> ReferenceCall::Values(const std::string& name) const {
  const GuardedBuffer& buffer = buffers_.at(name);
  const mlap_dtype dtype = dtypes_.at(name);
  std::vector<float> values(buffer.size() / DtypeBytes(dtype));
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == MLAP_BF16) values[i] = ToFloat(buffer.as<Bf16>()[i]);
    if (dtype == MLAP_INT8) values[i] = buffer.as<int8_t>()[i];
    if (dtype == MLAP_FLOAT32) values[i] = buffer.as<float>()[i];
    if (dtype == MLAP_INT64) values[i] = static_cast<float>(buffer.as<int64_t>()[i]);
  }
  return values;
}

}  // namespace mlap::test
