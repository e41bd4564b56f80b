#include "rope_table.h"

#include <gtest/gtest.h>

#include <cmath>

namespace mlap::tools {
namespace {

TEST(RopeTableTest, FrequenciesArePowersOfTheta) {
  for (const int64_t rope : {2, 6, 32, 64, 512}) {
    const std::vector<double> frequencies = RopeFrequencies(rope, 2.56e7, 1.0);
    ASSERT_EQ(static_cast<int64_t>(frequencies.size()), rope / 2);
    for (int64_t i = 0; i < rope / 2; ++i) {
      const double expected = std::pow(2.56e7, -2.0 * static_cast<double>(i) / static_cast<double>(rope));
      EXPECT_NEAR(frequencies[static_cast<size_t>(i)] / expected, 1.0, 1e-12) << rope << " " << i;
    }
  }
}

// With theta 10000 and 64 columns the ramp begins at pair 10 and ends at pair 23.
TEST(RopeTableTest, YarnStretchesSlowPairsOnly) {
  const std::vector<double> plain = RopeFrequencies(64, 1e4, 1.0);
  const std::vector<double> yarn = RopeFrequencies(64, 1e4, 40.0);
  for (size_t i = 0; i < plain.size(); ++i) {
    const double ramp = i <= 10 ? 0.0 : i >= 23 ? 1.0 : (static_cast<double>(i) - 10.0) / 13.0;
    EXPECT_NEAR(yarn[i], plain[i] / 40.0 * ramp + plain[i] * (1.0 - ramp), 1e-12 * plain[i]) << i;
  }
}

TEST(RopeTableTest, RotationsAreThoseOfTheMathLibrary) {
  for (const double scale : {1.0, 100.0, 1e5}) {
    for (int i = -2000; i <= 2000; ++i) {
      const double angle = scale * static_cast<double>(i) * 0.00493;
      const Rotation rotation = RotationOf(angle);
      EXPECT_NEAR(rotation.cos, std::cos(angle), 7e-8) << angle;
      EXPECT_NEAR(rotation.sin, std::sin(angle), 7e-8) << angle;
    }
  }
}

}  // namespace
}  // namespace mlap::tools
