// What goes wrong with a safetensors file.
#ifndef MLAP_TOOLS_SAFETENSORS_ERROR_H_
#define MLAP_TOOLS_SAFETENSORS_ERROR_H_

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace mlap::tools {

// The text is one line: the file, the tensor if there is one, what was expected, what was found.
class SafetensorsError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// `text` fit for one line of a message: bytes that are not printable ASCII as \xNN, at most `max_length` bytes of it.
std::string OneLine(std::string_view text, size_t max_length = 160);

// "(2, 3)"
std::string ShapeText(const std::vector<int64_t>& shape);

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_SAFETENSORS_ERROR_H_
