// The 8-bit types of the operator by their definitions: all codes with their values.
#ifndef MLAP_TOOLS_EIGHT_BIT_CODES_H_
#define MLAP_TOOLS_EIGHT_BIT_CODES_H_

#include <mlaprolog/mlaprolog.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mlap::tools {

class EightBitCodes {
 public:
  // `type`: MLAP_INT8, MLAP_FLOAT8_E4M3 or MLAP_HIFLOAT8.
  static const EightBitCodes& Of(mlap_dtype type);

  float Value(std::byte code) const { return values_[std::to_integer<size_t>(code)]; }

  // The number of smaller values; the two zeros of E4M3 have one place. Of a NaN -1.
  int Place(std::byte code) const { return places_[std::to_integer<size_t>(code)]; }

  // The code nearest to a finite value: ties to an even int8, away from zero otherwise. What is beyond the largest
  // finite value becomes that.
  std::byte Nearest(float value) const;

  // What the largest magnitude of quantised data should become: the largest value, or for HiFloat8, whose mantissa is
  // short for large ones, 16.
  float Range() const { return range_; }

 private:
  explicit EightBitCodes(mlap_dtype type);

  mlap_dtype type_;
  float range_;
  std::array<float, 256> values_;
  std::array<int, 256> places_;
  std::vector<float> sorted_;        // the finite values, ascending, each once
  std::vector<std::byte> of_place_;  // their codes
};

// Quantises `values` with one scale, the largest magnitude over the type's range, into out[0], out[stride], ...;
// returns the scale, 1 for zeros.
float QuantizeWithScale(mlap_dtype type, std::span<const float> values, std::byte* out, int64_t stride);

// As MXFP8: E4M3 with a power of two as the scale, whose E8M0 code is returned.
std::byte QuantizeMxGroup(std::span<const float> values, std::byte* out, int64_t stride);

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_EIGHT_BIT_CODES_H_
