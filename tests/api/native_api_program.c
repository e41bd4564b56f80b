/* mlaprolog.h from C99: every function is called. The argument says which environment to expect. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "mlaprolog/mlaprolog.h"

static int num_faults = 0;

#define EXPECT(condition)                                                                 \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      printf("line %d: %s\n  last error: %s\n", __LINE__, #condition, mlap_last_error()); \
      ++num_faults;                                                                       \
    }                                                                                     \
  } while (0)

static int error_mentions(const char *text) { return strstr(mlap_last_error(), text) != NULL; }

static void check_version_and_cpu(void) {
  char expected[32];
  snprintf(expected, sizeof(expected), "%d.%d.%d", MLAP_VERSION_MAJOR, MLAP_VERSION_MINOR, MLAP_VERSION_PATCH);
  EXPECT(strcmp(mlap_version_string(), expected) == 0);
  EXPECT(strlen(mlap_cpu_name()) > 0);
  EXPECT(mlap_cpu_name() == mlap_cpu_name());
}

static void check_isas(void) {
  mlap_isa isa;
  const size_t count = mlap_isa_count();
  EXPECT(count >= 1);
  for (size_t i = 0; i < count; ++i) {
    memset(&isa, 0, sizeof(isa));
    isa.struct_size = sizeof(isa);
    EXPECT(mlap_isa_at(i, &isa) == MLAP_OK);
    EXPECT(isa.name != NULL && strlen(isa.name) > 0);
    EXPECT(isa.is_usable == (strlen(isa.why_unusable) == 0));
    EXPECT(isa.is_built || !isa.is_usable);
    if (i == 0) EXPECT(strcmp(isa.name, "scalar") == 0 && isa.is_usable);
  }
}

/* Whether a kernel's name ends with "_" and the name of an instruction set that can be used here: `only`, if given. */
static int ends_with_isa(const char *name, const char *only) {
  for (size_t i = 0; i < mlap_isa_count(); ++i) {
    mlap_isa isa;
    memset(&isa, 0, sizeof(isa));
    isa.struct_size = sizeof(isa);
    if (mlap_isa_at(i, &isa) != MLAP_OK || !isa.is_usable || (only != NULL && strcmp(isa.name, only) != 0)) continue;
    const size_t length = strlen(name), isa_length = strlen(isa.name);
    if (length > isa_length && name[length - isa_length - 1] == '_' &&
        strcmp(name + length - isa_length, isa.name) == 0) {
      return 1;
    }
  }
  return 0;
}

/* The kernels are those of one instruction set, if `only` is given. */
static void check_kernels(const char *only) {
  mlap_kernel kernel;
  EXPECT(mlap_kernel_count() >= 1);
  for (size_t i = 0; i < mlap_kernel_count(); ++i) {
    memset(&kernel, 0, sizeof(kernel));
    kernel.struct_size = sizeof(kernel);
    EXPECT(mlap_kernel_at(i, &kernel) == MLAP_OK);
    if (kernel.op == NULL || kernel.name == NULL) {
      printf("kernel %d has no name\n", (int)i);
      ++num_faults;
      continue;
    }
    /* Both begin with the same word. */
    EXPECT(strncmp(kernel.name, kernel.op, strcspn(kernel.op, "_")) == 0);
    EXPECT(ends_with_isa(kernel.name, only));
  }
}

static void check_chosen_isa(const char *expected) {
  const char *name = NULL;
  EXPECT(mlap_chosen_isa(&name) == MLAP_OK);
  EXPECT(name != NULL && strlen(name) > 0);
  if (expected != NULL && name != NULL) EXPECT(strcmp(name, expected) == 0);
}

static void check_refused_isa(void) {
  const char *name = "before";
  mlap_kernel kernel = {sizeof(mlap_kernel), "before", "before"};
  for (int i = 0; i < 2; ++i) {
    EXPECT(mlap_chosen_isa(&name) == MLAP_INVALID_ARGUMENT);
    EXPECT(error_mentions("MLAP_MAX_ISA") && error_mentions("nonsense") && error_mentions("scalar"));
    EXPECT(strcmp(name, "before") == 0);
    EXPECT(mlap_kernel_at(0, &kernel) == MLAP_INVALID_ARGUMENT);
    EXPECT(error_mentions("MLAP_MAX_ISA"));
    EXPECT(strcmp(kernel.name, "before") == 0 && strcmp(kernel.op, "before") == 0);
  }
  check_version_and_cpu();
  check_isas();
}

