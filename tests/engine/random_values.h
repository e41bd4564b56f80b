// Deterministic random test data.
#ifndef MLAP_TESTS_ENGINE_RANDOM_VALUES_H_
#define MLAP_TESTS_ENGINE_RANDOM_VALUES_H_

#include <cmath>
#include <cstdint>
#include <random>

#include "base/bf16.h"

namespace mlap::test {

class RandomValues {
 public:
  explicit RandomValues(uint32_t seed) : engine_(seed) {}

  float Normal(float sigma = 1.0f) { return std::normal_distribution<float>(0.0f, sigma)(engine_); }
  Bf16 NormalBf16(float sigma = 1.0f) { return RoundToBf16(Normal(sigma)); }
  int8_t Int8() { return static_cast<int8_t>(std::uniform_int_distribution<int>(-128, 127)(engine_)); }
  int64_t Below(int64_t bound) { return std::uniform_int_distribution<int64_t>(0, bound - 1)(engine_); }

 private:
  std::mt19937 engine_;
};

}  // namespace mlap::test

#endif  // MLAP_TESTS_ENGINE_RANDOM_VALUES_H_
