// aclnnMlaProlog, the first version of the operator: its parameter order, its device gate, and the two steps.
#include "aclnnop/aclnn_mla_prolog.h"

#include <string>

#include "aclnn/aclnn_status.h"
#include "cann/ops/prolog_checks.h"
#include "cann/ops/prolog_launch.h"
#include "cann/runtime/op_executor.h"
#include "cann/runtime/recent_error.h"
#include "cann/runtime/soc.h"

namespace mlap::cann {
namespace {

constexpr char kPhase1[] = "aclnnMlaPrologGetWorkspaceSize";
constexpr char kPhase2[] = "aclnnMlaProlog";

// The devices that run the first version at all.
aclnnStatus ChooseSoc(const char* function, Soc* soc) {
  std::string error;
  if (!ChosenSoc(soc, &error)) return FailOp(ACLNN_ERR_RUNTIME_ERROR, std::string(function) + ": " + error);
  if (*soc == Soc::kAscend950) {
    return FailOp(ACLNN_ERR_RUNTIME_ERROR,
                  RefusalText(function, "MLAP_SOC", "a device that has the first version of the operator", "ascend950",
                              "use ascend910b or ascend910_93; on ascend950 only later versions exist"));
  }
  return ACLNN_SUCCESS;
}

}  // namespace
}  // namespace mlap::cann

extern "C" aclnnStatus aclnnMlaPrologGetWorkspaceSize(
    const aclTensor* tokenX, const aclTensor* weightDq, const aclTensor* weightUqQr, const aclTensor* weightUk,
    const aclTensor* weightDkvKr, const aclTensor* rmsnormGammaCq, const aclTensor* rmsnormGammaCkv,
    const aclTensor* ropeSin, const aclTensor* ropeCos, const aclTensor* cacheIndex, aclTensor* kvCacheRef,
    aclTensor* krCacheRef, const aclTensor* dequantScaleXOptional, const aclTensor* dequantScaleWDqOptional,
    const aclTensor* dequantScaleWUqQrOptional, const aclTensor* dequantScaleWDkvKrOptional,
    const aclTensor* quantScaleCkvOptional, const aclTensor* quantScaleCkrOptional,
    const aclTensor* smoothScalesCqOptional, double rmsnormEpsilonCq, double rmsnormEpsilonCkv, char* cacheModeOptional,
    const aclTensor* queryOut, const aclTensor* queryRopeOut, uint64_t* workspaceSize, aclOpExecutor** executor) {
  using namespace mlap::cann;  // NOLINT(google-build-using-namespace): a C function's body
  return Guarded(kPhase1, [&]() -> aclnnStatus {
    Soc soc;
    const aclnnStatus gate = ChooseSoc(kPhase1, &soc);
    if (gate != ACLNN_SUCCESS) return gate;
    PrologParams params;
    params.handles = {tokenX,
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
                      queryRopeOut};
    params.rmsnorm_epsilon_cq = rmsnormEpsilonCq;
    params.rmsnorm_epsilon_ckv = rmsnormEpsilonCkv;
    params.cache_mode = cacheModeOptional;
    CheckedCall call;
    const aclnnStatus status = CheckProlog(kPhase1, soc, params, workspaceSize, executor, &call);
    if (status != ACLNN_SUCCESS) return status;
    return PublishProlog(kPhase1, kPhase2, params, call, workspaceSize, executor);
  });
}

extern "C" aclnnStatus aclnnMlaProlog(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                      aclrtStream stream) {
  using namespace mlap::cann;  // NOLINT(google-build-using-namespace): a C function's body
  return Guarded(kPhase2, [&]() -> aclnnStatus {
    Soc soc;
    std::string error;
    if (ChosenSoc(&soc, &error) && soc == Soc::kAscend950) return ChooseSoc(kPhase2, &soc);
    return RunExecutor(kPhase2, workspace, workspaceSize, executor, stream);
  });
}
