// aclnnMlaProlog without quantisation: bf16 everywhere, weights packed to FRACTAL_NZ, caches as pages of rows.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_mla_prolog.h"

// Tokens, hidden size, query rank, heads, head columns without and with RoPE, key rank; the caches' pages.
constexpr int64_t T = 6, He = 1024, Hcq = 1536, N = 8, D = 128, Dr = 64, Hckv = 512, BlockNum = 4, BlockSize = 16;
constexpr uint16_t kOne = 0x3F80, kUntouched = 0x7FC1;  // bf16: 1.0 and a NaN

static void Check(int status, const char* what) {
  if (status == ACL_SUCCESS) return;
  const char* text = aclGetRecentErrMsg();
  throw std::runtime_error(std::string(what) + " returned " + std::to_string(status) + "\n" + (text ? text : ""));
}

// Device memory with its description: no strides, so no gaps; the shape of the memory is that of the view.
template <class Element>
struct Tensor {
  std::vector<Element> host;
  size_t bytes = 0;
  void* device = nullptr;
  aclTensor* handle = nullptr;
  Tensor(const std::vector<Element>& elements, const std::vector<int64_t>& dims, aclDataType type = ACL_BF16,
         aclFormat format = ACL_FORMAT_ND)
      : host(elements), bytes(elements.size() * sizeof(Element)) {
    Check(aclrtMalloc(&device, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    Check(aclrtMemcpy(device, bytes, host.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");
    handle = aclCreateTensor(dims.data(), dims.size(), type, nullptr, 0, format, dims.data(), dims.size(), device);
    Check(handle != nullptr ? ACL_SUCCESS : ACL_ERROR_FAILURE, "aclCreateTensor");
  }
  Tensor(const Tensor&) = delete;
  ~Tensor() {
    aclDestroyTensor(handle);
    aclrtFree(device);
  }
  void Read() { Check(aclrtMemcpy(host.data(), bytes, device, bytes, ACL_MEMCPY_DEVICE_TO_HOST), "aclrtMemcpy"); }
};
using Bf16s = std::vector<uint16_t>;

static float ToFloat(uint16_t bf16) {
  const uint32_t bits = static_cast<uint32_t>(bf16) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

static Bf16s Random(int64_t count, double sigma) {
  static std::mt19937 engine(1);
  std::normal_distribution<float> normal(0.0f, static_cast<float>(sigma));
  Bf16s values(count);
  for (uint16_t& value : values) {
    const float number = normal(engine);
    std::memcpy(&value, reinterpret_cast<const char*>(&number) + 2, sizeof(value));  // truncated to bf16
  }
  return values;
}

// A row-major matrix (k, n) as FRACTAL_NZ: blocks of 16 columns one after the other, each as k rows of 16 elements.
static Tensor<uint16_t> NzWeight(int64_t k, int64_t n) {
  const Bf16s matrix = Random(k * n, 1 / std::sqrt(k));
  Bf16s image(matrix.size());
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = 0; j < n; ++j) image[j / 16 * k * 16 + i * 16 + j % 16] = matrix[i * n + j];
  }
  return {image, {n / 16, k / 16, 16, 16}, ACL_BF16, ACL_FORMAT_FRACTAL_NZ};
}

static bool Run(aclrtStream stream) {
  Bf16s x = Random(T * He, 1.0);
  std::copy(x.begin(), x.begin() + He, x.end() - He);  // the last token is the first one again
  Tensor<uint16_t> token_x(x, {T, He}), weight_uk(Random(N * D * Hckv, 0.09), {N, D, Hckv});
  Tensor<uint16_t> weight_dq = NzWeight(He, Hcq), weight_uq_qr = NzWeight(Hcq, N * (D + Dr));
  Tensor<uint16_t> weight_dkv_kr = NzWeight(He, Hckv + Dr);
  Tensor<uint16_t> gamma_cq(Bf16s(Hcq, kOne), {Hcq}), gamma_ckv(Bf16s(Hckv, kOne), {Hckv});
  Tensor<uint16_t> rope_sin(Bf16s(T * Dr, 0), {T, Dr}), rope_cos(Bf16s(T * Dr, kOne), {T, Dr});
  Tensor<int64_t> cache_index({5, 17, 2, -1, 63, 40}, {T}, ACL_INT64);  // page * BlockSize + row; token 3 has none
  Tensor<uint16_t> kv_cache(Bf16s(BlockNum * BlockSize * Hckv, kUntouched), {BlockNum, BlockSize, 1, Hckv});
  Tensor<uint16_t> kr_cache(Bf16s(BlockNum * BlockSize * Dr, kUntouched), {BlockNum, BlockSize, 1, Dr});
  Tensor<uint16_t> query(Bf16s(T * N * Hckv), {T, N, Hckv}), query_rope(Bf16s(T * N * Dr), {T, N, Dr});

  char cache_mode[] = "PA_BSND";
  uint64_t workspace_bytes = 0;
  aclOpExecutor* executor = nullptr;
  Check(aclnnMlaPrologGetWorkspaceSize(token_x.handle, weight_dq.handle, weight_uq_qr.handle, weight_uk.handle,
                                       weight_dkv_kr.handle, gamma_cq.handle, gamma_ckv.handle, rope_sin.handle,
                                       rope_cos.handle, cache_index.handle, kv_cache.handle, kr_cache.handle, nullptr,
                                       nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 1e-5, 1e-5, cache_mode,
                                       query.handle, query_rope.handle, &workspace_bytes, &executor),
        "aclnnMlaPrologGetWorkspaceSize");
  void* workspace = nullptr;
  if (workspace_bytes > 0) Check(aclrtMalloc(&workspace, workspace_bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
  Check(aclnnMlaProlog(workspace, workspace_bytes, executor, stream), "aclnnMlaProlog");
  Check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
  if (workspace_bytes > 0) aclrtFree(workspace);
  query.Read();
  kv_cache.Read();

  const Bf16s& q = query.host;
  std::printf("query[0, 0, 0:3] = %g %g %g\n", ToFloat(q[0]), ToFloat(q[1]), ToFloat(q[2]));
  const bool finite = std::all_of(q.begin(), q.end(), [](uint16_t value) { return std::isfinite(ToFloat(value)); });
  const bool equal = std::equal(q.begin(), q.begin() + N * Hckv, q.end() - N * Hckv);
  int64_t num_written = 0;
  for (int64_t slot = 0; slot < BlockNum * BlockSize; ++slot) {
    const uint16_t* row = &kv_cache.host[slot * Hckv];
    double square = 0.0;  // RMSNorm with gamma 1 makes the mean square of a row 1
    for (int64_t d = 0; d < Hckv; ++d) square += std::pow(ToFloat(row[d]), 2) / Hckv;
    const bool is_written = std::fabs(square - 1.0) < 0.01, is_kept = std::count(row, row + Hckv, kUntouched) == Hckv;
    const bool is_named = std::count(cache_index.host.begin(), cache_index.host.end(), slot) > 0;
    if (is_named ? !is_written : !is_kept) std::printf("cache row %d is wrong\n", static_cast<int>(slot));
    num_written += is_named && is_written ? 1 : is_kept ? 0 : T;
  }
  std::printf("finite: %d   equal tokens, equal queries: %d   cache rows written: %d\n", finite, equal,
              static_cast<int>(num_written));
  return finite && equal && num_written == 5;
}

int main() {
  try {
    aclrtStream stream = nullptr;
    Check(aclInit(nullptr), "aclInit");
    Check(aclrtSetDevice(0), "aclrtSetDevice");
    Check(aclrtCreateStream(&stream), "aclrtCreateStream");
    const bool is_right = Run(stream);
    Check(aclrtDestroyStream(stream), "aclrtDestroyStream");
    Check(aclrtResetDevice(0), "aclrtResetDevice");
    Check(aclFinalize(), "aclFinalize");
    return is_right ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
