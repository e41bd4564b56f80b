// Writing safetensors files.
#ifndef MLAP_TOOLS_SAFETENSORS_WRITER_H_
#define MLAP_TOOLS_SAFETENSORS_WRITER_H_

#include <map>
#include <string>
#include <vector>

#include "safetensors_file.h"

namespace mlap::tools {

struct NamedTensor {
  std::string name;
  TensorView view;
};

// Writes a file whose bytes depend on the contents only: tensors by descending element size, then by name, so that each
// is aligned. An existing regular file is replaced once the new one is complete. Throws SafetensorsError: a duplicate
// name, a num_bytes that does not fit dtype and shape, a file that cannot be written.
void WriteSafetensors(const std::string& path, const std::map<std::string, std::string, std::less<>>& metadata,
                      std::vector<NamedTensor> tensors);

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_SAFETENSORS_WRITER_H_
