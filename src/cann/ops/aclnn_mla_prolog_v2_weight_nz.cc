// aclnnMlaPrologV2WeightNz, the second version of the operator.
#include "aclnnop/aclnn_mla_prolog_v2_weight_nz.h"

#include "cann/ops/prolog_steps.h"

extern "C" aclnnStatus aclnnMlaPrologV2WeightNzGetWorkspaceSize(
    const aclTensor* tokenX, const aclTensor* weightDq, const aclTensor* weightUqQr, const aclTensor* weightUk,
    const aclTensor* weightDkvKr, const aclTensor* rmsnormGammaCq, const aclTensor* rmsnormGammaCkv,
    const aclTensor* ropeSin, const aclTensor* ropeCos, const aclTensor* cacheIndex, aclTensor* kvCacheRef,
    aclTensor* krCacheRef, const aclTensor* dequantScaleXOptional, const aclTensor* dequantScaleWDqOptional,
    const aclTensor* dequantScaleWUqQrOptional, const aclTensor* dequantScaleWDkvKrOptional,
    const aclTensor* quantScaleCkvOptional, const aclTensor* quantScaleCkrOptional,
    const aclTensor* smoothScalesCqOptional, double rmsnormEpsilonCq, double rmsnormEpsilonCkv, char* cacheModeOptional,
    const aclTensor* queryOut, const aclTensor* queryRopeOut, const aclTensor* dequantScaleQNopeOutOptional,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  using namespace mlap::cann;  // NOLINT(google-build-using-namespace): a C function's body
  PrologParams attributes;
  attributes.rmsnorm_epsilon_cq = rmsnormEpsilonCq;
  attributes.rmsnorm_epsilon_ckv = rmsnormEpsilonCkv;
  attributes.cache_mode = cacheModeOptional;
  return FirstStep(VersionV2(),
                   {tokenX,
                    weightDq,
                    weightUqQr,
                    weightUk,
                    weightDkvKr,
                    rmsnormGammaCq,
                    rmsnormGammaCkv,
                    ropeSin,
                    ropeCos,
                    cacheIndex,
                    kvCacheRef,
                    krCacheRef,
                    dequantScaleXOptional,
                    dequantScaleWDqOptional,
                    dequantScaleWUqQrOptional,
                    dequantScaleWDkvKrOptional,
                    quantScaleCkvOptional,
                    quantScaleCkrOptional,
                    smoothScalesCqOptional,
                    queryOut,
                    queryRopeOut,
                    dequantScaleQNopeOutOptional},
                   attributes, workspaceSize, executor);
}

extern "C" aclnnStatus aclnnMlaPrologV2WeightNz(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                                const aclrtStream stream) {
  return mlap::cann::SecondStep(mlap::cann::VersionV2(), workspace, workspaceSize, executor, stream);
}
