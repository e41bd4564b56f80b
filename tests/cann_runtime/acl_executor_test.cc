// Executors, with an operator made up for the test: its launch adds the slots' addresses to a log.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "acl/acl.h"
#include "acl_expectations.h"
#include "cann/runtime/op_executor.h"
#include "cann/runtime/recent_error.h"
#include "cann/runtime/soc.h"
#include "cann/runtime/stream_queue.h"

namespace mlap::cann {
namespace {

constexpr const char* kOp = "aclnnTest";
constexpr uint64_t kWorkspaceBytes = 64;

class ExecutorTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    const int64_t dims[] = {3};
    const int64_t empty[] = {0};
    for (aclTensor*& tensor : tensors_) {
      tensor = aclCreateTensor(dims, 1, ACL_INT8, nullptr, 0, ACL_FORMAT_ND, dims, 1, data_);
    }
    empty_ = aclCreateTensor(empty, 1, ACL_INT8, nullptr, 0, ACL_FORMAT_ND, empty, 1, nullptr);
  }

  void TearDown() override {
    EXPECT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
    for (const aclTensor* tensor : tensors_) EXPECT_EQ(aclDestroyTensor(tensor), 0);
    EXPECT_EQ(aclDestroyTensor(empty_), 0);
    DeviceTest::TearDown();
  }

  // Slots: input, absent input, empty input, output.
  aclOpExecutor* Make(uint64_t workspace_bytes = 0) {
    auto executor = std::make_unique<OpExecutor>();
    executor->op_name = kOp;
    executor->slots.resize(4);
    const aclTensor* const tensors[] = {tensors_[0], nullptr, empty_, tensors_[1]};
    for (size_t i = 0; i < 4; ++i) {
      executor->slots[i].present = tensors[i] != nullptr;
      executor->slots[i].is_output = i == 3;
      if (tensors[i] != nullptr) {
        EXPECT_TRUE(CopyDescriptor(tensors[i], &executor->slots[i].tensor));
      }
    }
    executor->input_slots = {0, 1, 2};
    executor->output_slots = {3};
    executor->workspace_bytes = workspace_bytes;
    executor->launch = [this](void*, aclrtStream stream, const std::vector<TensorSlot>& slots) -> aclnnStatus {
      return EnqueueOnStream(stream, [this, slots] {
        log_.emplace_back(slots[0].tensor.data, slots[3].tensor.data);
        return TaskResult{};
      });
    };
    return PublishExecutor(std::move(executor));
  }

  aclOpExecutor* MakeWithLaunch(std::function<aclnnStatus()> launch) {
    auto executor = std::make_unique<OpExecutor>();
    executor->op_name = kOp;
    executor->launch = [launch = std::move(launch)](void*, aclrtStream, const std::vector<TensorSlot>&) {
      return launch();
    };
    return PublishExecutor(std::move(executor));
  }

  using Log = std::vector<std::pair<void*, void*>>;
  Log log_;  // written on the stream's thread
  char data_[64] = {};
  aclTensor* tensors_[2] = {};
  aclTensor* empty_ = nullptr;
};

TEST_F(ExecutorTest, OneShotServesOneCall) {
  aclOpExecutor* const executor = Make();
  EXPECT_EQ(RunExecutor(kOp, nullptr, 0, executor, nullptr), 0) << RecentText();
  aclOpExecutor* const next = Make();
  EXPECT_NE(next, executor);
  ExpectRefused(161001, RunExecutor(kOp, nullptr, 0, executor, nullptr), kOp);
  ExpectRefused(561000, aclSetAclOpExecutorRepeatable(executor), "aclSetAclOpExecutorRepeatable");
  ExpectRefused(561000, aclDestroyAclOpExecutor(executor), "aclDestroyAclOpExecutor");
  EXPECT_EQ(aclDestroyAclOpExecutor(next), 0);
  ExpectRefused(161001, RunExecutor(kOp, nullptr, 0, next, nullptr), kOp);
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  EXPECT_EQ(log_, (Log{{data_, data_}}));
}

