#include "counter_random.h"

#include <gtest/gtest.h>

#include <cmath>

namespace mlap::tools {
namespace {

// The values are pinned: files made from a seed must never change.
TEST(CounterRandomTest, ValuesArePinned) {
  const CounterRandom random(1, "token_x");
  EXPECT_EQ(random.Bits(0), 0xf3bcfbf8154b7984u);
  EXPECT_EQ(random.CentredSum(0), 41829);
  EXPECT_EQ(random.CentredSum(123456789), -74229);
}

TEST(CounterRandomTest, SeedsAndStreamsDiffer) {
  EXPECT_NE(CounterRandom(1, "a").Bits(0), CounterRandom(2, "a").Bits(0));
  EXPECT_NE(CounterRandom(1, "a").Bits(0), CounterRandom(1, "b").Bits(0));
  EXPECT_NE(CounterRandom(1, "ab").Bits(0), CounterRandom(1, "ba").Bits(0));
}

TEST(CounterRandomTest, MomentsAreThoseOfTheDistributions) {
  const CounterRandom random(7, "moments");
  constexpr int kCount = 1000000;
  double sum = 0.0, squares = 0.0, fourths = 0.0, neighbours = 0.0, uniform = 0.0, previous = 0.0;
  for (int i = 0; i < kCount; ++i) {
    const double x = random.Normal(static_cast<uint64_t>(i));
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
    neighbours += x * previous;
    previous = x;
    uniform += random.Uniform(static_cast<uint64_t>(i));
  }
  EXPECT_NEAR(sum / kCount, 0.0, 0.005);
  EXPECT_NEAR(squares / kCount, 1.0, 0.01);
  EXPECT_NEAR(fourths / kCount, 3.0 - 1.2 / 8, 0.05);  // of a sum of eight uniforms
  EXPECT_NEAR(neighbours / kCount, 0.0, 0.005);
  EXPECT_NEAR(uniform / kCount, 0.5, 0.002);
}

}  // namespace
}  // namespace mlap::tools
