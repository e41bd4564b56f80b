// bf() and int8() against their definitions, over every bf16 code and around every tie.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/bf16.h"
#include "base/int8_rounding.h"
#include "gtest/gtest.h"

namespace mlap {
namespace {

float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

TEST(Bf16, EveryCodeSurvivesTheRoundTrip) {
  for (uint32_t code = 0; code <= 0xffff; ++code) {
    const float value = ToFloat(Bf16{static_cast<uint16_t>(code)});
    const uint16_t back = RoundToBf16(value).bits;
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(ToFloat(Bf16{back}))) << code;
    } else {
      EXPECT_EQ(back, code);
    }
  }
}

// Between neighbouring codes, just below the middle rounds down, just above rounds up, the middle goes to the even
// code.
TEST(Bf16, RoundsToNearestEvenBetweenAllNeighbours) {
  for (uint32_t code = 0; code < 0x7f80; ++code) {
    const uint32_t low = code << 16;
    EXPECT_EQ(RoundToBf16(FromBits(low + 0x7fff)).bits, code);
    EXPECT_EQ(RoundToBf16(FromBits(low + 0x8000)).bits, code + (code & 1));
    EXPECT_EQ(RoundToBf16(FromBits(low + 0x8001)).bits, code + 1);
    EXPECT_EQ(RoundToBf16(FromBits(0x80000000u | (low + 0x8001))).bits, 0x8000u | (code + 1));
  }
}

TEST(Bf16, HandComputedValues) {
  EXPECT_EQ(RoundToBf16(1.0f).bits, 0x3f80);
  EXPECT_EQ(RoundToBf16(-2.5f).bits, 0xc020);
  EXPECT_EQ(RoundToBf16(1.0f + 1.0f / 256).bits, 0x3f80);  // a tie, to even
  EXPECT_EQ(RoundToBf16(1.0f + 3.0f / 256).bits, 0x3f82);  // a tie, to even
  EXPECT_EQ(RoundToBf16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(RoundToBf16(FromBits(0x7f800001)).bits & 0x7fc0, 0x7fc0);
}

TEST(Int8, RoundsToNearestEvenAndSaturates) {
  struct Case {
    float value;
    int8_t expected;
  };
  const float inf = std::numeric_limits<float>::infinity();
  for (const Case& c :
       {Case{0.5f, 0}, Case{1.5f, 2}, Case{2.5f, 2}, Case{-0.5f, 0}, Case{-1.5f, -2}, Case{63.4999f, 63},
        Case{126.5f, 126}, Case{126.50001f, 127}, Case{127.4f, 127}, Case{1e9f, 127}, Case{-128.4f, -128},
        Case{-127.5f, -128}, Case{-1e9f, -128}, Case{inf, 127}, Case{-inf, -128}, Case{std::nanf(""), 0}}) {
    EXPECT_EQ(RoundToInt8(c.value), c.expected) << c.value;
  }
}

}  // namespace
}  // namespace mlap
