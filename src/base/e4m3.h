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

// The device's saturating cast: to nearest, ties to even; what exceeds 448 becomes 448, and a NaN becomes 0. Without
// branches and floating-point operations, so that compilers turn loops over it into vector code.
static inline E4m3 RoundToE4m3(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const uint32_t magnitude = bits & 0x7fffffffu;
  // Normal numbers: 20 bits of mantissa are rounded off, and a carry moves on to the exponent.
  const uint32_t normal = ((magnitude + 0x7ffffu + ((magnitude >> 20) & 1u)) >> 20) - ((127 - 7) << 3);
  // Below 2^-6 codes count units of 2^-9: one bit more goes with every binade. From 25 bits on nothing remains.
  const uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
  const uint32_t exponent = magnitude >> 23;
  const uint32_t shift = exponent >= 121 ? 20u : exponent <= 116 ? 25u : 141u - exponent;
  const uint32_t denormal = (significand + (1u << (shift - 1)) - 1u + ((significand >> shift) & 1u)) >> shift;
  uint32_t code = exponent >= 121 ? normal : denormal;
  code = magnitude >= 0x43e00000u ? 0x7eu : code;
  code |= (bits >> 24) & 0x80u;
  return E4m3{static_cast<uint8_t>(magnitude > 0x7f800000u ? 0u : code)};
}

}  // namespace mlap

#endif  // MLAP_BASE_E4M3_H_