static void check_threads(int expected) {
  int num_threads = 0;
  EXPECT(mlap_num_threads(&num_threads) == MLAP_OK);
  EXPECT(expected > 0 ? num_threads == expected : num_threads >= 1);
}

static void check_refused_threads(const char *found) {
  int num_threads = -7;
  EXPECT(mlap_num_threads(&num_threads) == MLAP_INVALID_ARGUMENT);
  EXPECT(error_mentions("MLAP_NUM_THREADS") && error_mentions(found));
  EXPECT(num_threads == -7);
}

static mlap_tensor tensor(void *data, mlap_dtype dtype, int32_t rank, int64_t a, int64_t b, int64_t c, int64_t d) {
  const int64_t dims[MLAP_MAX_RANK] = {a, b, c, d};
  mlap_tensor result;
  memset(&result, 0, sizeof(result));
  result.data = data;
  result.dtype = dtype;
  result.layout = MLAP_ROW_MAJOR;
  result.rank = rank;
  memcpy(result.dims, dims, sizeof(dims));
  return result;
}

static void note_progress(void *context, double done) { *(double *)context = done; }

/* One token, one head and two columns everywhere, small enough to compute by hand: with x = (1, 0), identity weights
 * and gamma 1, cQ = cKV = RmsNorm(1, 0) = (sqrt(2), 0), 1.4140625 in bf16, and without rotation qR = kR = (1.4140625,
 * 0) and (1, 0). */
typedef struct tiny_call {
  uint16_t x[2], identity[4], twice_identity[8], ones[2], zeros[2];
  int64_t index[1];
  uint16_t kv_cache[4], kr_cache[4], query[2], query_rope[2];
  mlap_weights_args weights;
  mlap_run_args args;
} tiny_call;

static const uint16_t one = 0x3F80, root2 = 0x3FB5;

static void fill_tiny_call(tiny_call *call) {
  static const uint16_t twice[8] = {0x3F80, 0, 0x3F80, 0, 0, 0x3F80, 0, 0x3F80};
  static const uint16_t sevens[4] = {7, 7, 7, 7};
  mlap_weights_args *w = &call->weights;
  mlap_run_args *args = &call->args;
  memset(call, 0, sizeof(*call));
  call->x[0] = call->identity[0] = call->identity[3] = call->ones[0] = call->ones[1] = one;
  memcpy(call->twice_identity, twice, sizeof(twice));
  memcpy(call->kv_cache, sevens, sizeof(sevens));
  memcpy(call->kr_cache, sevens, sizeof(sevens));
  memcpy(call->query, sevens, sizeof(call->query));
  memcpy(call->query_rope, sevens, sizeof(call->query_rope));
  call->index[0] = 1;

  mlap_weights_args_init(w);
  w->weight_dq = tensor(call->identity, MLAP_BF16, 2, 2, 2, 0, 0);
  w->weight_uq_qr = tensor(call->twice_identity, MLAP_BF16, 2, 2, 4, 0, 0);
  w->weight_uk = tensor(call->identity, MLAP_BF16, 3, 1, 2, 2, 0);
  w->weight_dkv_kr = tensor(call->twice_identity, MLAP_BF16, 2, 2, 4, 0, 0);
  w->rmsnorm_gamma_cq = tensor(call->ones, MLAP_BF16, 1, 2, 0, 0, 0);
  w->rmsnorm_gamma_ckv = tensor(call->ones, MLAP_BF16, 1, 2, 0, 0, 0);

  mlap_run_args_init(args);
  args->rmsnorm_epsilon_cq = args->rmsnorm_epsilon_ckv = 0.0;
  args->token_x = tensor(call->x, MLAP_BF16, 2, 1, 2, 0, 0);
  args->rope_sin = tensor(call->zeros, MLAP_BF16, 2, 1, 2, 0, 0);
  args->rope_cos = tensor(call->ones, MLAP_BF16, 2, 1, 2, 0, 0);
  args->cache_index = tensor(call->index, MLAP_INT64, 1, 1, 0, 0, 0);
  args->kv_cache = tensor(call->kv_cache, MLAP_BF16, 4, 1, 2, 1, 2);
  args->kr_cache = tensor(call->kr_cache, MLAP_BF16, 4, 1, 2, 1, 2);
  args->query = tensor(call->query, MLAP_BF16, 3, 1, 1, 2, 0);
  args->query_rope = tensor(call->query_rope, MLAP_BF16, 3, 1, 1, 2, 0);
}

