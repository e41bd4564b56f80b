#include "safetensors_writer.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

namespace mlap::tools {
namespace {

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

std::string HeaderText(const std::string& path, const std::map<std::string, std::string, std::less<>>& metadata,
                       const std::vector<NamedTensor>& tensors) {
  nlohmann::json header = nlohmann::json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  size_t offset = 0;
  for (const NamedTensor& tensor : tensors) {
    const TensorView& view = tensor.view;
    size_t expected = DtypeBytes(view.dtype);
    for (const int64_t dim : view.shape) expected *= static_cast<size_t>(dim);
    if (expected != view.num_bytes) {
      throw SafetensorsError(fmt::format("{}: tensor '{}': expected {} bytes for {} {}, found {}", OneLine(path, 4096),
                                         OneLine(tensor.name), expected, DtypeName(view.dtype), ShapeText(view.shape),
                                         view.num_bytes));
    }
    if (header.contains(tensor.name)) {
      throw SafetensorsError(fmt::format("{}: tensor '{}': expected one of that name, found two", OneLine(path, 4096),
                                         OneLine(tensor.name)));
    }
    header[tensor.name] = {
        {"dtype", DtypeName(view.dtype)}, {"shape", view.shape}, {"data_offsets", {offset, offset + view.num_bytes}}};
    offset += view.num_bytes;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

}  // namespace

void WriteSafetensors(const std::string& path, const std::map<std::string, std::string, std::less<>>& metadata,
                      std::vector<NamedTensor> tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const NamedTensor& a, const NamedTensor& b) {
    const size_t a_bytes = DtypeBytes(a.view.dtype);
    const size_t b_bytes = DtypeBytes(b.view.dtype);
    return a_bytes != b_bytes ? a_bytes > b_bytes : a.name < b.name;
  });
  const std::string header = HeaderText(path, metadata, tensors);

  struct stat status = {};
  const bool is_replaceable = stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode);
  const std::string written = is_replaceable ? path + ".part" : path;
  const auto fail = [&] {
    const int error = errno;
    if (is_replaceable) std::remove(written.c_str());
    throw SafetensorsError(
        fmt::format("{}: expected to write the file, found: {}", OneLine(path, 4096), std::strerror(error)));
  };
  std::unique_ptr<std::FILE, FileCloser> file(std::fopen(written.c_str(), "wb"));
  if (file == nullptr) fail();
  unsigned char length[8];
  for (size_t i = 0; i < sizeof(length); ++i) length[i] = static_cast<unsigned char>(header.size() >> (8 * i));
  const auto write = [&](const void* bytes, size_t size) {
    if (size != 0 && std::fwrite(bytes, 1, size, file.get()) != size) fail();
  };
  write(length, sizeof(length));
  write(header.data(), header.size());
  for (const NamedTensor& tensor : tensors) write(tensor.view.bytes, tensor.view.num_bytes);
  if (std::fclose(file.release()) != 0) fail();
  if (is_replaceable && std::rename(written.c_str(), path.c_str()) != 0) fail();
}

}  // namespace mlap::tools
