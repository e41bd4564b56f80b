#include "safetensors_error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mlap::tools {

std::string OneLine(std::string_view text, size_t max_length) {
  std::string line;
  for (const char c : text.substr(0, max_length)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      line += c;
    } else {
      line += fmt::format("\\x{:02x}", byte);
    }
  }
  if (text.size() > max_length) line += "...";
  return line;
}

std::string ShapeText(const std::vector<int64_t>& shape) { return fmt::format("({})", fmt::join(shape, ", ")); }

}  // namespace mlap::tools
