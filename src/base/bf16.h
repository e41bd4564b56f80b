// bf16: the upper half of a binary32, and the rounding bf() of the operator's numeric contract.
#ifndef MLAP_BASE_BF16_H_
#define MLAP_BASE_BF16_H_

#include <cstdint>
#include <cstring>

namespace mlap {

struct Bf16 {
  uint16_t bits;
};

static inline float ToFloat(Bf16 value) {
  const uint32_t bits = static_cast<uint32_t>(value.bits) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

// What a NaN becomes: which NaN a calculation ends in hangs on the order of operands, which instructions and compilers
// are free to choose, and results must not hang on it.
inline constexpr uint16_t kBf16Nan = 0x7fc0;

// Rounds to nearest, ties to even; denormals are kept, a NaN becomes kBf16Nan.
static inline Bf16 RoundToBf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7fffffffu) > 0x7f800000u) return Bf16{kBf16Nan};
  bits += 0x7fffu + ((bits >> 16) & 1u);
  return Bf16{static_cast<uint16_t>(bits >> 16)};
}

// Rounds to nearest, ties away from zero; otherwise like RoundToBf16.
static inline Bf16 RoundToBf16TiesAway(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7fffffffu) > 0x7f800000u) return Bf16{kBf16Nan};
  return Bf16{static_cast<uint16_t>((bits + 0x8000u) >> 16)};
}

}  // namespace mlap

#endif  // MLAP_BASE_BF16_H_
