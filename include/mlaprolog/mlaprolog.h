/* mlaprolog: the pre-processing of Multi-head Latent Attention on CPUs.
 *
 * C99 and C++ (mlaprolog.hpp wraps it for C++17). No function prints, aborts, or throws.
 *
 *   cQ  = RmsNorm(x W_DQ)       qC | qR = cQ W_UQ|QR     query = qC W_UK       query_rope = RoPE(qR)
 *   cKV | kR = x W_DKV|KR      kv_cache[slot] = RmsNorm(cKV)                  kr_cache[slot] = RoPE(kR)
 *
 * Dimensions: T tokens, He hidden size, Hcq query rank, N heads, D and Dr head columns without and with RoPE, Hckv key
 * rank; any positive sizes, Dr even.
 *
 * In short: a context holds threads and memory, a weights handle one layer's weights; mlap_run does one call.
 *
 *   mlap_context_create(NULL, &context);
 *   mlap_weights_create(&weights_args, &weights);
 *   mlap_run_args_init(&args);  ... set tensors ...  mlap_run(context, weights, &args);
 *
 * Conventions:
 *   - Structs begin with struct_size, which the caller sets to the size of the struct it was compiled with, or an init
 *     function does. Later versions append members and keep accepting the older sizes.
 *   - Sizes and strides are in elements; what is in bytes says so.
 *   - A function that fails returns a status, writes nothing else, and mlap_last_error names the field.
 *   - Everything may be called from several threads at once, but a context serves one call at a time. After fork, the
 *     child may go on with what it inherited; its calls run on one thread. */
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
  MLAP_OUT_OF_MEMORY = 4,
  MLAP_BUSY = 5 /* the context is inside another call */
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

/* The instruction sets, in ascending order. */
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
  MLAP_INT32 = 4,
  MLAP_FLOAT8_E4M3 = 5, /* OCP "fn": largest 448, no infinity */
  MLAP_HIFLOAT8 = 6,    /* largest 2^15 */
  MLAP_FLOAT8_E8M0 = 7, /* a power of two, 2^(byte - 127) */
  MLAP_FLOAT64 = 8,     /* comparisons and exact results only */
  MLAP_FLOAT16 = 9      /* comparisons only */
} mlap_dtype;

typedef enum mlap_layout MLAP_ENUM_TYPE {
  MLAP_ROW_MAJOR = 0,
  /* Weights: [ceil(n / C0), ceil(k / 16), 16, C0] holds the matrix (k, n); C0 is 32 bytes: 16 bf16 or 32 8-bit
   * elements. The tensor has those four dimensions, or the matrix's two, (k, n). */
  MLAP_FRACTAL_NZ = 1,
  /* Weights: (n, k), as Hugging Face and torch.nn.Linear keep them: the transpose of the operator's matrix. */
  MLAP_OUT_IN = 2
} mlap_layout;

#define MLAP_MAX_RANK 4

/* Memory stays the caller's. A tensor with data == NULL and rank == 0 is absent. */
typedef struct mlap_tensor {
  void* data;
  mlap_dtype dtype;
  mlap_layout layout;
  int32_t rank;
  int64_t dims[MLAP_MAX_RANK];
  /* In elements; all zero: contiguous. Inputs may have any strides; elements of what is written must not overlap. */
  int64_t strides[MLAP_MAX_RANK];
} mlap_tensor;

/* The sizes of a layer. q_rank 0: the query has no low rank, as in DeepSeek-V2-Lite (see mlap_weights_args). */
typedef struct mlap_dims {
  int64_t hidden;  /* He */
  int64_t q_rank;  /* Hcq */
  int64_t heads;   /* N */
  int64_t nope;    /* D */
  int64_t rope;    /* Dr */
  int64_t kv_rank; /* Hckv */
} mlap_dims;

/* ---- Context: threads, instruction set, memory ---- */

typedef struct mlap_context mlap_context;

typedef struct mlap_context_args {
  size_t struct_size;  /* set by the caller: sizeof(mlap_context_args) */
  int32_t num_threads; /* with the calling one; 0: MLAP_NUM_THREADS, or the CPUs the process may run on */
  const char* max_isa; /* the best instruction set to use; NULL: MLAP_MAX_ISA, or the best there is */
} mlap_context_args;

