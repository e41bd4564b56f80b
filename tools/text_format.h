// Numbers with their units.
#ifndef MLAP_TOOLS_TEXT_FORMAT_H_
#define MLAP_TOOLS_TEXT_FORMAT_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace mlap::tools {

// "1 page", "2 pages"
std::string Counted(int64_t count, std::string_view noun);

// "123 B", "4.5 kB", "67.8 MB"
std::string FormatBytes(double bytes);

// "12.3 us", "4.56 ms"
std::string FormatSeconds(double seconds);

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_TEXT_FORMAT_H_
