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

CaseTensor CopyTensor(const CaseTensor& tensor, std::byte** bytes) {
  CaseTensor copy = NewTensor(tensor.view.dtype, tensor.view.shape, bytes);
  if (tensor.view.num_bytes != 0) std::memcpy(*bytes, tensor.view.bytes, tensor.view.num_bytes);
  return copy;
}

std::map<std::string, std::string, std::less<>> CaseMetadata(const PrologCase& prolog_case) {
  const CaseShape& shape = prolog_case.shape;
  const LayerDims& d = shape.dims;
  return {{"scenario", std::string(ScenarioName(shape.scenario))},
          {"cache_mode", std::string(CacheModeName(shape.cache_mode))},
          {"rmsnorm_epsilon_cq", fmt::format("{}", prolog_case.epsilon_cq)},
          {"rmsnorm_epsilon_ckv", fmt::format("{}", prolog_case.epsilon_ckv)},
          {"hidden", std::to_string(d.hidden)},
          {"q_rank", std::to_string(d.q_rank)},
          {"heads", std::to_string(d.heads)},
          {"nope", std::to_string(d.nope)},
          {"rope", std::to_string(d.rope)},
          {"kv_rank", std::to_string(d.kv_rank)}};
}

void SaveTensors(const std::string& path, const TensorMap& tensors,
                 const std::map<std::string, std::string, std::less<>>& metadata) {
  std::vector<NamedTensor> named;
  for (const auto& [name, tensor] : tensors) named.push_back({name, tensor.view});
  WriteSafetensors(path, metadata, std::move(named));
}

}  // namespace mlap::tools