/* `args` may be NULL. The context starts its threads here and ends them when it is destroyed. */
MLAP_API mlap_status mlap_context_create(const mlap_context_args* args, mlap_context** context);

/* NULL does nothing. A context inside a call is refused with MLAP_BUSY. A destroyed context is refused everywhere. */
MLAP_API mlap_status mlap_context_destroy(mlap_context* context);

typedef struct mlap_context_facts {
  size_t struct_size; /* set by the caller: sizeof(mlap_context_facts) */
  int32_t num_threads;
  const char* isa;          /* the best instruction set in use */
  uint64_t workspace_bytes; /* grows with the calls; a call not larger than an earlier one allocates nothing */
} mlap_context_facts;

MLAP_API mlap_status mlap_context_query(const mlap_context* context, mlap_context_facts* facts);

/* ---- Weights of one layer ---- */

typedef struct mlap_weights mlap_weights;

typedef enum mlap_ownership MLAP_ENUM_TYPE {
  /* The matrices are copied to FRACTAL_NZ on huge pages, whatever their layout; nothing refers to the source. */
  MLAP_COPY = 0,
  /* The source is read in place: it outlives the handle and keeps its content. Not for MLAP_OUT_IN. */
  MLAP_BORROW = 1
} mlap_ownership;

/* What of the operator is quantised; follows from the weights' types. The values are weightQuantMode's. */
typedef enum mlap_weight_quant MLAP_ENUM_TYPE {
  MLAP_WEIGHTS_BF16 = 0,
  MLAP_WEIGHTS_UQ_QR_INT8 = 1, /* weight_uq_qr INT8: "partial" */
  MLAP_WEIGHTS_INT8 = 2,       /* x and the three matrices but weight_uk: "full", as the next three */
  MLAP_WEIGHTS_MXFP8 = 3,      /* FLOAT8_E4M3 with FLOAT8_E8M0 scales of 32 values each */
  MLAP_WEIGHTS_FP8 = 4,        /* FLOAT8_E4M3 with FLOAT32 scales */
  MLAP_WEIGHTS_HIFLOAT8 = 5
} mlap_weight_quant;

/* Matrices are given as (k, n) in MLAP_ROW_MAJOR, as (n, k) in MLAP_OUT_IN, or in MLAP_FRACTAL_NZ. */
typedef struct mlap_weights_args {
  size_t struct_size; /* set by mlap_weights_args_init */
  mlap_ownership ownership;
  /* Members that are 0 are taken from the tensors; sizes that only a 4-D FRACTAL_NZ tensor tells are then those without
   * padding. */
  mlap_dims dims;

  /* (He, Hcq). Absent, with rmsnorm_gamma_cq: the query has no low rank, qC | qR = x W_UQ|QR. */
  mlap_tensor weight_dq;
  mlap_tensor weight_uq_qr;      /* (Hcq, N * (D + Dr)), or (He, N * (D + Dr)); per head D columns, then Dr */
  mlap_tensor weight_uk;         /* BF16 [N, D, Hckv]; mlap_split_kv_b_proj makes it from Hugging Face's kv_b_proj */
  mlap_tensor weight_dkv_kr;     /* (He, Hckv + Dr) */
  mlap_tensor rmsnorm_gamma_cq;  /* BF16 [Hcq] */
  mlap_tensor rmsnorm_gamma_ckv; /* BF16 [Hckv] */

  /* FLOAT32 [n] or [1, n] with the 8-bit matrices; FLOAT8_E8M0 [n, k / 32] makes FLOAT8_E4M3 matrices MXFP8. */
  mlap_tensor dequant_scale_w_dq;
  mlap_tensor dequant_scale_w_uq_qr;
  mlap_tensor dequant_scale_w_dkv_kr;
  mlap_tensor smooth_scales_cq; /* FLOAT32 [Hcq] or [1, Hcq], optional where cQ is quantised, but for MXFP8 */
} mlap_weights_args;

