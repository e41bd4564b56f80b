// The row kernels: bit for bit the scalar ones on every usable ISA at every length; the scalar ones by hand.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "base/int8_rounding.h"
#include "gtest/gtest.h"
#include "support/guarded_buffer.h"
#include "support/random_values.h"
#include "support/usable_isas.h"

namespace mlap {
namespace {

using test::GuardedBuffer;
using test::RandomValues;

KernelTable Scalar() {
  KernelChoice choice;
  EXPECT_TRUE(ChooseKernels("scalar", &choice).ok());
  return choice.table;
}

// Lengths around the vectors and around the 64 lanes of the sum of squares, and the operator's own.
std::vector<int64_t> Lengths() {
  std::vector<int64_t> lengths;
  for (int64_t n = 1; n <= 2 * 64 + 3; ++n) lengths.push_back(n);
  for (const int64_t n : {512, 1536, 1537, 2048}) lengths.push_back(n);
  return lengths;
}

// Finite values of every magnitude, ties of the int8 rounding, zeros of both signs, denormals.
float Value(RandomValues* random) {
  switch (random->Below(8)) {
    case 0:
      return static_cast<float>(random->Below(257) - 128) + 0.5f;
    case 1:
      return random->Normal(1e-40f);
    case 2:
      return random->Below(2) == 0 ? 0.0f : -0.0f;
    case 3:
      return random->Normal(1e30f);
    default:
      return random->Normal();
  }
}

template <class T>
GuardedBuffer Row(int64_t n) {
  return GuardedBuffer(static_cast<size_t>(n) * sizeof(T));
}

class RowKernelsTest : public testing::TestWithParam<KernelChoice> {
 protected:
  // Runs `kernel(table, output)` with the scalar table and this ISA's on guarded outputs and compares the bytes.
  template <class T, class Fn>
  void ExpectSameAsScalar(int64_t n, Fn kernel, const char* what) {
    GuardedBuffer expected = Row<T>(n), actual = Row<T>(n);
    const KernelTable scalar = Scalar();
    kernel(scalar, expected.template as<T>());
    kernel(GetParam().table, actual.template as<T>());
    EXPECT_EQ(expected.Bytes(), actual.Bytes()) << what << " n " << n;
  }
};

TEST_P(RowKernelsTest, MatchScalarBitForBit) {
  RandomValues random(7);
  for (const int64_t n : Lengths()) {
    for (const bool special : {false, true}) {
      GuardedBuffer x = Row<float>(n), s = Row<float>(n), bf = Row<Bf16>(n), sums = Row<int32_t>(n);
      for (int64_t j = 0; j < n; ++j) {
        x.as<float>()[j] = special ? Value(&random) : random.Normal();
        s.as<float>()[j] = std::fabs(random.Normal()) + 0.1f;
        bf.as<Bf16>()[j] = special ? Bf16{static_cast<uint16_t>(random.Below(0x7f80))} : random.NormalBf16();
        sums.as<int32_t>()[j] = static_cast<int32_t>(random.Below(int64_t{1} << 32) - (int64_t{1} << 31));
      }
      const auto* xs = x.as<const float>();
      const auto* bfs = bf.as<const Bf16>();
      ExpectSameAsScalar<float>(
          n, [&](const KernelTable& t, float* y) { t.widen_bf16.run(bfs, n, y); }, "widen");
      ExpectSameAsScalar<Bf16>(
          n, [&](const KernelTable& t, Bf16* y) { t.narrow_to_bf16.run(xs, n, y); }, "narrow");
      ExpectSameAsScalar<int8_t>(
          n, [&](const KernelTable& t, int8_t* y) { t.quantize_per_channel.run(xs, s.as<float>(), n, y); }, "channel");
      ExpectSameAsScalar<int8_t>(
          n, [&](const KernelTable& t, int8_t* y) { t.narrow_to_int8.run(xs, n, y); }, "to int8");
      ExpectSameAsScalar<float>(
          n, [&](const KernelTable& t, float* y) { t.scale.run(xs, 0.3f, n, y); }, "scale");
      float query_scale[2] = {0, 0};
      int query_run = 0;
      ExpectSameAsScalar<int8_t>(
          n, [&](const KernelTable& t, int8_t* y) { t.quantize_query.run(bfs, n, y, &query_scale[query_run++]); },
          "query");
      EXPECT_EQ(query_scale[0], query_scale[1]);
      ExpectSameAsScalar<float>(
          n, [&](const KernelTable& t, float* y) { t.rms_norm.run(xs, bfs, n, 1e-5f, y); }, "norm");
      for (const float alpha : {1.0f, 0.3f, 2.5f, 0.0f}) {
        float scale[2] = {0, 0};
        int which = 0;
        ExpectSameAsScalar<int8_t>(
            n, [&](const KernelTable& t, int8_t* y) { t.quantize_per_group.run(xs, alpha, n, y, &scale[which++]); },
            "group");
        EXPECT_EQ(scale[0], scale[1]) << n;
      }
      for (const NumericRules rules : {NumericRules::kA2, NumericRules::k950}) {
        ExpectSameAsScalar<float>(
            n,
            [&](const KernelTable& t, float* y) {
              t.dequantize.run(sums.as<int32_t>(), 0.37f, s.as<float>(), n, rules, y);
            },
            "dequantize");
        for (const float* smooth : {static_cast<const float*>(nullptr), s.as<const float>()}) {
          float scale[2] = {0, 0};
          int which = 0;
          ExpectSameAsScalar<int8_t>(
              n,
              [&](const KernelTable& t, int8_t* y) {
                std::vector<float> z(xs, xs + n);
                t.quantize_per_token.run(z.data(), smooth, n, rules, y, &scale[which++]);
              },
              "token");
          EXPECT_EQ(std::memcmp(&scale[0], &scale[1], sizeof(float)), 0) << n;
        }
      }
      if (n % 2 == 0) {
        GuardedBuffer sin = Row<Bf16>(n);
        for (int64_t j = 0; j < n; ++j) sin.as<Bf16>()[j] = random.NormalBf16();
        for (const RopeStyle style :
             {RopeStyle::kInterleavedToHalf, RopeStyle::kHalf, RopeStyle::kInterleaved, RopeStyle::kNone}) {
          ExpectSameAsScalar<Bf16>(
              n, [&](const KernelTable& t, Bf16* y) { t.rope.run(xs, bfs, sin.as<Bf16>(), n, style, y); }, "rope");
        }
      }
    }
  }
}

// NaN and infinity: the same class of result on every ISA, and int8 0 for NaN.
TEST_P(RowKernelsTest, SpecialValues) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float special : {inf, -inf, nan, -nan}) {
    for (const int64_t n : {1, 15, 16, 17, 40}) {
      for (int64_t at = 0; at < n; at += 7) {
        std::vector<float> x(static_cast<size_t>(n), 0.75f);
        x[static_cast<size_t>(at)] = special;
        std::vector<int8_t> q(static_cast<size_t>(n), 55);
        float scale = -1.0f;
        for (const NumericRules rules : {NumericRules::kA2, NumericRules::k950}) {
          std::vector<float> z = x;
          GetParam().table.quantize_per_token.run(z.data(), nullptr, n, rules, q.data(), &scale);
          EXPECT_TRUE(std::isnan(special) ? std::isnan(scale) : scale == inf);
          for (const int8_t value : q) EXPECT_EQ(value, 0);
        }
        GetParam().table.quantize_per_group.run(x.data(), 0.5f, n, q.data(), &scale);
        EXPECT_TRUE(std::isnan(special) ? std::isnan(scale) : scale == inf);
        for (const int8_t value : q) EXPECT_EQ(value, 0);

        std::vector<float> ones(static_cast<size_t>(n), 1.0f);
        GetParam().table.quantize_per_channel.run(x.data(), ones.data(), n, q.data());
        EXPECT_EQ(q[static_cast<size_t>(at)], RoundToInt8(special));

        std::vector<Bf16> narrow(static_cast<size_t>(n));
        GetParam().table.narrow_to_bf16.run(x.data(), n, narrow.data());
        const float back = ToFloat(narrow[static_cast<size_t>(at)]);
        EXPECT_TRUE(std::isnan(special) ? std::isnan(back) : back == special);
      }
    }
  }
}

