// The operator's tensor parameters and attributes by name, shared by all versions of the operator: a version is an
// order over them (prolog_version.h).
#ifndef MLAP_CANN_OPS_PROLOG_PARAMS_H_
#define MLAP_CANN_OPS_PROLOG_PARAMS_H_

#include <array>
#include <cstdint>
#include <string>

#include "aclnn/acl_meta.h"
#include "cann/runtime/tensor_descriptor.h"

namespace mlap::cann {

// Inputs, then outputs.
enum Param : int {
  kTokenX,
  kWeightDq,
  kWeightUqQr,
  kWeightUk,
  kWeightDkvKr,
  kGammaCq,
  kGammaCkv,
  kRopeSin,
  kRopeCos,
  kCacheIndex,
  kKvCache,
  kKrCache,
  kDequantScaleX,
  kDequantScaleWDq,
  kDequantScaleWUqQr,
  kDequantScaleWDkvKr,
  kQuantScaleCkv,
  kQuantScaleCkr,
  kSmoothScalesCq,
  kActualSeqLen,
  kKNopeClipAlpha,
  kQueryOut,
  kQueryRopeOut,
  kDequantScaleQNopeOut,
  kQueryNormOut,
  kDequantScaleQNormOut,
  kNumParams
};

constexpr bool IsOutput(Param param) { return param >= kQueryOut; }
constexpr bool IsNzWeight(Param param) { return param == kWeightDq || param == kWeightUqQr || param == kWeightDkvKr; }
constexpr bool IsCache(Param param) { return param == kKvCache || param == kKrCache; }

// The name in the prototype: "tokenX", "kvCacheRef", "dequantScaleXOptional".
const char* ParamName(Param param);

// The arguments of a first step. Attributes that a version lacks keep the values that mean nothing special.
struct PrologParams {
  std::array<const aclTensor*, kNumParams> handles{};
  double rmsnorm_epsilon_cq = 0.0;
  double rmsnorm_epsilon_ckv = 0.0;
  const char* cache_mode = nullptr;
  int64_t weight_quant_mode = 0;
  int64_t kv_cache_quant_mode = 0;
  int64_t query_quant_mode = 0;
  int64_t ckvkr_repo_mode = 0;
  int64_t quant_scale_repo_mode = 0;
  int64_t tile_size = 128;
  double qc_qr_scale = 1.0;
  double kc_scale = 1.0;
};

// The parameters' descriptors; absent where the handle is null.
struct PrologTensors {
  std::array<TensorDescriptor, kNumParams> tensor;
  std::array<bool, kNumParams> present{};

  const TensorDescriptor& operator[](Param param) const { return tensor[param]; }
};

// "BF16", "INT8", or "dtype 99".
std::string DtypeName(aclDataType dtype);
// "ND", "FRACTAL_NZ", or "format 99".
std::string FormatName(aclFormat format);
// "[8, 7168]".
std::string DimsText(const int64_t* dims, size_t rank);
std::string ViewDimsText(const TensorDescriptor& tensor);

// The number of elements in the view; false when it overflows or a dimension is negative.
bool ElementCount(const TensorDescriptor& tensor, int64_t* count);
bool IsEmpty(const TensorDescriptor& tensor);
// Row-major without gaps (dimensions of one element may have any stride).
bool IsContiguous(const TensorDescriptor& tensor);
int64_t DtypeBytes(aclDataType dtype);
// The first element of the view.
char* FirstElement(const TensorDescriptor& tensor);

}  // namespace mlap::cann

#endif  // MLAP_CANN_OPS_PROLOG_PARAMS_H_
