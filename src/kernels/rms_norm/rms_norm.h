// RMSNorm of one row, in binary32 with one rounding per operation.
#ifndef MLAP_KERNELS_RMS_NORM_RMS_NORM_H_
#define MLAP_KERNELS_RMS_NORM_RMS_NORM_H_

#include <cstdint>

#include "base/bf16.h"

namespace mlap {

//   q_j = x_j * x_j;   S = the 64 lane sums (lane l adds q_l, q_{l+64}, ..), reduced pairwise between neighbours
//   r   = sqrt(S * (1 / n) + epsilon);   y_j = (x_j / r) * gamma_j
//
// `x` and `y` [n] may be the same row. Bit-identical on every ISA but for which
// binary32 NaN a NaN is.
using RmsNormFn = void (*)(const float* x, const Bf16* gamma, int64_t n, float epsilon, float* y);

}  // namespace mlap

#endif  // MLAP_KERNELS_RMS_NORM_RMS_NORM_H_
