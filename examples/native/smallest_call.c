/* The smallest complete program: one token through a tiny layer in which every weight is 1. */
#include <mlaprolog/mlaprolog.h>
#include <stdint.h>
#include <stdio.h>

enum { T = 1, He = 64, Hcq = 32, N = 2, D = 16, Dr = 16, Hckv = 32, SLOTS = 16 };

static uint16_t memory[16384]; /* bf16; tensors are cut from its front */
static uint16_t *next = memory;

/* A BF16 tensor of its own, filled with `value`. Unused dimensions come last and are 0. */
static mlap_tensor bf16(uint16_t value, int64_t a, int64_t b, int64_t c, int64_t d) {
  mlap_tensor tensor = {next, MLAP_BF16, MLAP_ROW_MAJOR, 0, {a, b, c, d}, {0}};
  int64_t count = 1;
  while (tensor.rank < MLAP_MAX_RANK && tensor.dims[tensor.rank] > 0) count *= tensor.dims[tensor.rank++];
  while (count-- > 0) *next++ = value;
  return tensor;
}

int main(void) {
  const uint16_t one = 0x3F80, zero = 0;
  mlap_weights_args layer;
  mlap_weights_args_init(&layer);
  layer.weight_dq = bf16(one, He, Hcq, 0, 0); /* a checkpoint's (out, in) tensors: set .layout = MLAP_OUT_IN */
  layer.weight_uq_qr = bf16(one, Hcq, N * (D + Dr), 0, 0);
  layer.weight_uk = bf16(one, N, D, Hckv, 0);
  layer.weight_dkv_kr = bf16(one, He, Hckv + Dr, 0, 0);
  layer.rmsnorm_gamma_cq = bf16(one, Hcq, 0, 0, 0);
  layer.rmsnorm_gamma_ckv = bf16(one, Hckv, 0, 0, 0);

  int64_t slot = 5; /* the cache row of the token */
  mlap_run_args call;
  mlap_run_args_init(&call);
  call.token_x = bf16(one, T, He, 0, 0);
  call.rope_sin = bf16(zero, T, Dr, 0, 0);
  call.rope_cos = bf16(one, T, Dr, 0, 0);
  call.kv_cache = bf16(zero, 1, SLOTS, 1, Hckv);
  call.kr_cache = bf16(zero, 1, SLOTS, 1, Dr);
  call.cache_index = (mlap_tensor){&slot, MLAP_INT64, MLAP_ROW_MAJOR, 1, {T}, {0}};
  call.query = bf16(zero, T, N, Hckv, 0);
  call.query_rope = bf16(zero, T, N, Dr, 0);

  mlap_context *context = NULL;
  mlap_weights *weights = NULL;
  mlap_status status = mlap_context_create(NULL, &context);
  if (status == MLAP_OK) status = mlap_weights_create(&layer, &weights);
  if (status == MLAP_OK) status = mlap_run(context, weights, &call);
  if (status != MLAP_OK) {
    printf("status %d: %s\n", (int)status, mlap_last_error());
  } else {
    printf("query begins with the bf16 bits %04x\n", (unsigned)*(uint16_t *)call.query.data);
  }
  mlap_weights_destroy(weights);
  mlap_context_destroy(context);
  return status;
}
