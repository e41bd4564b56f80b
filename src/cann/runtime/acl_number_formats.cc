// Sizes of element types and the binary16 conversions.
#include <cstdint>
#include <cstring>

#include "acl/acl_base.h"

namespace {

// binary32 and binary16: widths of the fraction and biases of the exponent.
constexpr int kFloatFractionBits = 23;
constexpr int kFloatBias = 127;
constexpr int kHalfFractionBits = 10;
constexpr int kHalfBias = 15;
constexpr uint32_t kHalfMaxFinite = 0x7BFF;  // 65504

uint32_t BitsOf(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

float FloatOf(uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// value / 2^shift, to nearest, ties to even.
uint32_t ShiftRounded(uint32_t value, int shift) {
  const uint32_t quotient = value >> shift;
  const uint32_t rest = value & ((uint32_t{1} << shift) - 1);
  const uint32_t half = uint32_t{1} << (shift - 1);
  return quotient + (rest > half || (rest == half && (quotient & 1) != 0) ? 1 : 0);
}

}  // namespace

size_t aclDataTypeSize(aclDataType dataType) {
  switch (static_cast<int>(dataType)) {
    case ACL_DT_UNDEFINED:
    case ACL_STRING:
      return 0;
    case ACL_BOOL:
    case ACL_INT8:
    case ACL_UINT8:
    case ACL_INT4:
    case ACL_UINT1:
    case ACL_HIFLOAT8:
    case ACL_FLOAT8_E5M2:
    case ACL_FLOAT8_E4M3FN:
    case ACL_FLOAT8_E8M0:
      return 1;
    case ACL_FLOAT16:
    case ACL_INT16:
    case ACL_UINT16:
    case ACL_BF16:
      return 2;
    case ACL_FLOAT:
    case ACL_INT32:
    case ACL_UINT32:
    case ACL_COMPLEX32:
      return 4;
    case ACL_COMPLEX128:
      return 16;
    default:
      return 8;
  }
}

aclFloat16 aclFloatToFloat16(float value) {
  const uint32_t bits = BitsOf(value);
  const uint32_t sign = bits >> 31 << 15;
  const uint32_t fraction = bits & ((uint32_t{1} << kFloatFractionBits) - 1);
  const int exponent = static_cast<int>(bits >> kFloatFractionBits & 0xFF) - kFloatBias;

  uint32_t magnitude = 0;
  if (exponent > kHalfBias) {
    magnitude = kHalfMaxFinite;  // infinities and NaN too
  } else if (exponent > -kHalfBias) {
    // Exponent and fraction side by side: a fraction that rounds up to 1 carries into the exponent.
    const uint32_t joined = static_cast<uint32_t>(exponent + kHalfBias) << kFloatFractionBits | fraction;
    magnitude = ShiftRounded(joined, kFloatFractionBits - kHalfFractionBits);
    if (magnitude > kHalfMaxFinite) magnitude = kHalfMaxFinite;
  } else if (exponent >= -25) {
    // A multiple of 2^-24: the fraction with its leading 1, shifted by what the exponent lies below -14.
    const uint32_t significand = fraction | uint32_t{1} << kFloatFractionBits;
    magnitude = ShiftRounded(significand, kFloatFractionBits - kHalfFractionBits + (1 - kHalfBias - exponent));
  }
  return static_cast<aclFloat16>(sign | magnitude);
}

float aclFloat16ToFloat(aclFloat16 value) {
  const uint32_t sign = static_cast<uint32_t>(value & 0x8000) << 16;
  const uint32_t exponent = value >> kHalfFractionBits & 0x1F;
  const uint32_t fraction = value & 0x3FF;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return FloatOf(BitsOf(magnitude) | sign);
  }
  return FloatOf(sign | (exponent + kFloatBias - kHalfBias) << kFloatFractionBits |
                 fraction << (kFloatFractionBits - kHalfFractionBits));
}