/* All members zero or absent, struct_size set. */
MLAP_API void mlap_weights_args_init(mlap_weights_args* args);

MLAP_API mlap_status mlap_weights_create(const mlap_weights_args* args, mlap_weights** weights);

/* NULL does nothing. Calls that use the weights may still run: they finish with them, if the weights are copies. */
MLAP_API mlap_status mlap_weights_destroy(mlap_weights* weights);

typedef struct mlap_weights_facts {
  size_t struct_size; /* set by the caller: sizeof(mlap_weights_facts) */
  mlap_dims dims;
  mlap_weight_quant weight_quant;
  mlap_ownership ownership;
  uint64_t owned_bytes;
} mlap_weights_facts;

MLAP_API mlap_status mlap_weights_query(const mlap_weights* weights, mlap_weights_facts* facts);

/* ---- One call ---- */

/* How the caches lie, and how a token finds its slot. */
typedef enum mlap_cache_mode MLAP_ENUM_TYPE {
  MLAP_PA_BSND = 0,     /* pages of rows [BlockNum, BlockSize, 1, width]; cache_index holds a slot for each token */
  MLAP_PA_NZ = 1,       /* the same shape, each page's bytes as [width / C0][BlockSize][C0] */
  MLAP_PA_BLK_BSND = 2, /* pages as in PA_BSND; cache_index lists the pages of each sequence, from its first token on */
  MLAP_PA_BLK_NZ = 3,   /* the same with pages as in PA_NZ */
  MLAP_BSND = 4,        /* [B, S, 1, width] with x [B, S, He]: the token's place is the slot */
  MLAP_TND = 5          /* [T, 1, width] with x [T, He] */
} mlap_cache_mode;

/* How the key is stored; the values are kvCacheQuantMode's. */
typedef enum mlap_kv_quant MLAP_ENUM_TYPE {
  MLAP_KV_BF16 = 0,        /* both caches BF16 */
  MLAP_KV_PER_TENSOR = 1,  /* kv_cache and query of x's 8-bit type, kr_cache BF16; with fully quantised weights */
  MLAP_KV_PER_CHANNEL = 2, /* both caches INT8; with MLAP_WEIGHTS_UQ_QR_INT8 */
  /* kv_cache rows of bytes: Hckv 8-bit values, Dr bf16 of kR, a binary32 scale per 128 values; kr_cache absent or
   * empty; with quantised weights and rows that are not NZ. */
  MLAP_KV_PER_GROUP = 3
} mlap_kv_quant;

/* How the pairs of rope columns lie before and after RoPE. */
typedef enum mlap_rope_style MLAP_ENUM_TYPE {
  MLAP_ROPE_INTERLEAVED_TO_HALF = 0, /* the operator's: pairs (2i, 2i + 1) in, (i, Dr / 2 + i) out */
  MLAP_ROPE_HALF = 1,                /* (i, Dr / 2 + i) in and out */
  MLAP_ROPE_INTERLEAVED = 2,         /* (2i, 2i + 1) in and out */
  MLAP_ROPE_NONE = 3                 /* no rotation, no reordering; rope_sin and rope_cos are absent */
} mlap_rope_style;

/* The device generation whose roundings are followed (docs/numerics.md). */
typedef enum mlap_numeric_rules MLAP_ENUM_TYPE { MLAP_RULES_A2 = 0, MLAP_RULES_950 = 1 } mlap_numeric_rules;

