// The conversions of rows to 8-bit floats against their definitions, bit for bit on every usable ISA.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/e4m3.h"
#include "base/e8m0.h"
#include "base/hif8.h"
#include "gtest/gtest.h"
#include "support/guarded_buffer.h"
#include "support/random_values.h"
#include "support/usable_isas.h"

namespace mlap {
namespace {

using test::GuardedBuffer;
using test::RandomValues;

struct Format {
  const char* name;
  Kernel<NarrowToF8Fn> KernelTable::*narrow;
  Kernel<QuantizePerTokenF8Fn> KernelTable::*per_token;
  Kernel<QuantizePerGroupF8Fn> KernelTable::*per_group;
  uint8_t (*cast)(float);
  float reciprocal_of_max;
  uint8_t max;
};

const Format kFormats[] = {
    {"e4m3", &KernelTable::narrow_to_e4m3, &KernelTable::quantize_per_token_e4m3, &KernelTable::quantize_per_group_e4m3,
     [](float x) { return RoundToE4m3(x).bits; }, 1.0f / 448.0f, 0x7e},
    {"hif8", &KernelTable::narrow_to_hif8, &KernelTable::quantize_per_token_hif8, &KernelTable::quantize_per_group_hif8,
     [](float x) { return RoundToHiF8(x).bits; }, 1.0f / 32768.0f, 0x6e},
};

std::vector<int64_t> Lengths() {
  std::vector<int64_t> lengths;
  for (int64_t n = 1; n <= 67; ++n) lengths.push_back(n);
  for (const int64_t n : {512, 1536, 1537, 2048}) lengths.push_back(n);
  return lengths;
}

// Numbers of every magnitude, some of them beyond the formats, ties of both, zeros of both signs, denormals.
float Value(RandomValues* random) {
  switch (random->Below(8)) {
    case 0: {
      const uint32_t bits = static_cast<uint32_t>(random->Below(0x7f80)) << 16;
      float value;
      std::memcpy(&value, &bits, sizeof(value));
      return random->Below(2) == 0 ? value : -value;
    }
    case 1:
      return random->Normal(1e-40f);
    case 2:
      return random->Below(2) == 0 ? 0.0f : -0.0f;
    case 3:
      return static_cast<float>(random->Below(1001) - 500) + 0.5f;
    default:
      return random->Normal();
  }
}

GuardedBuffer RandomRow(int64_t n, bool special, RandomValues* random) {
  GuardedBuffer row(static_cast<size_t>(n) * sizeof(float));
  for (int64_t j = 0; j < n; ++j) row.as<float>()[j] = special ? Value(random) : random->Normal();
  return row;
}

GuardedBuffer Codes(int64_t n) { return GuardedBuffer(static_cast<size_t>(n)); }

bool SameBits(float x, float y) { return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y); }

class QuantizeF8Test : public testing::TestWithParam<KernelChoice> {
 protected:
  const KernelTable& table() const { return GetParam().table; }
};

// The definitions, written out with one operation after the other.
TEST_P(QuantizeF8Test, MatchTheirDefinitions) {
  RandomValues random(41);
  for (const Format& format : kFormats) {
    for (const int64_t n : Lengths()) {
      for (const bool special : {false, true}) {
        SCOPED_TRACE(std::string(format.name) + " n " + std::to_string(n) + (special ? " special" : ""));
        const GuardedBuffer row = RandomRow(n, special, &random), smooth = RandomRow(n, false, &random);
        const auto* x = row.as<const float>();
        const GuardedBuffer codes = Codes(n);
        (table().*format.narrow).run(x, n, codes.data());
        for (int64_t j = 0; j < n; ++j) ASSERT_EQ(codes.data()[j], format.cast(x[j])) << x[j];

        for (const float* factors : {static_cast<const float*>(nullptr), smooth.as<const float>()}) {
          std::vector<float> expected_z(x, x + n);
          float amax = 0.0f;
          for (int64_t j = 0; j < n; ++j) {
            float& z = expected_z[static_cast<size_t>(j)];
            if (factors != nullptr) z *= factors[j];
            amax = std::fmax(amax, std::fabs(z));
          }
          const float expected_scale = amax * format.reciprocal_of_max;
          GuardedBuffer z(static_cast<size_t>(n) * sizeof(float));
          std::memcpy(z.data(), x, z.size());
          if (factors == nullptr) z.Protect(test::Access::kRead);
          float scale = -1.0f;
          (table().*format.per_token).run(z.as<float>(), factors, n, codes.data(), &scale);
          ASSERT_TRUE(SameBits(scale, expected_scale)) << scale << " instead of " << expected_scale;
          ASSERT_EQ(std::memcmp(z.data(), expected_z.data(), z.size()), 0);
          for (int64_t j = 0; j < n; ++j) {
            ASSERT_EQ(codes.data()[j], format.cast(expected_z[static_cast<size_t>(j)] / scale)) << j;
          }
        }
      }
    }
  }
}

TEST_P(QuantizeF8Test, GroupsHaveScalesOfTheirOwn) {
  RandomValues random(42);
  for (const Format& format : kFormats) {
    for (const int64_t group : {128, 32, 7}) {
      for (const bool special : {false, true}) {
        const int64_t n = 4 * group;
        const GuardedBuffer row = RandomRow(n, special, &random), codes = Codes(n);
        auto* x = row.as<float>();
        for (int64_t j = group; j < 2 * group; ++j) x[j] = 0.0f;        // a zero group
        for (int64_t j = 2 * group; j < 3 * group; ++j) x[j] *= 1e-6f;  // one below the smallest amplitude
        if (special) x[2 * group] = 1e-4f;
        GuardedBuffer scales(4 * sizeof(float));
        (table().*format.per_group).run(x, n, group, codes.data(), scales.as<float>());
        for (int64_t g = 0; g < 4; ++g) {
          float amax = 1e-4f;
          for (int64_t j = g * group; j < (g + 1) * group; ++j) amax = std::fmax(amax, std::fabs(x[j]));
          const float scale = scales.as<float>()[g];
          ASSERT_TRUE(SameBits(scale, amax * format.reciprocal_of_max)) << format.name << " group " << g;
          for (int64_t j = g * group; j < (g + 1) * group; ++j) {
            ASSERT_EQ(codes.data()[j], format.cast(x[j] / scale)) << format.name << " at " << j;
          }
        }
        for (int64_t j = group; j < 2 * group; ++j) EXPECT_EQ(codes.data()[j], 0);
      }
    }
  }
}

TEST_P(QuantizeF8Test, BlocksOfTheMicroscalingFormat) {
  RandomValues random(43);
  for (const int64_t n : Lengths()) {
    for (const bool special : {false, true}) {
      const GuardedBuffer row = RandomRow(n, special, &random), codes = Codes(n);
      const auto* x = row.as<const float>();
      const int64_t blocks = (n + kMxGroup - 1) / kMxGroup;
      const GuardedBuffer scales = Codes(blocks);
      table().quantize_mx.run(x, n, codes.data(), scales.data());
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t first = b * kMxGroup, count = std::min(n - first, kMxGroup);
        E4m3 expected[kMxGroup];
        ASSERT_EQ(scales.data()[b], QuantizeMxBlock(x + first, count, expected).bits) << n << " block " << b;
        for (int64_t j = 0; j < count; ++j) ASSERT_EQ(codes.data()[first + j], expected[j].bits) << n << " at " << j;
        if (special) continue;
        // What is not tiny comes back within the rounding to bf16 and half a unit of a mantissa of three bits; what
        // exceeds 448 / 512 of its block's range, within the saturation.
        const float factor = ToFloat(E8m0{scales.data()[b]});
        for (int64_t j = 0; j < count; ++j) {
          const float back = ToFloat(E4m3{codes.data()[first + j]}) * factor;
          const float size = std::fabs(x[first + j]);
          EXPECT_NEAR(back, x[first + j], size > 448 * factor ? size / 8 : size / 15 + factor / 1024) << first + j;
        }
      }
    }
  }
}

