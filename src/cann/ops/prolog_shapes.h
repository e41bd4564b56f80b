// The shapes of the parameters in terms of the call's sizes.
#ifndef MLAP_CANN_OPS_PROLOG_SHAPES_H_
#define MLAP_CANN_OPS_PROLOG_SHAPES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cann/ops/prolog_limits.h"
#include "cann/ops/prolog_params.h"

namespace mlap::cann {

// Reads the sizes off the tensors that define them. Ranks must have been checked.
PrologDims ReadDims(const PrologTensors& tensors, const CacheMode& cache_mode);

// A dimension of any length.
inline constexpr int64_t kAnyLength = -1;

// A legal view shape of a parameter: its dimensions and their symbols, for example {8, 1536} and "(T, Hcq)".
struct ExpectedShape {
  std::vector<int64_t> dims;
  std::string symbols;
};

bool HasShape(const TensorDescriptor& tensor, const ExpectedShape& shape);

// All legal view shapes of `param`: one, or two for a FRACTAL_NZ weight, the matrix (k, n) and the fractals
// (n / C0, k / 16, 16, C0) of the tensor's type.
std::vector<ExpectedShape> ExpectedShapes(Param param, const CallKind& kind, const PrologDims& dims, aclDataType dtype);

}  // namespace mlap::cann

#endif  // MLAP_CANN_OPS_PROLOG_SHAPES_H_