TEST_F(ExecutorTest, ArgumentsAreCheckedBeforeTheExecutorIsUsedUp) {
  char workspace[kWorkspaceBytes + 1] = {};
  aclOpExecutor* const executor = Make(kWorkspaceBytes);
  ExpectRefused(161001, RunExecutor(kOp, workspace, kWorkspaceBytes, nullptr, nullptr), kOp);
  ExpectRefused(
      161001, RunExecutor(kOp, workspace, kWorkspaceBytes, reinterpret_cast<aclOpExecutor*>(workspace), nullptr), kOp);
  ExpectRefused(161001,
                RunExecutor(kOp, workspace, kWorkspaceBytes, reinterpret_cast<aclOpExecutor*>(tensors_[0]), nullptr),
                kOp);
  ExpectRefused(161002, RunExecutor("aclnnOther", workspace, kWorkspaceBytes, executor, nullptr), "aclnnOther");
  ExpectRefused(161001, RunExecutor(kOp, nullptr, kWorkspaceBytes, executor, nullptr), kOp);
  for (const uint64_t too_small : {uint64_t{0}, kWorkspaceBytes - 1}) {
    ExpectRefused(161002, RunExecutor(kOp, workspace, too_small, executor, nullptr), kOp);
  }
  EXPECT_EQ(RunExecutor(kOp, workspace, kWorkspaceBytes + 1, executor, nullptr), 0);
  EXPECT_EQ(RunExecutor(kOp, nullptr, 0, Make(), nullptr), 0);
}

TEST_F(ExecutorTest, LaunchFailuresUseTheExecutorUp) {
  const struct {
    std::function<aclnnStatus()> launch;
    aclnnStatus expected;
  } kCases[] = {
      {[] { return 0; }, 0},
      {[] { return 161002; }, 161002},
      {[] { return 361001; }, 361001},
      {[] { return 561002; }, 561002},
      {[] { return 107003; }, 361001},
      {[] { return 207001; }, 361001},
      {[] { return 507015; }, 361001},
      {[] { return 100000; }, 361001},
      {[] { return -1; }, 361001},
      {[]() -> aclnnStatus { throw std::bad_alloc(); }, 361001},
      {[]() -> aclnnStatus { throw std::runtime_error("inside"); }, 561000},
      {[]() -> aclnnStatus { throw 1; }, 561000},
  };
  for (const auto& c : kCases) {
    aclOpExecutor* const executor = MakeWithLaunch(c.launch);
    EXPECT_EQ(RunExecutor(kOp, nullptr, 0, executor, nullptr), c.expected);
    RecentText();
    ExpectRefused(161001, RunExecutor(kOp, nullptr, 0, executor, nullptr), kOp);
  }
  // What the runtime itself refuses.
  aclrtContext home = nullptr;
  ASSERT_EQ(aclrtGetCurrentContext(&home), ACL_SUCCESS);
  std::thread([this] {
    EXPECT_EQ(RunExecutor(kOp, nullptr, 0, Make(), nullptr), 361001);
    EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_CONTEXT_NULL);
    // The newest text, which comes first, says what to do.
    const std::string text = RecentText();
    EXPECT_LT(text.find("aclrtSetDevice"), text.find('\n')) << text;
  }).join();
  EXPECT_EQ(RunExecutor(kOp, nullptr, 0, Make(), data_), 361001);
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_INVALID_HANDLE);
  RecentText();
}

