// Measures how two tensors differ, and judges it by a named standard.
#ifndef MLAP_API_COMPARISON_H_
#define MLAP_API_COMPARISON_H_

#include <cstddef>

#include "api/tensor_checks.h"
#include "mlaprolog/mlaprolog.h"

namespace mlap {

struct StandardName {
  mlap_standard standard;
  const char* name;
};

// In the order of mlap_standard; null beyond the last.
const StandardName* StandardAt(size_t index);

// Whether a result of this type can be judged by the standard: `expected` says what can if not.
bool StandardTakes(mlap_standard standard, mlap_dtype dtype, const char** expected);

constexpr bool NeedsBenchmark(mlap_standard standard) { return standard >= MLAP_STANDARD_DUAL_L0; }

// The tensors have equal shapes and have been checked; `benchmark` is null unless the standard needs one.
void Compare(const mlap_tensor& actual, const mlap_tensor& golden, const mlap_tensor* benchmark, mlap_standard standard,
             mlap_comparison* result);

}  // namespace mlap

#endif  // MLAP_API_COMPARISON_H_
