#include "prolog_case.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "safetensors_writer.h"
#include "tool_error.h"

namespace mlap::tools {
CaseTensor NewTensor(Dtype dtype, std::vector<int64_t> shape, std::byte** bytes) {
  size_t size = DtypeBytes(dtype);
  for (const int64_t dim : shape) size *= static_cast<size_t>(dim);
  auto storage = std::make_shared<std::vector<std::byte>>(size);
  *bytes = storage->data();
  CaseTensor tensor;
  tensor.view = {dtype, std::move(shape), storage->data(), size};
  tensor.owner = std::move(storage);
  return tensor;
}

CaseTensor NewTensor(mlap_dtype dtype, std::vector<int64_t> shape, std::byte** bytes) {
  return NewTensor(FileDtype(dtype), std::move(shape), bytes);
}

CaseTensor CopyTensor(const CaseTensor& tensor, std::byte** bytes) {
  auto storage = std::make_shared<std::vector<std::byte>>(tensor.view.num_bytes);
  *bytes = storage->data();
  if (tensor.view.num_bytes != 0) std::memcpy(*bytes, tensor.view.bytes, tensor.view.num_bytes);
  CaseTensor copy = tensor;
  copy.view.bytes = storage->data();
  copy.owner = std::move(storage);
  return copy;
}

std::vector<TensorSpec> ResultSpecs(const CaseShape& shape) {
  std::vector<TensorSpec> specs = OutputSpecs(shape);
  auto place = specs.begin() + 2;
  for (TensorSpec& spec : InputSpecs(shape)) {
    if (IsCacheName(spec.name)) place = specs.insert(place, std::move(spec)) + 1;
  }
  return specs;
}

std::map<std::string, std::string, std::less<>> CaseMetadata(const PrologCase& prolog_case) {
  const CaseShape& shape = prolog_case.shape;
  const LayerDims& d = shape.dims;
  const Scenario& scenario = *shape.scenario;
  std::map<std::string, std::string, std::less<>> metadata = {
      {"scenario", std::string(scenario.name)},
      {"weight_quant_mode", std::to_string(static_cast<int>(scenario.weight_quant))},
      {"kv_cache_quant_mode", std::to_string(static_cast<int>(scenario.kv_quant))},
      {"query_quant_mode", scenario.IsPerTensor() ? "1" : "0"},
      {"cache_mode", std::string(CacheModeName(shape.cache_mode))},
      {"query_norm_flag", shape.has_query_norm ? "true" : "false"},
      {"qc_qr_scale", fmt::format("{}", prolog_case.qc_qr_scale)},
      {"kc_scale", fmt::format("{}", prolog_case.kc_scale)},
      {"rmsnorm_epsilon_cq", fmt::format("{}", prolog_case.epsilon_cq)},
      {"rmsnorm_epsilon_ckv", fmt::format("{}", prolog_case.epsilon_ckv)},
      {"hidden", std::to_string(d.hidden)},
      {"q_rank", std::to_string(d.q_rank)},
      {"heads", std::to_string(d.heads)},
      {"nope", std::to_string(d.nope)},
      {"rope", std::to_string(d.rope)},
      {"kv_rank", std::to_string(d.kv_rank)}};
  if (!prolog_case.soc.empty()) metadata["soc"] = prolog_case.soc;
  return metadata;
}

void SaveTensors(const std::string& path, const TensorMap& tensors,
                 const std::map<std::string, std::string, std::less<>>& metadata) {
  std::vector<NamedTensor> named;
  for (const auto& [name, tensor] : tensors) named.push_back({name, tensor.view});
  WriteSafetensors(path, metadata, std::move(named));
}

}  // namespace mlap::tools
