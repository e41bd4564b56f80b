// The element types that tensors of the operator have.
#ifndef MLAP_BASE_ELEMENT_TYPE_H_
#define MLAP_BASE_ELEMENT_TYPE_H_

#include <cstdint>

namespace mlap {

enum class ElementType {
  kBf16,
  kInt8,
  kFloat32,
  kInt32,
  kInt64,
  kE4m3,  // OCP float8 E4M3 "fn": largest 448, no infinity
  kHiF8,  // HiFloat8: largest 2^15
  kE8m0,  // a power of two: 2^(byte - 127); 255 is a NaN
};

constexpr int64_t ElementBytes(ElementType type) {
  switch (type) {
    case ElementType::kBf16:
      return 2;
    case ElementType::kInt8:
    case ElementType::kE4m3:
    case ElementType::kHiF8:
    case ElementType::kE8m0:
      return 1;
    case ElementType::kFloat32:
    case ElementType::kInt32:
      return 4;
    case ElementType::kInt64:
      return 8;
  }
  return 0;
}

}  // namespace mlap

#endif  // MLAP_BASE_ELEMENT_TYPE_H_