TEST_P(RowKernelsTest, ZeroRowQuantisesToZeros) {
  std::vector<float> x(70, 0.0f);
  std::vector<int8_t> q(70);
  const auto expect_zeros = [&](auto quantize) {
    q.assign(70, 55);
    float scale = -1.0f;
    quantize(&scale);
    EXPECT_EQ(scale, 0.0f);
    for (const int8_t value : q) EXPECT_EQ(value, 0);
  };
  for (const NumericRules rules : {NumericRules::kA2, NumericRules::k950}) {
    expect_zeros(
        [&](float* scale) { GetParam().table.quantize_per_token.run(x.data(), nullptr, 70, rules, q.data(), scale); });
  }
  expect_zeros([&](float* scale) { GetParam().table.quantize_per_group.run(x.data(), 0.9f, 70, q.data(), scale); });
}

// x = (1, 2, 3, 4) and a cosine and a sine of its own for every output.
TEST_P(RowKernelsTest, RopeByHand) {
  const float x[] = {1, 2, 3, 4};
  const Bf16 cos[] = {RoundToBf16(0.5f), RoundToBf16(-1.0f), RoundToBf16(8.0f), RoundToBf16(16.0f)};
  const Bf16 sin[] = {RoundToBf16(0.25f), RoundToBf16(2.0f), RoundToBf16(32.0f), RoundToBf16(64.0f)};
  struct Case {
    RopeStyle style;
    float expected[4];
  };
  for (const Case& c : {Case{RopeStyle::kInterleavedToHalf,
                             {1 * 0.5f - 2 * 0.25f, 3 * -1.0f - 4 * 2.0f, 2 * 8.0f + 1 * 32.0f, 4 * 16.0f + 3 * 64.0f}},
                        Case{RopeStyle::kHalf,
                             {1 * 0.5f - 3 * 0.25f, 2 * -1.0f - 4 * 2.0f, 3 * 8.0f + 1 * 32.0f, 4 * 16.0f + 2 * 64.0f}},
                        Case{RopeStyle::kInterleaved,
                             {1 * 0.5f - 2 * 0.25f, 2 * -1.0f + 1 * 2.0f, 3 * 8.0f - 4 * 32.0f, 4 * 16.0f + 3 * 64.0f}},
                        Case{RopeStyle::kNone, {1, 2, 3, 4}}}) {
    Bf16 out[4];
    const bool rotates = c.style != RopeStyle::kNone;
    GetParam().table.rope.run(x, rotates ? cos : nullptr, rotates ? sin : nullptr, 4, c.style, out);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(ToFloat(out[i]), c.expected[i]) << static_cast<int>(c.style) << " " << i;
  }
}

