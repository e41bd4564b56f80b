// E4M3, the OCP 8-bit float "fn": sign, 4 exponent bits (bias 7), 3 mantissa bits; largest 448, no infinity, a NaN with
// all seven bits set.
#ifndef MLAP_BASE_E4M3_H_
#define MLAP_BASE_E4M3_H_

#include <cstdint>
#include <cstring>

#include "base/bf16.h"

namespace mlap {

struct E4m3 {
  uint8_t bits;
};

inline constexpr float kE4m3Max = 448.0f;

// Exact: bf16 has more bits of exponent and of mantissa.
static constexpr Bf16 ToBf16(E4m3 value) {
  const uint32_t sign = (value.bits & 0x80u) << 8;
  uint32_t magnitude = value.bits & 0x7fu;
  if (magnitude == 0x7f) return Bf16{static_cast<uint16_t>(sign | 0x7fc0u)};
  if (magnitude == 0) return Bf16{static_cast<uint16_t>(sign)};
  uint32_t rebias = (127 - 7) << 7;
  if (magnitude < 8) {  // a denormal: its leading one moves to where a normal number has its implied one
    for (rebias += 1 << 7; magnitude < 8; rebias -= 1 << 7) magnitude <<= 1;
    magnitude -= 8;
  }
  return Bf16{static_cast<uint16_t>(sign | ((magnitude << 4) + rebias))};
}

static inline float ToFloat(E4m3 value) { return ToFloat(ToBf16(value)); }

// Rounds to nearest, ties to even, and saturates to +-448; a NaN becomes 0x7f.
static inline E4m3 RoundToE4m3(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const uint32_t sign = (bits >> 24) & 0x80u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  // Normal numbers: 20 bits of mantissa are rounded off.
  const uint32_t normal = ((magnitude + 0x7ffffu + ((magnitude >> 20) & 1u)) >> 20) - ((127 - 7) << 3);
  // Below 2^-6 codes are multiples of 2^-9, which is what the last bit of numbers from 2^14 on stands for.
  float raised;
  std::memcpy(&raised, &magnitude, sizeof(raised));
  raised += 16384.0f;
  uint32_t raised_bits;
  std::memcpy(&raised_bits, &raised, sizeof(raised_bits));
  const uint32_t denormal = raised_bits & 0xfu;
  uint32_t code = magnitude < 0x3c800000u ? denormal : normal;
  code = magnitude >= 0x43e00000u ? 0x7eu : code;
  return E4m3{static_cast<uint8_t>(magnitude > 0x7f800000u ? 0x7fu : sign | code)};
}

}  // namespace mlap

#endif  // MLAP_BASE_E4M3_H_
