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
static void check_reference(void) {
  const uint16_t one = 0x3F80, root2 = 0x3FB5;
  uint16_t x[2] = {one, 0};
  uint16_t identity[4] = {one, 0, 0, one};
  uint16_t twice_identity[8] = {one, 0, one, 0, 0, one, 0, one};
  uint16_t ones[2] = {one, one};
  uint16_t zeros[2] = {0, 0};
  int64_t index[1] = {1};
  uint16_t kv_cache[4] = {7, 7, 7, 7}, kr_cache[4] = {7, 7, 7, 7};
  uint16_t query[2] = {7, 7}, query_rope[2] = {7, 7};
  float c_q[2] = {7.0f, 7.0f};
  double done = 0.0;
  mlap_intermediates intermediates;
  mlap_prolog_args args;

  EXPECT(mlap_reference_run(NULL) == MLAP_INVALID_ARGUMENT);
  memset(&args, 0, sizeof(args));
  EXPECT(mlap_reference_run(&args) == MLAP_INVALID_ARGUMENT);
  EXPECT(error_mentions("struct_size"));
  args.struct_size = sizeof(args);
  EXPECT(mlap_reference_run(&args) == MLAP_INVALID_ARGUMENT);
  EXPECT(error_mentions("token_x"));

  memset(&intermediates, 0, sizeof(intermediates));
  intermediates.struct_size = sizeof(intermediates);
  intermediates.c_q = tensor(c_q, MLAP_FLOAT32, 2, 1, 2, 0, 0);
  args.token_x = tensor(x, MLAP_BF16, 2, 1, 2, 0, 0);
  args.weight_dq = tensor(identity, MLAP_BF16, 2, 2, 2, 0, 0);
  args.weight_uq_qr = tensor(twice_identity, MLAP_BF16, 2, 2, 4, 0, 0);
  args.weight_uk = tensor(identity, MLAP_BF16, 3, 1, 2, 2, 0);
  args.weight_dkv_kr = tensor(twice_identity, MLAP_BF16, 2, 2, 4, 0, 0);
  args.rmsnorm_gamma_cq = tensor(ones, MLAP_BF16, 1, 2, 0, 0, 0);
  args.rmsnorm_gamma_ckv = tensor(ones, MLAP_BF16, 1, 2, 0, 0, 0);
  args.rope_sin = tensor(zeros, MLAP_BF16, 2, 1, 2, 0, 0);
  args.rope_cos = tensor(ones, MLAP_BF16, 2, 1, 2, 0, 0);
  args.cache_index = tensor(index, MLAP_INT64, 1, 1, 0, 0, 0);
  args.kv_cache = tensor(kv_cache, MLAP_BF16, 4, 1, 2, 1, 2);
  args.kr_cache = tensor(kr_cache, MLAP_BF16, 4, 1, 2, 1, 2);
  args.cache_mode = MLAP_PA_BSND;
  args.query = tensor(query, MLAP_BF16, 3, 1, 1, 2, 0);
  args.query_rope = tensor(query_rope, MLAP_BF16, 3, 1, 1, 2, 0);
  args.intermediates = &intermediates;
  args.progress = note_progress;
  args.progress_context = &done;
  EXPECT(mlap_reference_run(&args) == MLAP_OK);
  EXPECT(query[0] == root2 && query[1] == 0);
  EXPECT(query_rope[0] == root2 && query_rope[1] == 0);
  EXPECT(kv_cache[0] == 7 && kv_cache[1] == 7 && kv_cache[2] == root2 && kv_cache[3] == 0);
  EXPECT(kr_cache[0] == 7 && kr_cache[1] == 7 && kr_cache[2] == one && kr_cache[3] == 0);
  EXPECT(fabs((double)c_q[0] - 1.4140625) == 0.0 && c_q[1] == 0.0f);
  EXPECT(done == 1.0);

  index[0] = 2;
  query[0] = 7;
  EXPECT(mlap_reference_run(&args) == MLAP_INDEX_OUT_OF_RANGE);
  EXPECT(query[0] == 7);
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
    check_reference();
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
