// Element sizes and binary16 conversions, against formulas written another way.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>

#include "acl/acl.h"

namespace {

// The value of a binary16 code whose largest exponent is an ordinary one.
double ValueOfCode(uint32_t code) {
  const int exponent = static_cast<int>(code >> 10 & 0x1F);
  const int fraction = static_cast<int>(code & 0x3FF);
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (code & 0x8000) != 0 ? -magnitude : magnitude;
}

void ExpectCode(float value, uint32_t code) {
  EXPECT_EQ(aclFloatToFloat16(value), code) << std::hexfloat << value;
  EXPECT_EQ(aclFloatToFloat16(-value), code | 0x8000) << std::hexfloat << -value;
}

TEST(AclFloat16ToFloat, IsExactForEveryCode) {
  for (uint32_t code = 0; code < 0x10000; ++code) {
    const float value = aclFloat16ToFloat(static_cast<aclFloat16>(code));
    ASSERT_EQ(static_cast<double>(value), ValueOfCode(code)) << std::hex << code;
    ASSERT_EQ(std::signbit(value), (code & 0x8000) != 0) << std::hex << code;
  }
}

TEST(AclFloat16ToFloat, ReadsTheLargestExponentAsANumber) {
  EXPECT_EQ(aclFloat16ToFloat(0x7C00), 65536.0F);
  EXPECT_EQ(aclFloat16ToFloat(0xFC00), -65536.0F);
  EXPECT_EQ(aclFloat16ToFloat(0x7E00), 98304.0F);
  EXPECT_EQ(aclFloat16ToFloat(0x7FFF), 131008.0F);
}

TEST(AclFloatToFloat16, ReturnsEveryCodeFromItsValue) {
  for (uint32_t code = 0; code <= 0x7BFF; ++code) {
    ExpectCode(static_cast<float>(ValueOfCode(code)), code);
    if (HasFailure()) break;
  }
}

TEST(AclFloatToFloat16, RoundsToNearestEvenBetweenAllNeighbours) {
  for (uint32_t code = 0; code < 0x7BFF; ++code) {
    const float middle = static_cast<float>((ValueOfCode(code) + ValueOfCode(code + 1)) / 2);
    ExpectCode(middle, code + (code & 1));
    ExpectCode(std::nextafterf(middle, 0.0F), code);
    ExpectCode(std::nextafterf(middle, 1e6F), code + 1);
    if (HasFailure()) break;
  }
}

TEST(AclFloatToFloat16, SaturatesAndFlushes) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float huge : {65504.0F, 65519.99F, 65520.0F, 65536.0F, 1e30F, std::numeric_limits<float>::max(), kInfinity,
                           std::copysign(nan, 1.0F)}) {
    ExpectCode(huge, 0x7BFF);
  }
  ExpectCode(0.0F, 0);
  ExpectCode(std::numeric_limits<float>::denorm_min(), 0);
  ExpectCode(0x1p-26F, 0);
  ExpectCode(0x1p-25F, 0);
  ExpectCode(std::nextafterf(0x1p-25F, 1.0F), 1);
  ExpectCode(0x1p-24F, 1);
  ExpectCode(0x1.FFFFFEp-15F, 0x400);
}

TEST(AclDataTypeSize, MatchesTheTable) {
  const std::map<int, size_t> sizes = {
      {ACL_DT_UNDEFINED, 0}, {ACL_STRING, 0},      {ACL_BOOL, 1},       {ACL_INT8, 1},        {ACL_UINT8, 1},
      {ACL_INT4, 1},         {ACL_UINT1, 1},       {ACL_HIFLOAT8, 1},   {ACL_FLOAT8_E5M2, 1}, {ACL_FLOAT8_E4M3FN, 1},
      {ACL_FLOAT8_E8M0, 1},  {ACL_FLOAT16, 2},     {ACL_INT16, 2},      {ACL_UINT16, 2},      {ACL_BF16, 2},
      {ACL_FLOAT, 4},        {ACL_INT32, 4},       {ACL_UINT32, 4},     {ACL_COMPLEX32, 4},   {ACL_INT64, 8},
      {ACL_UINT64, 8},       {ACL_DOUBLE, 8},      {ACL_COMPLEX64, 8},  {ACL_COMPLEX128, 16}, {ACL_FLOAT6_E3M2, 8},
      {ACL_FLOAT6_E2M3, 8},  {ACL_FLOAT4_E2M1, 8}, {ACL_FLOAT4_E1M2, 8}};
  for (int value = -300; value <= 300; ++value) {
    const auto found = sizes.find(value);
    const size_t expected = found == sizes.end() ? 8 : found->second;
    EXPECT_EQ(aclDataTypeSize(static_cast<aclDataType>(value)), expected) << value;
  }
}

}  // namespace
