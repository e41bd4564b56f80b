/* aclnnMlaPrologV2WeightNz: the query path and the key-value cache update of Multi-head Latent Attention, in one
 * operator. The second version: it also takes int8 tokens.
 *
 * Two steps: aclnnMlaPrologV2WeightNzGetWorkspaceSize checks the arguments and makes an executor;
 * aclnnMlaPrologV2WeightNz queues the work on a stream. Usable from C99 and from C++11 on. */
#ifndef ACLNN_MLA_PROLOG_V2_WEIGHT_NZ_H
#define ACLNN_MLA_PROLOG_V2_WEIGHT_NZ_H

#include "acl/acl_rt.h"
#include "aclnn/acl_meta.h"
#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef ACLNN_API
#if defined(__GNUC__)
#define ACLNN_API __attribute__((visibility("default")))
#else
#define ACLNN_API
#endif
#endif

/* CANN has announced the end of this version of the operator in favour of aclnnMlaPrologV3WeightNz. A program that
 * wants to hear of each use defines MLAP_WARN_DEPRECATED before it includes this header. */
#ifdef MLAP_WARN_DEPRECATED
#define MLAP_MLA_PROLOG_DEPRECATED ACL_DEPRECATED_MESSAGE("superseded by aclnnMlaPrologV3WeightNz")
#else
#define MLAP_MLA_PROLOG_DEPRECATED
#endif

/* First step. Checks the arguments, writes the number of bytes of workspace the second step needs, which may be 0, and
 * a one-shot executor. No tensor data is read or written. May run on several threads at once.
 *
 * The types choose one of five scenarios:
 *
 *   tokenX  weightUqQr  kvCacheRef  krCacheRef  queryOut   scenario
 *   bf16    bf16        bf16        bf16        bf16       non-quant
 *   bf16    int8        bf16        bf16        bf16       partial
 *   bf16    int8        int8        int8        bf16       partial, int8 caches: a scale for each column
 *   int8    int8        bf16        bf16        bf16       int8 full
 *   int8    int8        int8        bf16        int8       int8 full, per-tensor cache: one scale
 *
 * Shapes, for T tokens, given as (T) or as (B, S) with T = B * S: hidden size He, query rank Hcq, key-value rank Hckv,
 * N heads, head sizes D (without position) and Dr (with). NZ is ACL_FORMAT_FRACTAL_NZ, as a view of 2 dimensions or of
 * the 4 of the layout; c0 is 16 for bf16 and 32 for int8. All other tensors are plain, without gaps.
 *
 *   tokenX                  (B, S, He) or (T, He), bf16 or int8
 *   weightDq                NZ (He, Hcq), the type of tokenX
 *   weightUqQr              NZ (Hcq, N * (D + Dr)), bf16 or int8; per head D columns, then Dr
 *   weightUk                (N, D, Hckv), bf16
 *   weightDkvKr             NZ (He, Hckv + Dr), the type of tokenX
 *   rmsnormGammaCq          (Hcq), bf16
 *   rmsnormGammaCkv         (Hckv), bf16
 *   ropeSin, ropeCos        (B, S, Dr) or (T, Dr), bf16
 *   cacheIndex              (B, S) or (T), int64: the cache row each token is written to; a negative index writes none,
 *                           the last of several tokens with one index wins
 *   kvCacheRef              (BlockNum, BlockSize, 1, Hckv), updated in place; wider rows keep their tails
 *   krCacheRef              (BlockNum, BlockSize, 1, Dr), updated in place
 *   dequantScaleXOptional        (T, 1), float, with int8 tokens: the value of one step
 *   dequantScaleWDqOptional      (1, Hcq), float, with int8 tokens
 *   dequantScaleWUqQrOptional    (1, N * (D + Dr)), float, with an int8 weightUqQr
 *   dequantScaleWDkvKrOptional   (1, Hckv + Dr), float, with int8 tokens
 *   quantScaleCkvOptional        (1, Hckv), float, with an int8 kvCacheRef: steps per unit. Where there is one scale
 *                                for the tensor, the first value is it
 *   quantScaleCkrOptional        (1, Dr), float, with an int8 krCacheRef
 *   smoothScalesCqOptional       (1, Hcq), float, optional with an int8 weightUqQr
 *   rmsnormEpsilonCq, rmsnormEpsilonCkv   added to the mean square; narrowed to float
 *   cacheModeOptional       "PA_BSND" or "PA_NZ"; read only during the call. Null is refused
 *   queryOut                (B, S, N, Hckv) or (T, N, Hckv)
 *   queryRopeOut            (B, S, N, Dr) or (T, N, Dr), bf16. With an int8 queryOut it is divided by
 *                           dequantScaleQNopeOut and multiplied by quantScaleCkv, so that both parts of a score have
 *                           one scale
 *   dequantScaleQNopeOutOptional (T, N, 1), float, required with an int8 queryOut: the value of one step. Otherwise
 *                                null, or any float tensor, which is not written
 *
 * The tensor handles may be destroyed after the call; the data must stay valid until the stream has done the work.
 * Returns 161001 for a required argument that is null, 161002 and the 561xxx codes for a refused type, shape, format or
 * attribute, 361001 if the chosen device does not offer the operator. aclGetRecentErrMsg says which argument, what was
 * expected and what was found. */
ACLNN_API MLAP_MLA_PROLOG_DEPRECATED aclnnStatus aclnnMlaPrologV2WeightNzGetWorkspaceSize(
    const aclTensor *tokenX, const aclTensor *weightDq, const aclTensor *weightUqQr, const aclTensor *weightUk,
    const aclTensor *weightDkvKr, const aclTensor *rmsnormGammaCq, const aclTensor *rmsnormGammaCkv,
    const aclTensor *ropeSin, const aclTensor *ropeCos, const aclTensor *cacheIndex, aclTensor *kvCacheRef,
    aclTensor *krCacheRef, const aclTensor *dequantScaleXOptional, const aclTensor *dequantScaleWDqOptional,
    const aclTensor *dequantScaleWUqQrOptional, const aclTensor *dequantScaleWDkvKrOptional,
    const aclTensor *quantScaleCkvOptional, const aclTensor *quantScaleCkrOptional,
    const aclTensor *smoothScalesCqOptional, double rmsnormEpsilonCq, double rmsnormEpsilonCkv, char *cacheModeOptional,
    const aclTensor *queryOut, const aclTensor *queryRopeOut, const aclTensor *dequantScaleQNopeOutOptional,
    uint64_t *workspaceSize, aclOpExecutor **executor);

/* Second step. Queues the work on `stream` (null: the current context's default stream) and returns.
 *
 * `workspace` [workspaceSize bytes] is device memory of at least the size the first step asked for, null if that was 0;
 * it must stay valid until the stream has done the work. Uses the executor up, unless it is repeatable.
 * Returns 161001 if the executor is null, used up or none, or the workspace is missing; 161002 if it is too small (the
 * executor is not used up) or the executor another operator's; 361001 if the runtime refuses. An index beyond the cache
 * fails the stream's next synchronisation with 507015, and nothing is written. */
ACLNN_API MLAP_MLA_PROLOG_DEPRECATED aclnnStatus aclnnMlaPrologV2WeightNz(void *workspace, uint64_t workspaceSize,
                                                                          aclOpExecutor *executor,
                                                                          const aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
