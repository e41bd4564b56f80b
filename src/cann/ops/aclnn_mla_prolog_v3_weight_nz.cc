// aclnnMlaPrologV3WeightNz, the third version of the operator.
#include "aclnnop/aclnn_mla_prolog_v3_weight_nz.h"

#include "cann/ops/prolog_steps.h"

extern "C" aclnnStatus aclnnMlaPrologV3WeightNzGetWorkspaceSize(
    const aclTensor* tokenX, const aclTensor* weightDq, const aclTensor* weightUqQr, const aclTensor* weightUk,
    const aclTensor* weightDkvKr, const aclTensor* rmsnormGammaCq, const aclTensor* rmsnormGammaCkv,
    const aclTensor* ropeSin, const aclTensor* ropeCos, aclTensor* kvCacheRef, aclTensor* krCacheRef,
    const aclTensor* cacheIndexOptional, const aclTensor* dequantScaleXOptional,
    const aclTensor* dequantScaleWDqOptional, const aclTensor* dequantScaleWUqQrOptional,
    const aclTensor* dequantScaleWDkvKrOptional, const aclTensor* quantScaleCkvOptional,
    const aclTensor* quantScaleCkrOptional, const aclTensor* smoothScalesCqOptional,
    const aclTensor* actualSeqLenOptional, const aclTensor* kNopeClipAlphaOptional, double rmsnormEpsilonCq,
    double rmsnormEpsilonCkv, char* cacheModeOptional, int64_t weightQuantMode, int64_t kvCacheQuantMode,
    int64_t queryQuantMode, int64_t ckvkrRepoMode, int64_t quantScaleRepoMode, int64_t tileSize, double qcQrScale,
    double kcScale, const aclTensor* queryOut, const aclTensor* queryRopeOut,
    const aclTensor* dequantScaleQNopeOutOptional, const aclTensor* queryNormOutOptional,
    const aclTensor* dequantScaleQNormOutOptional, uint64_t* workspaceSize, aclOpExecutor** executor) {
  using namespace mlap::cann;  // NOLINT(google-build-using-namespace): a C function's body
  PrologParams attributes;
  attributes.rmsnorm_epsilon_cq = rmsnormEpsilonCq;
  attributes.rmsnorm_epsilon_ckv = rmsnormEpsilonCkv;
  attributes.cache_mode = cacheModeOptional;
  attributes.weight_quant_mode = weightQuantMode;
  attributes.kv_cache_quant_mode = kvCacheQuantMode;
  attributes.query_quant_mode = queryQuantMode;
  attributes.ckvkr_repo_mode = ckvkrRepoMode;
  attributes.quant_scale_repo_mode = quantScaleRepoMode;
  attributes.tile_size = tileSize;
  attributes.qc_qr_scale = qcQrScale;
  attributes.kc_scale = kcScale;
  return FirstStep(VersionV3(),
                   {tokenX,
                    weightDq,
                    weightUqQr,
                    weightUk,
                    weightDkvKr,
                    rmsnormGammaCq,
                    rmsnormGammaCkv,
                    ropeSin,
                    ropeCos,
                    kvCacheRef,
                    krCacheRef,
                    cacheIndexOptional,
                    dequantScaleXOptional,
                    dequantScaleWDqOptional,
                    dequantScaleWUqQrOptional,
                    dequantScaleWDkvKrOptional,
                    quantScaleCkvOptional,
                    quantScaleCkrOptional,
                    smoothScalesCqOptional,
                    actualSeqLenOptional,
                    kNopeClipAlphaOptional,
                    queryOut,
                    queryRopeOut,
                    dequantScaleQNopeOutOptional,
                    queryNormOutOptional,
                    dequantScaleQNormOutOptional},
                   attributes, workspaceSize, executor);
}

extern "C" aclnnStatus aclnnMlaPrologV3WeightNz(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                                const aclrtStream stream) {
  return mlap::cann::SecondStep(mlap::cann::VersionV3(), workspace, workspaceSize, executor, stream);
}
