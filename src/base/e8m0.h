// E8M0 and the microscaling blocks it serves: 32 values in E4M3 that share a power of two, 2^(byte - 127).
#ifndef MLAP_BASE_E8M0_H_
#define MLAP_BASE_E8M0_H_

#include <cstdint>
#include <cstring>

#include "base/bf16.h"
#include "base/e4m3.h"

namespace mlap {

struct E8m0 {
  uint8_t bits;
};

inline constexpr int64_t kMxGroup = 32;  // values that share an E8M0 scale

// 2^-127 is a denormal of binary32; byte 255 is a NaN.
static inline float ToFloat(E8m0 value) {
  const uint32_t bits = value.bits == 255 ? 0x7fc00000u : value.bits == 0 ? 0x00400000u : uint32_t{value.bits} << 23;
  float result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

// Quantises one block of at most kMxGroup values, which are first rounded to bf16 with ties away. With e the largest
// biased exponent of the bf16 values, the scale's byte is max(e - 8, 0), which brings the largest value into [256,
// 512), and the data are E4M3 of the values times 2^(127 - byte). A block without normal values (e = 0) is all zeros
// under byte 0; one with an infinity or a NaN (e = 255) has byte 255,
// which makes NaNs of all its data.
static inline E8m0 QuantizeMxBlock(const float* x, int64_t n, E4m3* out) {
  Bf16 rounded[kMxGroup];
  uint32_t largest = 0;
  for (int64_t j = 0; j < n; ++j) {
    rounded[j] = RoundToBf16TiesAway(x[j]);
    const uint32_t exponent = (rounded[j].bits >> 7) & 0xffu;
    largest = exponent > largest ? exponent : largest;
  }
  const uint32_t byte = largest == 255 ? 255 : largest > 8 ? largest - 8 : 0;
  // 2^(127 - byte); for byte 255 that is 2^-128, a denormal.
  const uint32_t factor_bits = byte == 255 ? 0x00200000u : (254 - byte) << 23;
  float factor;
  std::memcpy(&factor, &factor_bits, sizeof(factor));
  for (int64_t j = 0; j < n; ++j) {
    const Bf16 scaled = RoundToBf16(ToFloat(rounded[j]) * factor);
    out[j] = largest == 0 ? E4m3{0} : RoundToE4m3(ToFloat(scaled));
  }
  return E8m0{static_cast<uint8_t>(byte)};
}

}  // namespace mlap

#endif  // MLAP_BASE_E8M0_H_
