/* mlaprolog: the pre-processing of Multi-head Latent Attention on CPUs.
 *
 * C99 and C++. Everything here is thread-safe. No function prints, aborts, or throws.
 *
 *   cQ  = RmsNorm(x W_DQ)       qC | qR = cQ W_UQ|QR     query = qC W_UK       query_rope = RoPE(qR)
 *   cKV | kR = x W_DKV|KR       kv_cache[slot] = RmsNorm(cKV)                  kr_cache[slot] = RoPE(kR)
 *
 * Dimensions: T tokens, He hidden size, Hcq query rank, N heads, D and Dr head columns without and with RoPE, Hckv key
 * rank. The operator itself is called through the CANN interface (aclnnop/aclnn_mla_prolog.h). */
#ifndef MLAPROLOG_MLAPROLOG_H_
#define MLAPROLOG_MLAPROLOG_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define MLAP_API __attribute__((visibility("default")))
#else
#define MLAP_API
#endif

/* In C++ the enumerations have int as their type, so that a number which a caller made up is a value like any other, to
 * be refused and not undefined behaviour. */
#ifdef __cplusplus
#define MLAP_ENUM_TYPE : int
#else
#define MLAP_ENUM_TYPE
#endif

#define MLAP_VERSION_MAJOR 0
#define MLAP_VERSION_MINOR 1
#define MLAP_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* The library's version, "major.minor.patch"; compare with MLAP_VERSION_* of the header. */
MLAP_API const char* mlap_version_string(void);

/* What a function that can fail returns. Values are pinned. */
typedef enum mlap_status MLAP_ENUM_TYPE {
  MLAP_OK = 0,
  MLAP_INVALID_ARGUMENT = 1,   /* a null, a wrong type, shape or size */
  MLAP_INDEX_OUT_OF_RANGE = 2, /* a cache index beyond the cache */
  MLAP_UNSUPPORTED = 3,        /* this CPU or this build cannot do it */
  MLAP_OUT_OF_MEMORY = 4
} mlap_status;

/* The text of the calling thread's last failure: the field, what was expected, what was found, what to do. Empty when
 * there was none. Valid until the thread's next call that fails. */
MLAP_API const char* mlap_last_error(void);

/* ---- The machine and what was chosen for it ---- */

/* The processor's name. Valid for the life of the program. */
MLAP_API const char* mlap_cpu_name(void);

/* One instruction set the library has kernels for. */
typedef struct mlap_isa {
  size_t struct_size;       /* set by the caller: sizeof(mlap_isa) */
  const char* name;         /* as MLAP_MAX_ISA takes it */
  int is_built;             /* 1 if this library contains it */
  int is_usable;            /* 1 if built, and CPU and operating system support it */
  const char* why_unusable; /* empty when usable */
} mlap_isa;

/* The instruction sets, in ascending order of preference. */
MLAP_API size_t mlap_isa_count(void);
MLAP_API mlap_status mlap_isa_at(size_t index, mlap_isa* isa);

/* One kernel the operator runs with on this machine, under the limit of MLAP_MAX_ISA. */
typedef struct mlap_kernel {
  size_t struct_size; /* set by the caller: sizeof(mlap_kernel) */
  const char* op;     /* "gemm_bf16", "rope", ... */
  const char* name;   /* "<op>_<types>_<tile>_<isa>" */
} mlap_kernel;

MLAP_API size_t mlap_kernel_count(void);
/* Fails with MLAP_INVALID_ARGUMENT or MLAP_UNSUPPORTED also when MLAP_MAX_ISA names an unknown or unusable set. */
MLAP_API mlap_status mlap_kernel_at(size_t index, mlap_kernel* kernel);

/* The best instruction set in use. Fails as mlap_kernel_at does. */
MLAP_API mlap_status mlap_chosen_isa(const char** name);

/* The threads an operator call uses: MLAP_NUM_THREADS, or the CPUs the process may run on. */
MLAP_API mlap_status mlap_num_threads(int* num_threads);

/* ---- Tensors ---- */

typedef enum mlap_dtype MLAP_ENUM_TYPE {
  MLAP_BF16 = 0, /* uint16_t, the upper half of a binary32 */
  MLAP_INT8 = 1,
  MLAP_FLOAT32 = 2,
  MLAP_INT64 = 3,
  MLAP_INT32 = 4
} mlap_dtype;

typedef enum mlap_layout MLAP_ENUM_TYPE {
  MLAP_ROW_MAJOR = 0,
  /* Weights: 4-D [ceil(n / C0), ceil(k / 16), 16, C0] with C0 = 16 (bf16) or 32 (int8) holds the matrix (k, n). */
  MLAP_FRACTAL_NZ = 1
} mlap_layout;

#define MLAP_MAX_RANK 4

