// Images of safetensors files for tests, right and wrong ones.
#ifndef MLAP_TESTS_TOOLS_SAFETENSORS_IMAGE_H_
#define MLAP_TESTS_TOOLS_SAFETENSORS_IMAGE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mlap::tools::test {

// The length of `header` in 8 bytes, `header`, `num_data` bytes 0, 1, 2, ...
std::vector<std::byte> MakeImage(std::string_view header, size_t num_data);

// The text of the error that reading the image gives; "" if it can be read. `name` stands for the file.
std::string ErrorOf(std::string_view name, const std::vector<std::byte>& image);

}  // namespace mlap::tools::test

#endif  // MLAP_TESTS_TOOLS_SAFETENSORS_IMAGE_H_
