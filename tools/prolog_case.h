// One call of the operator as data: the inputs, the attributes, and the results to expect if they are known.
#ifndef MLAP_TOOLS_PROLOG_CASE_H_
#define MLAP_TOOLS_PROLOG_CASE_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "case_shape.h"
#include "safetensors_file.h"

namespace mlap::tools {

// A tensor and whatever keeps its bytes alive. Copies share the bytes.
struct CaseTensor {
  TensorView view;
  std::shared_ptr<const void> owner;
};

// Zeros of the given type and shape; `*bytes` is where to write them.
CaseTensor NewTensor(Dtype dtype, std::vector<int64_t> shape, std::byte** bytes);
CaseTensor NewTensor(mlap_dtype dtype, std::vector<int64_t> shape, std::byte** bytes);

// A copy of its own.
CaseTensor CopyTensor(const CaseTensor& tensor, std::byte** bytes);

using TensorMap = std::map<std::string, CaseTensor, std::less<>>;

struct PrologCase {
  std::string name;  // for messages
  CaseShape shape;
  double epsilon_cq = 1e-5;
  double epsilon_ckv = 1e-5;
  double qc_qr_scale = 1.0;
  double kc_scale = 1.0;
  std::string soc;     // the device whose rules the case is for; empty: any
  TensorMap inputs;    // exactly those of InputSpecs; the shapes are those, or NzShape of an NZ weight
  TensorMap expected;  // "query", ... without the prefix
  std::map<std::string, std::string, std::less<>> metadata;

  const CaseTensor& Input(std::string_view tensor_name) const { return inputs.find(tensor_name)->second; }
  const CaseTensor* FindInput(std::string_view tensor_name) const {
    const auto found = inputs.find(tensor_name);
    return found == inputs.end() ? nullptr : &found->second;
  }
};

// The results of a call: those of OutputSpecs, and both caches.
using CaseOutputs = TensorMap;

inline bool IsCacheName(std::string_view name) { return name == "kv_cache" || name == "kr_cache"; }

// The outputs with the caches behind query_rope, as messages list them.
std::vector<TensorSpec> ResultSpecs(const CaseShape& shape);

// Reads a case and checks every type and shape; nothing that uses it needs to check them again. Throws ToolError or
// SafetensorsError.
PrologCase LoadCase(const std::string& path);

// The metadata that belongs to shape and attributes.
std::map<std::string, std::string, std::less<>> CaseMetadata(const PrologCase& prolog_case);

// Writes tensors with a case's metadata.
void SaveTensors(const std::string& path, const TensorMap& tensors,
                 const std::map<std::string, std::string, std::less<>>& metadata);

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_PROLOG_CASE_H_
