// Random numbers that are a function of (seed, stream, index): the same on every machine and in any order.
//
// Integer arithmetic, and single correctly rounded floating-point operations; no mathematical library is involved.
#ifndef MLAP_TOOLS_COUNTER_RANDOM_H_
#define MLAP_TOOLS_COUNTER_RANDOM_H_

#include <cstdint>
#include <string_view>

namespace mlap::tools {

class CounterRandom {
 public:
  // Streams of different names are independent.
  CounterRandom(uint64_t seed, std::string_view stream) : key_(Mix(seed + kGolden)) {
    for (const char c : stream) key_ = Mix(key_ ^ static_cast<unsigned char>(c));
  }

  // SplitMix64 at position `index` of its sequence.
  uint64_t Bits(uint64_t index) const { return Mix(key_ + (index + 1) * kGolden); }

  // Uniform in [0, 1), a multiple of 2^-24.
  float Uniform(uint64_t index) const { return static_cast<float>(Bits(index) >> 40) * 0x1p-24f; }

  // Uniform in [0, bound), up to a bias of bound / 2^64.
  uint64_t Below(uint64_t index, uint64_t bound) const { return Bits(index) % bound; }

  // Close to normal with mean 0 and deviation 1, within +-4.9: the centred sum of eight 16-bit uniforms.
  float Normal(uint64_t index) const { return static_cast<float>(CentredSum(index)) * kNormalUnit; }

  // Normal(index) is, before scaling, an integer of this deviation: lets a caller scale in one operation.
  int32_t CentredSum(uint64_t index) const {
    const int32_t sum = static_cast<int32_t>(SumOfLanes(Bits(2 * index)) + SumOfLanes(Bits(2 * index + 1)));
    return sum - 8 * 32768 + 4;
  }
  // 1 / sqrt(8 * (2^32 - 1) / 12)
  static constexpr float kNormalUnit = 1.0f / 53509.92f;

 private:
  static constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;

  static uint64_t Mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }

  static uint32_t SumOfLanes(uint64_t bits) {
    constexpr uint64_t kEven = 0x0000ffff0000ffffu;
    const uint64_t pairs = (bits & kEven) + ((bits >> 16) & kEven);
    return static_cast<uint32_t>(pairs) + static_cast<uint32_t>(pairs >> 32);
  }

  uint64_t key_;
};

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_COUNTER_RANDOM_H_
