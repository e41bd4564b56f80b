// Memory: allocation, copying, filling, queries.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "acl_expectations.h"

namespace mlap::cann {
namespace {

constexpr size_t kMaxSize = SIZE_MAX;

TEST_F(DeviceTest, AllocationsAreAlignedPaddedAndKnown) {
  for (const size_t size : {size_t{1}, size_t{31}, size_t{32}, size_t{33}, size_t{4096}, (size_t{1} << 20) - 32,
                            size_t{1} << 20, (size_t{2} << 20) - 64, size_t{2} << 20, (size_t{5} << 20) + 7}) {
    for (const int policy : {0, 1, 2, 6, 0x1000}) {
      void* pointer = nullptr;
      ASSERT_EQ(aclrtMalloc(&pointer, size, static_cast<aclrtMemMallocPolicy>(policy)), ACL_SUCCESS);
      const size_t padded = (size + 31) / 32 * 32 + 32;
      const size_t alignment = padded > size_t{1} << 20 ? size_t{2} << 20 : 64;  // on huge pages, or small
      EXPECT_EQ(reinterpret_cast<uintptr_t>(pointer) % alignment, 0U) << size;
      std::memset(pointer, 1, padded);
      for (const size_t position : {size_t{0}, size / 2, padded - 1}) {
        aclrtPtrAttributes attributes = {};
        ASSERT_EQ(aclrtPointerGetAttributes(static_cast<char*>(pointer) + position, &attributes), ACL_SUCCESS);
        EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
        EXPECT_EQ(attributes.location.id, 0U);
        EXPECT_GE(attributes.pageSize, 4096U);
      }
      EXPECT_EQ(aclrtFree(pointer), ACL_SUCCESS);
    }
    void* host = nullptr;
    ASSERT_EQ(aclrtMallocHost(&host, size), ACL_SUCCESS);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(host) % 64, 0U);
    std::memset(host, 1, size);
    aclrtPtrAttributes attributes = {};
    ASSERT_EQ(aclrtPointerGetAttributes(host, &attributes), ACL_SUCCESS);
    EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_HOST);
    EXPECT_EQ(aclrtFreeHost(host), ACL_SUCCESS);
  }
  int on_the_stack = 0;
  aclrtPtrAttributes attributes = {};
  ASSERT_EQ(aclrtPointerGetAttributes(&on_the_stack, &attributes), ACL_SUCCESS);
  EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
  EXPECT_EQ(attributes.pageSize, 0U);
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtPointerGetAttributes(nullptr, &attributes), "aclrtPointerGetAttributes");
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtPointerGetAttributes(&on_the_stack, nullptr),
                "aclrtPointerGetAttributes");
}

TEST_F(DeviceTest, ImpossibleSizesAreRefused) {
  void* pointer = nullptr;
  for (const size_t size : {kMaxSize, kMaxSize - 1, kMaxSize - 31, kMaxSize - 32, kMaxSize - 63, kMaxSize - 64,
                            kMaxSize - 65, kMaxSize / 2, size_t{1} << 60, size_t{1} << 47}) {
    ExpectRefused(ACL_ERROR_RT_MEMORY_ALLOCATION, aclrtMalloc(&pointer, size, ACL_MEM_MALLOC_HUGE_FIRST),
                  "aclrtMalloc");
    ExpectRefused(ACL_ERROR_RT_MEMORY_ALLOCATION, aclrtMallocHost(&pointer, size), "aclrtMallocHost");
  }
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtMalloc(&pointer, 0, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtMalloc(nullptr, 32, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtMallocHost(&pointer, 0), "aclrtMallocHost");
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtMallocHost(nullptr, 32), "aclrtMallocHost");
  EXPECT_EQ(pointer, nullptr);
}

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(DeviceTest, ALimitOfTheProcessIsNamed) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  size_t pages_in_use = 0;
  ASSERT_TRUE(std::ifstream("/proc/self/statm") >> pages_in_use);
  rlimit tight = before;
  tight.rlim_cur = pages_in_use * static_cast<size_t>(sysconf(_SC_PAGESIZE)) + (size_t{16} << 20);
  constexpr size_t kSize = size_t{64} << 20;
  void* pointer = nullptr;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  const aclError code = aclrtMalloc(&pointer, kSize, ACL_MEM_MALLOC_HUGE_FIRST);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(code, ACL_ERROR_RT_MEMORY_ALLOCATION);
  const std::string text = RecentText();
  EXPECT_NE(text.find("found " + std::to_string(kSize) + ": the system refused"), std::string::npos) << text;
}
#endif