/* lead = (T) or (B, S), the same in all tensors of the call. */
typedef struct mlap_run_args {
  size_t struct_size; /* set by mlap_run_args_init */

  mlap_tensor token_x;         /* [lead, He], BF16, or the weights' 8-bit type if they are fully quantised */
  mlap_tensor dequant_scale_x; /* with 8-bit x: FLOAT32 [T] or [T, 1], T = B * S; MXFP8: FLOAT8_E8M0 [T, He / 32] */
  mlap_tensor rope_sin;        /* BF16 [lead, Dr], one value per output column (mlap_rope_table writes them) */
  mlap_tensor rope_cos;        /* BF16 [lead, Dr] */

  mlap_tensor kv_cache; /* in and out; rows of Hckv, for MLAP_KV_PER_GROUP of Hckv + 2 Dr + 4 ceil(Hckv / 128) bytes */
  mlap_tensor kr_cache; /* in and out; rows of Dr */
  /* INT64. PA_BSND, PA_NZ: [lead], a negative slot writes no row. PA_BLK_*: [B, ceil(S / BlockSize)] pages, or for x
   * [T, He] the pages of one sequence after the other, [sum of ceil(S_i / BlockSize)] at least. Absent for BSND, TND.
   */
  mlap_tensor cache_index;
  mlap_tensor actual_seq_len; /* INT32 [B], PA_BLK_* with x [T, He]: tokens of the sequences up to and with each */

  mlap_tensor quant_scale_ckv;   /* FLOAT32, multiplied: PER_CHANNEL [Hckv] or [1, Hckv]; PER_TENSOR [1] */
  mlap_tensor quant_scale_ckr;   /* FLOAT32 [Dr] or [1, Dr], PER_CHANNEL; multiplied */
  mlap_tensor k_nope_clip_alpha; /* FLOAT32 [1], PER_GROUP with int8 */

  mlap_cache_mode cache_mode;
  mlap_kv_quant kv_quant;
  mlap_rope_style rope_style;
  mlap_numeric_rules rules;
  double rmsnorm_epsilon_cq;  /* 1e-5 after init */
  double rmsnorm_epsilon_ckv; /* 1e-5 after init */
  double qc_qr_scale;         /* multiplies cQ after RMSNorm; 1 after init */
  double kc_scale;            /* multiplies cKV after RMSNorm; 1 after init */

  mlap_tensor query;                /* [lead, N, Hckv], out; BF16, or x's type for MLAP_KV_PER_TENSOR */
  mlap_tensor query_rope;           /* BF16 [lead, N, Dr], out */
  mlap_tensor dequant_scale_q_nope; /* FLOAT32 [T, N] or [T, N, 1], out, MLAP_KV_PER_TENSOR only */
  /* Optional, out: cQ as it enters W_UQ|QR, [lead, Hcq] BF16 or 8-bit, and with 8-bit its scale: FLOAT32 [T] or [T, 1],
   * MXFP8: FLOAT8_E8M0 [T, Hcq / 32]. */
  mlap_tensor query_norm;
  mlap_tensor dequant_scale_q_norm;
} mlap_run_args;

/* No tensors, the defaults above, struct_size set. */
MLAP_API void mlap_run_args_init(mlap_run_args* args);

/* Runs the operator: writes query, query_rope, the wanted outputs and the addressed rows of both caches; of several
 * tokens with one slot the last wins. A token's results depend neither on the other tokens of the call nor on the
 * number of threads.
 *
 * One call at a time per context: a second one, from any thread, is refused with MLAP_BUSY. Nothing is allocated if the
 * context has done a call of this size before. Returns MLAP_OK, or a failure, and then nothing has been written. */
MLAP_API mlap_status mlap_run(mlap_context* context, const mlap_weights* weights, const mlap_run_args* args);

/* ---- The reference ---- */

/* What the operator computes on the way; mlap_run keeps none of it in memory. A member with data == NULL is not wanted;
 * the others are contiguous, of the shape and type given, and are written. */
typedef struct mlap_intermediates {
  size_t struct_size;        /* set by the caller: sizeof(mlap_intermediates) */
  mlap_tensor c_q;           /* FLOAT32 [T, Hcq]   after RMSNorm (rounded to bf16 unless quantised), before smoothing */
  mlap_tensor c_q_quantized; /* [T, Hcq]       where cQ is quantised, in its 8-bit type */
  mlap_tensor c_q_scale;     /* FLOAT32 [T]        where cQ is quantised: the dynamic dequantisation scale; not MXFP8 */
  mlap_tensor q_c;           /* FLOAT32 [T, N, D]  as it enters W_UK */
  mlap_tensor q_r;           /* FLOAT32 [T, N, Dr] before RoPE */
  mlap_tensor c_kv;          /* FLOAT32 [T, Hckv]  after RMSNorm, before the cache's rounding */
  mlap_tensor k_r;           /* FLOAT32 [T, Dr]    before RoPE */
} mlap_intermediates;

