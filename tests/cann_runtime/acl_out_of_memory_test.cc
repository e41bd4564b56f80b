// What happens without memory: operator new fails on threads that ask for it.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <stdexcept>

#include "acl/acl.h"
#include "acl_expectations.h"

namespace {

thread_local bool memory_is_exhausted = false;

}  // namespace

// Not inlined, or the compiler takes malloc and delete, or new and free, for a pair that does not match.
__attribute__((noinline)) void* operator new(size_t num_bytes) {
  void* const pointer = memory_is_exhausted ? nullptr : std::malloc(num_bytes == 0 ? 1 : num_bytes);
  if (pointer == nullptr) throw std::bad_alloc();
  return pointer;
}

__attribute__((noinline)) void operator delete(void* pointer) noexcept { std::free(pointer); }
__attribute__((noinline)) void operator delete(void* pointer, size_t) noexcept { std::free(pointer); }

namespace mlap::cann {
namespace {

template <class Call>
aclError WithoutMemory(const Call& call) {
  memory_is_exhausted = true;
  const aclError code = call();
  memory_is_exhausted = false;
  return code;
}

void CountUp(void* counter) { ++*static_cast<std::atomic<int>*>(counter); }

TEST_F(DeviceTest, StreamsAreDestroyedWithoutMemory) {
  for (const bool drops_queued : {false, true}) {
    for (const int num_behind : {0, 1, 100}) {
      Gate gate;
      std::atomic<int> num_run{0};
      aclrtStream stream = nullptr;
      ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
      ASSERT_EQ(aclrtLaunchHostFunc(stream, &Gate::Pass, &gate), ACL_SUCCESS);
      gate.AwaitArrival();
      for (int i = 0; i < num_behind; ++i) ASSERT_EQ(aclrtLaunchHostFunc(stream, &CountUp, &num_run), ACL_SUCCESS);
      if (drops_queued) {
        // The gate opens once the destruction has dropped what is behind it: its event is no longer held up.
        aclrtEvent event = nullptr;
        ASSERT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
        ASSERT_EQ(aclrtRecordEvent(event, stream), ACL_SUCCESS);
        ASSERT_EQ(aclrtStreamWaitEvent(nullptr, event), ACL_SUCCESS);
        ASSERT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
        const aclrtHostFunc open = [](void* opened) { static_cast<Gate*>(opened)->Open(); };
        ASSERT_EQ(aclrtLaunchHostFunc(nullptr, open, &gate), ACL_SUCCESS);
      } else {
        gate.Open();
      }
      EXPECT_EQ(
          WithoutMemory([&] { return drops_queued ? aclrtDestroyStreamForce(stream) : aclrtDestroyStream(stream); }),
          ACL_SUCCESS);
      EXPECT_EQ(num_run, drops_queued ? 0 : num_behind);
      EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
    }
  }
}

TEST_F(DeviceTest, ResetsWithoutMemoryChangeNothing) {
  std::atomic<int> num_run{0};
  aclrtContext home = nullptr;
  ASSERT_EQ(aclrtGetCurrentContext(&home), ACL_SUCCESS);
  aclrtContext context = nullptr;
  ASSERT_EQ(aclrtCreateContext(&context, 0), ACL_SUCCESS);
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchHostFunc(stream, &CountUp, &num_run), ACL_SUCCESS);
  EXPECT_EQ(WithoutMemory([&] { return aclrtDestroyContext(context); }), ACL_ERROR_RT_MEMORY_ALLOCATION);
  EXPECT_EQ(WithoutMemory([] { return aclrtResetDevice(0); }), ACL_ERROR_RT_MEMORY_ALLOCATION);
  EXPECT_EQ(WithoutMemory([] { return aclrtResetDeviceForce(0); }), ACL_ERROR_RT_MEMORY_ALLOCATION);
  EXPECT_EQ(WithoutMemory([] { return aclFinalize(); }), ACL_ERROR_RT_MEMORY_ALLOCATION);
  ASSERT_EQ(aclrtLaunchHostFunc(stream, &CountUp, &num_run), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyContext(context), ACL_SUCCESS);
  EXPECT_EQ(num_run, 2);
  ASSERT_EQ(aclrtSetCurrentContext(home), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchHostFunc(nullptr, &CountUp, &num_run), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(num_run, 3);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
}

TEST_F(DeviceTest, TasksThatFailWithoutMemoryKeepTheirCode) {
  const aclrtHostFunc throw_error = [](void*) {
    const std::runtime_error error("a text that is longer than a short string");
    memory_is_exhausted = true;
    throw error;
  };
  const aclrtHostFunc throw_bad_alloc = [](void*) {
    memory_is_exhausted = true;
    throw std::bad_alloc();
  };
  const aclrtHostFunc recover = [](void*) { memory_is_exhausted = false; };
  ASSERT_EQ(aclrtLaunchHostFunc(nullptr, throw_error, nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchHostFunc(nullptr, recover, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_ERROR_RT_INTERNAL_ERROR);
  ASSERT_EQ(aclrtLaunchHostFunc(nullptr, throw_bad_alloc, nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchHostFunc(nullptr, recover, nullptr), ACL_SUCCESS);
  EXPECT_EQ(WithoutMemory([] { return aclrtSynchronizeStream(nullptr); }), ACL_ERROR_RT_MEMORY_ALLOCATION);
}

}  // namespace
}  // namespace mlap::cann
