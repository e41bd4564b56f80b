// aclnnMlaPrologV2WeightNz and aclnnMlaPrologV3WeightNz in every scenario that the device has. Where both versions
// compute a scenario, they must give the same bytes; where V3 can store keys by token and by row number, so must both.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_mla_prolog_v2_weight_nz.h"
#include "aclnnop/aclnn_mla_prolog_v3_weight_nz.h"

// Tokens, hidden size, query rank, heads, head columns without and with RoPE, key rank; the caches' pages.
constexpr int64_t T = 4, He = 1024, Hcq = 1536, N = 2, D = 128, Dr = 64, Hckv = 512, BlockNum = 1, BlockSize = 16;
constexpr int64_t kHeadColumns = N * (D + Dr), kKeyColumns = Hckv + Dr;
constexpr int64_t kMergedRow = Hckv + 2 * Dr + 4 * (Hckv / 128);  // bytes: 8-bit values, bf16 rope values, float scales

struct Scenario {
  const char* name;
  bool has_v2;
  int64_t weight_quant_mode, kv_cache_quant_mode;
  aclDataType token_x, weight_uq_qr, kv_cache, kr_cache, query, scale;
};
constexpr aclDataType kBf16 = ACL_BF16, kInt8 = ACL_INT8, kE4m3 = ACL_FLOAT8_E4M3FN, kHif8 = ACL_HIFLOAT8;
const Scenario kScenarios[] = {
    {"non-quant", true, 0, 0, kBf16, kBf16, kBf16, kBf16, kBf16, ACL_FLOAT},
    {"partial", true, 1, 0, kBf16, kInt8, kBf16, kBf16, kBf16, ACL_FLOAT},
    {"partial, int8 caches", true, 1, 2, kBf16, kInt8, kInt8, kInt8, kBf16, ACL_FLOAT},
    {"partial, per-group cache", false, 1, 3, kBf16, kInt8, kInt8, kBf16, kBf16, ACL_FLOAT},
    {"int8 full", true, 2, 0, kInt8, kInt8, kBf16, kBf16, kBf16, ACL_FLOAT},
    {"int8 full, per-tensor cache", true, 2, 1, kInt8, kInt8, kInt8, kBf16, kInt8, ACL_FLOAT},
    {"int8 full, per-group cache", false, 2, 3, kInt8, kInt8, kInt8, kBf16, kBf16, ACL_FLOAT},
    {"mxfp8 full", false, 3, 0, kE4m3, kE4m3, kBf16, kBf16, kBf16, ACL_FLOAT8_E8M0},
    {"mxfp8 full, per-tensor cache", false, 3, 1, kE4m3, kE4m3, kE4m3, kBf16, kE4m3, ACL_FLOAT8_E8M0},
    {"mxfp8 full, per-group cache", false, 3, 3, kE4m3, kE4m3, kE4m3, kBf16, kBf16, ACL_FLOAT8_E8M0},
    {"fp8 full", false, 4, 0, kE4m3, kE4m3, kBf16, kBf16, kBf16, ACL_FLOAT},
    {"fp8 full, per-tensor cache", false, 4, 1, kE4m3, kE4m3, kE4m3, kBf16, kE4m3, ACL_FLOAT},
    {"fp8 full, per-group cache", false, 4, 3, kE4m3, kE4m3, kE4m3, kBf16, kBf16, ACL_FLOAT},
    {"hif8 full", false, 5, 0, kHif8, kHif8, kBf16, kBf16, kBf16, ACL_FLOAT},
    {"hif8 full, per-tensor cache", false, 5, 1, kHif8, kHif8, kHif8, kBf16, kHif8, ACL_FLOAT},
    {"hif8 full, per-group cache", false, 5, 3, kHif8, kHif8, kHif8, kBf16, kBf16, ACL_FLOAT},
};

static void Check(int status, const char* what) {
  if (status == ACL_SUCCESS) return;
  const char* text = aclGetRecentErrMsg();
  throw std::runtime_error(std::string(what) + " returned " + std::to_string(status) + "\n" + (text ? text : ""));
}