typedef struct mlap_reference_args {
  size_t struct_size;                /* set by the caller: sizeof(mlap_reference_args) */
  mlap_intermediates* intermediates; /* or NULL */
  /* Called now and then from the running thread with the share that is done, in [0, 1]; or NULL. */
  void (*progress)(void* context, double done);
  void* progress_context;
} mlap_reference_args;

/* Runs the operator's definition in plain code with binary64 sums and the rounding points of the operator
 * (docs/numerics.md): single-threaded and slow. Takes and writes what mlap_run does. `reference` may be NULL. */
MLAP_API mlap_status mlap_reference_run(const mlap_weights* weights, const mlap_run_args* args,
                                        const mlap_reference_args* reference);

/* The operator's formula without any rounding on the way: binary64 throughout, nothing quantised but what is given
 * quantised. What an error is measured against. Members that are absent are not wanted; the others are contiguous. */
typedef struct mlap_exact_results {
  size_t struct_size;     /* set by the caller: sizeof(mlap_exact_results) */
  mlap_tensor query;      /* FLOAT64 [T, N, Hckv] */
  mlap_tensor query_rope; /* FLOAT64 [T, N, Dr], without the factor that MLAP_KV_PER_TENSOR puts on it */
  mlap_tensor c_kv;       /* FLOAT64 [T, Hckv] what goes to kv_cache, unquantised */
  mlap_tensor k_r;        /* FLOAT64 [T, Dr]   what goes to kr_cache, after RoPE, unquantised */
} mlap_exact_results;

/* Of `args` only the inputs and attributes are looked at, not the caches and outputs. */
MLAP_API mlap_status mlap_exact_run(const mlap_weights* weights, const mlap_run_args* args,
                                    const mlap_exact_results* results);

/* ---- Preparing weights ---- */

/* The four dimensions of the FRACTAL_NZ image of a matrix (k, n). */
MLAP_API mlap_status mlap_nz_dims(mlap_dtype dtype, int64_t k, int64_t n, int64_t dims[MLAP_MAX_RANK]);

/* Packs `matrix` - (k, n) in MLAP_ROW_MAJOR or (n, k) in MLAP_OUT_IN, any strides, 1 or 2 bytes per element - to `nz`,
 * a contiguous tensor of mlap_nz_dims. Padding becomes zeros. */
MLAP_API mlap_status mlap_nz_pack(const mlap_tensor* matrix, const mlap_tensor* nz);

/* The reverse; what lies in the padding is ignored. */
MLAP_API mlap_status mlap_nz_unpack(const mlap_tensor* nz, const mlap_tensor* matrix);

/* Splits Hugging Face's kv_b_proj, [N * (D + Dv), Hckv], 1 or 2 bytes per element, into weight_uk [N, D, Hckv] and
 * weight_uv [N, Hckv, Dv], which is used after the attention; either may be absent (NULL). N and D follow from
 * weight_uk or, with it absent, N and Dv from weight_uv. */
MLAP_API mlap_status mlap_split_kv_b_proj(const mlap_tensor* kv_b_proj, const mlap_tensor* weight_uk,
                                          const mlap_tensor* weight_uv);

typedef enum mlap_rope_order MLAP_ENUM_TYPE {
  MLAP_HALF_TO_INTERLEAVED = 0, /* pairs (i, Dr / 2 + i) become (2i, 2i + 1): half-style weights for the operator */
  MLAP_INTERLEAVED_TO_HALF = 1
} mlap_rope_order;

/* Copies `from` to `to`, [.., n], any strides, 1, 2 or 4 bytes per element, with the rope columns reordered: the last
 * `rope` of every `group` columns along the dimension of outputs - the last one, or the first one in MLAP_OUT_IN.
 * weight_uq_qr: group = D + Dr; weight_dkv_kr: group = Hckv + Dr; their scales [1, n] and a kr_cache (group = Dr)
 * likewise. `to` may be `from` itself. */
MLAP_API mlap_status mlap_rope_reorder(const mlap_tensor* from, int64_t group, int64_t rope, mlap_rope_order order,
                                       const mlap_tensor* to);