TEST_F(DeviceTest, OnlyOwnBlocksAreFreedAndOnlyOnce) {
  void* device = nullptr;
  void* host = nullptr;
  ASSERT_EQ(aclrtMalloc(&device, 100, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  ASSERT_EQ(aclrtMallocHost(&host, 100), ACL_SUCCESS);
  std::vector<char> foreign(100);
  for (void* wrong : {host, static_cast<void*>(foreign.data()), static_cast<void*>(static_cast<char*>(device) + 32)}) {
    ExpectRefused(ACL_ERROR_RT_PARAM_INVALID, aclrtFree(wrong), "aclrtFree");
  }
  for (void* wrong : {device, static_cast<void*>(foreign.data()), static_cast<void*>(static_cast<char*>(host) + 1)}) {
    ExpectRefused(ACL_ERROR_RT_PARAM_INVALID, aclrtFreeHost(wrong), "aclrtFreeHost");
  }
  EXPECT_EQ(aclrtFree(device), ACL_SUCCESS);
  EXPECT_EQ(aclrtFreeHost(host), ACL_SUCCESS);
  ExpectRefused(ACL_ERROR_RT_PARAM_INVALID, aclrtFree(device), "aclrtFree");
  ExpectRefused(ACL_ERROR_RT_PARAM_INVALID, aclrtFreeHost(host), "aclrtFreeHost");
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtFree(nullptr), "aclrtFree");
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtFreeHost(nullptr), "aclrtFreeHost");
}