static void expect_tiny_results(const tiny_call *call) {
  EXPECT(call->query[0] == root2 && call->query[1] == 0);
  EXPECT(call->query_rope[0] == root2 && call->query_rope[1] == 0);
  EXPECT(call->kv_cache[0] == 7 && call->kv_cache[1] == 7 && call->kv_cache[2] == root2 && call->kv_cache[3] == 0);
  EXPECT(call->kr_cache[0] == 7 && call->kr_cache[1] == 7 && call->kr_cache[2] == one && call->kr_cache[3] == 0);
}

static void check_run(void) {
  tiny_call call;
  mlap_context *context = NULL;
  mlap_weights *weights = NULL;
  mlap_context_facts context_facts;
  mlap_weights_facts weights_facts;

  fill_tiny_call(&call);
  EXPECT(mlap_context_create(NULL, &context) == MLAP_OK);
  EXPECT(mlap_weights_create(&call.weights, &weights) == MLAP_OK);
  EXPECT(mlap_run(context, weights, &call.args) == MLAP_OK);
  expect_tiny_results(&call);

  memset(&context_facts, 0, sizeof(context_facts));
  context_facts.struct_size = sizeof(context_facts);
  EXPECT(mlap_context_query(context, &context_facts) == MLAP_OK);
  EXPECT(context_facts.num_threads >= 1 && context_facts.workspace_bytes > 0);
  memset(&weights_facts, 0, sizeof(weights_facts));
  weights_facts.struct_size = sizeof(weights_facts);
  EXPECT(mlap_weights_query(weights, &weights_facts) == MLAP_OK);
  EXPECT(weights_facts.dims.hidden == 2 && weights_facts.dims.rope == 2);

  call.index[0] = 2;
  call.query[0] = 7;
  EXPECT(mlap_run(context, weights, &call.args) == MLAP_INDEX_OUT_OF_RANGE);
  EXPECT(call.query[0] == 7);
  EXPECT(mlap_run(NULL, weights, &call.args) == MLAP_INVALID_ARGUMENT);
  EXPECT(error_mentions("context"));
  EXPECT(mlap_weights_destroy(weights) == MLAP_OK);
  EXPECT(mlap_run(context, weights, &call.args) == MLAP_INVALID_ARGUMENT);
  EXPECT(error_mentions("weights"));
  EXPECT(mlap_context_destroy(context) == MLAP_OK);
}

static void check_reference(void) {
  tiny_call call;
  mlap_weights *weights = NULL;
  float c_q[2] = {7.0f, 7.0f};
  double exact_query[2] = {7.0, 7.0};
  double done = 0.0;
  mlap_intermediates intermediates;
  mlap_reference_args reference;
  mlap_exact_results exact;

  fill_tiny_call(&call);
  EXPECT(mlap_weights_create(&call.weights, &weights) == MLAP_OK);
  EXPECT(mlap_reference_run(weights, NULL, NULL) == MLAP_INVALID_ARGUMENT);
  memset(&intermediates, 0, sizeof(intermediates));
  intermediates.struct_size = sizeof(intermediates);
  intermediates.c_q = tensor(c_q, MLAP_FLOAT32, 2, 1, 2, 0, 0);
  memset(&reference, 0, sizeof(reference));
  EXPECT(mlap_reference_run(weights, &call.args, &reference) == MLAP_INVALID_ARGUMENT);
  EXPECT(error_mentions("struct_size"));
  reference.struct_size = sizeof(reference);
  reference.intermediates = &intermediates;
  reference.progress = note_progress;
  reference.progress_context = &done;
  EXPECT(mlap_reference_run(weights, &call.args, &reference) == MLAP_OK);
  expect_tiny_results(&call);
  EXPECT(fabs((double)c_q[0] - 1.4140625) == 0.0 && c_q[1] == 0.0f);
  EXPECT(done == 1.0);

  memset(&exact, 0, sizeof(exact));
  exact.struct_size = sizeof(exact);
  exact.query = tensor(exact_query, MLAP_FLOAT64, 3, 1, 1, 2, 0);
  EXPECT(mlap_exact_run(weights, &call.args, &exact) == MLAP_OK);
  EXPECT(fabs(exact_query[0] - sqrt(2.0)) < 1e-15 && exact_query[1] == 0.0);
  EXPECT(mlap_weights_destroy(weights) == MLAP_OK);
}