/* Memory stays the caller's. A tensor with data == NULL and rank == 0 is absent. */
typedef struct mlap_tensor {
  void* data;
  mlap_dtype dtype;
  mlap_layout layout;
  int32_t rank;
  int64_t dims[MLAP_MAX_RANK];
  int64_t strides[MLAP_MAX_RANK]; /* elements; all zero: contiguous. Only caches may be strided. */
} mlap_tensor;

typedef enum mlap_cache_mode MLAP_ENUM_TYPE {
  MLAP_PA_BSND = 0, /* pages of rows */
  MLAP_PA_NZ = 1    /* each page as [width / C0][BlockSize][C0] */
} mlap_cache_mode;

/* What the operator computes on the way. A member with data == NULL is not wanted; the others are contiguous, of the
 * shape and type given, and are written. */
typedef struct mlap_intermediates {
  size_t struct_size;    /* set by the caller: sizeof(mlap_intermediates) */
  mlap_tensor c_q;       /* FLOAT32 [T, Hcq]   after RMSNorm (rounded to bf16 unless quantised), before smoothing */
  mlap_tensor c_q_int8;  /* INT8 [T, Hcq]      quantised scenarios only */
  mlap_tensor c_q_scale; /* FLOAT32 [T]        quantised scenarios only: the dynamic dequantisation scale */
  mlap_tensor q_c;       /* FLOAT32 [T, N, D]  as it enters W_UK */
  mlap_tensor q_r;       /* FLOAT32 [T, N, Dr] before RoPE */
  mlap_tensor c_kv;      /* FLOAT32 [T, Hckv]  after RMSNorm, before the cache's rounding */
  mlap_tensor k_r;       /* FLOAT32 [T, Dr]    before RoPE */
} mlap_intermediates;

/* One call of the operator. Shapes: lead = (T) or (B, S). The scenario follows from the types: weight_uq_qr INT8 makes
 * it partially quantised, an INT8 kv_cache makes both caches per-channel int8. */
typedef struct mlap_prolog_args {
  size_t struct_size; /* set by the caller: sizeof(mlap_prolog_args) */

  mlap_tensor token_x;           /* BF16 [lead, He] */
  mlap_tensor weight_dq;         /* BF16 (He, Hcq), row-major or FRACTAL_NZ */
  mlap_tensor weight_uq_qr;      /* BF16 or INT8 (Hcq, N * (D + Dr)); per head D columns, then Dr */
  mlap_tensor weight_uk;         /* BF16 [N, D, Hckv] */
  mlap_tensor weight_dkv_kr;     /* BF16 (He, Hckv + Dr) */
  mlap_tensor rmsnorm_gamma_cq;  /* BF16 [Hcq] */
  mlap_tensor rmsnorm_gamma_ckv; /* BF16 [Hckv] */
  mlap_tensor rope_sin;          /* BF16 [lead, Dr] */
  mlap_tensor rope_cos;          /* BF16 [lead, Dr] */
  mlap_tensor cache_index;       /* INT64 [lead]: slot of each token; negative: its cache rows are not written */
  mlap_tensor kv_cache;          /* BF16 or INT8 [BlockNum, BlockSize, 1, Hckv], in and out */
  mlap_tensor kr_cache;          /* type of kv_cache, [BlockNum, BlockSize, 1, Dr], in and out */

  mlap_tensor dequant_scale_w_uq_qr; /* FLOAT32 [1, N * (D + Dr)], with INT8 weight_uq_qr */
  mlap_tensor quant_scale_ckv;       /* FLOAT32 [1, Hckv], with INT8 caches; multiplied */
  mlap_tensor quant_scale_ckr;       /* FLOAT32 [1, Dr], with INT8 caches; multiplied */
  mlap_tensor smooth_scales_cq;      /* FLOAT32 [1, Hcq], optional with INT8 weight_uq_qr */

  double rmsnorm_epsilon_cq;
  double rmsnorm_epsilon_ckv;
  mlap_cache_mode cache_mode;

  mlap_tensor query;      /* BF16 [lead, N, Hckv], out */
  mlap_tensor query_rope; /* BF16 [lead, N, Dr], out */

  mlap_intermediates* intermediates; /* or NULL */
  /* Called now and then from the running thread with the share that is done, in [0, 1]; or NULL. */
  void (*progress)(void* context, double done);
  void* progress_context;
} mlap_prolog_args;

/* Runs the reference: the operator's definition in plain code with binary64 sums, and the rounding points of the
 * operator (docs/numerics.md). Single-threaded and slow; it takes any positive sizes. FRACTAL_NZ weights of sizes that
 * are padded take k and n from the other tensors.
 *
 * Writes query, query_rope, the addressed rows of both caches and the wanted intermediates. Returns MLAP_OK, or a
 * failure whose text names the field; nothing has been written then. */
MLAP_API mlap_status mlap_reference_run(const mlap_prolog_args* args);

#ifdef __cplusplus
}
#endif

#endif /* MLAPROLOG_MLAPROLOG_H_ */
