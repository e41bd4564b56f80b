// The loop of the row kernels.
#ifndef MLAP_KERNELS_VECTOR_FOR_EACH_VECTOR_H_
#define MLAP_KERNELS_VECTOR_FOR_EACH_VECTOR_H_

#include <cstdint>

namespace mlap {

// Calls fn(first element, count) for each vector of a row of n elements. Of whole vectors the count is a constant, for
// which compilers make no masks.
template <class V, class Fn>
static inline void ForEachVector(int64_t n, Fn fn) {
  int64_t j = 0;
  for (; j + V::kLanes <= n; j += V::kLanes) fn(j, V::kLanes);
  if (j < n) fn(j, static_cast<int>(n - j));
}

}  // namespace mlap

#endif  // MLAP_KERNELS_VECTOR_FOR_EACH_VECTOR_H_