TEST_P(RowKernelsTest, RmsNormByHand) {
  // mean of squares (9 + 16) / 2 = 12.5, epsilon 12.5, root 5.
  const float x[] = {3, -4};
  const Bf16 gamma[] = {RoundToBf16(2.0f), RoundToBf16(0.5f)};
  float y[2];
  GetParam().table.rms_norm.run(x, gamma, 2, 12.5f, y);
  EXPECT_EQ(y[0], 3.0f / 5.0f * 2.0f);
  EXPECT_EQ(y[1], -4.0f / 5.0f * 0.5f);
}

TEST_P(RowKernelsTest, QuantisationByHand) {
  // A = 254, so the factor is 0.5 and 3 and 5 become the ties 1.5 and 2.5.
  const int8_t expected[] = {127, 2, 2, -2, 0};
  for (const NumericRules rules : {NumericRules::kA2, NumericRules::k950}) {
    float x[] = {254, 3, 5, -3, 1};
    int8_t q[5];
    float scale;
    GetParam().table.quantize_per_token.run(x, nullptr, 5, rules, q, &scale);
    EXPECT_EQ(scale, 2.0f);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(q[i], expected[i]) << i;
  }
}

// The two generations' formulas, which differ in the last bits of scales and dequantised sums.
TEST_P(RowKernelsTest, TheRulesDiffer) {
  RandomValues random(3);
  int scales = 0, dequantized = 0;
  for (int row = 0; row < 2000; ++row) {
    float x[64], scale[2], out[2][64];
    int8_t q[2][64];
    int32_t sums[64];
    for (int i = 0; i < 64; ++i) {
      x[i] = random.Normal();
      sums[i] = static_cast<int32_t>(random.Below(1 << 24));
    }
    for (const NumericRules rules : {NumericRules::kA2, NumericRules::k950}) {
      const auto which = static_cast<int>(rules);
      float z[64];
      std::memcpy(z, x, sizeof(z));
      GetParam().table.quantize_per_token.run(z, nullptr, 64, rules, q[which], &scale[which]);
      GetParam().table.dequantize.run(sums, 0.37f, x, 64, rules, out[which]);
      float amax = 0.0f;
      for (const float value : x) amax = std::fmax(amax, std::fabs(value));
      const bool is_a2 = rules == NumericRules::kA2;
      ASSERT_EQ(scale[which], is_a2 ? amax / 127.0f : amax * (1.0f / 127.0f));
      for (int i = 0; i < 64; ++i) {
        ASSERT_EQ(q[which][i], RoundToInt8(is_a2 ? x[i] * (127.0f / amax) : x[i] / scale[which]));
        const auto sum = static_cast<float>(sums[i]);
        ASSERT_EQ(out[which][i], is_a2 ? (sum * 0.37f) * x[i] : (sum * x[i]) * 0.37f);
      }
    }
    scales += scale[0] != scale[1] ? 1 : 0;
    for (int i = 0; i < 64; ++i) dequantized += out[0][i] != out[1][i] ? 1 : 0;
  }
  EXPECT_GT(scales, 0);
  EXPECT_GT(dequantized, 0);
}