TEST_F(DeviceTest, MemoryNeedsAContextButFreeingDoesNot) {
  void* device = nullptr;
  ASSERT_EQ(aclrtMalloc(&device, 100, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  std::thread([device] {
    void* pointer = nullptr;
    char byte = 0;
    size_t bytes = 0;
    ExpectRefused(ACL_ERROR_RT_CONTEXT_NULL, aclrtMalloc(&pointer, 1, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    ExpectRefused(ACL_ERROR_RT_CONTEXT_NULL, aclrtMallocHost(&pointer, 1), "aclrtMallocHost");
    ExpectRefused(ACL_ERROR_RT_CONTEXT_NULL, aclrtMemcpy(device, 1, &byte, 1, ACL_MEMCPY_HOST_TO_DEVICE),
                  "aclrtMemcpy");
    ExpectRefused(ACL_ERROR_RT_CONTEXT_NULL, aclrtMemcpy2d(device, 1, &byte, 1, 1, 1, ACL_MEMCPY_HOST_TO_DEVICE),
                  "aclrtMemcpy2d");
    ExpectRefused(ACL_ERROR_RT_CONTEXT_NULL, aclrtMemset(device, 1, 0, 1), "aclrtMemset");
    ExpectRefused(ACL_ERROR_RT_CONTEXT_NULL, aclrtGetMemInfo(ACL_HBM_MEM, &bytes, &bytes), "aclrtGetMemInfo");
    EXPECT_EQ(aclrtFree(device), ACL_SUCCESS);
  }).join();
}

TEST_F(DeviceTest, MemInfoIsPlausible) {
  for (int attr = 0; attr <= 17; ++attr) {
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    EXPECT_EQ(aclrtGetMemInfo(static_cast<aclrtMemAttr>(attr), &free_bytes, &total_bytes), ACL_SUCCESS);
    EXPECT_GT(free_bytes, 0U);
    EXPECT_LE(free_bytes, total_bytes);
  }
  size_t bytes = 0;
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtGetMemInfo(static_cast<aclrtMemAttr>(18), &bytes, &bytes),
                "aclrtGetMemInfo");
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtGetMemInfo(ACL_HBM_MEM, nullptr, &bytes), "aclrtGetMemInfo");
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtGetMemInfo(ACL_HBM_MEM, &bytes, nullptr), "aclrtGetMemInfo");
}

class CopyTest : public DeviceTest {
 protected:
  static constexpr size_t kSize = 1000;
  static constexpr size_t kCapacity = 1024 + 32;

  void SetUp() override {
    DeviceTest::SetUp();
    ASSERT_EQ(aclrtMalloc(&device_, kSize, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    ASSERT_EQ(aclrtMallocHost(&host_, kSize), ACL_SUCCESS);
    std::iota(bytes(), bytes() + kSize, uint8_t{0});
  }
  void TearDown() override {
    EXPECT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
    EXPECT_EQ(aclrtFree(device_), ACL_SUCCESS);
    EXPECT_EQ(aclrtFreeHost(host_), ACL_SUCCESS);
    DeviceTest::TearDown();
  }
  uint8_t* bytes() { return static_cast<uint8_t*>(host_); }
  uint8_t* device_bytes() { return static_cast<uint8_t*>(device_); }

  void* device_ = nullptr;
  void* host_ = nullptr;
};

TEST_F(CopyTest, CopiesThereAndBack) {
  for (const int kind : {0, 1, 2, 3, 4, 5}) {
    std::vector<uint8_t> back(kSize);
    ASSERT_EQ(aclrtMemset(device_, kSize, -1, kSize), ACL_SUCCESS);
    ASSERT_EQ(aclrtMemcpy(device_, kSize, host_, kSize, static_cast<aclrtMemcpyKind>(kind)), ACL_SUCCESS);
    ASSERT_EQ(aclrtMemcpy(back.data(), kSize, device_, kSize, static_cast<aclrtMemcpyKind>(kind)), ACL_SUCCESS);
    EXPECT_EQ(std::memcmp(back.data(), host_, kSize), 0);
  }
  // Overlapping.
  ASSERT_EQ(aclrtMemcpy(device_bytes() + 1, kSize - 1, device_, kSize - 1, ACL_MEMCPY_DEVICE_TO_DEVICE), ACL_SUCCESS);
  EXPECT_EQ(std::memcmp(device_bytes() + 1, host_, kSize - 1), 0);
  ASSERT_EQ(aclrtMemcpy(device_, kSize, device_bytes() + 1, kSize - 1, ACL_MEMCPY_DEVICE_TO_DEVICE), ACL_SUCCESS);
  EXPECT_EQ(std::memcmp(device_, host_, kSize - 1), 0);
}

TEST_F(CopyTest, RefusalsOfCopiesAndFills) {
  struct Case {
    int code;
    void* dst;
    size_t room;
    const void* src;
    size_t count;
    int kind;
  };
  const Case kCases[] = {
      {ACL_ERROR_INVALID_PARAM, nullptr, 8, host_, 8, 1},
      {ACL_ERROR_INVALID_PARAM, device_, 8, nullptr, 8, 1},
      {ACL_ERROR_INVALID_PARAM, device_, 8, host_, 8, 6},
      {ACL_ERROR_INVALID_PARAM, device_, 8, host_, 8, 7},
      {ACL_ERROR_INVALID_PARAM, device_, 8, host_, 8, 8},
      {ACL_ERROR_INVALID_PARAM, device_, 8, host_, 8, -1},
      {ACL_ERROR_RT_PARAM_INVALID, device_, 7, host_, 8, 1},
      {ACL_ERROR_RT_PARAM_INVALID, device_, 0, host_, 1, 1},
      {ACL_ERROR_RT_PARAM_INVALID, device_, kMaxSize - 1, host_, kMaxSize, 1},
      {ACL_ERROR_RT_PARAM_INVALID, device_, kMaxSize, host_, kMaxSize, 1},
      {ACL_ERROR_RT_PARAM_INVALID, device_, kMaxSize, host_, kSize + 1, 1},
      {ACL_ERROR_RT_PARAM_INVALID, host_, kMaxSize, device_bytes() + kCapacity - 4, 5, 2},
  };
  for (const Case& c : kCases) {
    const auto kind = static_cast<aclrtMemcpyKind>(c.kind);
    ExpectRefused(c.code, aclrtMemcpy(c.dst, c.room, c.src, c.count, kind), "aclrtMemcpy");
    ExpectRefused(c.code, aclrtMemcpyAsync(c.dst, c.room, c.src, c.count, kind, nullptr), "aclrtMemcpyAsync");
  }
  ExpectRefused(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                aclrtMemcpyAsync(device_, 8, host_, 8, ACL_MEMCPY_HOST_TO_HOST, nullptr), "aclrtMemcpyAsync");
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtMemset(nullptr, 8, 0, 8), "aclrtMemset");
  ExpectRefused(ACL_ERROR_RT_PARAM_INVALID, aclrtMemset(device_, 7, 0, 8), "aclrtMemset");
  ExpectRefused(ACL_ERROR_RT_PARAM_INVALID, aclrtMemset(device_, kMaxSize, 0, kMaxSize), "aclrtMemset");
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtMemsetAsync(nullptr, 8, 0, 8, nullptr), "aclrtMemsetAsync");
  ExpectRefused(ACL_ERROR_RT_PARAM_INVALID, aclrtMemsetAsync(device_, 7, 0, 8, nullptr), "aclrtMemsetAsync");
  // Nothing to do comes before everything else.
  EXPECT_EQ(aclrtMemcpy(nullptr, 0, nullptr, 0, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpyAsync(nullptr, 0, nullptr, 0, ACL_MEMCPY_HOST_TO_DEVICE, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemset(nullptr, 0, 0, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemsetAsync(nullptr, 0, 0, 0, nullptr), ACL_SUCCESS);
}

TEST_F(CopyTest, AsyncCopiesKeepTheStreamsOrder) {
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  Gate gate;
  ASSERT_EQ(aclrtLaunchHostFunc(stream, &Gate::Pass, &gate), ACL_SUCCESS);
  // Known memory on both sides: the calls return while the stream is held up.
  ASSERT_EQ(aclrtMemcpyAsync(device_, kSize, host_, kSize, ACL_MEMCPY_HOST_TO_DEVICE, stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtMemsetAsync(device_bytes() + 10, 10, 0x1AB, 10, stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtMemcpyAsync(host_, kSize, device_, kSize, ACL_MEMCPY_DEVICE_TO_HOST, stream), ACL_SUCCESS);
  EXPECT_EQ(bytes()[10], 10);
  gate.Open();
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  for (size_t i = 0; i < kSize; ++i) ASSERT_EQ(bytes()[i], i >= 10 && i < 20 ? 0xAB : static_cast<uint8_t>(i)) << i;
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
}

TEST_F(CopyTest, PageableMemoryIsDoneWithOnReturn) {
  std::vector<uint8_t> pageable(kSize, 3);
  ASSERT_EQ(aclrtMemcpyAsync(device_, kSize, pageable.data(), kSize, ACL_MEMCPY_HOST_TO_DEVICE, nullptr), ACL_SUCCESS);
  pageable.assign(kSize, 4);
  std::vector<uint8_t> back(kSize);
  ASSERT_EQ(aclrtMemcpyAsync(back.data(), kSize, device_, kSize, ACL_MEMCPY_DEVICE_TO_HOST, nullptr), ACL_SUCCESS);
  EXPECT_EQ(back, std::vector<uint8_t>(kSize, 3));
}

TEST_F(CopyTest, RectanglesKeepTheirGaps) {
  for (const bool is_async : {false, true}) {
    ASSERT_EQ(aclrtMemset(device_, kSize, 0xEE, kSize), ACL_SUCCESS);
    // 6 rows of 10 bytes, 16 apart here and 12 apart there.
    if (is_async) {
      ASSERT_EQ(aclrtMemcpy2dAsync(device_, 16, host_, 12, 10, 6, ACL_MEMCPY_HOST_TO_DEVICE, nullptr), ACL_SUCCESS);
      ASSERT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
    } else {
      ASSERT_EQ(aclrtMemcpy2d(device_, 16, host_, 12, 10, 6, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
    }
    for (size_t i = 0; i < kSize; ++i) {
      const size_t row = i / 16;
      const size_t column = i % 16;
      ASSERT_EQ(device_bytes()[i], row < 6 && column < 10 ? row * 12 + column : 0xEE) << i;
    }
  }
  // Overlapping, towards the end and back.
  ASSERT_EQ(aclrtMemcpy(device_, kSize, host_, kSize, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
  ASSERT_EQ(aclrtMemcpy2d(device_bytes() + 20, 20, device_, 20, 20, 9, ACL_MEMCPY_DEVICE_TO_DEVICE), ACL_SUCCESS);
  EXPECT_EQ(std::memcmp(device_bytes() + 20, host_, 180), 0);
  ASSERT_EQ(aclrtMemcpy2d(device_, 20, device_bytes() + 20, 20, 20, 9, ACL_MEMCPY_DEVICE_TO_DEVICE), ACL_SUCCESS);
  EXPECT_EQ(std::memcmp(device_, host_, 180), 0);
}

TEST_F(CopyTest, RefusalsOfRectangles) {
  struct Case {
    int code;
    void* dst;
    size_t dst_pitch;
    const void* src;
    size_t src_pitch;
    size_t width;
    size_t height;
    int kind;
  };
  const Case kCases[] = {
      {ACL_ERROR_INVALID_PARAM, nullptr, 8, host_, 8, 8, 2, 1},
      {ACL_ERROR_INVALID_PARAM, device_, 8, nullptr, 8, 8, 2, 1},
      {ACL_ERROR_INVALID_PARAM, device_, 7, host_, 8, 8, 2, 1},
      {ACL_ERROR_INVALID_PARAM, device_, 8, host_, 7, 8, 2, 1},
      {ACL_ERROR_INVALID_PARAM, device_, 8, host_, 8, 8, 2, 5},
      {ACL_ERROR_INVALID_PARAM, device_, 8, host_, 8, 8, 2, 6},
      {ACL_ERROR_INVALID_PARAM, device_, 8, host_, 8, 8, 2, -1},
      {ACL_ERROR_RT_PARAM_INVALID, device_, kMaxSize, host_, 8, 8, 2, 1},
      {ACL_ERROR_RT_PARAM_INVALID, device_, 8, host_, kMaxSize / 2, 8, 4, 1},
      {ACL_ERROR_RT_PARAM_INVALID, device_, kMaxSize / 2 + 1, host_, 8, 8, 3, 1},
      {ACL_ERROR_RT_PARAM_INVALID, device_, 8, host_, 8, 8, kMaxSize, 1},
      {ACL_ERROR_RT_PARAM_INVALID, device_, kMaxSize, host_, kMaxSize, kMaxSize, 1, 1},
      {ACL_ERROR_RT_PARAM_INVALID, device_, 16, host_, 8, 8, kCapacity / 16 + 1, 1},
      {ACL_ERROR_RT_PARAM_INVALID, device_, 8, host_, 8, 8, kSize / 8 + 1, 1},
  };
  for (const Case& c : kCases) {
    const auto kind = static_cast<aclrtMemcpyKind>(c.kind);
    ExpectRefused(c.code, aclrtMemcpy2d(c.dst, c.dst_pitch, c.src, c.src_pitch, c.width, c.height, kind),
                  "aclrtMemcpy2d");
    ExpectRefused(c.code, aclrtMemcpy2dAsync(c.dst, c.dst_pitch, c.src, c.src_pitch, c.width, c.height, kind, nullptr),
                  "aclrtMemcpy2dAsync");
  }
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtMemcpy2d(device_, 8, host_, 8, 8, 2, ACL_MEMCPY_HOST_TO_HOST),
                "aclrtMemcpy2d");
  ExpectRefused(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                aclrtMemcpy2dAsync(device_, 8, host_, 8, 8, 2, ACL_MEMCPY_HOST_TO_HOST, nullptr), "aclrtMemcpy2dAsync");
  EXPECT_EQ(aclrtMemcpy2d(nullptr, 0, nullptr, 0, 0, 5, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy2d(nullptr, 0, nullptr, 0, 5, 0, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
}

TEST(Memory, ServesFourThreadsAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
      aclrtStream stream = nullptr;
      ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
      for (int round = 0; round < 100; ++round) {
        const size_t size = 64 + 1000 * static_cast<size_t>(round % 7);
        void* device = nullptr;
        void* host = nullptr;
        ASSERT_EQ(aclrtMalloc(&device, size, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
        ASSERT_EQ(aclrtMallocHost(&host, size), ACL_SUCCESS);
        ASSERT_EQ(aclrtMemsetAsync(device, size, t, size, stream), ACL_SUCCESS);
        ASSERT_EQ(aclrtMemcpyAsync(host, size, device, size, ACL_MEMCPY_DEVICE_TO_HOST, stream), ACL_SUCCESS);
        ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
        ASSERT_EQ(static_cast<char*>(host)[size - 1], t);
        ASSERT_EQ(aclrtFree(device), ACL_SUCCESS);
        ASSERT_EQ(aclrtFreeHost(host), ACL_SUCCESS);
      }
      ASSERT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
      ASSERT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace mlap::cann