static void check_weight_preparation(void) {
  uint16_t matrix[6] = {1, 2, 3, 4, 5, 6}, nz[256], back[6];
  uint16_t kv_b[6] = {1, 2, 3, 4, 5, 6}, uk[2], uv[4];
  int64_t dims[MLAP_MAX_RANK];
  mlap_tensor from = tensor(matrix, MLAP_BF16, 2, 3, 2, 0, 0), to = tensor(back, MLAP_BF16, 2, 3, 2, 0, 0);
  mlap_tensor image, proj, uk_tensor, uv_tensor, row;

  EXPECT(mlap_nz_dims(MLAP_BF16, 3, 2, dims) == MLAP_OK);
  EXPECT(dims[0] == 1 && dims[1] == 1 && dims[2] == 16 && dims[3] == 16);
  image = tensor(nz, MLAP_BF16, 4, dims[0], dims[1], dims[2], dims[3]);
  image.layout = MLAP_FRACTAL_NZ;
  EXPECT(mlap_nz_pack(&from, &image) == MLAP_OK);
  EXPECT(nz[0] == 1 && nz[1] == 2 && nz[2] == 0 && nz[16] == 3 && nz[33] == 6);
  EXPECT(mlap_nz_unpack(&image, &to) == MLAP_OK);
  EXPECT(memcmp(matrix, back, sizeof(matrix)) == 0);

  /* One head of D = 1 and Dv = 2, Hckv = 2. */
  proj = tensor(kv_b, MLAP_BF16, 2, 3, 2, 0, 0);
  uk_tensor = tensor(uk, MLAP_BF16, 3, 1, 1, 2, 0);
  uv_tensor = tensor(uv, MLAP_BF16, 3, 1, 2, 2, 0);
  EXPECT(mlap_split_kv_b_proj(&proj, &uk_tensor, &uv_tensor) == MLAP_OK);
  EXPECT(uk[0] == 1 && uk[1] == 2 && uv[0] == 3 && uv[1] == 5 && uv[2] == 4 && uv[3] == 6);

  row = tensor(matrix, MLAP_BF16, 2, 1, 6, 0, 0);
  EXPECT(mlap_rope_reorder(&row, 6, 4, MLAP_HALF_TO_INTERLEAVED, &row) == MLAP_OK);
  EXPECT(matrix[1] == 2 && matrix[2] == 3 && matrix[3] == 5 && matrix[4] == 4 && matrix[5] == 6);
}

static void check_rope_table(void) {
  int64_t position[1] = {0};
  float sin_row[4], cos_row[4];
  mlap_rope_table_args args;
  mlap_tensor p = tensor(position, MLAP_INT64, 1, 1, 0, 0, 0);
  mlap_tensor s = tensor(sin_row, MLAP_FLOAT32, 2, 1, 4, 0, 0), c = tensor(cos_row, MLAP_FLOAT32, 2, 1, 4, 0, 0);
  mlap_rope_table_args_init(&args);
  EXPECT(mlap_rope_table(&args, &p, &s, &c) == MLAP_OK);
  EXPECT(sin_row[0] == 0.0f && sin_row[3] == 0.0f && cos_row[0] == 1.0f && cos_row[3] == 1.0f);
}

static void check_caches(void) {
  uint16_t rows[64], pages[64];
  int8_t values[2] = {1, 2}, packed[10];
  uint16_t rope[2] = {3, 4};
  float scale[1] = {0.5f};
  mlap_tensor from = tensor(rows, MLAP_BF16, 4, 1, 2, 1, 32), to = tensor(pages, MLAP_BF16, 4, 1, 2, 1, 32);
  mlap_tensor v = tensor(values, MLAP_INT8, 2, 1, 2, 0, 0), r = tensor(rope, MLAP_BF16, 2, 1, 2, 0, 0);
  mlap_tensor s = tensor(scale, MLAP_FLOAT32, 2, 1, 1, 0, 0), p = tensor(packed, MLAP_INT8, 2, 1, 10, 0, 0);
  for (int i = 0; i < 64; ++i) rows[i] = (uint16_t)i;
  EXPECT(mlap_cache_convert(&from, MLAP_PA_BSND, &to, MLAP_PA_NZ) == MLAP_OK);
  EXPECT(pages[0] == 0 && pages[16] == 32 && pages[32] == 16);

  EXPECT(mlap_cache_rows_join(&v, &r, &s, &p, MLAP_ROW_CANN) == MLAP_OK);
  EXPECT(packed[1] == 2 && memcmp(packed + 2, rope, 4) == 0 && memcmp(packed + 6, scale, 4) == 0);
  EXPECT(mlap_cache_rows_reorder(&p, MLAP_ROW_CANN, &p, MLAP_ROW_FLASHMLA, 2, 2) == MLAP_OK);
  EXPECT(memcmp(packed + 6, rope, 4) == 0 && memcmp(packed + 2, scale, 4) == 0);
  values[1] = 0;
  EXPECT(mlap_cache_rows_split(&p, MLAP_ROW_FLASHMLA, &v, &r, &s) == MLAP_OK);
  EXPECT(values[1] == 2 && rope[1] == 4);
}

