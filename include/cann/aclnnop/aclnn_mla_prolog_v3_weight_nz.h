/* aclnnMlaPrologV3WeightNz: the query path and the key-value cache update of Multi-head Latent Attention, in one
 * operator. The current version: modes choose the scenario, and caches come in six layouts.
 *
 * Two steps: aclnnMlaPrologV3WeightNzGetWorkspaceSize checks the arguments and makes an executor;
 * aclnnMlaPrologV3WeightNz queues the work on a stream. Usable from C99 and from C++11 on.
 *
 * The prototype is that of CANN 8.5.0 and later, whose predecessors had other parameters under the same name. */
#ifndef ACLNN_MLA_PROLOG_V3_WEIGHT_NZ_H
#define ACLNN_MLA_PROLOG_V3_WEIGHT_NZ_H

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

/* First step. Checks the arguments, writes the number of bytes of workspace the second step needs, which may be 0, and
 * a one-shot executor. No tensor data is read or written. May run on several threads at once.
 *
 * weightQuantMode says what is quantised, and to what: "8-bit" below.
 *
 *   0  nothing                                            kvCacheQuantMode 0
 *   1  weightUqQr and its input to int8                   kvCacheQuantMode 0, 2, 3
 *   2  tokens and all weights but weightUk to int8        kvCacheQuantMode 0, 1, 3
 *   3  as 2, to FLOAT8_E4M3FN with an E8M0 scale for every 32 values (MLAP_SOC=ascend950 or none)
 *   4  as 2, to FLOAT8_E4M3FN (likewise)
 *   5  as 2, to HIFLOAT8 (likewise)
 *
 * kvCacheQuantMode says how the key is stored. queryQuantMode is 1 with mode 1, ckvkrRepoMode and quantScaleRepoMode
 * are 1 with mode 3; otherwise they are 0.
 *
 *      kvCacheRef  krCacheRef  queryOut
 *   0  bf16        bf16        bf16
 *   1  8-bit       bf16        8-bit     one scale for the tensor
 *   2  int8        int8        bf16      a scale for each column
 *   3  8-bit       empty       bf16      a scale for each 128 columns of a token: a row of kvCacheRef has Hckv bytes of
 *                                        values, Dr bf16 rope values, then Hckv / 128 floats; 656 bytes
 *
 * cacheModeOptional says where a token's row of W elements is. A page has BlockSize rows.
 *
 *                   tokenX       caches                       cacheIndexOptional                     actualSeqLen
 *   "PA_BSND"       either form  (BlockNum, BlockSize, 1, W)  (B, S) or (T): rows                    null
 *   "PA_NZ"         either form  (BlockNum, BlockSize, 1, W)  (B, S) or (T): rows                    null
 *   "PA_BLK_BSND"   (B, S, He)   (BlockNum, BlockSize, 1, W)  (B, ceil(S / BlockSize)): pages        null
 *                   (T, He)      (BlockNum, BlockSize, 1, W)  one dimension, any length: pages       (B), int32
 *   "PA_BLK_NZ"     as PA_BLK_BSND
 *   "BSND"          (B, S, He)   (B, S, 1, W)                 null                                   null
 *   "TND"           (T, He)      (T, 1, W)                    null                                   null
 *
 * In the modes of pages (BLK) a sequence is written from the first row of its first page on. actualSeqLenOptional holds
 * where each sequence ends, ascending to T; the pages of the sequences follow each other, ceil(length / BlockSize) for
 * each. In the modes NZ the bytes of a page lie in the order of FRACTAL_NZ.
 *
 * A null cacheModeOptional means "PA_BSND". kvCacheQuantMode 3 goes with PA_BSND, BSND and TND. A negative row or page
 * is not written; the last of several tokens with one row wins. Caches may be strided.
 *
 * Shapes, for T tokens, given as (T) or as (B, S) with T = B * S: hidden size He, query rank Hcq, key-value rank Hckv,
 * N heads, head sizes D (without position) and Dr (with). NZ is ACL_FORMAT_FRACTAL_NZ, as a view of 2 dimensions or of
 * the 4 of the layout; c0 is 16 for bf16 and 32 for 8 bits. All other tensors are plain, without gaps.
 *
 *   tokenX                  (B, S, He) or (T, He), bf16 or 8-bit
 *   weightDq                NZ (He, Hcq), the type of tokenX; Hcq 1536 or 2048
 *   weightUqQr              NZ (Hcq, N * (D + Dr)), bf16 or 8-bit; per head D columns, then Dr
 *   weightUk                (N, D, Hckv), bf16; D 128 or 192
 *   weightDkvKr             NZ (He, Hckv + Dr), the type of tokenX
 *   rmsnormGammaCq          (Hcq), bf16
 *   rmsnormGammaCkv         (Hckv), bf16
 *   ropeSin, ropeCos        (B, S, Dr) or (T, Dr), bf16
 *   kvCacheRef              rows of W = Hckv, or 656 (see above), updated in place
 *   krCacheRef              rows of W = Dr, updated in place; empty with kvCacheQuantMode 3
 *   cacheIndexOptional      see above, int64
 *   dequantScaleXOptional        (T, 1), float, with weightQuantMode 2, 4, 5; (T, He / 32), E8M0, with 3
 *   dequantScaleWDqOptional      (1, Hcq), float, likewise; (Hcq, He / 32), E8M0
 *   dequantScaleWUqQrOptional    (1, N * (D + Dr)), float, with weightQuantMode 1, 2, 4, 5;
 *                                (N * (D + Dr), Hcq / 32), E8M0, with 3
 *   dequantScaleWDkvKrOptional   (1, Hckv + Dr), float, with weightQuantMode 2, 4, 5;
 *                                (Hckv + Dr, He / 32), E8M0, with 3
 *   quantScaleCkvOptional        (1), float, with kvCacheQuantMode 1; (1, Hckv) with 2: steps per unit
 *   quantScaleCkrOptional        (1, Dr), float, with kvCacheQuantMode 2
 *   smoothScalesCqOptional       (1, Hcq), float, optional with weightQuantMode 1, 2, 4, 5
 *   actualSeqLenOptional         see above
 *   kNopeClipAlphaOptional       (1), float, with kvCacheQuantMode 3 and int8: each group is clipped to alpha times its
 *                                largest magnitude
 *   rmsnormEpsilonCq, rmsnormEpsilonCkv   added to the mean square; narrowed to float
 *   tileSize                     128, in every scenario
 *   qcQrScale, kcScale           factors of the normalised query and key ranks; narrowed to float; 1 is none
 *   queryOut                     (B, S, N, Hckv) or (T, N, Hckv)
 *   queryRopeOut                 (B, S, N, Dr) or (T, N, Dr), bf16. With kvCacheQuantMode 1 it is divided by
 *                                dequantScaleQNopeOut and multiplied by quantScaleCkv, so that both parts of a score
 *                                have one scale
 *   dequantScaleQNopeOutOptional (T, N, 1), float, with kvCacheQuantMode 1, otherwise null: the value of one step
 *   queryNormOutOptional         (B, S, Hcq) or (T, Hcq), bf16 or 8-bit, or null: the query rank as it enters
 *                                weightUqQr
 *   dequantScaleQNormOutOptional (T, 1), float, with queryNormOutOptional and a weightQuantMode but 0;
 *                                (T, Hcq / 32), E8M0, with 3; otherwise null
 *
 * The tensor handles may be destroyed after the call; the data must stay valid until the stream has done the work.
 * Returns 161001 for a required argument that is null, 161002 for modes that do not exist or do not go together, for a
 * refused type or memory format and for one of the last three outputs that is missing or superfluous; 561002 for a
 * refused shape, optional tensor or other attribute. aclGetRecentErrMsg says which argument, what was expected and what
 * was found. */