// Device memory with its description.
struct Tensor {
  size_t bytes;
  void* device = nullptr;
  aclTensor* handle = nullptr;
  Tensor(const std::vector<uint8_t>& host, const std::vector<int64_t>& dims, aclDataType type, aclFormat format)
      : bytes(host.size()) {
    if (bytes > 0) {
      Check(aclrtMalloc(&device, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
      Check(aclrtMemcpy(device, bytes, host.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");
    }
    handle = aclCreateTensor(dims.data(), dims.size(), type, nullptr, 0, format, dims.data(), dims.size(), device);
    Check(handle != nullptr ? ACL_SUCCESS : ACL_ERROR_FAILURE, "aclCreateTensor");
  }
  Tensor(const Tensor&) = delete;
  ~Tensor() {
    aclDestroyTensor(handle);
    if (device != nullptr) aclrtFree(device);
  }
  std::vector<uint8_t> Read() const {
    std::vector<uint8_t> host(bytes);
    if (bytes > 0) Check(aclrtMemcpy(host.data(), bytes, device, bytes, ACL_MEMCPY_DEVICE_TO_HOST), "aclrtMemcpy");
    return host;
  }
};
using TensorPtr = std::unique_ptr<Tensor>;

static aclTensor* HandleOf(const TensorPtr& tensor) { return tensor != nullptr ? tensor->handle : nullptr; }

static int64_t Count(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  return count;
}

static TensorPtr Filled(const std::vector<int64_t>& dims, aclDataType type, uint8_t byte = 0) {
  return TensorPtr(
      new Tensor(std::vector<uint8_t>(Count(dims) * aclDataTypeSize(type), byte), dims, type, ACL_FORMAT_ND));
}

// Made-up numbers of at most `scale`, the same in every run. 8-bit ones are all codes of the type that are moderate
// numbers. A prime number of them repeats.
static TensorPtr Random(const std::vector<int64_t>& dims, aclDataType type, float scale,
                        aclFormat format = ACL_FORMAT_ND) {
  uint64_t state = 1;
  std::vector<uint8_t> pattern;
  for (int i = 0; i < 4099; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto code = static_cast<uint8_t>(state >> 56);
    const float number = scale * static_cast<float>(static_cast<int32_t>(state >> 32)) / 2147483648.0f;
    uint8_t bytes[sizeof(number)];
    std::memcpy(bytes, &number, sizeof(number));
    if (type == ACL_BF16) {
      pattern.insert(pattern.end(), bytes + 2, bytes + 4);  // truncated
    } else {
      pattern.push_back(type == ACL_INT8 ? code : code % 96);
    }
  }
  std::vector<uint8_t> host(Count(dims) * aclDataTypeSize(type));
  for (size_t begin = 0; begin < host.size(); begin += pattern.size()) {
    std::memcpy(&host[begin], pattern.data(), std::min(pattern.size(), host.size() - begin));
  }
  return TensorPtr(new Tensor(host, dims, type, format));
}

static TensorPtr Floats(const std::vector<int64_t>& dims, float value) {
  std::vector<uint8_t> host(Count(dims) * sizeof(value));
  for (size_t i = 0; i < host.size(); i += sizeof(value)) std::memcpy(&host[i], &value, sizeof(value));
  return TensorPtr(new Tensor(host, dims, ACL_FLOAT, ACL_FORMAT_ND));
}

// Random elements need no packing: only the shape is that of FRACTAL_NZ, with columns of 32 bytes.
static TensorPtr NzWeight(int64_t k, int64_t n, aclDataType type) {
  const int64_t c0 = 32 / static_cast<int64_t>(aclDataTypeSize(type));
  return Random({n / c0, k / 16, 16, c0}, type, 0.05f, ACL_FORMAT_FRACTAL_NZ);
}

// A scale for each output column, or for each 32 values of one; of 8-bit numbers that are about 100 or, as floats, 1.
static TensorPtr WeightScale(const Scenario& scenario, int64_t k, int64_t n) {
  if (scenario.scale == ACL_FLOAT8_E8M0) return Filled({n, k / 32}, ACL_FLOAT8_E8M0, 127 - 6);  // 2^-6
  return Floats({1, n}, scenario.weight_uq_qr == ACL_INT8 ? 4e-4f : 0.02f);
}

using Results = std::vector<std::vector<uint8_t>>;  // query, query_rope, its scale, and the rows of the caches

// Calls V2, or V3 in a cache mode: "PA_BSND" with the rows 0, 1, .., or "TND".
static Results Call(const Scenario& scenario, int version, const char* mode, aclrtStream stream) {
  const bool is_full = scenario.weight_quant_mode >= 2, is_partial = scenario.weight_quant_mode == 1;
  const bool is_mx = scenario.scale == ACL_FLOAT8_E8M0, is_paged = std::strcmp(mode, "TND") != 0;
  const bool is_per_tensor = scenario.kv_cache_quant_mode == 1, is_merged = scenario.kv_cache_quant_mode == 3;
  const auto cache = [&](int64_t width) {
    return is_paged ? std::vector<int64_t>{BlockNum, BlockSize, 1, width} : std::vector<int64_t>{T, 1, width};
  };
  const TensorPtr token_x = Random({T, He}, scenario.token_x, 1.0f);
  const TensorPtr weight_dq = NzWeight(He, Hcq, scenario.token_x);
  const TensorPtr weight_uq_qr = NzWeight(Hcq, kHeadColumns, scenario.weight_uq_qr);
  const TensorPtr weight_uk = Random({N, D, Hckv}, ACL_BF16, 0.1f);
  const TensorPtr weight_dkv_kr = NzWeight(He, kKeyColumns, scenario.token_x);
  const TensorPtr gamma_cq = Filled({Hcq}, ACL_BF16, 0x3F), gamma_ckv = Filled({Hckv}, ACL_BF16, 0x3F);  // 0.746
  const TensorPtr sin = Random({T, Dr}, ACL_BF16, 1.0f), cos = Random({T, Dr}, ACL_BF16, 1.0f);
  const TensorPtr kv_cache = Filled(cache(is_merged ? kMergedRow : Hckv), scenario.kv_cache);
  const TensorPtr kr_cache = is_merged ? Filled({0}, ACL_BF16) : Filled(cache(Dr), scenario.kr_cache);
  TensorPtr index, scale_x, scale_dq, scale_uq_qr, scale_dkv_kr, scale_ckv, scale_ckr, clip_alpha, query_scale;
  if (is_paged) {
    std::vector<uint8_t> rows(T * sizeof(int64_t));
    for (int64_t t = 0; t < T; ++t) std::memcpy(&rows[t * sizeof(t)], &t, sizeof(t));
    index.reset(new Tensor(rows, {T}, ACL_INT64, ACL_FORMAT_ND));
  }
  if (is_full) {
    scale_x = is_mx ? Filled({T, He / 32}, ACL_FLOAT8_E8M0, 127) : Floats({T, 1}, 0.01f);
    scale_dq = WeightScale(scenario, He, Hcq);
    scale_dkv_kr = WeightScale(scenario, He, kKeyColumns);
  }
  if (is_full || is_partial) scale_uq_qr = WeightScale(scenario, Hcq, kHeadColumns);
  if (scenario.kv_cache_quant_mode == 2) scale_ckr = Floats({1, Dr}, 25.0f);
  if (scenario.kv_cache_quant_mode == 2) scale_ckv = Floats({1, Hckv}, 25.0f);
  // V2 has a row of them, of which the first counts.
  if (is_per_tensor) scale_ckv = Floats(version == 2 ? std::vector<int64_t>{1, Hckv} : std::vector<int64_t>{1}, 25.0f);
  if (is_merged && (is_partial || scenario.weight_quant_mode == 2)) clip_alpha = Floats({1}, 0.9f);
  if (is_per_tensor) query_scale = Floats({T, N, 1}, 0.0f);
  const TensorPtr query = Filled({T, N, Hckv}, scenario.query), query_rope = Filled({T, N, Dr}, ACL_BF16);

  std::string cache_mode = mode;
  uint64_t workspace_bytes = 0;
  aclOpExecutor* executor = nullptr;
  if (version == 2) {
    Check(aclnnMlaPrologV2WeightNzGetWorkspaceSize(
              HandleOf(token_x), HandleOf(weight_dq), HandleOf(weight_uq_qr), HandleOf(weight_uk),
              HandleOf(weight_dkv_kr), HandleOf(gamma_cq), HandleOf(gamma_ckv), HandleOf(sin), HandleOf(cos),
              HandleOf(index), HandleOf(kv_cache), HandleOf(kr_cache), HandleOf(scale_x), HandleOf(scale_dq),
              HandleOf(scale_uq_qr), HandleOf(scale_dkv_kr), HandleOf(scale_ckv), HandleOf(scale_ckr), nullptr, 1e-5,
              1e-5, &cache_mode[0], HandleOf(query), HandleOf(query_rope), HandleOf(query_scale), &workspace_bytes,
              &executor),
          "aclnnMlaPrologV2WeightNzGetWorkspaceSize");
  } else {
    Check(aclnnMlaPrologV3WeightNzGetWorkspaceSize(
              HandleOf(token_x), HandleOf(weight_dq), HandleOf(weight_uq_qr), HandleOf(weight_uk),
              HandleOf(weight_dkv_kr), HandleOf(gamma_cq), HandleOf(gamma_ckv), HandleOf(sin), HandleOf(cos),
              HandleOf(kv_cache), HandleOf(kr_cache), HandleOf(index), HandleOf(scale_x), HandleOf(scale_dq),
              HandleOf(scale_uq_qr), HandleOf(scale_dkv_kr), HandleOf(scale_ckv), HandleOf(scale_ckr), nullptr, nullptr,
              HandleOf(clip_alpha), 1e-5, 1e-5, &cache_mode[0], scenario.weight_quant_mode,
              scenario.kv_cache_quant_mode, is_per_tensor, is_merged, is_merged, 128, 1.0, 1.0, HandleOf(query),
              HandleOf(query_rope), HandleOf(query_scale), nullptr, nullptr, &workspace_bytes, &executor),
          "aclnnMlaPrologV3WeightNzGetWorkspaceSize");
  }
  void* workspace = nullptr;
  if (workspace_bytes > 0) Check(aclrtMalloc(&workspace, workspace_bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
  const int status = version == 2 ? aclnnMlaPrologV2WeightNz(workspace, workspace_bytes, executor, stream)
                                  : aclnnMlaPrologV3WeightNz(workspace, workspace_bytes, executor, stream);
  Check(status, "the second step");
  Check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
  if (workspace_bytes > 0) aclrtFree(workspace);

  Results results = {query->Read(), query_rope->Read(), {}, kv_cache->Read(), kr_cache->Read()};
  if (is_per_tensor) results[2] = query_scale->Read();
  // Tokens have the first rows; a paged cache has more, still zero.
  for (size_t i = 3; i < 5; ++i) {
    const size_t tokens = is_paged ? results[i].size() * T / (BlockNum * BlockSize) : results[i].size();
    for (size_t byte = tokens; byte < results[i].size(); ++byte) {
      if (results[i][byte] != 0) throw std::runtime_error("a row that no token has is written");
    }
    results[i].resize(tokens);
  }
  return results;
}

static bool HasNumbers(const std::vector<uint8_t>& bytes) {
  for (const uint8_t byte : bytes) {
    if (byte != 0) return true;
  }
  return false;
}

int main() {
  try {
    aclrtStream stream = nullptr;
    Check(aclInit(nullptr), "aclInit");
    Check(aclrtSetDevice(0), "aclrtSetDevice");
    Check(aclrtCreateStream(&stream), "aclrtCreateStream");
    const char* soc = aclrtGetSocName();
    const bool is_950 = soc != nullptr && std::strstr(soc, "950") != nullptr;
    int num_wrong = 0;
    for (const Scenario& scenario : kScenarios) {
      if (scenario.weight_quant_mode >= 3 && !is_950) continue;  // 8-bit floats
      const Results listed = Call(scenario, 3, "PA_BSND", stream);
      bool is_right = HasNumbers(listed[0]) && HasNumbers(listed[3]);
      is_right &= Call(scenario, 3, "TND", stream) == listed;
      std::string calls = "V3";
      if (scenario.has_v2 && !is_950) {
        is_right &= Call(scenario, 2, "PA_BSND", stream) == listed;
        calls = "V2, V3";
      }
      std::printf("%-30s %-7s %s\n", scenario.name, calls.c_str(), is_right ? "right" : "WRONG");
      num_wrong += is_right ? 0 : 1;
    }
    Check(aclrtDestroyStream(stream), "aclrtDestroyStream");
    Check(aclrtResetDevice(0), "aclrtResetDevice");
    Check(aclFinalize(), "aclFinalize");
    return num_wrong == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
