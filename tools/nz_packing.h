// FRACTAL_NZ images of weights: [ceil(n / C0), ceil(k / 16), 16, C0].
#ifndef MLAP_TOOLS_NZ_PACKING_H_
#define MLAP_TOOLS_NZ_PACKING_H_

#include "prolog_case.h"

namespace mlap::tools {

// The image of a row-major matrix (k, n), with zeros where it is padded.
CaseTensor PackNz(const CaseTensor& matrix, mlap_dtype dtype);

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_NZ_PACKING_H_