ACLNN_API aclnnStatus aclnnMlaPrologV3WeightNzGetWorkspaceSize(
    const aclTensor *tokenX, const aclTensor *weightDq, const aclTensor *weightUqQr, const aclTensor *weightUk,
    const aclTensor *weightDkvKr, const aclTensor *rmsnormGammaCq, const aclTensor *rmsnormGammaCkv,
    const aclTensor *ropeSin, const aclTensor *ropeCos, aclTensor *kvCacheRef, aclTensor *krCacheRef,
    const aclTensor *cacheIndexOptional, const aclTensor *dequantScaleXOptional,
    const aclTensor *dequantScaleWDqOptional, const aclTensor *dequantScaleWUqQrOptional,
    const aclTensor *dequantScaleWDkvKrOptional, const aclTensor *quantScaleCkvOptional,
    const aclTensor *quantScaleCkrOptional, const aclTensor *smoothScalesCqOptional,
    const aclTensor *actualSeqLenOptional, const aclTensor *kNopeClipAlphaOptional, double rmsnormEpsilonCq,
    double rmsnormEpsilonCkv, char *cacheModeOptional, int64_t weightQuantMode, int64_t kvCacheQuantMode,
    int64_t queryQuantMode, int64_t ckvkrRepoMode, int64_t quantScaleRepoMode, int64_t tileSize, double qcQrScale,
    double kcScale, const aclTensor *queryOut, const aclTensor *queryRopeOut,
    const aclTensor *dequantScaleQNopeOutOptional, const aclTensor *queryNormOutOptional,
    const aclTensor *dequantScaleQNormOutOptional, uint64_t *workspaceSize, aclOpExecutor **executor);

/* Second step. Queues the work on `stream` (null: the current context's default stream) and returns.
 *
 * `workspace` [workspaceSize bytes] is device memory of at least the size the first step asked for, null if that was 0;
 * it must stay valid until the stream has done the work. Uses the executor up, unless it is repeatable.
 * Returns 161001 if the executor is null, used up or none, or the workspace is missing; 161002 if it is too small (the
 * executor is not used up) or the executor another operator's; 361001 if the runtime refuses. An index beyond the
 * cache, or an actualSeqLen that does not ascend to T or wants more pages than cacheIndex lists, fails the stream's
 * next synchronisation with 507015, and nothing is written. */
ACLNN_API aclnnStatus aclnnMlaPrologV3WeightNz(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                                               const aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
