#include "prolog_fixture.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <utility>

#include "aclnnop/aclnn_mla_prolog.h"
#include "aclnnop/aclnn_mla_prolog_v2_weight_nz.h"
#include "aclnnop/aclnn_mla_prolog_v3_weight_nz.h"

namespace mlap::prolog_test {
namespace {

constexpr uint8_t kSentinel = 0xA5;

constexpr std::array<const char*, kNumParams> kParamNames = {"tokenX",
                                                             "weightDq",
                                                             "weightUqQr",
                                                             "weightUk",
                                                             "weightDkvKr",
                                                             "rmsnormGammaCq",
                                                             "rmsnormGammaCkv",
                                                             "ropeSin",
                                                             "ropeCos",
                                                             "cacheIndex",
                                                             "kvCache",
                                                             "krCache",
                                                             "dequantScaleX",
                                                             "dequantScaleWDq",
                                                             "dequantScaleWUqQr",
                                                             "dequantScaleWDkvKr",
                                                             "quantScaleCkv",
                                                             "quantScaleCkr",
                                                             "smoothScalesCq",
                                                             "actualSeqLen",
                                                             "kNopeClipAlpha",
                                                             "queryOut",
                                                             "queryRopeOut",
                                                             "dequantScaleQNopeOut",
                                                             "queryNormOut",
                                                             "dequantScaleQNormOut"};

// The finaliser of splitmix64: a number for every (seed, index), so that a token's data do not depend on the call.
uint64_t Hash(uint64_t value) {
  value += 0x9E3779B97F4A7C15u;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

// In [-1, 1).
float Uniform(uint64_t seed, uint64_t index) {
  return static_cast<float>(static_cast<int64_t>(Hash(seed ^ Hash(index)) >> 40)) * 0x1p-23f - 1.0f;
}

uint16_t ToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

int64_t C0(aclDataType dtype) { return 32 / static_cast<int64_t>(aclDataTypeSize(dtype)); }

int64_t RoundUp(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

// Visits the offset of every element in row-major order.
template <class F>
void ForEachOffset(const TensorDesc& desc, F&& visit) {
  const std::vector<int64_t> strides = desc.strides ? *desc.strides : desc.ContiguousStrides();
  const int64_t count = desc.NumElements();
  std::vector<int64_t> index(desc.dims.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = desc.offset;
    for (size_t d = 0; d < index.size(); ++d) offset += index[d] * strides[d];
    visit(offset);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < desc.dims[d]) break;
      index[d] = 0;
    }
  }
}

struct Range {
  float centre;
  float radius;
};

// Magnitudes like those of a trained model: normalised activations, products of order one, int8 caches that use their
// range and saturate now and then.
Range RangeOf(Param param, const Config& config) {
  const auto root = [](int64_t k) { return 1.7f / std::sqrt(static_cast<float>(k)); };
  switch (param) {
    case kWeightDq:
    case kWeightDkvKr:
      return {0, root(config.hidden)};
    case kWeightUqQr:
      return {0, root(config.q_rank)};
    case kWeightUk:
      return {0, root(config.nope)};
    case kGammaCq:
    case kGammaCkv:
    case kSmooth:
      return {1, 0.5f};
    // Of 8-bit numbers of up to 127.
    case kScaleX:
      return {1.7f / 127, 1.0f / 127};
    case kScaleWDq:
    case kScaleWDkvKr:
      return {root(config.hidden) / 127, root(config.hidden) / 254};
    case kScaleWUqQr:
      return {root(config.q_rank) / 127, root(config.q_rank) / 254};
    case kScaleCkv:
    case kScaleCkr:
      return {50, 25};
    case kClipAlpha:
      return {0.9f, 0.05f};
    case kTokenX:
      return {0, 1.7f};
    default:
      return {0, 1};
  }
}

}  // namespace

bool IsWritten(Param param) { return std::find(kWritten.begin(), kWritten.end(), param) != kWritten.end(); }
bool IsNzWeight(Param param) { return std::find(kNzWeights.begin(), kNzWeights.end(), param) != kNzWeights.end(); }
const char* ParamName(Param param) { return kParamNames[param]; }

const char* VersionName(Version version) {
  constexpr const char* kNames[] = {"V1", "V2", "V3"};
  return kNames[static_cast<int>(version)];
}

const std::vector<Param>& ParamsOf(Version version) {
  static const std::vector<Param> kV1 = {kTokenX,   kWeightDq, kWeightUqQr,  kWeightUk,    kWeightDkvKr, kGammaCq,
                                         kGammaCkv, kRopeSin,  kRopeCos,     kCacheIndex,  kKvCache,     kKrCache,
                                         kScaleX,   kScaleWDq, kScaleWUqQr,  kScaleWDkvKr, kScaleCkv,    kScaleCkr,
                                         kSmooth,   kQueryOut, kQueryRopeOut};
  static const std::vector<Param> kV2 = [] {
    std::vector<Param> params = kV1;
    params.push_back(kScaleQNope);
    return params;
  }();
  static const std::vector<Param> kV3 = {
      kTokenX,  kWeightDq,     kWeightUqQr, kWeightUk, kWeightDkvKr,  kGammaCq,    kGammaCkv,    kRopeSin,   kRopeCos,
      kKvCache, kKrCache,      kCacheIndex, kScaleX,   kScaleWDq,     kScaleWUqQr, kScaleWDkvKr, kScaleCkv,  kScaleCkr,
      kSmooth,  kActualSeqLen, kClipAlpha,  kQueryOut, kQueryRopeOut, kScaleQNope, kQueryNorm,   kScaleQNorm};
  return version == Version::kV1 ? kV1 : version == Version::kV2 ? kV2 : kV3;
}

int64_t PositionOf(Version version, Param param) {
  const std::vector<Param>& params = ParamsOf(version);
  return std::find(params.begin(), params.end(), param) - params.begin();
}

std::vector<Param> RequiredOf(Version version) {
  std::vector<Param> result;
  for (const Param param : ParamsOf(version)) {
    if (param == kCacheIndex && version == Version::kV3) continue;
    if (param <= kKrCache || param == kQueryOut || param == kQueryRopeOut) result.push_back(param);
  }
  return result;
}

std::vector<Param> OptionalInputsOf(Version version) {
  std::vector<Param> result;
  for (const Param param : ParamsOf(version)) {
    if (param >= kQueryOut || param < kCacheIndex || IsWritten(param)) continue;
    if (param != kCacheIndex || version == Version::kV3) result.push_back(param);
  }
  return result;
}

const std::array<ScenarioRow, 16>& ScenarioTable() {
  constexpr aclDataType kBf = ACL_BF16;
  constexpr aclDataType kI8 = ACL_INT8;
  constexpr aclDataType kF8 = ACL_FLOAT8_E4M3FN;
  constexpr aclDataType kH8 = ACL_HIFLOAT8;
  constexpr aclDataType kF32 = ACL_FLOAT;
  constexpr aclDataType kE8 = ACL_FLOAT8_E8M0;
  static const std::array<ScenarioRow, 16> kRows = {{
      {0, 0, kBf, kBf, kBf, kBf, kBf, kBf, kF32, false, false},
      {1, 0, kBf, kI8, kBf, kBf, kBf, kI8, kF32, true, false},
      {1, 2, kBf, kI8, kI8, kI8, kBf, kI8, kF32, true, false},
      {1, 3, kBf, kI8, kI8, kBf, kBf, kI8, kF32, true, true},
      {2, 0, kI8, kI8, kBf, kBf, kBf, kI8, kF32, true, false},
      {2, 1, kI8, kI8, kI8, kBf, kI8, kI8, kF32, true, false},
      {2, 3, kI8, kI8, kI8, kBf, kBf, kI8, kF32, true, true},
      {3, 0, kF8, kF8, kBf, kBf, kBf, kF8, kE8, false, false},
      {3, 1, kF8, kF8, kF8, kBf, kF8, kF8, kE8, false, false},
      {3, 3, kF8, kF8, kF8, kBf, kBf, kF8, kE8, false, false},
      {4, 0, kF8, kF8, kBf, kBf, kBf, kF8, kF32, true, false},
      {4, 1, kF8, kF8, kF8, kBf, kF8, kF8, kF32, true, false},
      {4, 3, kF8, kF8, kF8, kBf, kBf, kF8, kF32, true, false},
      {5, 0, kH8, kH8, kBf, kBf, kBf, kH8, kF32, true, false},
      {5, 1, kH8, kH8, kH8, kBf, kH8, kH8, kF32, true, false},
      {5, 3, kH8, kH8, kH8, kBf, kBf, kH8, kF32, true, false},
  }};
  return kRows;
}

const ScenarioRow& RowOf(const Scenario& scenario) {
  return *std::find_if(ScenarioTable().begin(), ScenarioTable().end(), [&](const ScenarioRow& row) {
    return row.weight_mode == scenario.weight_mode && row.kv_mode == scenario.kv_mode;
  });
}

std::vector<Scenario> AllScenarios() {
  std::vector<Scenario> scenarios(kScenarios.begin(), kScenarios.end());
  scenarios.insert(scenarios.end(), kScenarios950.begin(), kScenarios950.end());
  return scenarios;
}

std::string ScenarioName(const Scenario& scenario) {
  constexpr const char* kWeights[] = {"non-quant", "partial", "int8", "mxfp8", "fp8", "hif8"};
  constexpr const char* kKv[] = {"", ", per-tensor", ", per-channel", ", per-group"};
  return std::string(VersionName(scenario.version)) + " " + kWeights[scenario.weight_mode] + kKv[scenario.kv_mode] +
         (scenario.smooth ? "+smooth" : "") + (scenario.query_norm ? "+queryNorm" : "");
}

std::vector<const char*> IndexModesOf(const Scenario& scenario) {
  if (scenario.kv_mode == 3) return {"PA_BSND"};
  return {"PA_BSND", "PA_NZ"};
}

std::vector<const char*> ModesOf(const Scenario& scenario) {
  if (scenario.version != Version::kV3) return {"PA_BSND", "PA_NZ"};
  if (scenario.kv_mode == 3) return {"PA_BSND", "BSND", "TND"};
  return {"PA_BSND", "PA_NZ", "PA_BLK_BSND", "PA_BLK_NZ", "BSND", "TND"};
}

std::vector<int64_t> Config::Sequences() const {
  if (!fused) return std::vector<int64_t>(static_cast<size_t>(std::max<int64_t>(batch, 0)), seq);
  if (!sequences.empty()) return sequences;
  if (tokens < 2) return {tokens};
  return {tokens / 2, tokens - tokens / 2};
}

int64_t Config::NumPages() const {
  int64_t pages = 0;
  for (const int64_t length : Sequences()) pages += block_size <= 0 ? 0 : RoundUp(length, block_size) / block_size;
  return pages;
}

std::vector<Config> FormsOf(Config config, int64_t tokens) {
  std::vector<Config> forms;
  if (config.cache_mode != "BSND") forms.push_back(Config(config).SetFused(tokens));
  if (config.cache_mode != "TND") {
    const int64_t batch = tokens % 2 == 0 ? 2 : 1;
    forms.push_back(Config(config).SetBatchSeq(batch, tokens / batch));
  }
  return forms;
}

std::string Config::Name() const {
  return (soc.empty() ? "" : soc + " ") + ScenarioName(scenario) + " " + cache_mode + " " +
         (fused ? "T=" + std::to_string(tokens) : "B=" + std::to_string(batch) + ",S=" + std::to_string(seq)) +
         " He=" + std::to_string(hidden) + " Hcq=" + std::to_string(q_rank) + " N=" + std::to_string(heads) +
         " D=" + std::to_string(nope) + " Dr=" + std::to_string(rope) + " Hckv=" + std::to_string(kv_rank) + " cache " +
         std::to_string(block_num) + "x" + std::to_string(block_size) + (nz_2d ? " 2-D weights" : "");
}

Config TinyConfig(const Scenario& scenario, const std::string& cache_mode) {
  Config config;
  config.scenario = scenario;
  config.cache_mode = cache_mode;
  config.hidden = 64;
  config.q_rank = 32;
  config.heads = 2;
  config.nope = 16;
  // Both cache rows have two int8 fractals, so that the byte orders differ and NZ needs no padding.
  config.rope = 64;
  // A merged row has a whole group and a part of one.
  config.kv_rank = config.PerGroup() ? 192 : 64;
  config.block_num = 3;
  config.block_size = 16;
  cache_mode == "BSND" ? config.SetBatchSeq(1, 3) : config.SetFused(3);
  return config;
}

Config MediumConfig(const Scenario& scenario, const std::string& cache_mode) {
  Config config;
  config.scenario = scenario;
  config.cache_mode = cache_mode;
  config.hidden = 256;
  config.q_rank = 192;
  config.heads = 5;
  // Wide enough for whole fractals of 32 int8 columns: of a cache row of Dr, and of a weight of Hckv + Dr.
  const bool wide_rope = (config.PerChannel() && config.IsNzCache()) || config.IsFull();
  config.nope = wide_rope ? 64 : 48;
  config.rope = wide_rope ? 32 : 16;
  config.kv_rank = config.PerGroup() ? 160 : 96;
  config.block_num = 10;
  config.block_size = 16;
  cache_mode == "BSND" ? config.SetBatchSeq(2, 8) : config.SetFused(16);
  return config;
}

int64_t TensorDesc::NumElements() const {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  return count;
}

std::vector<int64_t> TensorDesc::ContiguousStrides() const {
  std::vector<int64_t> result(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 1;) result[d - 1] = result[d] * dims[d];
  return result;
}

void TensorDesc::Reshape(std::vector<int64_t> new_dims) {
  dims = std::move(new_dims);
  storage_dims = dims;
  strides.reset();
}

void Handles::Destroy() {
  for (aclTensor*& tensor : owned) {
    if (tensor != nullptr) aclDestroyTensor(tensor);
    tensor = nullptr;
  }
  tensors = {};
}

std::ostream& operator<<(std::ostream& out, const RunResult& result) {
  return out << "phase 1 " << result.phase1 << ", phase 2 " << result.phase2 << ", synchronisation " << result.sync
             << ", text: " << result.text;
}

PrologCall::PrologCall(const Config& chosen) : config(chosen), cache_mode(chosen.cache_mode) {
  const Config& c = config;
  const ScenarioRow& row = RowOf(c.scenario);
  const bool is_mx = row.scale == ACL_FLOAT8_E8M0;
  const int64_t uq_qr_columns = c.heads * (c.nope + c.rope);
  const int64_t kv_columns = c.kv_rank + c.rope;
  const int64_t tokens = c.Tokens();
  const std::vector<int64_t> lead = c.fused ? std::vector<int64_t>{c.tokens} : std::vector<int64_t>{c.batch, c.seq};
  const auto num_sequences = static_cast<int64_t>(c.Sequences().size());

  const auto plain = [this](Param param, aclDataType dtype, std::vector<int64_t> dims) {
    TensorDesc& desc = descs_[param];
    desc.dtype = dtype;
    desc.format = ACL_FORMAT_ND;
    desc.Reshape(std::move(dims));
  };
  const auto with_lead = [&lead](std::vector<int64_t> tail) {
    tail.insert(tail.begin(), lead.begin(), lead.end());
    return tail;
  };
  const auto cache = [&](int64_t width) {
    return c.IsTokens() ? with_lead({1, width}) : std::vector<int64_t>{c.block_num, c.block_size, 1, width};
  };
  const auto scale = [&](Param param, int64_t n, int64_t k) {
    plain(param, row.scale, is_mx ? std::vector<int64_t>{n, k / 32} : std::vector<int64_t>{1, n});
  };
  const auto weight = [this, &c](Param param, aclDataType dtype, int64_t k, int64_t n) {
    TensorDesc& desc = descs_[param];
    const int64_t c0 = C0(dtype);
    desc.dtype = dtype;
    desc.format = ACL_FORMAT_FRACTAL_NZ;
    desc.storage_dims = {(n + c0 - 1) / c0, (k + 15) / 16, 16, c0};
    desc.dims = c.nz_2d ? std::vector<int64_t>{k, n} : desc.storage_dims;
  };

  plain(kTokenX, row.token_x, with_lead({c.hidden}));
  weight(kWeightDq, row.token_x, c.hidden, c.q_rank);
  weight(kWeightUqQr, row.weight_uq_qr, c.q_rank, uq_qr_columns);
  plain(kWeightUk, ACL_BF16, {c.heads, c.nope, c.kv_rank});
  weight(kWeightDkvKr, row.token_x, c.hidden, kv_columns);
  plain(kGammaCq, ACL_BF16, {c.q_rank});
  plain(kGammaCkv, ACL_BF16, {c.kv_rank});
  plain(kRopeSin, ACL_BF16, with_lead({c.rope}));
  plain(kRopeCos, ACL_BF16, with_lead({c.rope}));
  plain(kCacheIndex, ACL_INT64, lead);
  if (c.IsBlocks()) {
    const int64_t pages = c.block_size > 0 ? RoundUp(c.seq, c.block_size) / c.block_size : 0;
    descs_[kCacheIndex].Reshape(c.fused ? std::vector<int64_t>{c.NumPages()} : std::vector<int64_t>{c.batch, pages});
  }
  plain(kKvCache, row.kv_cache, cache(c.KvWidth()));
  plain(kKrCache, row.kr_cache, c.PerGroup() ? std::vector<int64_t>{0} : cache(c.rope));
  plain(kScaleX, row.scale, {tokens, is_mx ? c.hidden / 32 : 1});
  scale(kScaleWDq, c.q_rank, c.hidden);
  scale(kScaleWUqQr, uq_qr_columns, c.q_rank);
  scale(kScaleWDkvKr, kv_columns, c.hidden);
  plain(kScaleCkv, ACL_FLOAT, c.IsV3() && c.PerTensor() ? std::vector<int64_t>{1} : std::vector<int64_t>{1, c.kv_rank});
  plain(kScaleCkr, ACL_FLOAT, {1, c.rope});
  plain(kSmooth, ACL_FLOAT, {1, c.q_rank});
  plain(kActualSeqLen, ACL_INT32, {num_sequences});
  plain(kClipAlpha, ACL_FLOAT, {1});
  plain(kQueryOut, row.query, with_lead({c.heads, c.kv_rank}));
  plain(kQueryRopeOut, ACL_BF16, with_lead({c.heads, c.rope}));
  plain(kScaleQNope, ACL_FLOAT, {tokens, c.heads, 1});
  plain(kQueryNorm, row.query_norm, with_lead({c.q_rank}));
  plain(kScaleQNorm, row.scale, {tokens, is_mx ? c.q_rank / 32 : 1});

  const auto present = [this](Param param, bool is_present) { descs_[param].null = !is_present; };
  present(kCacheIndex, !c.IsTokens());
  for (const Param param : {kScaleX, kScaleWDq, kScaleWDkvKr}) present(param, c.IsFull());
  present(kScaleWUqQr, c.QuantizesCq());
  present(kScaleCkv, c.PerTensor() || c.PerChannel());
  present(kScaleCkr, c.PerChannel());
  present(kSmooth, c.Smooth());
  present(kActualSeqLen, c.IsBlocks() && c.fused);
  present(kClipAlpha, row.clips);
  present(kScaleQNope, c.PerTensor());
  present(kQueryNorm, c.scenario.query_norm);
  present(kScaleQNorm, c.scenario.query_norm && c.QuantizesCq());
  if (c.IsV3()) {
    modes = {c.scenario.weight_mode, c.scenario.kv_mode, c.PerTensor(), c.PerGroup(), c.PerGroup(), 128, 1.0, 1.0};
  }
  for (int param = 0; param < kNumParams; ++param) descs_[param].data = UntouchableAddress(param);
}

int64_t PrologCall::SlotOf(int64_t t) const {
  if (config.IsTokens()) return t;
  const auto* index = buffers_[kCacheIndex].as<int64_t>();
  if (!config.IsBlocks()) return index[t];
  for (const int64_t length : config.Sequences()) {
    if (t < length) {
      const int64_t page = index[t / config.block_size];
      return page < 0 ? -1 : page * config.block_size + t % config.block_size;
    }
    t -= length;
    index += RoundUp(length, config.block_size) / config.block_size;
  }
  return -1;
}

int64_t DefaultSlot(int64_t t, int64_t capacity) {
  if (capacity == 0) return t;
  int64_t step = 7;
  while (std::gcd(step, capacity) != 1) step += 2;
  return (t * step + 3) % capacity;
}

void PrologCall::Allocate(uint64_t seed) {
  for (int i = 0; i < kNumParams; ++i) {
    const Param param = static_cast<Param>(i);
    TensorDesc& desc = descs_[param];
    if (desc.null) continue;
    int64_t elements = desc.NumElements();
    if (IsNzWeight(param) && desc.dims.size() == 2) {
      elements = RoundUp(desc.dims[0], 16) * RoundUp(desc.dims[1], C0(desc.dtype));
    }
    buffers_[param] = GuardedBuffer(static_cast<size_t>(desc.offset + elements) * desc.ElementBytes());
    desc.data = buffers_[param].data();
    if (!IsWritten(param)) FillInput(param, seed);
  }
  ResetWritten();
}

void PrologCall::FillInput(Param param, uint64_t seed, int64_t first_element) {
  const TensorDesc& desc = descs_[param];
  const size_t count = buffers_[param].size() / desc.ElementBytes();
  const Range range = RangeOf(param, config);
  const uint64_t stream = Hash(seed * kNumParams + param);
  const uint64_t first = static_cast<uint64_t>(first_element);
  switch (desc.dtype) {
    case ACL_BF16:
      for (size_t i = 0; i < count; ++i) {
        buffers_[param].as<uint16_t>()[i] = ToBf16(range.centre + range.radius * Uniform(stream, first + i));
      }
      break;
    case ACL_FLOAT:
      for (size_t i = 0; i < count; ++i) {
        buffers_[param].as<float>()[i] = range.centre + range.radius * Uniform(stream, first + i);
      }
      break;
    case ACL_INT8:
      for (size_t i = 0; i < count; ++i) {
        buffers_[param].as<int8_t>()[i] = static_cast<int8_t>(std::lrint(127 * Uniform(stream, first + i)));
      }
      break;
    // Codes of moderate numbers in both types, without the NaN that 0x80 is in HiFloat8.
    case ACL_FLOAT8_E4M3FN:
    case ACL_HIFLOAT8:
      for (size_t i = 0; i < count; ++i) {
        const auto code = static_cast<uint8_t>(Hash(stream ^ Hash(first + i)) & 0xFF);
        const auto moderate = static_cast<uint8_t>((code & 0x87) | ((code & 0x78) % 0x68));
        buffers_[param].data()[i] = moderate == 0x80 ? 0 : moderate;
      }
      break;
    // Powers of two around a thousandth.
    case ACL_FLOAT8_E8M0:
      for (size_t i = 0; i < count; ++i) {
        buffers_[param].data()[i] = static_cast<uint8_t>(115 + Hash(stream ^ Hash(first + i)) % 4);
      }
      break;
    // Ends of the sequences.
    case ACL_INT32: {
      int32_t end = 0;
      size_t i = 0;
      for (const int64_t length : config.Sequences()) {
        end += static_cast<int32_t>(length);
        if (i < count) buffers_[param].as<int32_t>()[i++] = end;
      }
      break;
    }
    // Rows, or pages.
    case ACL_INT64:
      for (size_t i = 0; i < count; ++i) {
        buffers_[param].as<int64_t>()[i] = DefaultSlot(first_element + static_cast<int64_t>(i),
                                                       config.IsBlocks() ? config.block_num : config.Capacity());
      }
      break;
    default:
      buffers_[param].Fill(0x11);
  }
}

void PrologCall::ResetWritten() {
  for (const Param param : kWritten) buffers_[param].Fill(kSentinel);
}

void PrologCall::Restride(Param param, std::vector<int64_t> strides, int64_t offset, uint8_t hole) {
  TensorDesc& desc = descs_[param];
  const std::vector<uint8_t> elements = Elements(param);
  const size_t bytes = desc.ElementBytes();
  desc.strides = std::move(strides);
  desc.offset = offset;
  int64_t end = offset;
  ForEachOffset(desc, [&end](int64_t at) { end = std::max(end, at + 1); });
  buffers_[param] = GuardedBuffer(static_cast<size_t>(end) * bytes);
  buffers_[param].Fill(hole);
  desc.data = buffers_[param].data();
  desc.storage_dims = {end};
  size_t next = 0;
  ForEachOffset(desc, [&](int64_t at) {
    std::memcpy(buffers_[param].data() + static_cast<size_t>(at) * bytes, elements.data() + next, bytes);
    next += bytes;
  });
}

std::vector<uint8_t> PrologCall::Elements(Param param) const {
  const TensorDesc& desc = descs_[param];
  if (desc.null) return {};
  const size_t bytes = desc.ElementBytes();
  std::vector<uint8_t> result(static_cast<size_t>(desc.NumElements()) * bytes);
  size_t next = 0;
  ForEachOffset(desc, [&](int64_t at) {
    std::memcpy(result.data() + next, buffers_[param].data() + static_cast<size_t>(at) * bytes, bytes);
    next += bytes;
  });
  return result;
}

std::vector<uint8_t> PrologCall::Holes(Param param) const {
  const TensorDesc& desc = descs_[param];
  if (desc.null) return {};
  const size_t bytes = desc.ElementBytes();
  std::vector<bool> is_element(buffers_[param].size() / bytes, false);
  ForEachOffset(desc, [&](int64_t at) { is_element[static_cast<size_t>(at)] = true; });
  std::vector<uint8_t> result;
  for (size_t i = 0; i < is_element.size(); ++i) {
    if (is_element[i]) continue;
    result.insert(result.end(), buffers_[param].data() + i * bytes, buffers_[param].data() + (i + 1) * bytes);
  }
  return result;
}

void PrologCall::UseTorchStyle() {
  for (int i = 0; i < kNumParams; ++i) {
    const Param param = static_cast<Param>(i);
    TensorDesc& desc = descs_[param];
    if (IsNzWeight(param)) {
      if (desc.dims.size() == 4) {
        desc.storage_dims = desc.dims;
        desc.dims = {desc.dims[1] * desc.dims[2], desc.dims[0] * desc.dims[3]};
      }
      desc.strides = desc.ContiguousStrides();
      continue;
    }
    desc.strides = desc.ContiguousStrides();
    desc.storage_dims = {desc.NumElements() + desc.offset};
    desc.format = desc.dims.size() == 3   ? ACL_FORMAT_NCL
                  : desc.dims.size() == 4 ? ACL_FORMAT_NCHW
                  : desc.dims.size() == 5 ? ACL_FORMAT_NCDHW
                                          : ACL_FORMAT_ND;
  }
}

void PrologCall::Create(Handles* handles) const {
  handles->Destroy();
  for (int i = 0; i < kNumParams; ++i) {
    const TensorDesc& desc = descs_[i];
    if (desc.raw_handle != nullptr) {
      handles->tensors[i] = desc.raw_handle;
      continue;
    }
    if (desc.null) continue;
    // A null pointer with a number of zero is legal, and a vector may give one.
    aclTensor* tensor =
        aclCreateTensor(desc.dims.data(), desc.dims.size(), desc.dtype, desc.strides ? desc.strides->data() : nullptr,
                        desc.offset, desc.format, desc.storage_dims.data(), desc.storage_dims.size(), desc.data);
    EXPECT_NE(tensor, nullptr) << ParamName(static_cast<Param>(i));
    handles->owned[i] = tensor;
    handles->tensors[i] = tensor;
  }
}

Phase1Result PrologCall::Phase1() const {
  Handles handles;
  Create(&handles);
  return Phase1(handles);
}

Phase1Result PrologCall::Phase1(const Handles& handles) const {
  Phase1Result result;
  TakeTexts();
  result.status = Phase1(handles, &result.workspace_bytes, &result.executor);
  result.text = TakeTexts();
  return result;
}

aclnnStatus PrologCall::Phase1(const Handles& handles, uint64_t* workspace_bytes, aclOpExecutor** executor) const {
  std::optional<ScopedSoc> soc;
  if (!config.soc.empty()) soc.emplace(config.soc.c_str());
  const auto& t = handles.tensors;
  auto* kv = const_cast<aclTensor*>(t[kKvCache]);
  auto* kr = const_cast<aclTensor*>(t[kKrCache]);
  std::string text = cache_mode.value_or("");
  char* mode = cache_mode ? text.data() : nullptr;
  aclnnStatus status = -2;
  switch (config.scenario.version) {
    case Version::kV1:
      status = aclnnMlaPrologGetWorkspaceSize(t[kTokenX], t[kWeightDq], t[kWeightUqQr], t[kWeightUk], t[kWeightDkvKr],
                                              t[kGammaCq], t[kGammaCkv], t[kRopeSin], t[kRopeCos], t[kCacheIndex], kv,
                                              kr, t[kScaleX], t[kScaleWDq], t[kScaleWUqQr], t[kScaleWDkvKr],
                                              t[kScaleCkv], t[kScaleCkr], t[kSmooth], epsilon_cq, epsilon_ckv, mode,
                                              t[kQueryOut], t[kQueryRopeOut], workspace_bytes, executor);
      break;
    case Version::kV2:
      status = aclnnMlaPrologV2WeightNzGetWorkspaceSize(
          t[kTokenX], t[kWeightDq], t[kWeightUqQr], t[kWeightUk], t[kWeightDkvKr], t[kGammaCq], t[kGammaCkv],
          t[kRopeSin], t[kRopeCos], t[kCacheIndex], kv, kr, t[kScaleX], t[kScaleWDq], t[kScaleWUqQr], t[kScaleWDkvKr],
          t[kScaleCkv], t[kScaleCkr], t[kSmooth], epsilon_cq, epsilon_ckv, mode, t[kQueryOut], t[kQueryRopeOut],
          t[kScaleQNope], workspace_bytes, executor);
      break;
    case Version::kV3:
      status = aclnnMlaPrologV3WeightNzGetWorkspaceSize(
          t[kTokenX], t[kWeightDq], t[kWeightUqQr], t[kWeightUk], t[kWeightDkvKr], t[kGammaCq], t[kGammaCkv],
          t[kRopeSin], t[kRopeCos], kv, kr, t[kCacheIndex], t[kScaleX], t[kScaleWDq], t[kScaleWUqQr], t[kScaleWDkvKr],
          t[kScaleCkv], t[kScaleCkr], t[kSmooth], t[kActualSeqLen], t[kClipAlpha], epsilon_cq, epsilon_ckv, mode,
          modes.weight_quant, modes.kv_cache_quant, modes.query_quant, modes.ckvkr_repo, modes.quant_scale_repo,
          modes.tile_size, modes.qc_qr_scale, modes.kc_scale, t[kQueryOut], t[kQueryRopeOut], t[kScaleQNope],
          t[kQueryNorm], t[kScaleQNorm], workspace_bytes, executor);
      break;
  }
  std::fill(text.begin(), text.end(), '#');
  return status;
}

aclnnStatus PrologCall::Phase2(void* workspace, uint64_t workspace_bytes, aclOpExecutor* executor,
                               aclrtStream stream) const {
  return Phase2Of(config.scenario.version, workspace, workspace_bytes, executor, stream);
}

aclnnStatus Phase2Of(Version version, void* workspace, uint64_t workspace_bytes, aclOpExecutor* executor,
                     aclrtStream stream) {
  switch (version) {
    case Version::kV1:
      return aclnnMlaProlog(workspace, workspace_bytes, executor, stream);
    case Version::kV2:
      return aclnnMlaPrologV2WeightNz(workspace, workspace_bytes, executor, stream);
    case Version::kV3:
      return aclnnMlaPrologV3WeightNz(workspace, workspace_bytes, executor, stream);
  }
  return -2;
}

RunResult PrologCall::Run(aclrtStream stream) {
  RunResult result;
  ProtectAll(Access::kNone);
  const Phase1Result first = Phase1();
  ProtectAll(Access::kReadWrite);
  result.phase1 = first.status;
  result.text = first.text;
  if (first.status != 0) return result;
  result.workspace_bytes = first.workspace_bytes;
  GuardedBuffer workspace(first.workspace_bytes);
  workspace.Fill(0xEE);
  ProtectInputs(Access::kRead);
  result.phase2 =
      Phase2(first.workspace_bytes > 0 ? workspace.data() : nullptr, first.workspace_bytes, first.executor, stream);
  result.sync = aclrtSynchronizeStream(stream);
  ProtectInputs(Access::kReadWrite);
  result.text = TakeTexts();
  EXPECT_TRUE(workspace.FrontIntact()) << "bytes in front of the workspace have changed";
  ExpectGuardsIntact();
  return result;
}

RunResult PrologCall::RunQuick(aclrtStream stream) const {
  RunResult result;
  const Phase1Result first = Phase1();
  result.phase1 = first.status;
  result.text = first.text;
  if (first.status != 0) return result;
  result.workspace_bytes = first.workspace_bytes;
  std::vector<uint8_t> workspace(first.workspace_bytes);
  result.phase2 = Phase2(workspace.empty() ? nullptr : workspace.data(), workspace.size(), first.executor, stream);
  result.sync = aclrtSynchronizeStream(stream);
  result.text = TakeTexts();
  return result;
}

void PrologCall::ProtectAll(Access access) {
  for (GuardedBuffer& buffer : buffers_) buffer.Protect(access);
}

void PrologCall::ProtectInputs(Access access) {
  for (int i = 0; i < kNumParams; ++i) {
    if (!IsWritten(static_cast<Param>(i))) buffers_[i].Protect(access);
  }
}

void PrologCall::ExpectGuardsIntact() const {
  for (int i = 0; i < kNumParams; ++i) {
    EXPECT_TRUE(buffers_[i].FrontIntact())
        << "bytes in front of " << ParamName(static_cast<Param>(i)) << " have changed";
  }
}

std::vector<std::vector<uint8_t>> PrologCall::Written() const {
  std::vector<std::vector<uint8_t>> result;
  for (const Param param : kWritten) result.push_back(buffers_[param].Bytes());
  return result;
}

void Discard(aclOpExecutor* executor) {
  if (executor == nullptr) return;
  EXPECT_EQ(aclSetAclOpExecutorRepeatable(executor), 0);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
}

std::string TakeTexts() {
  const char* texts = aclGetRecentErrMsg();
  return texts == nullptr ? "" : texts;
}

std::string FirstNamed(const std::string& text) {
  std::vector<std::string> names(kParamNames.begin(), kParamNames.end());
  names.insert(names.end(), {"cacheMode", "executor", "workspaceSize", "MLAP_SOC", "weightQuantMode",
                             "kvCacheQuantMode", "queryQuantMode", "ckvkrRepoMode", "quantScaleRepoMode", "tileSize"});
  std::string first;
  size_t first_at = std::string::npos;
  for (const std::string& name : names) {
    const size_t at = text.find(name);
    // "kvCache" is also where "kvCacheQuantMode" begins.
    if (at < first_at || (at == first_at && at != std::string::npos && name.size() > first.size())) {
      first_at = at;
      first = name;
    }
  }
  return first;
}

namespace {

template <class T>
std::string Joined(const std::vector<T>& values) {
  std::string result;
  for (const T& value : values) {
    if (!result.empty()) result += " or ";
    if constexpr (std::is_same_v<T, std::string>) {
      result += value;
    } else {
      result += std::to_string(value);
    }
  }
  return result;
}

}  // namespace

void ExpectRefused(const PrologCall& call, const std::vector<aclnnStatus>& statuses,
                   const std::vector<std::string>& culprits) {
  const Phase1Result result = call.Phase1();
  EXPECT_NE(std::find(statuses.begin(), statuses.end(), result.status), statuses.end())
      << "expected " << Joined(statuses) << ", got " << result.status << " (" << result.text << ")";
  if (result.status == 0) {
    Discard(result.executor);
    return;
  }
  const std::string named = FirstNamed(result.text);
  EXPECT_NE(std::find(culprits.begin(), culprits.end(), named), culprits.end())
      << "expected the text to be about " << Joined(culprits) << ", got: " << result.text;
  EXPECT_NE(result.text.find("expected"), std::string::npos) << result.text;
  EXPECT_NE(result.text.find("found"), std::string::npos) << result.text;
}

void ExpectRefused(const PrologCall& call, aclnnStatus status, const std::vector<std::string>& culprits) {
  ExpectRefused(call, std::vector<aclnnStatus>{status}, culprits);
}

void ExpectAccepted(const PrologCall& call) {
  const Phase1Result result = call.Phase1();
  EXPECT_EQ(result.status, 0) << result.text;
  if (result.status != 0) return;
  EXPECT_NE(result.executor, nullptr);
  EXPECT_EQ(result.text, "");
  Discard(result.executor);
}

void ExpectSameBytes(const std::vector<uint8_t>& expected, const std::vector<uint8_t>& actual,
                     const std::string& what) {
  ASSERT_EQ(expected.size(), actual.size()) << what;
  const auto [e, a] = std::mismatch(expected.begin(), expected.end(), actual.begin());
  EXPECT_TRUE(e == expected.end()) << what << " differ first at byte " << e - expected.begin() << " of "
                                   << expected.size() << ": expected " << int{*e} << ", got " << int{*a};
}

ScopedSoc::ScopedSoc(const char* value) {
  if (const char* before = std::getenv("MLAP_SOC")) saved_ = before;
  setenv("MLAP_SOC", value, 1);
}

ScopedSoc::~ScopedSoc() {
  if (saved_) {
    setenv("MLAP_SOC", saved_->c_str(), 1);
  } else {
    unsetenv("MLAP_SOC");
  }
}

void PrologTest::SetUp() {
  ASSERT_EQ(aclrtSetDevice(0), 0);
  ASSERT_EQ(aclrtCreateStream(&stream_), 0);
}

void PrologTest::TearDown() {
  if (stream_ != nullptr) {
    EXPECT_EQ(aclrtDestroyStream(stream_), 0);
  }
  EXPECT_EQ(aclrtResetDevice(0), 0);
}

}  // namespace mlap::prolog_test
