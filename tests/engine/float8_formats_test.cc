// E4M3, HiFloat8 and E8M0 against tables made from the formats' definitions: all 256 codes, and every tie between
// neighbours.
#include <algorithm>
#include <array>
#include <bitset>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/e4m3.h"
#include "base/e8m0.h"
#include "base/hif8.h"
#include "gtest/gtest.h"
#include "support/random_values.h"

namespace mlap {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr float kInfinityF = std::numeric_limits<float>::infinity();

float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

using Table = std::array<double, 256>;

// 1 + 4 + 3 bits: (-1)^s * 2^(e - 7) * (1 + m / 8), and with e = 0 (-1)^s * 2^-6 * m / 8.
Table TableOfE4m3() {
  Table table;
  double* next = table.data();  // codes ascend with sign, exponent and mantissa
  for (int s = 0; s < 2; ++s) {
    for (int e = 0; e < 16; ++e) {
      for (int m = 0; m < 8; ++m) {
        const double value = e == 0 ? m / 8.0 * std::pow(2.0, -6) : (1 + m / 8.0) * std::pow(2.0, e - 7);
        *next++ = e == 15 && m == 7 ? kNan : s == 0 ? value : -value;
      }
    }
  }
  return table;
}

// The binary digits of `value`, `count` of them.
std::string Digits(int value, int count) {
  return std::bitset<8>(static_cast<unsigned>(value)).to_string().substr(8 - static_cast<size_t>(count));
}

// Written out as strings of digits: sign, prefix, sign and magnitude of the exponent without its leading one, mantissa.
Table TableOfHiF8() {
  Table table;
  table.fill(12345.0);  // in case a code is left out
  const auto set = [&table](std::initializer_list<std::string> fields, double value) {
    std::string digits;
    for (const std::string& field : fields) digits += field;
    EXPECT_EQ(digits.size(), 8u);
    double& entry = table[std::bitset<8>(digits).to_ulong()];
    EXPECT_EQ(entry, 12345.0) << digits << " stands for two values";
    entry = value;
  };
  for (const std::string sign : {"0", "1"}) {
    const double unit = sign == "0" ? 1.0 : -1.0;
    for (int m = 0; m < 8; ++m) {
      const double denormal = m == 0 ? (sign == "0" ? 0.0 : kNan) : unit * std::pow(2.0, m - 23);
      set({sign, "0000", Digits(m, 3)}, denormal);
      set({sign, "0001", Digits(m, 3)}, unit * (1 + m / 8.0));
    }
    struct Range {
      std::string prefix;
      int exponent_bits, mantissa_bits;
    };
    for (const Range& range : {Range{"001", 1, 3}, Range{"01", 2, 3}, Range{"10", 3, 2}, Range{"11", 4, 1}}) {
      const int magnitude_bits = range.exponent_bits - 1;
      for (int rest = 0; rest < 1 << magnitude_bits; ++rest) {
        const int size = (1 << magnitude_bits) + rest;
        for (int m = 0; m < 1 << range.mantissa_bits; ++m) {
          const double mantissa = 1 + m / std::pow(2.0, range.mantissa_bits);
          const std::string exponent = Digits(rest, magnitude_bits), fraction = Digits(m, range.mantissa_bits);
          const bool is_infinity = size == 15 && m == 1;
          set({sign, range.prefix, "0", exponent, fraction},
              unit * (is_infinity ? kInfinity : mantissa * std::pow(2.0, size)));
          set({sign, range.prefix, "1", exponent, fraction}, unit * mantissa * std::pow(2.0, -size));
        }
      }
    }
  }
  return table;
}

struct E4m3Format {
  static Table Definition() { return TableOfE4m3(); }
  static double Decode(int code) { return ToFloat(E4m3{static_cast<uint8_t>(code)}); }
  static int Encode(float value) { return RoundToE4m3(value).bits; }
  static constexpr double kMax = kE4m3Max;
  static constexpr int kMinusZero = 0x80;
  static constexpr bool kTiesAway = false;
};

struct HiF8Format {
  static Table Definition() { return TableOfHiF8(); }
  static double Decode(int code) { return ToFloat(HiF8{static_cast<uint8_t>(code)}); }
  static int Encode(float value) { return RoundToHiF8(value).bits; }
  static constexpr double kMax = kHiF8Max;
  static constexpr int kMinusZero = 0x00;
  static constexpr bool kTiesAway = true;
};

template <class Format>
class Float8 : public testing::Test {
 protected:
  // The finite values that are not negative, ascending, with their codes.
  static std::vector<std::pair<double, int>> Ascending() {
    const Table table = Format::Definition();
    std::vector<std::pair<double, int>> values;
    for (int code = 0; code < 128; ++code) {
      if (std::isfinite(table[static_cast<size_t>(code)])) values.emplace_back(table[static_cast<size_t>(code)], code);
    }
    std::sort(values.begin(), values.end());
    return values;
  }
  static int Negative(int code) { return code == 0 ? Format::kMinusZero : code | 0x80; }
};

using Formats = testing::Types<E4m3Format, HiF8Format>;
TYPED_TEST_SUITE(Float8, Formats);

TYPED_TEST(Float8, EveryCodeDecodesToItsDefinition) {
  const Table table = TypeParam::Definition();
  double largest = 0.0;
  for (int code = 0; code < 256; ++code) {
    const double expected = table[static_cast<size_t>(code)];
    const double value = TypeParam::Decode(code);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value)) << code;
    } else {
      EXPECT_EQ(value, expected) << code;
      EXPECT_EQ(std::signbit(value), std::signbit(expected)) << code;
    }
    if (std::isfinite(expected)) largest = std::max(largest, expected);
  }
  EXPECT_EQ(largest, TypeParam::kMax);
}