// A = 508 and alpha = 0.5: L = 254, the scale 2; the largest saturates at 127, and 3 and 5 are ties.
TEST_P(RowKernelsTest, GroupsAreClipped) {
  const float x[] = {-508, 300, 254, 3, 5, -3, 0};
  const int8_t expected[] = {-127, 127, 127, 2, 2, -2, 0};
  int8_t q[7];
  float scale;
  GetParam().table.quantize_per_group.run(x, 0.5f, 7, q, &scale);
  EXPECT_EQ(scale, 254.0f * (1.0f / 127.0f));
  for (int i = 0; i < 7; ++i) EXPECT_EQ(q[i], expected[i]) << i;
}

TEST_P(RowKernelsTest, TheQueryIsRoundedTwiceWithTiesAway) {
  // A = 64, so the factor is 127 / 64: 16.375 becomes 32.494, 32.5 in binary16 and then 33. A = 127, so it is 1: a half
  // goes away from zero. Enough values that some are converted many at a time and some one by one.
  const std::pair<float, int> cases[][8] = {
      {{64, 127}, {16.375f, 33}, {-16.375f, -33}, {32.5f, 65}, {0.25f, 0}, {1, 2}, {16.25f, 32}, {-64, -127}},
      {{127, 127}, {63.5f, 64}, {-63.5f, -64}, {0.5f, 1}, {-0.5f, -1}, {2.5f, 3}, {-126.5f, -127}, {0, 0}}};
  for (const auto& row : cases) {
    Bf16 x[100];
    int8_t q[100];
    float scale;
    for (int i = 0; i < 100; ++i) x[i] = RoundToBf16(row[i % 8].first);
    GetParam().table.quantize_query.run(x, 100, q, &scale);
    EXPECT_EQ(scale, row[0].first / 127.0f);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(q[i], row[i % 8].second) << i << ": " << row[i % 8].first;
  }
}

TEST_P(RowKernelsTest, EveryValueOfAQueryIsRoundedLikeASingleOne) {
  // Largest magnitudes: zero, the least denormal, denormals that make the factor infinite and normals that do not,
  // ones, the largest number, infinity, a NaN.
  for (const uint16_t largest :
       {0x0000, 0x0001, 0x007f, 0x02ac, 0x02ad, 0x0300, 0x3f80, 0x42b7, 0x42fe, 0x7f7f, 0x7f80, 0x7fc1}) {
    std::vector<Bf16> x;
    for (uint32_t bits = 0; bits <= largest; ++bits) {
      x.push_back(Bf16{static_cast<uint16_t>(bits)});
      x.push_back(Bf16{static_cast<uint16_t>(bits | 0x8000u)});
    }
    std::vector<int8_t> q(x.size());
    float scale;
    GetParam().table.quantize_query.run(x.data(), static_cast<int64_t>(x.size()), q.data(), &scale);
    const float factor = 127.0f / ToFloat(Bf16{largest});
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(q[i], RoundToInt8ThroughHalf(ToFloat(x[i]) * factor)) << largest << ", " << x[i].bits;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, RowKernelsTest, testing::ValuesIn(test::UsableIsas()),
                         [](const auto& instance) { return test::IsaName(instance.param); });

}  // namespace
}  // namespace mlap
