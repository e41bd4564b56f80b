// What decides the shapes of a case: its sizes, scenario and cache mode, and the table of the operator's tensors that
// follows from them.
#ifndef MLAP_TOOLS_CASE_SHAPE_H_
#define MLAP_TOOLS_CASE_SHAPE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "safetensors_dtype.h"

namespace mlap::tools {

enum class Scenario {
  kNonQuant,
  kPartial,        // weight_uq_qr int8
  kPartialKvInt8,  // and both caches int8, one scale per channel
};

enum class CacheMode { kPaBsnd, kPaNz };

// As the metadata of a case file spells them.
std::string_view ScenarioName(Scenario scenario);
std::string_view CacheModeName(CacheMode mode);

// As options and messages spell it.
std::string_view ScenarioLabel(Scenario scenario);

struct LayerDims {
  int64_t hidden = 0;   // He
  int64_t q_rank = 0;   // Hcq
  int64_t heads = 0;    // N
  int64_t nope = 0;     // D
  int64_t rope = 0;     // Dr
  int64_t kv_rank = 0;  // Hckv

  int64_t QueryColumns() const { return heads * (nope + rope); }
  int64_t KvColumns() const { return kv_rank + rope; }
};

struct CaseShape {
  LayerDims dims;
  Scenario scenario = Scenario::kNonQuant;
  CacheMode cache_mode = CacheMode::kPaBsnd;
  bool has_smooth_scales = false;
  std::vector<int64_t> lead;  // (T) or (B, S)
  int64_t block_num = 0;
  int64_t block_size = 0;

  int64_t Tokens() const;
  bool HasInt8Weight() const { return scenario != Scenario::kNonQuant; }
  bool HasInt8Cache() const { return scenario == Scenario::kPartialKvInt8; }
  Dtype CacheDtype() const { return HasInt8Cache() ? Dtype::kI8 : Dtype::kBF16; }
};

// One line: "non-quant, PA_BSND, T = 5, He 96, ...".
std::string DescribeShape(const CaseShape& shape);

// Which argument of the operator a tensor is.
enum class TensorRole {
  kPlain,
  kNzWeight,  // spec.shape is the matrix (k, n)
};

struct TensorSpec {
  const char* name;  // as in torch_npu's signature
  Dtype dtype;
  std::vector<int64_t> shape;
  TensorRole role = TensorRole::kPlain;
};

// The tensors a case of this shape consists of, in the operator's order: the inputs (both caches included), the
// outputs.
std::vector<TensorSpec> InputSpecs(const CaseShape& shape);
std::vector<TensorSpec> OutputSpecs(const CaseShape& shape);

// The number of columns of a fractal: 32 bytes of elements.
int64_t FractalColumns(Dtype dtype);

// [ceil(n / C0), ceil(k / 16), 16, C0]
std::vector<int64_t> NzShape(int64_t k, int64_t n, Dtype dtype);

// Where element `d` of slot `slot` lies in a contiguous cache of rows of `width` elements, in elements.
int64_t CacheOffset(const CaseShape& shape, int64_t width, int64_t slot, int64_t d);

// Bytes of dtype and shape as a floating-point number, which does not overflow.
double ApproximateBytes(Dtype dtype, const std::vector<int64_t>& shape);

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_CASE_SHAPE_H_
