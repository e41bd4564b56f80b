// Reading safetensors files: 8 bytes with the header's length, the header in JSON, the tensors' bytes.
#ifndef MLAP_TOOLS_SAFETENSORS_FILE_H_
#define MLAP_TOOLS_SAFETENSORS_FILE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "safetensors_dtype.h"
#include "safetensors_error.h"

namespace mlap::tools {

struct TensorView {
  Dtype dtype = Dtype::kU8;
  std::vector<int64_t> shape;        // no negative numbers
  const std::byte* bytes = nullptr;  // [num_bytes], aligned to the element size, row-major
  size_t num_bytes = 0;              // exactly what dtype and shape need
};

// A file, or an image of one in memory, that has been checked as a whole. Immutable; copies share the memory, which
// lives as long as a copy of the object or of storage() does.
class LoadedFile {
 public:
  // Maps the file; its bytes are read when they are used. Throws SafetensorsError.
  static LoadedFile Open(const std::string& path);

  // The same for bytes in memory, which are copied; `name` stands for the file in messages.
  static LoadedFile FromBytes(std::string_view name, std::span<const std::byte> bytes);

  // Throws SafetensorsError if there is no such tensor.
  const TensorView& Tensor(std::string_view name) const;

  // Null if there is no such tensor.
  const TensorView* Find(std::string_view name) const;

  const std::map<std::string, TensorView, std::less<>>& tensors() const { return tensors_; }
  const std::map<std::string, std::string, std::less<>>& metadata() const { return metadata_; }

  // The file's name, as messages show it.
  const std::string& name() const { return name_; }

  // Keeps the tensors' bytes alive.
  std::shared_ptr<const void> storage() const { return storage_; }

 private:
  LoadedFile() = default;
  void Load(std::span<const std::byte> image);

  std::string name_;
  std::map<std::string, TensorView, std::less<>> tensors_;
  std::map<std::string, std::string, std::less<>> metadata_;
  std::shared_ptr<const void> storage_;
};

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_SAFETENSORS_FILE_H_
