// What decides the shapes of a case: its sizes, scenario and cache mode, and the table of the operator's tensors that
// follows from them.
#ifndef MLAP_TOOLS_CASE_SHAPE_H_
#define MLAP_TOOLS_CASE_SHAPE_H_

#include <mlaprolog/mlaprolog.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "case_scenario.h"
#include "safetensors_dtype.h"

namespace mlap::tools {

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
  const Scenario* scenario = &Scenarios().front();
  mlap_cache_mode cache_mode = MLAP_PA_BSND;
  bool has_smooth_scales = false;
  bool has_query_norm = false;
  std::vector<int64_t> lead;  // (T) or (B, S)
  int64_t block_num = 0;      // BSND: B, TND: T
  int64_t block_size = 0;     // BSND: S, TND: 1
  // PA_BLK_* with lead (T): the entries of actual_seq_len and of cache_index.
  int64_t num_sequences = 0;
  int64_t num_indices = 0;
  int64_t num_ckv_scales = 1;  // per-tensor: 1, or Hckv of which the first counts

  int64_t Tokens() const;
  bool IsFused() const { return lead.size() == 1; }
  bool IsPaged() const { return cache_mode != MLAP_BSND && cache_mode != MLAP_TND; }
  bool HasBlocks() const { return cache_mode == MLAP_PA_BLK_BSND || cache_mode == MLAP_PA_BLK_NZ; }
  bool IsNz() const { return cache_mode == MLAP_PA_NZ || cache_mode == MLAP_PA_BLK_NZ; }
  bool HasSequenceEnds() const { return HasBlocks() && IsFused(); }
  int64_t Capacity() const { return block_num * block_size; }
  // Elements of a kv_cache row.
  int64_t KvRowWidth() const;
};

// The row of a per-group cache: Hckv values of a byte, Dr bf16 values, a binary32 scale per 128 values.
struct GroupRow {
  int64_t kv_rank;
  int64_t rope;

  int64_t RopeOffset() const { return kv_rank; }
  int64_t ScaleOffset() const { return kv_rank + 2 * rope; }
  int64_t NumScales() const { return (kv_rank + 127) / 128; }
  int64_t Bytes() const { return ScaleOffset() + 4 * NumScales(); }
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
  mlap_dtype dtype;
  std::vector<int64_t> shape;
  TensorRole role = TensorRole::kPlain;
};

// The tensors a case of this shape consists of, in the operator's order: the inputs (both caches included), the
// outputs.
std::vector<TensorSpec> InputSpecs(const CaseShape& shape);
std::vector<TensorSpec> OutputSpecs(const CaseShape& shape);

// The type a file keeps the elements in: HiFloat8 and E8M0 as U8, for which safetensors has no names that all know.
Dtype FileDtype(mlap_dtype dtype);
std::string_view ElementTypeName(mlap_dtype dtype);
int64_t ElementBytes(mlap_dtype dtype);

int64_t CeilDiv(int64_t value, int64_t divisor);

// The number of columns of a fractal: 32 bytes of elements.
int64_t FractalColumns(mlap_dtype dtype);

// [ceil(n / C0), ceil(k / 16), 16, C0]
std::vector<int64_t> NzShape(int64_t k, int64_t n, mlap_dtype dtype);

// Where element `d` of slot `slot` lies in a contiguous cache of rows of `width` elements, in elements.
int64_t CacheOffset(const CaseShape& shape, mlap_dtype dtype, int64_t width, int64_t slot, int64_t d);

// A cache whose rows lie in fractals: their width must be a multiple of C0. None in the modes without NZ.
struct NzWidth {
  const char* cache;
  int64_t width;
  int64_t multiple;
};
std::vector<NzWidth> NzWidths(const CaseShape& shape);

// Bytes of dtype and shape as a floating-point number, which does not overflow.
double ApproximateBytes(mlap_dtype dtype, const std::vector<int64_t>& shape);

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_CASE_SHAPE_H_