static void check_limits(void) {
  mlap_limits_args args;
  int is_accepted = -1;
  char reasons[512];
  memset(&args, 0, sizeof(args));
  args.struct_size = sizeof(args);
  args.soc = "ascend910b";
  args.version = 3;
  args.dims.hidden = 7168;
  args.dims.q_rank = 1536;
  args.dims.heads = 128;
  args.dims.nope = 128;
  args.dims.rope = 64;
  args.dims.kv_rank = 512;
  args.sequence = 8;
  args.block_size = 128;
  EXPECT(mlap_check_limits(&args, &is_accepted, reasons, sizeof(reasons)) == MLAP_OK);
  EXPECT(is_accepted == 1 && strcmp(reasons, "") == 0);
  args.dims.heads = 96;
  EXPECT(mlap_check_limits(&args, &is_accepted, reasons, sizeof(reasons)) == MLAP_OK);
  EXPECT(is_accepted == 0 && strstr(reasons, "96") != NULL);
}

static void check_comparison(void) {
  float actual[2] = {1.0f, 2.0f}, golden[2] = {1.0f, 2.0f};
  mlap_tensor a = tensor(actual, MLAP_FLOAT32, 1, 2, 0, 0, 0), g = tensor(golden, MLAP_FLOAT32, 1, 2, 0, 0, 0);
  mlap_comparison comparison;
  mlap_standard standard;
  const char *name = NULL;
  EXPECT(mlap_standard_at(0, &standard, &name) == MLAP_OK);
  EXPECT(standard == MLAP_STANDARD_EXACT && strcmp(name, "exact") == 0);
  memset(&comparison, 0, sizeof(comparison));
  comparison.struct_size = sizeof(comparison);
  EXPECT(mlap_compare(&a, &g, NULL, standard, &comparison) == MLAP_OK);
  EXPECT(comparison.is_passed && comparison.num_elements == 2);
  actual[1] = 3.0f;
  EXPECT(mlap_compare(&a, &g, NULL, standard, &comparison) == MLAP_OK);
  EXPECT(!comparison.is_passed && comparison.num_different == 1 && strlen(comparison.verdict) > 0);
}

int main(int argc, char **argv) {
  const char *environment = argc == 2 ? argv[1] : "";
  EXPECT(strcmp(mlap_last_error(), "") == 0);
  if (strcmp(environment, "defaults") == 0) {
    check_version_and_cpu();
    check_isas();
    check_kernels(NULL);
    check_chosen_isa(NULL);
    check_threads(0);
    check_run();
    check_reference();
    check_weight_preparation();
    check_rope_table();
    check_caches();
    check_limits();
    check_comparison();
  } else if (strcmp(environment, "scalar") == 0) {
    check_chosen_isa("scalar");
    check_kernels("scalar");
  } else if (strcmp(environment, "unknown_isa") == 0) {
    check_refused_isa();
  } else if (strcmp(environment, "three_threads") == 0) {
    check_threads(3);
  } else if (strcmp(environment, "no_threads") == 0) {
    check_refused_threads("'0'");
  } else if (strcmp(environment, "many_threads") == 0) {
    check_refused_threads("'1025'");
  } else if (strcmp(environment, "wordy_threads") == 0) {
    check_refused_threads("'3 threads'");
  } else {
    printf("unknown environment '%s'\n", environment);
    return 2;
  }
  return num_faults == 0 ? 0 : 1;
}