TEST_F(ExecutorTest, RepeatableRunsWithNewAddressesAndMayBeDestroyedAtOnce) {
  Gate gate;
  aclOpExecutor* const executor = Make();
  EXPECT_EQ(aclSetAclOpExecutorRepeatable(executor), 0);
  EXPECT_EQ(aclSetAclOpExecutorRepeatable(executor), 0);
  ASSERT_EQ(aclrtLaunchHostFunc(nullptr, &Gate::Pass, &gate), ACL_SUCCESS);
  EXPECT_EQ(RunExecutor(kOp, nullptr, 0, executor, nullptr), 0);
  EXPECT_EQ(aclSetInputTensorAddr(executor, 0, tensors_[0], data_ + 1), 0);
  EXPECT_EQ(aclSetOutputTensorAddr(executor, 0, tensors_[1], data_ + 2), 0);
  EXPECT_EQ(RunExecutor(kOp, nullptr, 0, executor, nullptr), 0);
  EXPECT_EQ(AclSetTensorAddr(executor, 0, tensors_[0], data_ + 3), 0);
  EXPECT_EQ(aclSetTensorAddr(executor, 3, tensors_[1], data_ + 4), 0);
  EXPECT_EQ(AclSetInputTensorAddr(executor, 2, empty_, nullptr), 0);
  EXPECT_EQ(RunExecutor(kOp, nullptr, 0, executor, nullptr), 0);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
  ExpectRefused(161001, RunExecutor(kOp, nullptr, 0, executor, nullptr), kOp);
  gate.Open();
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  EXPECT_EQ(log_, (Log{{data_, data_}, {data_ + 1, data_ + 2}, {data_ + 3, data_ + 4}}));
  void* address = nullptr;
  EXPECT_EQ(aclGetRawTensorAddr(tensors_[0], &address), 0);
  EXPECT_EQ(address, data_ + 3);
}

TEST_F(ExecutorTest, WrongAddressesAreRefused) {
  using Set = aclnnStatus (*)(aclOpExecutor*, size_t, aclTensor*, void*);
  const struct {
    const char* function;
    Set set;
    size_t absent;  // an index of an absent tensor, or the number of tensors
    size_t num_tensors;
  } kFunctions[] = {
      {"aclSetInputTensorAddr", &aclSetInputTensorAddr, 1, 3},
      {"aclSetInputTensorAddr", &AclSetInputTensorAddr, 1, 3},
      {"aclSetOutputTensorAddr", &aclSetOutputTensorAddr, 1, 1},
      {"aclSetOutputTensorAddr", &AclSetOutputTensorAddr, 1, 1},
      {"aclSetTensorAddr", &aclSetTensorAddr, 1, 4},
      {"aclSetTensorAddr", &AclSetTensorAddr, 1, 4},
  };
  aclOpExecutor* const executor = Make();
  aclTensor* const tensor = tensors_[0];
  for (const auto& f : kFunctions) {
    ExpectRefused(561103, f.set(nullptr, 0, tensor, data_), f.function);
    ExpectRefused(561103, f.set(executor, 0, nullptr, data_), f.function);
    ExpectRefused(561103, f.set(executor, 0, tensor, nullptr), f.function);
    ExpectRefused(561000, f.set(reinterpret_cast<aclOpExecutor*>(data_), 0, tensor, data_), f.function);
    ExpectRefused(561000, f.set(reinterpret_cast<aclOpExecutor*>(tensor), 0, tensor, data_), f.function);
    ExpectRefused(161002, f.set(executor, f.absent, tensor, data_), f.function);
    ExpectRefused(161002, f.set(executor, f.num_tensors, tensor, data_), f.function);
    ExpectRefused(161002, f.set(executor, SIZE_MAX, tensor, data_), f.function);
    ExpectRefused(161002, f.set(executor, 0, reinterpret_cast<aclTensor*>(data_), data_), f.function);
  }
  using SetDynamic = aclnnStatus (*)(aclOpExecutor*, size_t, size_t, aclTensorList*, void*);
  const struct {
    const char* function;
    SetDynamic set;
  } kDynamic[] = {
      {"aclSetDynamicInputTensorAddr", &aclSetDynamicInputTensorAddr},
      {"aclSetDynamicInputTensorAddr", &AclSetDynamicInputTensorAddr},
      {"aclSetDynamicOutputTensorAddr", &aclSetDynamicOutputTensorAddr},
      {"aclSetDynamicOutputTensorAddr", &AclSetDynamicOutputTensorAddr},
      {"aclSetDynamicTensorAddr", &aclSetDynamicTensorAddr},
      {"aclSetDynamicTensorAddr", &AclSetDynamicTensorAddr},
  };
  aclTensorList* const list = aclCreateTensorList(nullptr, 0);
  for (const auto& f : kDynamic) {
    ExpectRefused(561103, f.set(nullptr, 0, 0, list, data_), f.function);
    ExpectRefused(561103, f.set(executor, 0, 0, nullptr, data_), f.function);
    ExpectRefused(561000, f.set(reinterpret_cast<aclOpExecutor*>(data_), 0, 0, list, data_), f.function);
    ExpectRefused(161002, f.set(executor, 0, 0, list, data_), f.function);
  }
  ExpectRefused(561103, aclSetAclOpExecutorRepeatable(nullptr), "aclSetAclOpExecutorRepeatable");
  ExpectRefused(561103, aclDestroyAclOpExecutor(nullptr), "aclDestroyAclOpExecutor");
  EXPECT_EQ(aclDestroyTensorList(list), 0);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
}

