// Failures that end the command with exit code 2 and their text on one line.
#ifndef MLAP_TOOLS_TOOL_ERROR_H_
#define MLAP_TOOLS_TOOL_ERROR_H_

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace mlap::tools {

class ToolError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <typename... Args>
[[noreturn]] void Fail(fmt::format_string<Args...> format, Args&&... args) {
  throw ToolError(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_TOOL_ERROR_H_