typedef struct mlap_rope_table_args {
  size_t struct_size; /* set by mlap_rope_table_args_init */
  double base;        /* theta; 10000 after init */
  /* Which columns share an angle: MLAP_ROPE_INTERLEAVED (2i, 2i + 1), the others (after init) (i, Dr / 2 + i). */
  mlap_rope_style rope_style;
  /* YaRN as DeepSeek defines it; factor 1 (after init): plain RoPE, the others are not read. */
  double factor;
  double original_max_position; /* 4096 after init */
  double beta_fast;             /* 32 after init */
  double beta_slow;             /* 1 after init */
  double mscale;                /* 1 after init */
  double mscale_all_dim;        /* 1 after init, so that sines and cosines are not scaled */
} mlap_rope_table_args;

MLAP_API void mlap_rope_table_args_init(mlap_rope_table_args* args);

/* Writes sin and cos, BF16 or FLOAT32 [lead, Dr] with a value for each output column, as the operator reads them, of
 * `positions` [lead], INT32 or INT64, each from 0 to 2^31. Computed in binary64. */
MLAP_API mlap_status mlap_rope_table(const mlap_rope_table_args* args, const mlap_tensor* positions,
                                     const mlap_tensor* rope_sin, const mlap_tensor* rope_cos);

/* ---- Caches ---- */

/* Copies a whole cache [BlockNum, BlockSize, 1, width] from one order of bytes to another, MLAP_PA_BSND or MLAP_PA_NZ;
 * the two must not overlap. */
MLAP_API mlap_status mlap_cache_convert(const mlap_tensor* from, mlap_cache_mode from_mode, const mlap_tensor* to,
                                        mlap_cache_mode to_mode);

/* The order of the three parts of a MLAP_KV_PER_GROUP row. With Hckv 512 and Dr 64 both have 656 bytes. */
typedef enum mlap_row_order MLAP_ENUM_TYPE {
  MLAP_ROW_CANN = 0,    /* values, rope, scales: 512 | 128 | 16 bytes */
  MLAP_ROW_FLASHMLA = 1 /* values, scales, rope: 512 | 16 | 128 bytes */
} mlap_row_order;

/* Takes rows [.., width] of one byte per element apart: `values` [.., Hckv] of the rows' type, `rope` BF16 [.., Dr],
 * `scales` FLOAT32 [.., ceil(Hckv / 128)], all with the rows' other dimensions. */
MLAP_API mlap_status mlap_cache_rows_split(const mlap_tensor* rows, mlap_row_order order, const mlap_tensor* values,
                                           const mlap_tensor* rope, const mlap_tensor* scales);

/* The reverse. */
MLAP_API mlap_status mlap_cache_rows_join(const mlap_tensor* values, const mlap_tensor* rope, const mlap_tensor* scales,
                                          const mlap_tensor* rows, mlap_row_order order);

/* Moves the parts of every row from one order to another; `to` may be `from` itself. The values are not changed:
 * whether they are int8 or float8, and in which order the rope columns lie, is up to who reads them. */
MLAP_API mlap_status mlap_cache_rows_reorder(const mlap_tensor* from, mlap_row_order from_order, const mlap_tensor* to,
                                             mlap_row_order to_order, int64_t kv_rank, int64_t rope);

/* ---- What a device would say ---- */

typedef struct mlap_limits_args {
  size_t struct_size; /* set by the caller: sizeof(mlap_limits_args) */
  const char* soc;    /* "ascend910b" (A2), "ascend910_93" (A3), "ascend950" */
  int32_t version;    /* 1 aclnnMlaProlog, 2 aclnnMlaPrologV2WeightNz, 3 aclnnMlaPrologV3WeightNz */
  mlap_dims dims;
  int64_t batch;      /* B of x [B, S, He]; 0 for x [T, He] */
  int64_t sequence;   /* S of x [B, S, He], or T */
  int64_t block_size; /* rows of a page; not looked at for BSND and TND */
  mlap_cache_mode cache_mode;
  mlap_weight_quant weight_quant;
  mlap_kv_quant kv_quant;
  mlap_rope_style rope_style;
} mlap_limits_args;

