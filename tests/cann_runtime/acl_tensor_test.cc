// Tensors, scalars, arrays, lists: what goes in comes out, and wrong handles are told.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "acl_expectations.h"
#include "aclnn/acl_meta.h"

namespace mlap::cann {
namespace {

using Dims = std::vector<int64_t>;

struct Shape {
  Dims view;
  Dims strides;  // empty: none given
  Dims storage;
  Dims expected_strides;
};

Dims Take(aclnnStatus (*get)(const aclTensor*, int64_t**, uint64_t*), const aclTensor* tensor) {
  int64_t* values = nullptr;
  uint64_t count = 99;
  EXPECT_EQ(get(tensor, &values, &count), 0) << RecentText();
  EXPECT_NE(values, nullptr);
  Dims taken(values, values + count);
  delete[] values;
  return taken;
}

aclTensor* Create(const Shape& shape, void* data = nullptr) {
  return aclCreateTensor(shape.view.data(), shape.view.size(), ACL_BF16,
                         shape.strides.empty() ? nullptr : shape.strides.data(), 5, ACL_FORMAT_FRACTAL_NZ,
                         shape.storage.data(), shape.storage.size(), data);
}

std::vector<Shape> Shapes() {
  constexpr int64_t kHuge = INT64_MAX;
  Dims ones(25, 1);
  return {
      {{}, {}, {}, {}},
      {{7}, {}, {7}, {1}},
      {{2, 3, 4}, {}, {2, 3, 4}, {12, 4, 1}},
      {{2, 3}, {1, 2}, {6}, {1, 2}},
      {{2, 3}, {-3, 0}, {6}, {-3, 0}},
      {{96, 448, 16, 16}, {}, {96, 448, 16, 16}, {114688, 256, 16, 1}},
      {{7168, 1536}, {}, {96, 448, 16, 16}, {1536, 1}},
      {{0, 5}, {}, {0}, {5, 1}},
      {{5, 0, 3}, {}, {0}, {3, 3, 1}},
      {ones, {}, ones, ones},
      {{2, kHuge, 3}, {}, {1}, {kHuge, 3, 1}},
      {{kHuge, kHuge, kHuge, kHuge}, {}, {kHuge}, {kHuge, kHuge, kHuge, 1}},
      {{INT64_MIN, -1, 4}, {}, {INT64_MIN}, {4, 4, 1}},
  };
}

TEST(AclTensor, GettersReturnWhatWasGiven) {
  int data = 0;
  for (const Shape& shape : Shapes()) {
    SCOPED_TRACE(::testing::PrintToString(shape.view));
    aclTensor* const tensor = Create(shape, &data);
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(Take(&aclGetViewShape, tensor), shape.view);
    EXPECT_EQ(Take(&aclGetViewStrides, tensor), shape.expected_strides);
    EXPECT_EQ(Take(&aclGetStorageShape, tensor), shape.storage);
    int64_t offset = 0;
    auto format = ACL_FORMAT_UNDEFINED;
    auto type = ACL_DT_UNDEFINED;
    void* address = nullptr;
    EXPECT_EQ(aclGetViewOffset(tensor, &offset), 0);
    EXPECT_EQ(aclGetFormat(tensor, &format), 0);
    EXPECT_EQ(aclGetDataType(tensor, &type), 0);
    EXPECT_EQ(aclGetRawTensorAddr(tensor, &address), 0);
    EXPECT_EQ(offset, 5);
    EXPECT_EQ(format, ACL_FORMAT_FRACTAL_NZ);
    EXPECT_EQ(type, ACL_BF16);
    EXPECT_EQ(address, &data);
    EXPECT_EQ(aclDestroyTensor(tensor), 0);
  }
}

TEST(AclTensor, UnknownTypesAndFormatsAreKeptForTheOperatorToRefuse) {
  const Dims dims = {2};
  for (const int value : {INT32_MIN, -2, 99, INT32_MAX}) {
    aclTensor* const tensor = aclCreateTensor(dims.data(), 1, static_cast<aclDataType>(value), nullptr, 0,
                                              static_cast<aclFormat>(value), dims.data(), 1, nullptr);
    auto format = ACL_FORMAT_UNDEFINED;
    auto type = ACL_DT_UNDEFINED;
    EXPECT_EQ(aclGetFormat(tensor, &format), 0);
    EXPECT_EQ(aclGetDataType(tensor, &type), 0);
    EXPECT_EQ(format, value);
    EXPECT_EQ(type, value);
    EXPECT_EQ(aclDestroyTensor(tensor), 0);
  }
}

TEST(AclTensor, CreationRefusesMissingAndTooManyDimensions) {
  const Dims dims(26, 1);
  EXPECT_EQ(aclCreateTensor(nullptr, 1, ACL_BF16, nullptr, 0, ACL_FORMAT_ND, dims.data(), 1, nullptr), nullptr);
  ExpectRefused(0, 0, "aclCreateTensor");
  EXPECT_EQ(aclCreateTensor(dims.data(), 1, ACL_BF16, nullptr, 0, ACL_FORMAT_ND, nullptr, 1, nullptr), nullptr);
  ExpectRefused(0, 0, "aclCreateTensor");
  for (const uint64_t count : {uint64_t{26}, UINT64_MAX, uint64_t{1} << 32}) {
    EXPECT_EQ(aclCreateTensor(dims.data(), count, ACL_BF16, nullptr, 0, ACL_FORMAT_ND, dims.data(), 1, nullptr),
              nullptr);
    ExpectRefused(0, 0, "aclCreateTensor");
    EXPECT_EQ(aclCreateTensor(dims.data(), 1, ACL_BF16, nullptr, 0, ACL_FORMAT_ND, dims.data(), count, nullptr),
              nullptr);
    ExpectRefused(0, 0, "aclCreateTensor");
  }
}

TEST(AclTensor, InitDescribesAnotherTensor) {
  int data = 0;
  aclTensor* const tensor = Create({{2, 3}, {}, {6}, {}}, &data);
  const Dims dims = {4, 5};
  EXPECT_EQ(aclInitTensor(tensor, dims.data(), 2, ACL_INT8, nullptr, 9, ACL_FORMAT_ND, dims.data(), 2, nullptr), 0);
  EXPECT_EQ(Take(&aclGetViewShape, tensor), dims);
  void* address = nullptr;
  EXPECT_EQ(aclGetRawTensorAddr(tensor, &address), 0);
  EXPECT_EQ(address, &data);
  EXPECT_EQ(aclSetRawTensorAddr(tensor, nullptr), 0);
  EXPECT_EQ(aclGetRawTensorAddr(tensor, &address), 0);
  EXPECT_EQ(address, nullptr);
  ExpectRefused(161001,
                aclInitTensor(nullptr, dims.data(), 2, ACL_INT8, nullptr, 9, ACL_FORMAT_ND, dims.data(), 2, nullptr),
                "aclInitTensor");
  ExpectRefused(161001, aclInitTensor(tensor, nullptr, 2, ACL_INT8, nullptr, 9, ACL_FORMAT_ND, dims.data(), 2, nullptr),
                "aclInitTensor");
  ExpectRefused(161002,
                aclInitTensor(tensor, dims.data(), 26, ACL_INT8, nullptr, 9, ACL_FORMAT_ND, dims.data(), 2, nullptr),
                "aclInitTensor");
  EXPECT_EQ(Take(&aclGetViewShape, tensor), dims);
  EXPECT_EQ(aclDestroyTensor(tensor), 0);
}

TEST(AclTensor, WrongHandlesAreRefused) {
  const Dims dims = {4, 5};
  static const int64_t* static_dims;
  static_dims = dims.data();
  const struct {
    const char* function;
    aclnnStatus (*call)(aclTensor*);
  } kCalls[] = {
      {"aclGetViewShape",
       [](aclTensor* t) {
         int64_t* values;
         uint64_t count;
         return aclGetViewShape(t, &values, &count);
       }},
      {"aclGetViewStrides",
       [](aclTensor* t) {
         int64_t* values;
         uint64_t count;
         return aclGetViewStrides(t, &values, &count);
       }},
      {"aclGetStorageShape",
       [](aclTensor* t) {
         int64_t* values;
         uint64_t count;
         return aclGetStorageShape(t, &values, &count);
       }},
      {"aclGetViewOffset",
       [](aclTensor* t) {
         int64_t offset;
         return aclGetViewOffset(t, &offset);
       }},
      {"aclGetFormat",
       [](aclTensor* t) {
         aclFormat format;
         return aclGetFormat(t, &format);
       }},
      {"aclGetDataType",
       [](aclTensor* t) {
         aclDataType type;
         return aclGetDataType(t, &type);
       }},
      {"aclGetRawTensorAddr",
       [](aclTensor* t) {
         void* address;
         return aclGetRawTensorAddr(t, &address);
       }},
      {"aclSetRawTensorAddr", [](aclTensor* t) { return aclSetRawTensorAddr(t, nullptr); }},
      {"aclInitTensor",
       [](aclTensor* t) {
         return aclInitTensor(t, static_dims, 2, ACL_INT8, nullptr, 0, ACL_FORMAT_ND, static_dims, 2, nullptr);
       }},
  };
  aclTensor* const destroyed = Create({dims, {}, dims, {}});
  ASSERT_EQ(aclDestroyTensor(destroyed), 0);
  aclTensor* const live = Create({dims, {}, dims, {}});
  aclIntArray* const array = aclCreateIntArray(dims.data(), 2);
  int64_t on_the_stack[100] = {};
  for (aclTensor* wrong :
       {destroyed, reinterpret_cast<aclTensor*>(array), reinterpret_cast<aclTensor*>(on_the_stack)}) {
    for (const auto& tensor_call : kCalls) ExpectRefused(161002, tensor_call.call(wrong), tensor_call.function);
    ExpectRefused(161002, aclDestroyTensor(wrong), "aclDestroyTensor");
  }
  for (const auto& tensor_call : kCalls) ExpectRefused(161001, tensor_call.call(nullptr), tensor_call.function);
  EXPECT_EQ(aclDestroyTensor(nullptr), 0);
  int64_t* values = nullptr;
  uint64_t count = 0;
  for (auto* get : {&aclGetViewShape, &aclGetViewStrides, &aclGetStorageShape}) {
    EXPECT_EQ(get(live, nullptr, &count), 161001);
    EXPECT_EQ(get(live, &values, nullptr), 161001);
  }
  EXPECT_EQ(values, nullptr);
  EXPECT_EQ(aclGetViewOffset(live, nullptr), 161001);
  EXPECT_EQ(aclGetFormat(live, nullptr), 161001);
  EXPECT_EQ(aclGetDataType(live, nullptr), 161001);
  EXPECT_EQ(aclGetRawTensorAddr(live, nullptr), 161001);
  EXPECT_EQ(aclDestroyTensor(live), 0);
  EXPECT_EQ(aclDestroyIntArray(array), 0);
  RecentText();
}

// All kinds of arrays obey one set of rules.
template <class Handle, class Element>
void CheckArray(Handle* (*create)(const Element*, uint64_t), aclnnStatus (*destroy)(const Handle*),
                aclnnStatus (*get_size)(const Handle*, uint64_t*)) {
  const Element values[3] = {};
  for (uint64_t size = 0; size <= 3; ++size) {
    Handle* const array = create(size == 0 ? nullptr : values, size);
    ASSERT_NE(array, nullptr);
    uint64_t got = 99;
    EXPECT_EQ(get_size(array, &got), 0);
    EXPECT_EQ(got, size);
    EXPECT_EQ(get_size(array, nullptr), 161001);
    EXPECT_EQ(destroy(array), 0);
    EXPECT_EQ(destroy(array), 161002);
    EXPECT_EQ(get_size(array, &got), 161002);
  }
  EXPECT_EQ(create(nullptr, 1), nullptr);
  EXPECT_EQ(destroy(nullptr), 0);
  uint64_t got = 0;
  EXPECT_EQ(get_size(nullptr, &got), 161001);
  RecentText();
}

TEST(AclArrays, ObeyOneSetOfRules) {
  CheckArray(&aclCreateIntArray, &aclDestroyIntArray, &aclGetIntArraySize);
  CheckArray(&aclCreateFloatArray, &aclDestroyFloatArray, &aclGetFloatArraySize);
  CheckArray(&aclCreateBoolArray, &aclDestroyBoolArray, &aclGetBoolArraySize);
  CheckArray(&aclCreateTensorList, &aclDestroyTensorList, &aclGetTensorListSize);
  CheckArray(&aclCreateScalarList, &aclDestroyScalarList, &aclGetScalarListSize);
  const int64_t one = 1;
  EXPECT_EQ(aclCreateIntArray(&one, UINT64_MAX), nullptr);
  ExpectRefused(0, 0, "aclCreateIntArray");
}

TEST(AclScalar, IsCopiedAndChecked) {
  double value = 2.5;
  for (const aclDataType type : {ACL_BF16, ACL_FLOAT, ACL_DOUBLE, ACL_BOOL}) {
    aclScalar* const scalar = aclCreateScalar(&value, type);
    ASSERT_NE(scalar, nullptr);
    EXPECT_EQ(aclDestroyScalar(scalar), 0);
    ExpectRefused(161002, aclDestroyScalar(scalar), "aclDestroyScalar");
  }
  EXPECT_EQ(aclCreateScalar(nullptr, ACL_FLOAT), nullptr);
  EXPECT_EQ(aclCreateScalar(&value, ACL_STRING), nullptr);
  RecentText();
}

TEST(AclLists, OwnTheirMembers) {
  const Dims dims = {2};
  const aclTensor* members[] = {Create({dims, {}, dims, {}}), nullptr, Create({dims, {}, dims, {}})};
  aclTensorList* const list = aclCreateTensorList(members, 3);
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(aclDestroyTensor(members[2]), 0);  // a member that is gone already does no harm
  EXPECT_EQ(aclDestroyTensorList(list), 0);
  ExpectRefused(161002, aclDestroyTensor(members[0]), "aclDestroyTensor");
  EXPECT_EQ(aclCreateTensorList(members, 3), nullptr);
  ExpectRefused(0, 0, "aclCreateTensorList");

  float value = 1;
  const aclScalar* scalars[] = {aclCreateScalar(&value, ACL_FLOAT), aclCreateScalar(&value, ACL_FLOAT)};
  aclScalarList* const scalar_list = aclCreateScalarList(scalars, 2);
  ASSERT_NE(scalar_list, nullptr);
  EXPECT_EQ(aclDestroyScalarList(scalar_list), 0);
  ExpectRefused(161002, aclDestroyScalar(scalars[1]), "aclDestroyScalar");
}

TEST_F(DeviceTest, DumpWritesViewsInStreamOrder) {
  const std::filesystem::path directory = ::testing::TempDir() + "/acl_dump_" + std::to_string(getpid());
  std::filesystem::create_directory(directory);
  int16_t data[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  const int64_t dims[] = {2, 3};
  const int64_t transposed[] = {1, 2};
  const int64_t storage[] = {8};
  aclTensor* tensors[] = {aclCreateTensor(dims, 2, ACL_INT16, nullptr, 2, ACL_FORMAT_ND, storage, 1, data), nullptr,
                          aclCreateTensor(dims, 2, ACL_INT16, transposed, 0, ACL_FORMAT_ND, storage, 1, data)};
  EXPECT_EQ(aclDumpOpTensors(nullptr, nullptr, nullptr, 2, 1, nullptr),
            0);  // without the variable nothing is looked at
  setenv("MLAP_DUMP_DIR", directory.c_str(), 1);
  Gate gate;
  ASSERT_EQ(aclrtLaunchHostFunc(nullptr, &Gate::Pass, &gate), ACL_SUCCESS);
  EXPECT_EQ(aclDumpOpTensors("Op/Type", "name", tensors, 2, 1, nullptr), 0) << RecentText();
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  gate.Open();
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS) << RecentText();
  const auto read = [&](const char* suffix) {
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      const std::string path = entry.path();
      if (path.size() < std::strlen(suffix) || path.substr(path.size() - std::strlen(suffix)) != suffix) continue;
      EXPECT_NE(path.find("Op_Type.name."), std::string::npos) << path;
      std::ifstream file(path, std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
      std::vector<int16_t> values(bytes.size() / 2);
      std::memcpy(values.data(), bytes.data(), 2 * values.size());
      return values;
    }
    return std::vector<int16_t>{-1};
  };
  EXPECT_EQ(read(".input.0.bin"), (std::vector<int16_t>{2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(read(".output.0.bin"), (std::vector<int16_t>{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(read(".input.1.bin"), (std::vector<int16_t>{-1}));
  std::filesystem::remove_all(directory);
  // The directory is gone: the stream reports it.
  EXPECT_EQ(aclDumpOpTensors("Op", "name", tensors, 1, 0, nullptr), 0);
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_ERROR_RT_FILE_WRITE);
  RecentText();
  ExpectRefused(161001, aclDumpOpTensors(nullptr, "name", tensors, 1, 0, nullptr), "aclDumpOpTensors");
  ExpectRefused(161002, aclDumpOpTensors("Op", "name", tensors, SIZE_MAX, 2, nullptr), "aclDumpOpTensors");
  ExpectRefused(161002, aclDumpOpTensors("Op", "name", tensors, 1, SIZE_MAX, nullptr), "aclDumpOpTensors");
  unsetenv("MLAP_DUMP_DIR");
  for (const aclTensor* tensor : tensors) EXPECT_EQ(aclDestroyTensor(tensor), 0);
}

}  // namespace
}  // namespace mlap::cann
