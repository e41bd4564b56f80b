// What a file to write must be, checked before the work whose results it takes.
#ifndef MLAP_TOOLS_OUTPUT_PATH_H_
#define MLAP_TOOLS_OUTPUT_PATH_H_

#include <string>
#include <string_view>

namespace mlap::tools {

// All throw ToolError, with `option` as the beginning of the text.

// The file can be written: its directory exists and is writable, and it is no directory itself.
void RequireWritable(std::string_view option, const std::string& path);

// Writing `path` leaves `input` as it is, by whatever names the two are reached.
void RequireOtherFile(std::string_view option, const std::string& path, const std::string& input);

// There is no regular file yet. `advice` ends the text.
void RequireNewFile(std::string_view option, const std::string& path, std::string_view advice);

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_OUTPUT_PATH_H_
