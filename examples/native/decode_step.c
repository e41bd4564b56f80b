/* One decode step of three sequences through the native C interface: weights as a checkpoint has them, (out, in), paged
 * bf16 caches, and a comparison with the reference. */
#include <mlaprolog/mlaprolog.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { T = 3, HE = 256, HCQ = 96, N = 4, D = 32, DR = 16, DV = 32, HCKV = 64, PAGES = 4, PAGE_SLOTS = 16 };

static void require(mlap_status status) {
  if (status == MLAP_OK) return;
  fprintf(stderr, "failed: %s\n", mlap_last_error());
  exit(1);
}

/* Numbers from -scale to scale as bf16, the upper half of a float's bits. */
static uint16_t *random_bf16(size_t count, float scale) {
  static uint32_t state = 1;
  uint16_t *values = malloc(count * sizeof(*values));
  if (values == NULL) exit(1);
  for (size_t i = 0; i < count; ++i) {
    float value;
    uint32_t bits;
    state = state * 1664525u + 1013904223u;
    value = scale * ((float)(state >> 8) / 8388608.0f - 1.0f);
    memcpy(&bits, &value, sizeof(bits));
    values[i] = (uint16_t)(bits >> 16);
  }
  return values;
}

static mlap_tensor tensor(void *data, mlap_dtype dtype, int32_t rank, int64_t a, int64_t b, int64_t c, int64_t d) {
  mlap_tensor result;
  memset(&result, 0, sizeof(result));
  result.data = data;
  result.dtype = dtype;
  result.rank = rank;
  result.dims[0] = a;
  result.dims[1] = b;
  result.dims[2] = c;
  result.dims[3] = d;
  return result;
}

/* A torch.nn.Linear's weight: (out, in). */
static mlap_tensor linear(void *data, int64_t out, int64_t in) {
  mlap_tensor result = tensor(data, MLAP_BF16, 2, out, in, 0, 0);
  result.layout = MLAP_OUT_IN;
  return result;
}

int main(void) {
  /* The layer. A copy is packed for the kernels; the checkpoint's tensors may be freed afterwards. */
  uint16_t *q_a_proj = random_bf16(HCQ * HE, 0.1f), *q_b_proj = random_bf16(N * (D + DR) * HCQ, 0.1f);
  uint16_t *kv_a_proj = random_bf16((HCKV + DR) * HE, 0.1f), *kv_b_proj = random_bf16(N * (D + DV) * HCKV, 0.1f);
  uint16_t *q_a_norm = random_bf16(HCQ, 1.0f), *kv_a_norm = random_bf16(HCKV, 1.0f);
  uint16_t *uk = malloc(N * D * HCKV * sizeof(*uk));
  const mlap_tensor kv_b = tensor(kv_b_proj, MLAP_BF16, 2, N * (D + DV), HCKV, 0, 0);
  const mlap_tensor weight_uk = tensor(uk, MLAP_BF16, 3, N, D, HCKV, 0);
  mlap_weights_args layer;
  mlap_weights *weights = NULL;
  if (uk == NULL) return 1;
  require(mlap_split_kv_b_proj(&kv_b, &weight_uk, NULL));
  mlap_weights_args_init(&layer);
  layer.weight_dq = linear(q_a_proj, HCQ, HE);
  layer.weight_uq_qr = linear(q_b_proj, N * (D + DR), HCQ);
  layer.weight_uk = weight_uk;
  layer.weight_dkv_kr = linear(kv_a_proj, HCKV + DR, HE);
  layer.rmsnorm_gamma_cq = tensor(q_a_norm, MLAP_BF16, 1, HCQ, 0, 0, 0);
  layer.rmsnorm_gamma_ckv = tensor(kv_a_norm, MLAP_BF16, 1, HCKV, 0, 0, 0);
  require(mlap_weights_create(&layer, &weights));
  free(q_a_proj);
  free(q_b_proj);
  free(kv_a_proj);
  free(kv_b_proj);
  free(uk);

  /* The step: each sequence's next token, its position and the slot of its key. */
  int64_t positions[T] = {7, 100, 31}, slots[T] = {7, 36, 63};
  uint16_t *x = random_bf16(T * HE, 1.0f), sin_rows[T * DR], cos_rows[T * DR];
  static uint16_t kv_cache[PAGES * PAGE_SLOTS * HCKV], kr_cache[PAGES * PAGE_SLOTS * DR];
  static uint16_t query[T * N * HCKV], query_rope[T * N * DR], expected[T * N * HCKV];
  const mlap_tensor position_tensor = tensor(positions, MLAP_INT64, 1, T, 0, 0, 0);
  mlap_rope_table_args rope;
  mlap_run_args args;
  mlap_rope_table_args_init(&rope);
  mlap_run_args_init(&args);
  args.rope_sin = tensor(sin_rows, MLAP_BF16, 2, T, DR, 0, 0);
  args.rope_cos = tensor(cos_rows, MLAP_BF16, 2, T, DR, 0, 0);
  require(mlap_rope_table(&rope, &position_tensor, &args.rope_sin, &args.rope_cos));
  args.token_x = tensor(x, MLAP_BF16, 2, T, HE, 0, 0);
  args.cache_index = tensor(slots, MLAP_INT64, 1, T, 0, 0, 0);
  args.kv_cache = tensor(kv_cache, MLAP_BF16, 4, PAGES, PAGE_SLOTS, 1, HCKV);
  args.kr_cache = tensor(kr_cache, MLAP_BF16, 4, PAGES, PAGE_SLOTS, 1, DR);
  args.query = tensor(query, MLAP_BF16, 3, T, N, HCKV, 0);
  args.query_rope = tensor(query_rope, MLAP_BF16, 3, T, N, DR, 0);
  args.rmsnorm_epsilon_cq = args.rmsnorm_epsilon_ckv = 1e-6;

  mlap_context *context = NULL;
  require(mlap_context_create(NULL, &context));
  require(mlap_run(context, weights, &args));

  /* The same by the reference, and how far the two are apart. */
  const mlap_tensor computed = args.query;
  mlap_comparison comparison;
  args.query = tensor(expected, MLAP_BF16, 3, T, N, HCKV, 0);
  require(mlap_reference_run(weights, &args, NULL));
  memset(&comparison, 0, sizeof(comparison));
  comparison.struct_size = sizeof(comparison);
  require(mlap_compare(&computed, &args.query, NULL, MLAP_STANDARD_STAGED, &comparison));
  printf("query of %d tokens and %d heads against the reference: relative norm %.1e, %s\n", T, N,
         comparison.relative_norm, comparison.verdict);

  require(mlap_context_destroy(context));
  require(mlap_weights_destroy(weights));
  free(q_a_norm);
  free(kv_a_norm);
  free(x);
  return comparison.is_passed ? 0 : 1;
}
