// Scalars, arrays and lists.
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "aclnn/acl_meta.h"
#include "aclnn/aclnn_status.h"
#include "cann/runtime/recent_error.h"
#include "cann/runtime/tensor_table.h"

namespace mlap::cann {
namespace {

// One type per kind, so that each has a table of its own.
struct ScalarValue {
  aclDataType dtype;
  std::vector<std::byte> bytes;
};

template <class Handle>
struct ArrayTraits;
template <>
struct ArrayTraits<aclIntArray> {
  using Values = std::vector<int64_t>;
  static constexpr HandleKind kKind = HandleKind::kIntArray;
};
template <>
struct ArrayTraits<aclFloatArray> {
  using Values = std::vector<float>;
  static constexpr HandleKind kKind = HandleKind::kFloatArray;
};
template <>
struct ArrayTraits<aclBoolArray> {
  using Values = std::vector<bool>;
  static constexpr HandleKind kKind = HandleKind::kBoolArray;
};
template <>
struct ArrayTraits<aclScalar> {
  using Values = ScalarValue;
  static constexpr HandleKind kKind = HandleKind::kScalar;
};
template <>
struct ArrayTraits<aclTensorList> {
  using Values = std::vector<const aclTensor*>;
  static constexpr HandleKind kKind = HandleKind::kTensorList;
};
template <>
struct ArrayTraits<aclScalarList> {
  using Values = std::vector<const aclScalar*>;
  static constexpr HandleKind kKind = HandleKind::kScalarList;
};

template <class Handle>
using Values = typename ArrayTraits<Handle>::Values;

template <class Handle>
HandleTable<Values<Handle>>& TableOf() {
  static auto* const table = new HandleTable<Values<Handle>>(ArrayTraits<Handle>::kKind);
  return *table;
}

template <class Handle, class Element>
Handle* CreateArray(const char* function, const Element* value, uint64_t size) {
  return Guarded(function, [&]() -> Handle* {
    if (size != 0 && RequireOpPointer(function, "value", value) != 0) return nullptr;
    auto values = std::make_shared<Values<Handle>>();
    if (size > values->max_size()) {
      FailOp(ACLNN_ERR_PARAM_INVALID,
             RefusalText(function, "size", "a number of elements that fits into memory", std::to_string(size), ""));
      return nullptr;
    }
    values->assign(value, value + size);
    return static_cast<Handle*>(TableOf<Handle>().Add(std::move(values)));
  });
}

template <class Handle>
aclnnStatus DestroyArray(const char* function, const char* parameter, const Handle* array) {
  return Guarded(function, [&] {
    if (array == nullptr || TableOf<Handle>().Remove(array) != nullptr) return 0;
    return RefuseOpHandle(function, parameter, array, ArrayTraits<Handle>::kKind);
  });
}

template <class Handle>
aclnnStatus GetSize(const char* function, const char* parameter, const Handle* array, uint64_t* size) {
  return Guarded(function, [&] {
    if (array == nullptr) return RequireOpPointer(function, parameter, nullptr);
    if (const aclnnStatus status = RequireOpPointer(function, "size", size)) return status;
    if (TableOf<Handle>().Visit(array, [size](const Values<Handle>& values) { *size = values.size(); })) return 0;
    return RefuseOpHandle(function, parameter, array, ArrayTraits<Handle>::kKind);
  });
}

// Members must be live, so that a list never destroys what it was not given.
template <class List, class Member, class Table>
List* CreateList(const char* function, const Member* const* value, uint64_t size, const Table& members) {
  return Guarded(function, [&]() -> List* {
    if (size != 0 && RequireOpPointer(function, "value", value) != 0) return nullptr;
    for (uint64_t i = 0; i < size; ++i) {
      if (value[i] == nullptr || members.Find(value[i]) != nullptr) continue;
      const std::string parameter = "value[" + std::to_string(i) + "]";
      RefuseOpHandle(function, parameter.c_str(), value[i], members.kind());
      return nullptr;
    }
    return CreateArray<List>(function, value, size);
  });
}

template <class List, class Table>
aclnnStatus DestroyList(const char* function, const char* parameter, const List* list, Table& members) {
  return Guarded(function, [&] {
    if (list == nullptr) return 0;
    const auto values = TableOf<List>().Remove(list);
    if (values == nullptr) return RefuseOpHandle(function, parameter, list, ArrayTraits<List>::kKind);
    for (const auto* member : *values) members.Remove(member);
    return 0;
  });
}

}  // namespace
}  // namespace mlap::cann