TEST_P(QuantizeF8Test, DequantisationMultipliesTheChannelFirst) {
  RandomValues random(44);
  for (const int64_t n : Lengths()) {
    const GuardedBuffer x = RandomRow(n, true, &random), channel = RandomRow(n, false, &random);
    GuardedBuffer out(static_cast<size_t>(n) * sizeof(float));
    table().dequantize_f32.run(x.as<float>(), 0.37f, channel.as<float>(), n, out.as<float>());
    for (int64_t j = 0; j < n; ++j) {
      const float scaled = x.as<float>()[j] * channel.as<float>()[j];
      ASSERT_TRUE(SameBits(out.as<float>()[j], scaled * 0.37f)) << n << " at " << j;
    }
  }
}

TEST_P(QuantizeF8Test, ByHand) {
  // A = 448 and 2^15: the scale is 1.
  float x[] = {448.0f, 17.0f, 19.0f, -0.3f, 500.0f};
  uint8_t codes[5];
  float scale;
  table().quantize_per_token_e4m3.run(x, nullptr, 4, codes, &scale);
  EXPECT_EQ(scale, 1.0f);
  EXPECT_EQ(codes[0], 0x7e);
  EXPECT_EQ(codes[1], 0x58);  // 17 is a tie of 16 and 18, to the even code
  EXPECT_EQ(codes[2], 0x5a);  // 19 is a tie of 18 and 20, to the even code
  EXPECT_EQ(codes[3], 0xaa);  // -0.3125
  table().narrow_to_e4m3.run(x, 5, codes);
  EXPECT_EQ(codes[4], 0x7e);

  float y[] = {-32768.0f, 18.0f, 22.0f, 0.3f};
  table().quantize_per_token_hif8.run(y, nullptr, 4, codes, &scale);
  EXPECT_EQ(scale, 1.0f);
  EXPECT_EQ(codes[0], 0xee);
  EXPECT_EQ(codes[1], 0x41);  // 18 is a tie of 16 and 20, away from zero
  EXPECT_EQ(codes[2], 0x42);  // 22 is a tie of 20 and 24, away from zero
  EXPECT_EQ(codes[3], 0x32);  // 0.3125
}

