// HiFloat8: a sign and a prefix that says how many bits of exponent follow; the rest is mantissa.
//
//   s 11 eeee m    |E| = 8..15      s 001 e mmm   |E| = 1
//   s 10 eee mm    |E| = 4..7       s 0001 mmm     E  = 0
//   s 01 ee mmm    |E| = 2..3       s 0000 mmm    2^(mmm - 23), mmm = 1..7
//
// The first bit of an exponent is its sign; the leading one of its magnitude is implied. 0x00 is zero, 0x80 a NaN; 0x6f
// and 0xef, which would be +-1.5 * 2^15, are the infinities, so that the largest number is 2^15. There is no negative
// zero.
#ifndef MLAP_BASE_HIF8_H_
#define MLAP_BASE_HIF8_H_

#include <cstdint>
#include <cstring>

#include "base/bf16.h"

namespace mlap {

struct HiF8 {
  uint8_t bits;
};

inline constexpr float kHiF8Max = 32768.0f;

static constexpr uint32_t HiF8MantissaBits(uint32_t exponent_bits) {
  return exponent_bits <= 2 ? 3 : 5 - exponent_bits;
}

// Exact.
static constexpr Bf16 ToBf16(HiF8 value) {
  const uint32_t sign = (value.bits & 0x80u) << 8;
  const uint32_t magnitude = value.bits & 0x7fu;
  if (magnitude == 0) return Bf16{static_cast<uint16_t>(sign != 0 ? 0x7fc0u : 0u)};
  if (magnitude == 0x6f) return Bf16{static_cast<uint16_t>(sign | 0x7f80u)};
  if (magnitude < 0x08) return Bf16{static_cast<uint16_t>(sign | ((magnitude + 127 - 23) << 7))};
  const uint32_t exponent_bits = magnitude >= 0x60   ? 4
                                 : magnitude >= 0x40 ? 3
                                 : magnitude >= 0x20 ? 2
                                 : magnitude >= 0x10 ? 1
                                                     : 0;
  const uint32_t mantissa_bits = HiF8MantissaBits(exponent_bits);
  const uint32_t leading_one = (1u << exponent_bits) >> 1;
  const uint32_t exponent_field = (magnitude >> mantissa_bits) & ((1u << exponent_bits) - 1);
  const uint32_t size = leading_one | (exponent_field & (leading_one - 1));
  const bool is_negative = exponent_bits != 0 && (exponent_field & leading_one) != 0;
  const uint32_t exponent = exponent_bits == 0 ? 127 : is_negative ? 127 - size : 127 + size;
  const uint32_t mantissa = magnitude & ((1u << mantissa_bits) - 1);
  return Bf16{static_cast<uint16_t>(sign | (exponent << 7) | (mantissa << (7 - mantissa_bits)))};
}

static inline float ToFloat(HiF8 value) { return ToFloat(ToBf16(value)); }

// The device's saturating cast: to nearest, ties away from zero; what exceeds 2^15 becomes 2^15, and a NaN becomes 0.
// Without branches, so that compilers turn loops over it into vector code.
static inline HiF8 RoundToHiF8(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t bounded = magnitude < 0x47000000u ? magnitude : 0x47000000u;
  // Half of the last mantissa bit that is kept at this exponent is added; a carry moves on to the exponent.
  const int32_t unrounded_exponent = static_cast<int32_t>(bounded >> 23) - 127;
  const int32_t unrounded_size = unrounded_exponent < 0 ? -unrounded_exponent : unrounded_exponent;
  const uint32_t kept_bits = unrounded_size <= 3 ? 3u : unrounded_size <= 7 ? 2u : unrounded_size <= 15 ? 1u : 0u;
  const uint32_t rounded = bounded + (0x400000u >> kept_bits);

  const int32_t exponent = static_cast<int32_t>(rounded >> 23) - 127;
  const uint32_t size = static_cast<uint32_t>(exponent < 0 ? -exponent : exponent);
  const uint32_t exponent_bits = size >= 8 ? 4u : size >= 4 ? 3u : size >= 2 ? 2u : size;
  const uint32_t mantissa_bits = HiF8MantissaBits(exponent_bits);
  const uint32_t leading_one = (1u << exponent_bits) >> 1;
  const uint32_t prefix = exponent_bits <= 2 ? 8u << exponent_bits : (exponent_bits - 1) << 5;
  const uint32_t exponent_field = size - leading_one + (exponent < 0 ? leading_one : 0u);
  const uint32_t mantissa = (rounded >> (23 - mantissa_bits)) & ((1u << mantissa_bits) - 1);
  const uint32_t normal = prefix + (exponent_field << mantissa_bits) + mantissa;
  // From the tie 2^-23 on, the smallest code; what is below it is zero, and so is a NaN.
  const uint32_t denormal = exponent <= -22 ? 1u : static_cast<uint32_t>(exponent + 23);
  uint32_t code = exponent <= -16 ? denormal : normal;
  code |= (bits >> 24) & 0x80u;
  const bool is_zero = magnitude < 0x34000000u || magnitude > 0x7f800000u;
  return HiF8{static_cast<uint8_t>(is_zero ? 0u : code)};
}

}  // namespace mlap

#endif  // MLAP_BASE_HIF8_H_
