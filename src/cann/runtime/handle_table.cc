#include "cann/runtime/handle_table.h"

namespace mlap::cann {

const char* HandleTypeName(HandleKind kind) {
  switch (kind) {
    case HandleKind::kContext:
      return "aclrtContext";
    case HandleKind::kStream:
      return "aclrtStream";
    case HandleKind::kEvent:
      return "aclrtEvent";
    case HandleKind::kTensor:
      return "aclTensor";
    case HandleKind::kScalar:
      return "aclScalar";
    case HandleKind::kIntArray:
      return "aclIntArray";
    case HandleKind::kFloatArray:
      return "aclFloatArray";
    case HandleKind::kBoolArray:
      return "aclBoolArray";
    case HandleKind::kTensorList:
      return "aclTensorList";
    case HandleKind::kScalarList:
      return "aclScalarList";
    case HandleKind::kExecutor:
      return "aclOpExecutor";
  }
  return "";
}

std::string DescribeNonHandle(const void* handle, HandleKind expected) {
  if (handle == nullptr) return "NULL";
  const uint64_t value = reinterpret_cast<uint64_t>(handle);
  const uint64_t kind = (value & ~kHandleTag) >> kHandleKindShift;
  const bool is_tagged = (value & kHandleTag) != 0 && kind >= static_cast<uint64_t>(HandleKind::kContext) &&
                         kind <= static_cast<uint64_t>(HandleKind::kExecutor);
  if (!is_tagged) return "a pointer this library did not return";
  const std::string name = HandleTypeName(static_cast<HandleKind>(kind));
  if (static_cast<HandleKind>(kind) != expected) return "a handle of type " + name;
  return "a destroyed " + name;
}

}  // namespace mlap::cann
