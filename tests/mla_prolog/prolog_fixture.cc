#include "prolog_fixture.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "aclnnop/aclnn_mla_prolog.h"
#include "aclnnop/aclnn_mla_prolog_v2_weight_nz.h"
#include "aclnnop/aclnn_mla_prolog_v3_weight_nz.h"

namespace mlap::prolog_test {
namespace {

int64_t C0(aclDataType dtype) { return 32 / static_cast<int64_t>(aclDataTypeSize(dtype)); }

int64_t RoundUp(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

}  // namespace

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
  std::vector<std::string> names;
  for (int i = 0; i < kNumParams; ++i) names.emplace_back(ParamName(static_cast<Param>(i)));
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
