// The command line's own 8-bit formats, against facts about them.
#include "eight_bit_codes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace mlap::tools {
namespace {

struct Fact {
  mlap_dtype type;
  int code;
  float value;
};

constexpr float kInfinity = std::numeric_limits<float>::infinity();

constexpr Fact kFacts[] = {
    {MLAP_INT8, 0x00, 0.0f},          {MLAP_INT8, 0x7f, 127.0f},         {MLAP_INT8, 0x80, -128.0f},
    {MLAP_FLOAT8_E4M3, 0x00, 0.0f},   {MLAP_FLOAT8_E4M3, 0x01, 0x1p-9f}, {MLAP_FLOAT8_E4M3, 0x08, 0x1p-6f},
    {MLAP_FLOAT8_E4M3, 0x38, 1.0f},   {MLAP_FLOAT8_E4M3, 0x7e, 448.0f},  {MLAP_FLOAT8_E4M3, 0xbc, -1.5f},
    {MLAP_HIFLOAT8, 0x00, 0.0f},      {MLAP_HIFLOAT8, 0x01, 0x1p-22f},   {MLAP_HIFLOAT8, 0x07, 0x1p-16f},
    {MLAP_HIFLOAT8, 0x08, 1.0f},      {MLAP_HIFLOAT8, 0x0c, 1.5f},       {MLAP_HIFLOAT8, 0x10, 2.0f},
    {MLAP_HIFLOAT8, 0x18, 0.5f},      {MLAP_HIFLOAT8, 0x20, 4.0f},       {MLAP_HIFLOAT8, 0x6e, 0x1p15f},
    {MLAP_HIFLOAT8, 0x6f, kInfinity}, {MLAP_HIFLOAT8, 0x88, -1.0f},      {MLAP_HIFLOAT8, 0x7e, 0x1p-15f},
};

constexpr mlap_dtype kTypes[] = {MLAP_INT8, MLAP_FLOAT8_E4M3, MLAP_HIFLOAT8};

TEST(EightBitCodesTest, KnownValues) {
  for (const Fact& fact : kFacts) {
    EXPECT_EQ(EightBitCodes::Of(fact.type).Value(static_cast<std::byte>(fact.code)), fact.value)
        << fact.type << ", " << fact.code;
  }
  EXPECT_TRUE(std::isnan(EightBitCodes::Of(MLAP_FLOAT8_E4M3).Value(std::byte{0x7f})));
  EXPECT_TRUE(std::isnan(EightBitCodes::Of(MLAP_HIFLOAT8).Value(std::byte{0x80})));
}

TEST(EightBitCodesTest, PlacesAreAscendingWithValues) {
  for (const mlap_dtype type : kTypes) {
    const EightBitCodes& codes = EightBitCodes::Of(type);
    for (int a = 0; a < 256; ++a) {
      for (int b = 0; b < 256; ++b) {
        const float x = codes.Value(static_cast<std::byte>(a));
        const float y = codes.Value(static_cast<std::byte>(b));
        if (std::isnan(x) || std::isnan(y)) continue;
        ASSERT_EQ(x < y, codes.Place(static_cast<std::byte>(a)) < codes.Place(static_cast<std::byte>(b)));
      }
    }
  }
}

TEST(EightBitCodesTest, NearestOfAValueIsItAndOfOthersNoneIsNearer) {
  for (const mlap_dtype type : kTypes) {
    const EightBitCodes& codes = EightBitCodes::Of(type);
    for (int code = 0; code < 256; ++code) {
      const float value = codes.Value(static_cast<std::byte>(code));
      if (!std::isfinite(value)) continue;
      EXPECT_EQ(codes.Value(codes.Nearest(value)), value);
      const float other = value * 1.03f;
      if (std::fabs(other) > codes.Range()) continue;
      const float distance = std::fabs(codes.Value(codes.Nearest(other)) - other);
      for (int rival = 0; rival < 256; ++rival) {
        const float rival_value = codes.Value(static_cast<std::byte>(rival));
        if (!std::isfinite(rival_value)) continue;
        ASSERT_GE(std::fabs(rival_value - other), distance) << type << ", " << other;
      }
    }
  }
}

TEST(EightBitCodesTest, QuantisedRowsCanBeUndone) {
  std::vector<float> row;
  for (int i = 0; i < 32; ++i) row.push_back(0.37f * static_cast<float>(i) - 4.1f);
  for (const mlap_dtype type : kTypes) {
    std::vector<std::byte> codes(64);
    const float scale = QuantizeWithScale(type, row, codes.data(), 2);
    for (size_t i = 0; i < row.size(); ++i) {
      EXPECT_NEAR(scale * EightBitCodes::Of(type).Value(codes[2 * i]), row[i], 0.07f * std::fabs(row[i]) + scale);
    }
  }
  std::vector<std::byte> codes(32);
  const float scale = std::ldexp(1.0f, std::to_integer<int>(QuantizeMxGroup(row, codes.data(), 1)) - 127);
  for (size_t i = 0; i < row.size(); ++i) {
    const float value = scale * EightBitCodes::Of(MLAP_FLOAT8_E4M3).Value(codes[i]);
    EXPECT_NEAR(value, row[i], 0.13f * std::fabs(row[i]) + scale);
  }
  const std::vector<float> zeros(32);
  EXPECT_EQ(QuantizeWithScale(MLAP_INT8, zeros, codes.data(), 1), 1.0f);
  EXPECT_EQ(QuantizeMxGroup(zeros, codes.data(), 1), std::byte{127});
}

}  // namespace
}  // namespace mlap::tools
