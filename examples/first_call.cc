// The smallest complete program: one token through aclnnMlaProlog. Every bf16 element is 0.746, the bytes 0x3F3F.
#include <cstdio>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_mla_prolog.h"

// A tensor in device memory, every byte of it `byte`.
static aclTensor* Filled(std::vector<int64_t> dims, int byte, aclDataType type, aclFormat format) {
  size_t bytes = aclDataTypeSize(type);
  for (int64_t dim : dims) bytes *= dim;
  void* data = nullptr;
  aclrtMalloc(&data, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemset(data, bytes, byte, bytes);
  return aclCreateTensor(dims.data(), dims.size(), type, nullptr, 0, format, dims.data(), dims.size(), data);
}
static aclTensor* Bf16(std::vector<int64_t> dims) { return Filled(dims, 0x3F, ACL_BF16, ACL_FORMAT_ND); }
static aclTensor* Nz(int64_t k, int64_t n) {
  return Filled({n / 16, k / 16, 16, 16}, 0x3F, ACL_BF16, ACL_FORMAT_FRACTAL_NZ);
}

int main() {
  const int64_t T = 1, He = 1024, Hcq = 1536, N = 8, D = 128, Dr = 64, Hckv = 512;
  aclInit(nullptr);
  aclrtSetDevice(0);
  aclTensor* cache_index = Filled({T}, 0, ACL_INT64, ACL_FORMAT_ND);  // the token's cache row: 0
  aclTensor* query = Bf16({T, N, Hckv});
  char cache_mode[] = "PA_BSND";
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  int status = aclnnMlaPrologGetWorkspaceSize(
      Bf16({T, He}), Nz(He, Hcq), Nz(Hcq, N * (D + Dr)), Bf16({N, D, Hckv}), Nz(He, Hckv + Dr), Bf16({Hcq}),
      Bf16({Hckv}), Bf16({T, Dr}), Bf16({T, Dr}), cache_index, Bf16({1, 128, 1, Hckv}), Bf16({1, 128, 1, Dr}), nullptr,
      nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 1e-5, 1e-5, cache_mode, query, Bf16({T, N, Dr}), &size,
      &executor);
  void* workspace = nullptr;
  if (status == 0 && size > 0) status = aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST);
  if (status == 0) status = aclnnMlaProlog(workspace, size, executor, nullptr);  // on the default stream
  if (status == 0) status = aclrtSynchronizeStream(nullptr);
  const char* text = aclGetRecentErrMsg();  // null when nothing has failed

  if (status == 0) {
    uint16_t bits[2] = {0, 0};
    void* data = nullptr;
    aclGetRawTensorAddr(query, &data);
    aclrtMemcpy(bits, sizeof(bits), data, sizeof(bits), ACL_MEMCPY_DEVICE_TO_HOST);
    std::printf("status 0, query begins with the bf16 bits %04x %04x\n", bits[0], bits[1]);
  } else {
    std::printf("status %d: %s\n", status, text ? text : "");
  }
  aclrtResetDevice(0);  // the memory goes with the process
  aclFinalize();
  return status;
}