// A zero row has scale 0, a row with a NaN the scale NaN, one with an infinity an infinite scale: all codes are zeros.
TEST_P(QuantizeF8Test, ZeroRowsAndSpecialValues) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Format& format : kFormats) {
    for (const int64_t n : {1, 15, 16, 17, 40}) {
      std::vector<float> x(static_cast<size_t>(n), 0.0f);
      std::vector<uint8_t> codes(static_cast<size_t>(n), 0x11);
      float scale = -1.0f;
      (table().*format.per_token).run(x.data(), nullptr, n, codes.data(), &scale);
      EXPECT_EQ(scale, 0.0f);
      for (const uint8_t code : codes) EXPECT_EQ(code, 0) << format.name;

      for (int64_t at = 0; at < n; at += 7) {
        for (const float special : {nan, -nan, inf, -inf}) {
          for (float& value : x) value = 0.75f;
          x[static_cast<size_t>(at)] = special;
          (table().*format.per_token).run(x.data(), nullptr, n, codes.data(), &scale);
          float group_scale = -1.0f;
          std::vector<uint8_t> group_codes(static_cast<size_t>(n), 0x11);
          (table().*format.per_group).run(x.data(), n, n, group_codes.data(), &group_scale);
          for (int64_t j = 0; j < n; ++j) {
            EXPECT_EQ(codes[static_cast<size_t>(j)], 0) << format.name;
            EXPECT_EQ(group_codes[static_cast<size_t>(j)], 0) << format.name;
          }
          EXPECT_TRUE(std::isnan(special) ? std::isnan(scale) : scale == inf);
          EXPECT_TRUE(std::isnan(special) ? std::isnan(group_scale) : group_scale == inf);

          (table().*format.narrow).run(x.data(), n, codes.data());
          const uint8_t sign = special < 0 ? 0x80 : 0;
          EXPECT_EQ(codes[static_cast<size_t>(at)], std::isnan(special) ? 0 : format.max | sign);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, QuantizeF8Test, testing::ValuesIn(test::UsableIsas()),
                         [](const auto& instance) { return test::IsaName(instance.param); });

}  // namespace
}  // namespace mlap
