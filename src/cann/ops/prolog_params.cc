#include "cann/ops/prolog_params.h"

#include <iterator>

#include "acl/acl_base.h"

namespace mlap::cann {

const char* ParamName(Param param) {
  static constexpr const char* kNames[] = {"tokenX",
                                           "weightDq",
                                           "weightUqQr",
                                           "weightUk",
                                           "weightDkvKr",
                                           "rmsnormGammaCq",
                                           "rmsnormGammaCkv",
                                           "ropeSin",
                                           "ropeCos",
                                           "cacheIndex",
                                           "kvCacheRef",
                                           "krCacheRef",
                                           "dequantScaleXOptional",
                                           "dequantScaleWDqOptional",
                                           "dequantScaleWUqQrOptional",
                                           "dequantScaleWDkvKrOptional",
                                           "quantScaleCkvOptional",
                                           "quantScaleCkrOptional",
                                           "smoothScalesCqOptional",
                                           "actualSeqLenOptional",
                                           "kNopeClipAlphaOptional",
                                           "queryOut",
                                           "queryRopeOut",
                                           "dequantScaleQNopeOutOptional",
                                           "queryNormOutOptional",
                                           "dequantScaleQNormOutOptional"};
  static_assert(std::size(kNames) == kNumParams);
  return kNames[param];
}

std::string DtypeName(aclDataType dtype) {
  struct Row {
    aclDataType dtype;
    const char* name;
  };
  static constexpr Row kRows[] = {{ACL_FLOAT, "FLOAT"},
                                  {ACL_FLOAT16, "FLOAT16"},
                                  {ACL_INT8, "INT8"},
                                  {ACL_INT32, "INT32"},
                                  {ACL_UINT8, "UINT8"},
                                  {ACL_INT16, "INT16"},
                                  {ACL_UINT16, "UINT16"},
                                  {ACL_UINT32, "UINT32"},
                                  {ACL_INT64, "INT64"},
                                  {ACL_UINT64, "UINT64"},
                                  {ACL_DOUBLE, "DOUBLE"},
                                  {ACL_BOOL, "BOOL"},
                                  {ACL_BF16, "BF16"},
                                  {ACL_HIFLOAT8, "HIFLOAT8"},
                                  {ACL_FLOAT8_E5M2, "FLOAT8_E5M2"},
                                  {ACL_FLOAT8_E4M3FN, "FLOAT8_E4M3FN"},
                                  {ACL_FLOAT8_E8M0, "FLOAT8_E8M0"}};
  for (const Row& row : kRows) {
    if (row.dtype == dtype) return row.name;
  }
  return "dtype " + std::to_string(static_cast<int>(dtype));
}

std::string FormatName(aclFormat format) {
  struct Row {
    aclFormat format;
    const char* name;
  };
  static constexpr Row kRows[] = {{ACL_FORMAT_ND, "ND"},       {ACL_FORMAT_NCHW, "NCHW"},
                                  {ACL_FORMAT_NHWC, "NHWC"},   {ACL_FORMAT_NCL, "NCL"},
                                  {ACL_FORMAT_NCDHW, "NCDHW"}, {ACL_FORMAT_NDHWC, "NDHWC"},
                                  {ACL_FORMAT_HWCN, "HWCN"},   {ACL_FORMAT_FRACTAL_NZ, "FRACTAL_NZ"}};
  for (const Row& row : kRows) {
    if (row.format == format) return row.name;
  }
  return "format " + std::to_string(static_cast<int>(format));
}

std::string DimsText(const int64_t* dims, size_t rank) {
  std::string text = "[";
  for (size_t i = 0; i < rank; ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(dims[i]);
  }
  return text + "]";
}

std::string ViewDimsText(const TensorDescriptor& tensor) { return DimsText(tensor.view_dims.data(), tensor.rank); }

bool ElementCount(const TensorDescriptor& tensor, int64_t* count) {
  int64_t product = 1;
  bool empty = false;
  bool overflow = false;
  for (size_t i = 0; i < tensor.rank; ++i) {
    if (tensor.view_dims[i] < 0) return false;
    if (tensor.view_dims[i] == 0) empty = true;
    if (!overflow) overflow = __builtin_mul_overflow(product, tensor.view_dims[i], &product);
  }
  if (overflow && !empty) return false;
  *count = empty ? 0 : product;
  return true;
}

bool IsEmpty(const TensorDescriptor& tensor) {
  for (size_t i = 0; i < tensor.rank; ++i) {
    if (tensor.view_dims[i] == 0) return true;
  }
  return false;
}

bool IsContiguous(const TensorDescriptor& tensor) {
  if (!tensor.stride_given || IsEmpty(tensor)) return true;
  int64_t expected = 1;
  for (size_t i = tensor.rank; i-- > 0;) {
    if (tensor.view_dims[i] != 1 && tensor.view_strides[i] != expected) return false;
    if (__builtin_mul_overflow(expected, tensor.view_dims[i], &expected)) return false;
  }
  return true;
}

int64_t DtypeBytes(aclDataType dtype) { return static_cast<int64_t>(aclDataTypeSize(dtype)); }

char* FirstElement(const TensorDescriptor& tensor) {
  return static_cast<char*>(tensor.data) + tensor.offset * DtypeBytes(tensor.dtype);
}

}  // namespace mlap::cann
