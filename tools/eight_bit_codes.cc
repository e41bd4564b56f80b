#include "eight_bit_codes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace mlap::tools {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// s eeee mmm with bias 7; s 1111 111 is a NaN, and there are no infinities.
float E4m3Value(int code) {
  const int exponent = (code >> 3) & 15;
  const int mantissa = code & 7;
  if (exponent == 15 && mantissa == 7) return kNan;
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                        : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

// A sign, a prefix that says how many exponent bits follow, the exponent with its own sign and an implied leading one,
// the mantissa: s 11 eeee m, s 10 eee mm, s 01 ee mmm, s 001 e mmm, s 0001 mmm, s 0000 mmm.
float HiF8Value(int code) {
  const int rest = code & 0x7f;
  if (rest == 0) return (code & 0x80) != 0 ? kNan : 0.0f;
  float magnitude = 0.0f;
  if (rest == 0x6f) {
    magnitude = kInfinity;
  } else if (rest < 8) {
    magnitude = std::ldexp(1.0f, rest - 23);
  } else {
    const int exponent_bits = rest >= 0x60 ? 4 : rest >= 0x40 ? 3 : rest >= 0x20 ? 2 : rest >= 0x10 ? 1 : 0;
    const int mantissa_bits = exponent_bits <= 2 ? 3 : 5 - exponent_bits;
    const int field = (rest >> mantissa_bits) & ((1 << exponent_bits) - 1);
    const int leading_one = (1 << exponent_bits) >> 1;
    const int size = field | leading_one;
    const int exponent = (field & leading_one) != 0 ? -size : size;
    const int mantissa = rest & ((1 << mantissa_bits) - 1);
    magnitude = std::ldexp(static_cast<float>((1 << mantissa_bits) + mantissa), exponent - mantissa_bits);
  }
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

float ValueOf(mlap_dtype type, int code) {
  if (type == MLAP_FLOAT8_E4M3) return E4m3Value(code);
  if (type == MLAP_HIFLOAT8) return HiF8Value(code);
  return static_cast<float>(static_cast<int8_t>(code));
}

float LargestMagnitude(std::span<const float> values) {
  float largest = 0.0f;
  for (const float value : values) largest = std::max(largest, std::fabs(value));
  return largest;
}

}  // namespace

EightBitCodes::EightBitCodes(mlap_dtype type) : type_(type) {
  std::vector<int> order;
  for (int code = 0; code < 256; ++code) {
    values_[static_cast<size_t>(code)] = ValueOf(type, code);
    if (!std::isnan(values_[static_cast<size_t>(code)])) order.push_back(code);
  }
  const auto value = [this](int code) { return values_[static_cast<size_t>(code)]; };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return value(a) < value(b); });
  places_.fill(-1);
  int place = -1;
  float last = kNan;
  for (const int code : order) {
    if (value(code) != last) ++place;
    last = value(code);
    places_[static_cast<size_t>(code)] = place;
    if (!std::isfinite(last) || (!sorted_.empty() && sorted_.back() == last)) continue;
    sorted_.push_back(last);
    of_place_.push_back(static_cast<std::byte>(code));
  }
  range_ = type == MLAP_HIFLOAT8 ? 16.0f : sorted_.back();
}

const EightBitCodes& EightBitCodes::Of(mlap_dtype type) {
  static const EightBitCodes kInt8(MLAP_INT8);
  static const EightBitCodes kE4m3(MLAP_FLOAT8_E4M3);
  static const EightBitCodes kHiF8(MLAP_HIFLOAT8);
  return type == MLAP_FLOAT8_E4M3 ? kE4m3 : type == MLAP_HIFLOAT8 ? kHiF8 : kInt8;
}

std::byte EightBitCodes::Nearest(float value) const {
  if (type_ == MLAP_INT8) return static_cast<std::byte>(static_cast<int8_t>(std::nearbyint(value)));
  const auto above = std::lower_bound(sorted_.begin(), sorted_.end(), value);
  if (above == sorted_.end()) return of_place_.back();
  if (above == sorted_.begin() || *above == value) return of_place_[static_cast<size_t>(above - sorted_.begin())];
  const float down = value - above[-1];
  const float up = *above - value;
  const bool goes_up = up < down || (up == down && value > 0.0f);
  return of_place_[static_cast<size_t>(above - sorted_.begin()) - (goes_up ? 0 : 1)];
}

float QuantizeWithScale(mlap_dtype type, std::span<const float> values, std::byte* out, int64_t stride) {
  const EightBitCodes& codes = EightBitCodes::Of(type);
  const float largest = LargestMagnitude(values);
  const float scale = largest > 0.0f ? largest / codes.Range() : 1.0f;
  for (const float value : values) {
    *out = codes.Nearest(value / scale);
    out += stride;
  }
  return scale;
}

std::byte QuantizeMxGroup(std::span<const float> values, std::byte* out, int64_t stride) {
  constexpr int kBias = 127;
  constexpr int kLargestExponent = 8;  // of E4M3
  const float largest = LargestMagnitude(values);
  const int exponent = largest > 0.0f ? std::max(std::ilogb(largest) - kLargestExponent, -kBias) : 0;
  const EightBitCodes& codes = EightBitCodes::Of(MLAP_FLOAT8_E4M3);
  for (const float value : values) {
    *out = codes.Nearest(std::ldexp(value, -exponent));
    out += stride;
  }
  return static_cast<std::byte>(exponent + kBias);
}

}  // namespace mlap::tools
