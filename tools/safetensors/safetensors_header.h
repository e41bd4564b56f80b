// The JSON header of a safetensors file.
#ifndef MLAP_TOOLS_SAFETENSORS_HEADER_H_
#define MLAP_TOOLS_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "safetensors_dtype.h"

namespace mlap::tools {

inline constexpr size_t kSafetensorsMaxHeaderBytes = 100'000'000;
inline constexpr size_t kSafetensorsMaxRank = 32;

// One tensor as the header describes it. The element count has been checked against the offsets; whether the offsets
// lie in the file has not.
struct HeaderEntry {
  Dtype dtype = Dtype::kU8;
  std::vector<int64_t> shape;
  uint64_t begin = 0;  // of the bytes, from the end of the header
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::map<std::string, HeaderEntry, std::less<>> tensors;
  std::map<std::string, std::string, std::less<>> metadata;
};

// Throws SafetensorsError, with `file` at the start of the text.
SafetensorsHeader ParseSafetensorsHeader(std::string_view file, std::string_view json);

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_SAFETENSORS_HEADER_H_
