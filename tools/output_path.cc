#include "output_path.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "safetensors_error.h"
#include "tool_error.h"

namespace mlap::tools {
namespace {

namespace fs = std::filesystem;

bool IsSameFile(const std::string& a, const std::string& b) {
  std::error_code error;  // one of them does not exist: not the same
  return fs::equivalent(a, b, error);
}

}  // namespace

void RequireWritable(std::string_view option, const std::string& path) {
  if (path.empty()) Fail("{}: expected the name of a file, found none", option);
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) Fail("{}: expected a file, found the directory '{}'", option, OneLine(path));
  // A regular file is replaced by a new one of the directory; a device is written itself.
  const bool is_replaceable = !fs::exists(status) || fs::is_regular_file(status);
  const fs::path parent = fs::path(path).parent_path();
  const std::string target = is_replaceable ? (parent.empty() ? "." : parent.string()) + "/" : path;
  if (access(target.c_str(), is_replaceable ? W_OK | X_OK : W_OK) == 0) return;
  Fail("{}: expected a file that can be written, found '{}': {}: {}", option, OneLine(path), OneLine(target),
       std::strerror(errno));
}

void RequireOtherFile(std::string_view option, const std::string& path, const std::string& input) {
  // WriteSafetensors writes to the second name before it replaces the first.
  if (IsSameFile(path, input) || IsSameFile(path + ".part", input)) {
    Fail("{}: expected another file than the input, found '{}', which would overwrite it", option, OneLine(path));
  }
}

void RequireNewFile(std::string_view option, const std::string& path, std::string_view advice) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) {
    Fail("{}: expected the name of a new file, found '{}', which exists; {}", option, OneLine(path), advice);
  }
}

}  // namespace mlap::tools
