#include "safetensors_image.h"

#include <cstdint>

#include "safetensors_file.h"

namespace mlap::tools::test {

std::vector<std::byte> MakeImage(std::string_view header, size_t num_data) {
  std::vector<std::byte> image;
  for (int i = 0; i < 8; ++i) image.push_back(static_cast<std::byte>(header.size() >> (8 * i)));
  for (const char c : header) image.push_back(static_cast<std::byte>(c));
  for (size_t i = 0; i < num_data; ++i) image.push_back(static_cast<std::byte>(i));
  return image;
}

std::string ErrorOf(std::string_view name, const std::vector<std::byte>& image) {
  try {
    LoadedFile::FromBytes(name, image);
  } catch (const SafetensorsError& error) {
    return error.what();
  }
  return "";
}

}  // namespace mlap::tools::test