/* Whether the device accepts such a call: *is_accepted is 1 or 0. With 0, `reasons` holds every reason on a line of its
 * own, cut to reasons_bytes with the final zero; it may be NULL if reasons_bytes is 0. */
MLAP_API mlap_status mlap_check_limits(const mlap_limits_args* args, int* is_accepted, char* reasons,
                                       size_t reasons_bytes);

/* ---- Comparing ---- */

/* By what two tensors count as equal enough (docs/comparison.md). */
typedef enum mlap_standard MLAP_ENUM_TYPE {
  MLAP_STANDARD_EXACT = 0,            /* the same bytes */
  MLAP_STANDARD_INT_WITHIN_1 = 1,     /* integers: |difference| <= 1, not 0 in at most 0.5 % */
  MLAP_STANDARD_STAGED = 2,           /* against mlap_reference_run: relative norm <= 2e-3, largest <= 2^-5 row RMS */
  MLAP_STANDARD_STAGED_CACHE = 3,     /* the same with 1e-3, for caches */
  MLAP_STANDARD_UNROUNDED = 4,        /* against mlap_exact_run: 1e-2 and 2^-4 */
  MLAP_STANDARD_SCALES = 5,           /* relative error <= 1e-4 everywhere */
  MLAP_STANDARD_MIXED_TOLERANCE = 10, /* opbase's experimental standard: atol + rtol, 99 % */
  MLAP_STANDARD_MERE_MARE = 11,       /* opbase's: mean and largest relative error */
  MLAP_STANDARD_HALF_PERCENT = 12,    /* ops-transformer's: at most 0.5 % beyond rtol 2^-7, atol 1e-4 */
  MLAP_STANDARD_DUAL_L0 = 20,         /* opbase's commercial standard: error ratios against a benchmark */
  MLAP_STANDARD_DUAL_L1 = 21,
  MLAP_STANDARD_DUAL_L2 = 22
} mlap_standard;

/* The names that the command line takes: "exact", "mixed-tolerance", ... Fails beyond the last. */
MLAP_API mlap_status mlap_standard_at(size_t index, mlap_standard* standard, const char** name);

#define MLAP_VERDICT_BYTES 256

typedef struct mlap_comparison {
  size_t struct_size; /* set by the caller: sizeof(mlap_comparison) */
  int is_passed;
  char verdict[MLAP_VERDICT_BYTES]; /* which criterion failed, expected and found; "passed" */

  int64_t num_elements;
  int64_t num_different;           /* elements of another value */
  int64_t num_nonfinite_different; /* a NaN or infinity on one side only; left out of what follows */
  double relative_norm;            /* relF: ||a - g|| / ||g||, Frobenius */
  double max_row_rms;              /* largest |a - g| over the RMS of g's row (last dimension) */
  double cosine;                   /* a . g / (||a|| ||g||) */
  double max_abs;                  /* largest |a - g| */
  double mere;                     /* mean of |a - g| / (|g| + 1e-7) */
  double mare;                     /* largest of it */
  double rmse;                     /* root of the mean of (a - g)^2 */
  double share_beyond;             /* of elements outside of the standard's element tolerance */
  /* Only with a benchmark: the candidate's over the benchmark's. */
  double mare_ratio;
  double mere_ratio;
  double rmse_ratio;
  double small_value_ratio; /* of counts of errors beyond E among small golden values */
} mlap_comparison;

/* Compares `actual` with `golden`, of equal shapes and any strides; the types may differ (a BF16 result with a FLOAT64
 * golden), the standards' thresholds go by actual's. `benchmark`, another implementation's result of the same shape, is
 * required by MLAP_STANDARD_DUAL_* and NULL otherwise. A comparison that fails its standard is MLAP_OK with is_passed
 * 0. */
MLAP_API mlap_status mlap_compare(const mlap_tensor* actual, const mlap_tensor* golden, const mlap_tensor* benchmark,
                                  mlap_standard standard, mlap_comparison* comparison);

#ifdef __cplusplus
}
#endif

#endif /* MLAPROLOG_MLAPROLOG_H_ */
