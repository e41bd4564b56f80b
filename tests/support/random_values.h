// Deterministic random test data.
#ifndef MLAP_TESTS_SUPPORT_RANDOM_VALUES_H_
#define MLAP_TESTS_SUPPORT_RANDOM_VALUES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>

#include "base/bf16.h"

namespace mlap::test {

class RandomValues {
 public:
  explicit RandomValues(uint32_t seed) : engine_(seed) {}

  float Normal(float sigma = 1.0f) { return sigma * Normals()[engine_() % kNormals]; }
  Bf16 NormalBf16(float sigma = 1.0f) { return RoundToBf16(Normal(sigma)); }
  int8_t Int8() { return static_cast<int8_t>(engine_()); }
  int64_t Below(int64_t bound) { return std::uniform_int_distribution<int64_t>(0, bound - 1)(engine_); }

 private:
  // Values of the distribution to draw from: with the address sanitizer, making each anew took up to two thirds of a
  // test's time.
  static constexpr size_t kNormals = size_t{1} << 14;
  static const std::array<float, kNormals>& Normals() {
    static const std::array<float, kNormals> normals = [] {
      std::mt19937 engine(1);
      std::normal_distribution<float> distribution;
      std::array<float, kNormals> values;
      for (float& value : values) value = distribution(engine);
      return values;
    }();
    return normals;
  }

  std::mt19937 engine_;
};

}  // namespace mlap::test

#endif  // MLAP_TESTS_SUPPORT_RANDOM_VALUES_H_
