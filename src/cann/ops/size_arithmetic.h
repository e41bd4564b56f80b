// Sums and products of sizes that come straight from a descriptor; what overflows is out of every limit anyway.
#ifndef MLAP_CANN_OPS_SIZE_ARITHMETIC_H_
#define MLAP_CANN_OPS_SIZE_ARITHMETIC_H_

#include <cstdint>

namespace mlap::cann {

inline int64_t SaturatingMul(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

inline int64_t SaturatingAdd(int64_t a, int64_t b) {
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

}  // namespace mlap::cann

#endif  // MLAP_CANN_OPS_SIZE_ARITHMETIC_H_
