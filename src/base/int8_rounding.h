// The operator's casts from binary32 to int8. int8(): nearest even with saturation; a NaN becomes 0.
#ifndef MLAP_BASE_INT8_ROUNDING_H_
#define MLAP_BASE_INT8_ROUNDING_H_

#include <cmath>
#include <cstdint>
#include <cstring>

namespace mlap {

static inline int8_t RoundToInt8(float value) {
  if (std::isnan(value)) return 0;
  if (value <= -128.0f) return -128;
  if (value >= 127.0f) return 127;
  return static_cast<int8_t>(std::nearbyint(value));
}

// The cast of the quantised query: to binary16, then to an integer, both to nearest with ties away from zero. It rounds
// twice and is not the nearest integer: 63.4999 becomes 63.5 in binary16, then 64. |value| must be below 2^15 or a NaN.
static inline int8_t RoundToInt8ThroughHalf(float value) {
  if (std::isnan(value)) return 0;
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  // Keeps 10 bits of mantissa. Below 2^-14 binary16 keeps fewer, but whatever is below a half becomes 0 anyway.
  const uint32_t half_bits = ((bits & 0x7fffffffu) + 0x1000u) & ~0x1fffu;
  float half;
  std::memcpy(&half, &half_bits, sizeof(half));
  const float magnitude = std::trunc(half + 0.5f);
  if (std::signbit(value)) return magnitude >= 128.0f ? -128 : static_cast<int8_t>(-magnitude);
  return magnitude >= 127.0f ? 127 : static_cast<int8_t>(magnitude);
}

}  // namespace mlap

#endif  // MLAP_BASE_INT8_ROUNDING_H_
