/* What the last operator call on a stream of the CANN-compatible library did: an extension that CANN does not have,
 * found in libmlaprolog_cann.so. C99 and C++. The header is in <prefix>/include/mlaprolog and not among CANN's; the
 * library in <prefix>/cann/lib64, where -lopapi_transformer is a link to it:
 *
 *   cc program.c -I<prefix>/include -I<prefix>/cann/include -L<prefix>/cann/lib64 -lopapi_transformer -lascendcl
 * -lnnopbase
 */
#ifndef MLAPROLOG_CANN_REPORT_H_
#define MLAPROLOG_CANN_REPORT_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MLAP_CANN_MAX_STAGES 8

typedef struct mlap_cann_report {
  size_t struct_size;      /* set by the caller: sizeof(mlap_cann_report) */
  const char* op;          /* "aclnnMlaProlog", "aclnnMlaPrologV3WeightNz" */
  const char* scenario;    /* as README lists them: "partial, int8 caches" */
  const char* isa;         /* the best instruction set in use */
  const char* gemm_kernel; /* the kernel of the up-projection */
  int32_t num_threads;
  int32_t num_stages;
  int64_t tokens;      /* T */
  int64_t hidden;      /* He */
  int64_t q_rank;      /* Hcq */
  int64_t heads;       /* N */
  int64_t nope;        /* D */
  int64_t rope;        /* Dr */
  int64_t kv_rank;     /* Hckv */
  double flops;        /* of the matrix products, a multiply-add counted as two */
  double weight_bytes; /* of the four weights, each counted once */
  double seconds;      /* from the first stage's start to the last one's end */
  const char* stage_names[MLAP_CANN_MAX_STAGES];
  double stage_seconds[MLAP_CANN_MAX_STAGES];
} mlap_cann_report;

/* Fills *report with the last operator that finished on `stream` (an aclrtStream; NULL: the current context's default
 * stream). Synchronise the stream first. Texts live as long as the program. Returns 0; 100000 for a null report or a
 * wrong struct_size; 107002 or 107017 for a missing context or a dead stream; 507899 when no operator has finished
 * there. */
__attribute__((visibility("default"))) int mlap_cann_last_report(void* stream, mlap_cann_report* report);

#ifdef __cplusplus
}
#endif

#endif /* MLAPROLOG_CANN_REPORT_H_ */
