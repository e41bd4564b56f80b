// What changes how the operator's steps compute, beside the types.
#ifndef MLAP_BASE_NUMERIC_RULES_H_
#define MLAP_BASE_NUMERIC_RULES_H_

#include <cfloat>

namespace mlap {

// The two device generations compute some roundings differently (docs/numerics.md).
enum class NumericRules { kA2, k950 };

// How pairs of rope columns lie before and after RoPE. The operator is kInterleavedToHalf; the others serve models
// whose weights were prepared otherwise. cos and sin hold one angle per output column in every style.
enum class RopeStyle {
  kInterleavedToHalf,  // pairs (2i, 2i + 1) in, real parts first and imaginary parts second out
  kHalf,               // pairs (i, Dr / 2 + i) in and out
  kInterleaved,        // pairs (2i, 2i + 1) in and out
  kNone,               // no rotation; sin and cos are not read
};

// Whether a row after RMSNorm is multiplied by qcQrScale or kcScale: not if that is 1, nearly 1, or a NaN.
constexpr bool IsAppliedFactor(float factor) {
  const float difference = factor - 1.0f;
  return difference >= FLT_EPSILON || difference <= -FLT_EPSILON;
}

}  // namespace mlap

#endif  // MLAP_BASE_NUMERIC_RULES_H_
