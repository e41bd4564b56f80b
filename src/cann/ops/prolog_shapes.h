// The shapes of the parameters in terms of the call's sizes.
#ifndef MLAP_CANN_OPS_PROLOG_SHAPES_H_
#define MLAP_CANN_OPS_PROLOG_SHAPES_H_

#include <cstdint>
#include <string>

#include "cann/ops/prolog_limits.h"
#include "cann/ops/prolog_params.h"

namespace mlap::cann {

// Reads the sizes off the tensors that define them. Ranks must have been checked.
PrologDims ReadDims(const PrologTensors& tensors, const CacheMode& cache_mode);

// Whether a present parameter has a legal view shape. A FRACTAL_NZ weight has two: the matrix (k, n) and the fractals
// (n / C0, k / 16, 16, C0) of the tensor's type.
bool HasExpectedShape(const TensorDescriptor& tensor, Param param, const CallKind& kind, const PrologDims& dims);

// The legal shapes, as numbers and symbols: "[8, 1536] = (T, Hcq)".
std::string ExpectedShapeText(const TensorDescriptor& tensor, Param param, const CallKind& kind,
                              const PrologDims& dims);

}  // namespace mlap::cann

#endif  // MLAP_CANN_OPS_PROLOG_SHAPES_H_
