// The element types that tensors of the operator have.
#ifndef MLAP_BASE_ELEMENT_TYPE_H_
#define MLAP_BASE_ELEMENT_TYPE_H_

#include <cstdint>

namespace mlap {

enum class ElementType { kBf16, kInt8, kFloat32, kInt32, kInt64 };

constexpr int64_t ElementBytes(ElementType type) {
  switch (type) {
    case ElementType::kBf16:
      return 2;
    case ElementType::kInt8:
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