TEST_F(ExecutorTest, MisuseByFourThreadsIsHarmless) {
  for (int round = 0; round < 50; ++round) {
    aclOpExecutor* const one_shot = Make();
    aclOpExecutor* const repeatable = Make();
    ASSERT_EQ(aclSetAclOpExecutorRepeatable(repeatable), 0);
    std::atomic<int> num_ok{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
        num_ok += RunExecutor(kOp, nullptr, 0, one_shot, nullptr) == 0;
        RunExecutor(kOp, nullptr, 0, repeatable, nullptr);
        aclSetTensorAddr(repeatable, 0, tensors_[0], data_ + t);
        if (t == round % 4) aclDestroyAclOpExecutor(repeatable);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(num_ok, 1);
  }
}

// The device reports a task's own code and text at the next synchronisation, and runs the tasks behind it.
TEST_F(ExecutorTest, TaskCodesSurfaceAtSynchronisation) {
  bool has_run = false;
  ASSERT_EQ(EnqueueOnStream(nullptr, [] { return TaskResult{507015, "token 3: index 99, capacity 64"}; }), 0);
  ASSERT_EQ(EnqueueOnStream(nullptr,
                            [&has_run] {
                              has_run = true;
                              return TaskResult{};
                            }),
            0);
  std::thread([] {
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeDevice(), 507015);
    EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 507015);
    EXPECT_NE(RecentText().find("token 3: index 99, capacity 64"), std::string::npos);
  }).join();
  EXPECT_TRUE(has_run);
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  EXPECT_EQ(RecentText(), "");
}

TEST(CopyDescriptor, SaysWhatIsWrong) {
  TensorDescriptor descriptor;
  std::string reason;
  EXPECT_FALSE(CopyDescriptor(nullptr, &descriptor, &reason));
  EXPECT_EQ(reason, "NULL");
  int on_the_stack = 0;
  EXPECT_FALSE(CopyDescriptor(reinterpret_cast<aclTensor*>(&on_the_stack), &descriptor, &reason));
  EXPECT_NE(reason.find("did not return"), std::string::npos);
  EXPECT_FALSE(CopyDescriptor(reinterpret_cast<aclTensor*>(&on_the_stack), &descriptor));
}

TEST(Guarded, TurnsExceptionsIntoTheRightCodes) {
  const auto out_of_memory = []() -> int { throw std::bad_alloc(); };
  const auto broken = []() -> int { throw std::runtime_error("x"); };
  EXPECT_EQ(Guarded("aclrtMalloc", out_of_memory), 207001);
  EXPECT_EQ(Guarded("aclInit", broken), 500000);
  EXPECT_EQ(Guarded("aclnnMlaProlog", out_of_memory), 361001);
  EXPECT_EQ(Guarded("aclCreateTensor", broken), 561000);
  EXPECT_EQ(Guarded("aclCreateTensor", []() -> void* { throw 1; }), nullptr);
  RecentText();
}

}  // namespace
}  // namespace mlap::cann