TYPED_TEST(Float8, EveryNumberSurvivesTheRoundTrip) {
  const Table table = TypeParam::Definition();
  for (int code = 0; code < 256; ++code) {
    const double value = table[static_cast<size_t>(code)];
    if (std::isfinite(value)) {
      EXPECT_EQ(TypeParam::Encode(static_cast<float>(value)), code);
    }
  }
}

TYPED_TEST(Float8, RoundsToNearestBetweenAllNeighbours) {
  const auto values = this->Ascending();
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    const auto [low, low_code] = values[i];
    const auto [high, high_code] = values[i + 1];
    const auto middle = static_cast<float>((low + high) / 2);
    ASSERT_EQ(middle, (low + high) / 2);
    const int tie = TypeParam::kTiesAway || low_code % 2 == 1 ? high_code : low_code;
    EXPECT_EQ(TypeParam::Encode(middle), tie) << middle;
    EXPECT_EQ(TypeParam::Encode(-middle), this->Negative(tie)) << -middle;
    const float below = std::nextafter(middle, 0.0f), above = std::nextafter(middle, kInfinityF);
    EXPECT_EQ(TypeParam::Encode(below), low_code) << below;
    EXPECT_EQ(TypeParam::Encode(-below), this->Negative(low_code)) << -below;
    EXPECT_EQ(TypeParam::Encode(above), high_code) << above;
    EXPECT_EQ(TypeParam::Encode(-above), this->Negative(high_code)) << -above;
  }
}

// Over binary32 numbers of every magnitude: what is larger never becomes a smaller number.
TYPED_TEST(Float8, IsMonotone) {
  double last = 0.0;
  for (uint32_t bits = 0; bits <= 0x7f800000u; bits += 0x777) {
    const int code = TypeParam::Encode(FromBits(bits));
    const double value = TypeParam::Decode(code);
    ASSERT_GE(value, last) << bits;
    last = value;
    ASSERT_EQ(TypeParam::Encode(FromBits(bits | 0x80000000u)), this->Negative(code)) << bits;
  }
  EXPECT_EQ(last, TypeParam::kMax);
}

TYPED_TEST(Float8, SaturatesAndTurnsNansIntoZero) {
  const auto max = static_cast<float>(TypeParam::kMax);
  for (const float value : {max, std::nextafter(max, kInfinityF), max * 1.2f, max * 2, 1e30f,
                            std::numeric_limits<float>::max(), kInfinityF}) {
    EXPECT_EQ(TypeParam::Decode(TypeParam::Encode(value)), TypeParam::kMax) << value;
    EXPECT_EQ(TypeParam::Decode(TypeParam::Encode(-value)), -TypeParam::kMax) << value;
  }
  for (const uint32_t bits : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xffffffffu}) {
    EXPECT_EQ(TypeParam::Encode(FromBits(bits)), 0) << bits;
  }
  EXPECT_EQ(TypeParam::Encode(-0.0f), TypeParam::kMinusZero);
  EXPECT_EQ(TypeParam::Encode(FromBits(1)), 0);
  EXPECT_EQ(TypeParam::Encode(FromBits(0x80000001u)), TypeParam::kMinusZero);
}

TEST(E4m3, HandComputedCodes) {
  const std::pair<int, double> kCodes[] = {{0x00, 0.0},  {0x01, 1.0 / 512}, {0x07, 7.0 / 512}, {0x08, 1.0 / 64},
                                           {0x38, 1.0},  {0x3c, 1.5},       {0x40, 2.0},       {0x7e, 448.0},
                                           {0xb8, -1.0}, {0xfe, -448.0},    {0x77, 240.0}};
  for (const auto& [code, value] : kCodes) EXPECT_EQ(E4m3Format::Decode(code), value) << code;
}

TEST(HiF8, HandComputedCodes) {
  const std::pair<int, double> kCodes[] = {
      {0b00001000, 1.0},     {0b00001111, 1.875},     {0b00010000, 2.0},     {0b00011000, 0.5},
      {0b00100000, 4.0},     {0b00101000, 8.0},       {0b00110111, 0.46875}, {0b01000000, 16.0},
      {0b01001101, 160.0},   {0b01111111, 0x1.8p-15}, {0b01101110, 32768.0}, {0b11101110, -32768.0},
      {0b00000001, 0x1p-22}, {0b00000111, 0x1p-16},   {0b10001000, -1.0},    {0b01101111, kInfinity}};
  for (const auto& [code, value] : kCodes) EXPECT_EQ(HiF8Format::Decode(code), value) << code;
}

