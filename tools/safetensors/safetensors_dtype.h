// The element types of safetensors files.
#ifndef MLAP_TOOLS_SAFETENSORS_DTYPE_H_
#define MLAP_TOOLS_SAFETENSORS_DTYPE_H_

#include <cstddef>
#include <optional>
#include <string_view>

namespace mlap::tools {

enum class Dtype { kBool, kU8, kI8, kF8E4M3, kF8E5M2, kU16, kI16, kF16, kBF16, kU32, kI32, kF32, kU64, kI64, kF64 };

// The name as it stands in a file: "BF16", "I8", ...
std::string_view DtypeName(Dtype dtype);

// The size of one element in bytes.
size_t DtypeBytes(Dtype dtype);

// Nothing if no type has that name.
std::optional<Dtype> DtypeFromName(std::string_view name);

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_SAFETENSORS_DTYPE_H_
