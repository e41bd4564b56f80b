// bf16 as the tools see it: the upper half of a binary32.
#ifndef MLAP_TOOLS_BF16_CONVERT_H_
#define MLAP_TOOLS_BF16_CONVERT_H_

#include <bit>
#include <cstdint>

namespace mlap::tools {

inline float FloatFromBf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// To nearest, ties to even. `value` is not a NaN.
inline uint16_t Bf16FromFloat(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_BF16_CONVERT_H_
