#include "api/rope_angles.h"

#include <algorithm>
#include <cmath>

namespace mlap {
namespace {

// std::pow, std::sin and std::cos differ in the last bits between C libraries, and with them, rarely, a rounded table
// entry. What follows uses correctly rounded operations only. (std::log below is rounded to an integer at once.)

double IntegerPower(double base, int64_t exponent) {
  double result = 1.0;
  for (int64_t i = 0; i < exponent && result < 1e300; ++i) result *= base;
  return result;
}

// value^(1 / degree) for value > 1: by bisection, to the last bit of it.
double Root(double value, int64_t degree) {
  double low = 1.0;
  double high = value;
  for (int step = 0; step < 100; ++step) {
    const double middle = 0.5 * (low + high);
    (IntegerPower(middle, degree) < value ? low : high) = middle;
  }
  return low;
}

// The pair that turns `rotations` times within the original context, as a real number.
double CorrectionPair(double rotations, double pairs, double theta, double context) {
  constexpr double kTwoPi = 6.283185307179586;
  return pairs * std::log(context / (rotations * kTwoPi)) / std::log(theta);
}

}  // namespace

std::vector<double> RopeFrequencies(int64_t rope, double theta, const Yarn& yarn) {
  const int64_t pairs = rope / 2;
  const double step = Root(theta, pairs);
  std::vector<double> frequencies;
  double divisor = 1.0;
  for (int64_t i = 0; i < pairs; ++i, divisor *= step) frequencies.push_back(1.0 / divisor);
  if (yarn.factor <= 1.0) return frequencies;

  const auto num_pairs = static_cast<double>(pairs);
  const double first =
      std::max(0.0, std::floor(CorrectionPair(yarn.beta_fast, num_pairs, theta, yarn.original_context)));
  const double last = std::min(2.0 * num_pairs - 1.0,
                               std::ceil(CorrectionPair(yarn.beta_slow, num_pairs, theta, yarn.original_context)));
  const double span = std::max(last - first, 0.001);
  for (int64_t i = 0; i < pairs; ++i) {
    const double stretched = std::clamp((static_cast<double>(i) - first) / span, 0.0, 1.0);
    double& frequency = frequencies[static_cast<size_t>(i)];
    frequency = frequency / yarn.factor * stretched + frequency * (1.0 - stretched);
  }
  return frequencies;
}

Rotation RotationOf(double angle) {
  // pi / 2 in two parts: the product of the first with a quarter turn count below 2^23 is exact.
  constexpr double kQuarterHigh = 0x1.921fb544p+0;
  constexpr double kQuarterLow = 0x1.0b4611a626331p-34;
  const double turns = std::nearbyint(angle / (kQuarterHigh + kQuarterLow));
  const double r = (angle - turns * kQuarterHigh) - turns * kQuarterLow;
  const double r2 = r * r;
  // Taylor series; the first term left out is below 1e-14 for |r| <= pi / 4.
  double sin = 1.0;
  double cos = 1.0;
  for (int k = 12; k > 0; k -= 2) {
    cos = 1.0 - cos * r2 / static_cast<double>(k * (k - 1));
    sin = 1.0 - sin * r2 / static_cast<double>(k * (k + 1));
  }
  sin *= r;
  switch (static_cast<int64_t>(turns) & 3) {
    case 0:
      return {static_cast<float>(cos), static_cast<float>(sin)};
    case 1:
      return {static_cast<float>(-sin), static_cast<float>(cos)};
    case 2:
      return {static_cast<float>(-cos), static_cast<float>(-sin)};
    default:
      return {static_cast<float>(sin), static_cast<float>(-cos)};
  }
}

}  // namespace mlap