TEST(E8m0, EveryCodeIsAPowerOfTwo) {
  for (int code = 0; code < 255; ++code) {
    EXPECT_EQ(ToFloat(E8m0{static_cast<uint8_t>(code)}), std::ldexp(1.0, code - 127)) << code;
  }
  EXPECT_TRUE(std::isnan(ToFloat(E8m0{255})));
}

TEST(Bf16TiesAway, BetweenAllNeighbours) {
  for (uint32_t code = 0; code < 0x7f80; ++code) {
    const uint32_t low = code << 16;
    EXPECT_EQ(RoundToBf16TiesAway(FromBits(low)).bits, code);
    EXPECT_EQ(RoundToBf16TiesAway(FromBits(low + 0x7fff)).bits, code);
    EXPECT_EQ(RoundToBf16TiesAway(FromBits(low + 0x8000)).bits, code + 1);
    EXPECT_EQ(RoundToBf16TiesAway(FromBits(0x80000000u | (low + 0x8000))).bits, 0x8000u | (code + 1));
  }
  EXPECT_TRUE(std::isnan(ToFloat(RoundToBf16TiesAway(FromBits(0x7fffffff)))));
  EXPECT_TRUE(std::isnan(ToFloat(RoundToBf16TiesAway(FromBits(0xff800001)))));
}

// The exponent of the largest bf16 value decides; values are exact powers of two times E4M3 numbers here.
TEST(MxBlock, ScaleFollowsTheLargestExponent) {
  const Table table = TableOfE4m3();
  for (int exponent = -126; exponent <= 127; ++exponent) {
    std::vector<float> x(kMxGroup, 0.0f);
    x[3] = static_cast<float>(std::ldexp(-1.75, exponent));
    x[30] = static_cast<float>(std::ldexp(1.625, exponent - 3));
    std::vector<E4m3> codes(kMxGroup, E4m3{0x55});
    const int byte = QuantizeMxBlock(x.data(), kMxGroup, codes.data()).bits;
    EXPECT_EQ(byte, std::max(exponent + 127 - 8, 0)) << exponent;
    for (size_t j = 0; j < x.size(); ++j) {
      const double value = table[codes[j].bits];
      const double scaled = std::ldexp(static_cast<double>(x[j]), 127 - byte);
      EXPECT_EQ(value, scaled) << exponent << " at " << j;
    }
  }
}

TEST(MxBlock, ByHand) {
  // The largest is 1.998 -> bf16 2.0 by a carry, so the byte is 128 - 8 = 120 and the factor 2^7.
  const float x[] = {1.9970703f, 1.0f, -0.03125f, 1.00390625f, 0.0f, -0.0f};
  E4m3 codes[6];
  EXPECT_EQ(QuantizeMxBlock(x, 6, codes).bits, 120);
  EXPECT_EQ(E4m3Format::Decode(codes[0].bits), 256.0);
  EXPECT_EQ(E4m3Format::Decode(codes[1].bits), 128.0);
  EXPECT_EQ(E4m3Format::Decode(codes[2].bits), -4.0);
  EXPECT_EQ(E4m3Format::Decode(codes[3].bits), 128.0);  // bf16 1.0078125, times 128: 129, in E4M3 128
  EXPECT_EQ(codes[4].bits, 0x00);
  EXPECT_EQ(codes[5].bits, 0x80);

  // 1.0546875 is a bf16; 1.05859375 lies between two and its tie goes away, to 1.0625: 272, a tie of E4M3 that goes to
  // 256. 1.06640625 becomes 1.0703125: 274, which is nearer to 288.
  const float ties[] = {1.05859375f, 1.06640625f};
  EXPECT_EQ(QuantizeMxBlock(ties, 2, codes).bits, 127 - 8);
  EXPECT_EQ(E4m3Format::Decode(codes[0].bits), 256.0);
  EXPECT_EQ(E4m3Format::Decode(codes[1].bits), 288.0);

  // Above 448 / 256 of the power of two, the data saturate.
  const float large[] = {1.9f, -1.9f};
  EXPECT_EQ(QuantizeMxBlock(large, 2, codes).bits, 119);
  EXPECT_EQ(E4m3Format::Decode(codes[0].bits), 448.0);
  EXPECT_EQ(E4m3Format::Decode(codes[1].bits), -448.0);
}

TEST(MxBlock, SpecialBlocks) {
  E4m3 codes[3];
  // Denormals of bf16 count as zeros.
  const float tiny[] = {FromBits(0x007f0000), -FromBits(0x00000001), -0.0f};
  EXPECT_EQ(QuantizeMxBlock(tiny, 3, codes).bits, 0);
  for (const E4m3 code : codes) EXPECT_EQ(code.bits, 0);
  for (const float special : {kInfinityF, -kInfinityF, FromBits(0x7fc00000), std::numeric_limits<float>::max()}) {
    const float x[] = {1.0f, special, 0.0f};
    EXPECT_EQ(QuantizeMxBlock(x, 3, codes).bits, 255) << special;
    EXPECT_EQ(codes[2].bits, 0);
  }
}

}  // namespace
}  // namespace mlap