using namespace mlap::cann;

aclScalar* aclCreateScalar(void* value, aclDataType dataType) {
  return Guarded("aclCreateScalar", [&]() -> aclScalar* {
    if (RequireOpPointer("aclCreateScalar", "value", value) != 0) return nullptr;
    const size_t num_bytes = aclDataTypeSize(dataType);
    if (num_bytes == 0) {
      FailOp(ACLNN_ERR_PARAM_INVALID, RefusalText("aclCreateScalar", "dataType", "a type whose elements have a size",
                                                  std::to_string(static_cast<int>(dataType)), ""));
      return nullptr;
    }
    const auto* bytes = static_cast<const std::byte*>(value);
    auto scalar = std::make_shared<ScalarValue>();
    scalar->dtype = dataType;
    scalar->bytes.assign(bytes, bytes + num_bytes);
    return static_cast<aclScalar*>(TableOf<aclScalar>().Add(std::move(scalar)));
  });
}

aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size) {
  return CreateArray<aclIntArray>("aclCreateIntArray", value, size);
}

aclFloatArray* aclCreateFloatArray(const float* value, uint64_t size) {
  return CreateArray<aclFloatArray>("aclCreateFloatArray", value, size);
}

aclBoolArray* aclCreateBoolArray(const bool* value, uint64_t size) {
  return CreateArray<aclBoolArray>("aclCreateBoolArray", value, size);
}

aclTensorList* aclCreateTensorList(const aclTensor* const* value, uint64_t size) {
  return CreateList<aclTensorList>("aclCreateTensorList", value, size, TensorTable());
}

aclScalarList* aclCreateScalarList(const aclScalar* const* value, uint64_t size) {
  return CreateList<aclScalarList>("aclCreateScalarList", value, size, TableOf<aclScalar>());
}

aclnnStatus aclDestroyScalar(const aclScalar* scalar) { return DestroyArray("aclDestroyScalar", "scalar", scalar); }

aclnnStatus aclDestroyIntArray(const aclIntArray* array) { return DestroyArray("aclDestroyIntArray", "array", array); }

aclnnStatus aclDestroyFloatArray(const aclFloatArray* array) {
  return DestroyArray("aclDestroyFloatArray", "array", array);
}

aclnnStatus aclDestroyBoolArray(const aclBoolArray* array) {
  return DestroyArray("aclDestroyBoolArray", "array", array);
}

aclnnStatus aclDestroyTensorList(const aclTensorList* array) {
  return DestroyList("aclDestroyTensorList", "array", array, TensorTable());
}

aclnnStatus aclDestroyScalarList(const aclScalarList* array) {
  return DestroyList("aclDestroyScalarList", "array", array, TableOf<aclScalar>());
}

aclnnStatus aclGetIntArraySize(const aclIntArray* array, uint64_t* size) {
  return GetSize("aclGetIntArraySize", "array", array, size);
}

aclnnStatus aclGetFloatArraySize(const aclFloatArray* array, uint64_t* size) {
  return GetSize("aclGetFloatArraySize", "array", array, size);
}

aclnnStatus aclGetBoolArraySize(const aclBoolArray* array, uint64_t* size) {
  return GetSize("aclGetBoolArraySize", "array", array, size);
}

aclnnStatus aclGetTensorListSize(const aclTensorList* tensorList, uint64_t* size) {
  return GetSize("aclGetTensorListSize", "tensorList", tensorList, size);
}

aclnnStatus aclGetScalarListSize(const aclScalarList* scalarList, uint64_t* size) {
  return GetSize("aclGetScalarListSize", "scalarList", scalarList, size);
}
