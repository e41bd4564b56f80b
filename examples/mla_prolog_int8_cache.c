/* aclnnMlaProlog, partially quantised, in C99: weight_uq_qr is int8 with a scale per output channel, both caches are
 * int8 with a scale per column. The query and everything else stays bf16. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_mla_prolog.h"

/* Tokens, hidden size, query rank, heads, head columns without and with RoPE, key rank; the caches' pages. */
enum { T = 4, He = 1024, Hcq = 1536, N = 8, D = 128, Dr = 64, Hckv = 512, BlockNum = 2, BlockSize = 16 };
enum { kUntouched = 111, kMaxTensors = 32 };

/* Leaves the function with its status, through the clean-up at its end. */
#define CHECK(call)                                      \
  do {                                                   \
    status = (call);                                     \
    if (status != ACL_SUCCESS) {                         \
      fprintf(stderr, "%s: status %d\n", #call, status); \
      goto done;                                         \
    }                                                    \
  } while (0)

/* What the program allocates, to be freed at its end. */
static aclTensor *tensors[kMaxTensors];
static void *blocks[kMaxTensors];
static int num_tensors = 0;

/* Describes a new tensor of device memory with a copy of the host's elements; frees those. NULL on failure. */
static aclTensor *to_device(void *host, aclDataType type, aclFormat format, int rank, const int64_t *dims) {
  size_t bytes = aclDataTypeSize(type);
  void *block = NULL;
  aclTensor *tensor = NULL;
  for (int i = 0; i < rank; ++i) bytes *= (size_t)dims[i];
  if (host != NULL && aclrtMalloc(&block, bytes, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS &&
      aclrtMemcpy(block, bytes, host, bytes, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_SUCCESS) {
    tensor = aclCreateTensor(dims, (uint64_t)rank, type, NULL, 0, format, dims, (uint64_t)rank, block);
  }
  free(host);
  blocks[num_tensors] = block;
  tensors[num_tensors++] = tensor;
  return tensor;
}

/* Pseudo-random numbers in [-1, 1): the same in every run. */
static float random_number(void) {
  static uint64_t state = 1;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (float)(int32_t)(state >> 32) * (1.0f / 2147483648.0f);
}

/* Tensors of made-up elements. Random elements of a FRACTAL_NZ weight need no packing. */
static aclTensor *bf16_random(float scale, aclFormat format, int rank, const int64_t *dims) {
  size_t count = 1;
  for (int i = 0; i < rank; ++i) count *= (size_t)dims[i];
  uint16_t *host = malloc(count * sizeof(uint16_t));
  for (size_t i = 0; host != NULL && i < count; ++i) {
    const float value = scale * random_number();
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    host[i] = (uint16_t)(bits >> 16);
  }
  return to_device(host, ACL_BF16, format, rank, dims);
}

static aclTensor *bf16_constant(float value, int rank, const int64_t *dims) {
  size_t count = 1;
  for (int i = 0; i < rank; ++i) count *= (size_t)dims[i];
  uint16_t *host = malloc(count * sizeof(uint16_t));
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  for (size_t i = 0; host != NULL && i < count; ++i) host[i] = (uint16_t)(bits >> 16);
  return to_device(host, ACL_BF16, ACL_FORMAT_ND, rank, dims);
}

static aclTensor *int8_tensor(int is_random, aclFormat format, int rank, const int64_t *dims) {
  size_t count = 1;
  for (int i = 0; i < rank; ++i) count *= (size_t)dims[i];
  int8_t *host = malloc(count);
  for (size_t i = 0; host != NULL && i < count; ++i)
    host[i] = (int8_t)(is_random ? 127.0f * random_number() : kUntouched);
  return to_device(host, ACL_INT8, format, rank, dims);
}

static aclTensor *float_row(float value, int64_t columns) {
  const int64_t dims[] = {1, columns};
  float *host = malloc((size_t)columns * sizeof(float));
  for (int64_t i = 0; host != NULL && i < columns; ++i) host[i] = value;
  return to_device(host, ACL_FLOAT, ACL_FORMAT_ND, 2, dims);
}

#define DIMS(...) \
  sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]) { __VA_ARGS__ }

/* Token t's keys go to row slots[t]; token 2's go nowhere. */
static const int64_t slots[T] = {3, 30, -1, 16};
/* A cache element is the key's value times this, rounded: int8(25 * value). */
static const float kCacheScale = 25.0f;

static int check_results(const int8_t *kv_cache, const uint16_t *query) {
  int num_wrong = 0;
  for (int slot = 0; slot < BlockNum * BlockSize; ++slot) {
    const int8_t *row = kv_cache + slot * Hckv;
    double mean_square = 0.0; /* 1 for a normalised row */
    int num_kept = 0;
    int is_named = 0;
    for (int t = 0; t < T; ++t) is_named |= slots[t] == slot;
    for (int d = 0; d < Hckv; ++d) {
      const double value = row[d] / kCacheScale;
      mean_square += value * value / Hckv;
      num_kept += row[d] == kUntouched;
    }
    if (is_named) {
      printf("cache row %2d: mean square %.4f, begins with %d %d %d\n", slot, mean_square, row[0], row[1], row[2]);
      num_wrong += fabs(mean_square - 1.0) > 0.02;
    } else {
      num_wrong += num_kept != Hckv;
    }
  }
  for (int i = 0; i < T * N * Hckv; ++i) num_wrong += (query[i] & 0x7F80) == 0x7F80; /* infinite or no number */
  printf("query[0, 0, 0] has the bf16 bits %04x; faults: %d\n", query[0], num_wrong);
  return num_wrong;
}

static int run(aclrtStream stream) {
  const aclFormat nd = ACL_FORMAT_ND, nz = ACL_FORMAT_FRACTAL_NZ;
  int8_t *kv_host = malloc(BlockNum * BlockSize * Hckv);
  uint16_t *query_host = malloc(T * N * Hckv * sizeof(uint16_t));
  int64_t *index_host = malloc(sizeof(slots));
  char cache_mode[] = "PA_BSND";
  uint64_t workspace_bytes = 0;
  void *workspace = NULL;
  void *address = NULL;
  aclOpExecutor *executor = NULL;
  int status = ACL_ERROR_FAILURE;
  if (kv_host == NULL || query_host == NULL || index_host == NULL) goto done;
  memcpy(index_host, slots, sizeof(slots));

  aclTensor *token_x = bf16_random(1.0f, nd, DIMS(T, He));
  aclTensor *weight_dq = bf16_random(0.05f, nz, DIMS(Hcq / 16, He / 16, 16, 16));
  aclTensor *weight_uq_qr =
      int8_tensor(1, nz, DIMS(N * (D + Dr) / 32, Hcq / 16, 16, 32)); /* int8: 32 columns a block */
  aclTensor *weight_uk = bf16_random(0.15f, nd, DIMS(N, D, Hckv));
  aclTensor *weight_dkv_kr = bf16_random(0.05f, nz, DIMS((Hckv + Dr) / 16, He / 16, 16, 16));
  aclTensor *gamma_cq = bf16_constant(1.0f, DIMS(Hcq));
  aclTensor *gamma_ckv = bf16_constant(1.0f, DIMS(Hckv));
  aclTensor *rope_sin = bf16_constant(0.0f, DIMS(T, Dr));
  aclTensor *rope_cos = bf16_constant(1.0f, DIMS(T, Dr));
  aclTensor *cache_index = to_device(index_host, ACL_INT64, nd, DIMS(T));
  index_host = NULL;
  aclTensor *kv_cache = int8_tensor(0, nd, DIMS(BlockNum, BlockSize, 1, Hckv));
  aclTensor *kr_cache = int8_tensor(0, nd, DIMS(BlockNum, BlockSize, 1, Dr));
  aclTensor *dequant_scale_w_uq_qr = float_row(3.5e-4f, N * (D + Dr)); /* per output channel of weight_uq_qr */
  aclTensor *quant_scale_ckv = float_row(kCacheScale, Hckv);           /* per column of kv_cache */
  aclTensor *quant_scale_ckr = float_row(kCacheScale, Dr);             /* per column of kr_cache */
  aclTensor *query = bf16_constant(0.0f, DIMS(T, N, Hckv));
  aclTensor *query_rope = bf16_constant(0.0f, DIMS(T, N, Dr));
  CHECK(aclnnMlaPrologGetWorkspaceSize(token_x, weight_dq, weight_uq_qr, weight_uk, weight_dkv_kr, gamma_cq, gamma_ckv,
                                       rope_sin, rope_cos, cache_index, kv_cache, kr_cache, NULL, NULL,
                                       dequant_scale_w_uq_qr, NULL, quant_scale_ckv, quant_scale_ckr, NULL, 1e-5, 1e-5,
                                       cache_mode, query, query_rope, &workspace_bytes, &executor));
  if (workspace_bytes > 0) CHECK(aclrtMalloc(&workspace, workspace_bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclnnMlaProlog(workspace, workspace_bytes, executor, stream));
  CHECK(aclrtSynchronizeStream(stream));

  const size_t kv_bytes = BlockNum * BlockSize * Hckv;
  const size_t query_bytes = T * N * Hckv * sizeof(uint16_t);
  CHECK(aclGetRawTensorAddr(kv_cache, &address));
  CHECK(aclrtMemcpy(kv_host, kv_bytes, address, kv_bytes, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(aclGetRawTensorAddr(query, &address));
  CHECK(aclrtMemcpy(query_host, query_bytes, address, query_bytes, ACL_MEMCPY_DEVICE_TO_HOST));
  status = check_results(kv_host, query_host) == 0 ? ACL_SUCCESS : ACL_ERROR_FAILURE;

done:
  if (workspace != NULL) aclrtFree(workspace);
  free(kv_host);
  free(query_host);
  free(index_host);
  return status;
}

int main(void) {
  aclrtStream stream = NULL;
  int status = ACL_SUCCESS;
  CHECK(aclInit(NULL));
  CHECK(aclrtSetDevice(0));
  CHECK(aclrtCreateStream(&stream));
  status = run(stream);

done:
  if (status != ACL_SUCCESS) {
    const char *text = aclGetRecentErrMsg();
    fprintf(stderr, "%s", text != NULL ? text : "");
  }
  for (int i = 0; i < num_tensors; ++i) {
    aclDestroyTensor(tensors[i]);
    if (blocks[i] != NULL) aclrtFree(blocks[i]);
  }
  if (stream != NULL) aclrtDestroyStream(stream);
  aclrtResetDevice(0);
  aclFinalize();
  return status == ACL_SUCCESS ? EXIT_SUCCESS : EXIT_FAILURE;
}
