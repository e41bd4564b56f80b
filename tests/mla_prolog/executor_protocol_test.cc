// Executors and workspaces: what the two steps promise each other.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "prolog_fixture.h"

namespace mlap::prolog_test {
namespace {

constexpr aclnnStatus kNull = ACLNN_ERR_PARAM_NULLPTR;
constexpr aclnnStatus kInvalid = ACLNN_ERR_PARAM_INVALID;

class ExecutorProtocol : public PrologTest {
 protected:
  // A call with its results, to compare with.
  void MakeExpected(const Config& config, std::vector<std::vector<uint8_t>>* expected) {
    PrologCall call(config);
    call.Allocate();
    const RunResult result = call.Run(stream_);
    ASSERT_TRUE(result.Ok()) << result;
    *expected = call.Written();
  }

  ScopedSoc soc_{"none"};
};

TEST_F(ExecutorProtocol, AOneShotExecutorIsUsedUp) {
  PrologCall call(TinyConfig(Scenario::kPartial));
  call.Allocate();
  const Phase1Result first = call.Phase1();
  ASSERT_EQ(first.status, 0);
  GuardedBuffer workspace(first.workspace_bytes);
  EXPECT_EQ(call.Phase2(workspace.data(), workspace.size(), first.executor, stream_), 0);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), 0);
  call.ResetWritten();
  const auto before = call.Written();
  TakeTexts();
  EXPECT_EQ(call.Phase2(workspace.data(), workspace.size(), first.executor, stream_), kNull);
  EXPECT_NE(TakeTexts().find("executor"), std::string::npos);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), 0);
  EXPECT_EQ(call.Written(), before);
  // Nor can it be brought back.
  EXPECT_EQ(aclSetAclOpExecutorRepeatable(first.executor), ACLNN_ERR_INNER);
}

TEST_F(ExecutorProtocol, NullAndInventedExecutorsAreRefused) {
  for (const Version version : kVersions) {
    TakeTexts();
    EXPECT_EQ(Phase2Of(version, nullptr, 0, nullptr, stream_), kNull);
    EXPECT_NE(TakeTexts().find("executor"), std::string::npos);
    int not_an_executor = 0;
    EXPECT_EQ(Phase2Of(version, nullptr, 0, reinterpret_cast<aclOpExecutor*>(&not_an_executor), stream_), kNull);
    EXPECT_NE(TakeTexts().find("executor"), std::string::npos);
  }
}

// An executor belongs to the version that made it.
TEST_F(ExecutorProtocol, VersionsDoNotMix) {
  for (const Version version : kVersions) {
    for (const Version other : kVersions) {
      if (other == version) continue;
      PrologCall call(TinyConfig({version, 1, 0}));
      call.Allocate();
      const auto before = call.Written();
      const Phase1Result first = call.Phase1();
      ASSERT_EQ(first.status, 0);
      GuardedBuffer workspace(first.workspace_bytes);
      EXPECT_EQ(Phase2Of(other, workspace.data(), workspace.size(), first.executor, stream_), kInvalid);
      EXPECT_NE(TakeTexts().find("executor"), std::string::npos);
      EXPECT_EQ(aclrtSynchronizeStream(stream_), 0);
      EXPECT_EQ(call.Written(), before);
      EXPECT_EQ(call.Phase2(workspace.data(), workspace.size(), first.executor, stream_), 0);
      EXPECT_EQ(aclrtSynchronizeStream(stream_), 0);
    }
  }
}

TEST_F(ExecutorProtocol, TheWorkspaceIsCheckedAndTheExecutorSurvives) {
  for (const Scenario scenario : kScenarios) {
    const Config config = TinyConfig(scenario);
    SCOPED_TRACE(config.Name());
    std::vector<std::vector<uint8_t>> expected;
    MakeExpected(config, &expected);
    PrologCall call(config);
    call.Allocate();
    const auto before = call.Written();
    const Phase1Result first = call.Phase1();
    ASSERT_EQ(first.status, 0);
    if (first.workspace_bytes == 0) GTEST_SKIP() << "no workspace needed";
    GuardedBuffer workspace(first.workspace_bytes);
    TakeTexts();
    EXPECT_EQ(call.Phase2(nullptr, first.workspace_bytes, first.executor, stream_), kNull);
    EXPECT_NE(TakeTexts().find("workspace"), std::string::npos);
    EXPECT_EQ(call.Phase2(nullptr, 0, first.executor, stream_), kNull);
    TakeTexts();
    for (const uint64_t too_small : {uint64_t{0}, uint64_t{1}, first.workspace_bytes - 1}) {
      EXPECT_EQ(call.Phase2(workspace.data(), too_small, first.executor, stream_), kInvalid) << too_small;
      const std::string text = TakeTexts();
      EXPECT_NE(text.find("workspaceSize"), std::string::npos) << text;
      EXPECT_NE(text.find(std::to_string(first.workspace_bytes)), std::string::npos) << text;
    }
    EXPECT_EQ(aclrtSynchronizeStream(stream_), 0);
    EXPECT_EQ(call.Written(), before);
    EXPECT_EQ(call.Phase2(workspace.data(), workspace.size(), first.executor, stream_), 0);
    EXPECT_EQ(aclrtSynchronizeStream(stream_), 0);
    EXPECT_EQ(call.Written(), expected);
  }
}

// Larger than needed, at every alignment, with whatever contents: no byte outside of what was asked for is touched.
TEST_F(ExecutorProtocol, OnlyTheWorkspaceAskedForIsTouched) {
  for (const Scenario scenario : kScenarios) {
    const Config config = TinyConfig(scenario).SetFused(17);
    SCOPED_TRACE(config.Name());
    std::vector<std::vector<uint8_t>> expected;
    MakeExpected(config, &expected);
    for (const size_t shift : {0, 1, 2, 3, 7, 8, 31, 32, 63}) {
      for (const uint8_t fill : {0x00, 0x7F, 0xFF}) {
        PrologCall call(config);
        call.Allocate();
        const Phase1Result first = call.Phase1();
        ASSERT_EQ(first.status, 0);
        const size_t needed = first.workspace_bytes;
        // The part that was asked for, between two margins; the page after the margin is inaccessible.
        GuardedBuffer memory(128 + needed + shift);
        memory.Fill(fill);
        uint8_t* workspace = memory.data() + 128;
        EXPECT_EQ(call.Phase2(workspace, needed + shift, first.executor, stream_), 0);
        EXPECT_EQ(aclrtSynchronizeStream(stream_), 0);
        for (size_t i = 0; i < 128; ++i) ASSERT_EQ(memory.data()[i], fill) << i;
        for (size_t i = 0; i < shift; ++i) ASSERT_EQ(workspace[needed + i], fill) << i;
        EXPECT_EQ(call.Written(), expected) << "shift " << shift;
      }
    }
  }
}

// Strided inputs may need room in the workspace, which may begin anywhere.
TEST_F(ExecutorProtocol, StridedInputsAndAnUnalignedWorkspace) {
  for (const Scenario scenario : kScenarios) {
    const Config config = TinyConfig(scenario);
    SCOPED_TRACE(config.Name());
    std::vector<std::vector<uint8_t>> expected;
    MakeExpected(config, &expected);
    for (const size_t shift : {0, 1, 2, 4, 63}) {
      PrologCall call(config);
      call.Allocate();
      for (const Param param : ParamsOf(config.scenario.version)) {
        if (IsWritten(param) || call[param].null) continue;
        std::vector<int64_t> strides = call[param].ContiguousStrides();
        for (int64_t& stride : strides) stride *= 2;
        call.Restride(param, strides, 3, 0x7F);
      }
      const Phase1Result first = call.Phase1();
      ASSERT_EQ(first.status, 0) << first.text;
      // `shift` bytes before an inaccessible page, so at every alignment.
      GuardedBuffer memory(first.workspace_bytes + shift);
      memory.Fill(0x7F);
      EXPECT_EQ(call.Phase2(memory.data(), first.workspace_bytes, first.executor, stream_), 0);
      EXPECT_EQ(aclrtSynchronizeStream(stream_), 0);
      EXPECT_EQ(call.Written(), expected) << "shift " << shift;
      EXPECT_TRUE(memory.FrontIntact());
      for (size_t i = 0; i < shift; ++i) EXPECT_EQ(memory.data()[first.workspace_bytes + i], 0x7F);
    }
  }
}

TEST_F(ExecutorProtocol, AWorkspaceFromTheRuntime) {
  const Config config = TinyConfig(Scenario::kPerChannel);
  std::vector<std::vector<uint8_t>> expected;
  MakeExpected(config, &expected);
  PrologCall call(config);
  call.Allocate();
  const Phase1Result first = call.Phase1();
  ASSERT_EQ(first.status, 0);
  void* workspace = nullptr;
  if (first.workspace_bytes > 0) {
    ASSERT_EQ(aclrtMalloc(&workspace, first.workspace_bytes, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  }
  EXPECT_EQ(call.Phase2(workspace, first.workspace_bytes, first.executor, stream_), 0);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), 0);
  EXPECT_EQ(call.Written(), expected);
  if (workspace != nullptr) {
    EXPECT_EQ(aclrtFree(workspace), 0);
  }
}

// The size depends on the descriptions alone.
TEST_F(ExecutorProtocol, TheWorkspaceSizeIsRepeatable) {
  for (const Scenario scenario : kScenarios) {
    const PrologCall call(MediumConfig(scenario));
    const Phase1Result a = call.Phase1();
    const Phase1Result b = call.Phase1();
    EXPECT_EQ(a.status, 0);
    EXPECT_EQ(a.workspace_bytes, b.workspace_bytes);
    EXPECT_NE(a.executor, b.executor);
    Discard(a.executor);
    Discard(b.executor);
  }
}

TEST_F(ExecutorProtocol, ARepeatableExecutorRunsAgain) {
  for (const Scenario scenario : kScenarios) {
    const Config config = TinyConfig(scenario);
    SCOPED_TRACE(config.Name());
    std::vector<std::vector<uint8_t>> expected;
    MakeExpected(config, &expected);
    PrologCall call(config);
    call.Allocate();
    const Phase1Result first = call.Phase1();
    ASSERT_EQ(first.status, 0);
    ASSERT_EQ(aclSetAclOpExecutorRepeatable(first.executor), 0);
    GuardedBuffer workspace(first.workspace_bytes);
    for (int repetition = 0; repetition < 3; ++repetition) {
      call.ResetWritten();
      EXPECT_EQ(call.Phase2(workspace.data(), workspace.size(), first.executor, stream_), 0);
      EXPECT_EQ(aclrtSynchronizeStream(stream_), 0);
      EXPECT_EQ(call.Written(), expected);
    }
    EXPECT_EQ(aclDestroyAclOpExecutor(first.executor), 0);
    EXPECT_EQ(call.Phase2(workspace.data(), workspace.size(), first.executor, stream_), kNull);
    EXPECT_EQ(aclDestroyAclOpExecutor(first.executor), ACLNN_ERR_INNER);
  }
}

// Every tensor of the call moves to another call's memory.
TEST_F(ExecutorProtocol, ARepeatableExecutorCanBeRetargeted) {
  enum class Way { kByPosition, kInputsAndOutputs };
  for (const Way way : {Way::kByPosition, Way::kInputsAndOutputs}) {
    for (const Scenario scenario : kScenarios) {
      const Config config = TinyConfig(scenario);
      SCOPED_TRACE(config.Name());
      PrologCall source(config);
      source.Allocate(1);
      PrologCall target(config);
      target.Allocate(2);
      PrologCall serial(config);
      serial.Allocate(2);
      ASSERT_TRUE(serial.Run(stream_).Ok());

      Handles handles;
      source.Create(&handles);
      const Phase1Result first = source.Phase1(handles);
      ASSERT_EQ(first.status, 0);
      ASSERT_EQ(aclSetAclOpExecutorRepeatable(first.executor), 0);
      const Version version = scenario.version;
      const auto num_params = ParamsOf(version).size();
      const auto first_output = static_cast<size_t>(PositionOf(version, kQueryOut));
      // In the operator's definition the caches are outputs as well, behind query and queryRope.
      std::vector<Param> outputs(ParamsOf(version).begin() + static_cast<std::ptrdiff_t>(first_output),
                                 ParamsOf(version).end());
      outputs.insert(outputs.begin() + 2, {kKvCache, kKrCache});
      for (const Param param : ParamsOf(version)) {
        aclTensor* tensor = handles.owned[param];
        void* address = target[param].data;
        const auto position = static_cast<size_t>(PositionOf(version, param));
        if (source[param].null) {
          EXPECT_EQ(aclSetTensorAddr(first.executor, position, handles.owned[kTokenX], address), kInvalid);
          continue;
        }
        const auto output = std::find(outputs.begin(), outputs.end(), param);
        aclnnStatus status = 0;
        if (way == Way::kByPosition) {
          status = aclSetTensorAddr(first.executor, position, tensor, address);
        } else if (output != outputs.end()) {
          status =
              aclSetOutputTensorAddr(first.executor, static_cast<size_t>(output - outputs.begin()), tensor, address);
        } else {
          status = aclSetInputTensorAddr(first.executor, position, tensor, address);
        }
        EXPECT_EQ(status, 0) << ParamName(param);
      }
      EXPECT_EQ(aclSetTensorAddr(first.executor, num_params, handles.owned[kTokenX], source[kTokenX].data), kInvalid);
      EXPECT_EQ(aclSetInputTensorAddr(first.executor, first_output, handles.owned[kTokenX], source[kTokenX].data),
                kInvalid);
      EXPECT_EQ(
          aclSetOutputTensorAddr(first.executor, outputs.size(), handles.owned[kQueryOut], source[kQueryOut].data),
          kInvalid);
      const auto untouched = source.Written();
      source.ProtectAll(Access::kNone);
      GuardedBuffer workspace(first.workspace_bytes);
      EXPECT_EQ(source.Phase2(workspace.data(), workspace.size(), first.executor, stream_), 0);
      EXPECT_EQ(aclrtSynchronizeStream(stream_), 0);
      source.ProtectAll(Access::kReadWrite);
      EXPECT_EQ(source.Written(), untouched);
      EXPECT_EQ(target.Written(), serial.Written());
      EXPECT_EQ(aclDestroyAclOpExecutor(first.executor), 0);
    }
  }
}

// Runs that are queued keep the addresses they were queued with, and outlive the executor.
TEST_F(ExecutorProtocol, RetargetingBetweenQueuedRuns) {
  const Config config = TinyConfig(Scenario::kPartialSmooth);
  std::vector<std::vector<uint8_t>> expected;
  MakeExpected(config, &expected);
  PrologCall a(config);
  a.Allocate();
  PrologCall b(config);
  b.Allocate();
  Handles handles;
  a.Create(&handles);
  const Phase1Result first = a.Phase1(handles);
  ASSERT_EQ(first.status, 0);
  ASSERT_EQ(aclSetAclOpExecutorRepeatable(first.executor), 0);
  GuardedBuffer workspace(first.workspace_bytes);
  EXPECT_EQ(a.Phase2(workspace.data(), workspace.size(), first.executor, stream_), 0);
  for (const Param param : kWritten) {
    if (a[param].null) continue;
    EXPECT_EQ(aclSetTensorAddr(first.executor, static_cast<size_t>(PositionOf(config.scenario.version, param)),
                               handles.owned[param], b[param].data),
              0);
  }
  EXPECT_EQ(a.Phase2(workspace.data(), workspace.size(), first.executor, stream_), 0);
  EXPECT_EQ(aclDestroyAclOpExecutor(first.executor), 0);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), 0);
  EXPECT_EQ(a.Written(), expected);
  EXPECT_EQ(b.Written(), expected);
}

// The tensors' handles are gone, or describe something else, before the second step.
TEST_F(ExecutorProtocol, TheExecutorKeepsItsOwnDescriptions) {
  const Config config = TinyConfig(Scenario::kPerChannelSmooth);
  std::vector<std::vector<uint8_t>> expected;
  MakeExpected(config, &expected);
  PrologCall call(config);
  call.Allocate();
  Handles handles;
  call.Create(&handles);
  const Phase1Result first = call.Phase1(handles);  // which also overwrites the text of the cache mode
  ASSERT_EQ(first.status, 0);
  const int64_t one = 1;
  for (aclTensor* tensor : handles.owned) {
    if (tensor == nullptr) continue;
    EXPECT_EQ(aclInitTensor(tensor, &one, 1, ACL_DOUBLE, nullptr, 7, ACL_FORMAT_NHWC, &one, 1, UntouchableAddress(30)),
              0);
  }
  handles.Destroy();
  GuardedBuffer workspace(first.workspace_bytes);
  EXPECT_EQ(call.Phase2(workspace.data(), workspace.size(), first.executor, stream_), 0);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), 0);
  EXPECT_EQ(call.Written(), expected);
}

TEST_F(ExecutorProtocol, TheSecondStepMayRunOnAnotherThread) {
  const Config config = TinyConfig(Scenario::kPartial);
  std::vector<std::vector<uint8_t>> expected;
  MakeExpected(config, &expected);
  PrologCall call(config);
  call.Allocate();
  const Phase1Result first = call.Phase1();
  ASSERT_EQ(first.status, 0);
  GuardedBuffer workspace(first.workspace_bytes);
  std::thread([&] {
    EXPECT_EQ(aclrtSetDevice(0), 0);
    EXPECT_EQ(call.Phase2(workspace.data(), workspace.size(), first.executor, stream_), 0);
    EXPECT_EQ(aclrtResetDevice(0), 0);
  }).join();
  EXPECT_EQ(aclrtSynchronizeStream(stream_), 0);
  EXPECT_EQ(call.Written(), expected);
}

TEST_F(ExecutorProtocol, ANullStreamIsTheDefaultOne) {
  const Config config = TinyConfig(Scenario::kNonQuant);
  std::vector<std::vector<uint8_t>> expected;
  MakeExpected(config, &expected);
  aclrtStream default_stream = nullptr;
  ASSERT_EQ(aclrtCtxGetCurrentDefaultStream(&default_stream), 0);
  for (aclrtStream waited : {static_cast<aclrtStream>(nullptr), default_stream}) {
    PrologCall call(config);
    call.Allocate();
    const Phase1Result first = call.Phase1();
    ASSERT_EQ(first.status, 0);
    GuardedBuffer workspace(first.workspace_bytes);
    EXPECT_EQ(call.Phase2(workspace.data(), workspace.size(), first.executor, nullptr), 0);
    EXPECT_EQ(aclrtSynchronizeStream(waited), 0);
    EXPECT_EQ(call.Written(), expected);
  }
}

TEST_F(ExecutorProtocol, StreamsOfOtherContextsAndDeadStreamsAreRefused) {
  const Config config = TinyConfig(Scenario::kNonQuant);
  PrologCall call(config);
  call.Allocate();
  const auto before = call.Written();
  const auto expect_refused = [&](aclrtStream stream) {
    const Phase1Result first = call.Phase1();
    ASSERT_EQ(first.status, 0);
    GuardedBuffer workspace(first.workspace_bytes);
    TakeTexts();
    EXPECT_EQ(call.Phase2(workspace.data(), workspace.size(), first.executor, stream), ACLNN_ERR_RUNTIME_ERROR);
    EXPECT_NE(TakeTexts(), "");
  };
  aclrtContext home = nullptr;
  ASSERT_EQ(aclrtGetCurrentContext(&home), 0);
  aclrtContext other = nullptr;
  ASSERT_EQ(aclrtCreateContext(&other, 0), 0);
  expect_refused(stream_);
  aclrtStream own = nullptr;
  ASSERT_EQ(aclrtCreateStream(&own), 0);
  EXPECT_TRUE(call.Run(own).Ok());
  call.ResetWritten();
  ASSERT_EQ(aclrtSetCurrentContext(home), 0);
  expect_refused(own);
  ASSERT_EQ(aclrtDestroyContext(other), 0);
  expect_refused(own);
  int not_a_stream = 0;
  expect_refused(&not_a_stream);
  // A thread without a context.
  std::thread([&] { expect_refused(nullptr); }).join();
  EXPECT_EQ(aclrtSynchronizeDevice(), 0);
  EXPECT_EQ(call.Written(), before);
}

TEST_F(ExecutorProtocol, FirstStepsOnSeveralThreads) {
  const Config config = TinyConfig(Scenario::kPartialSmooth);
  std::vector<std::vector<uint8_t>> expected;
  MakeExpected(config, &expected);
  std::vector<std::thread> threads;
  std::array<std::vector<aclOpExecutor*>, 4> executors;
  std::vector<PrologCall> calls;
  for (int i = 0; i < 4; ++i) {
    calls.emplace_back(config);
    calls.back().Allocate();
  }
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < 100; ++n) {
        PrologCall refused(config);
        refused[kTokenX].dtype = ACL_FLOAT;
        // Texts and statuses are the thread's own.
        EXPECT_EQ(refused.Phase1().status, kInvalid);
        const Phase1Result first = calls[static_cast<size_t>(i)].Phase1();
        EXPECT_EQ(first.status, 0) << first.text;
        EXPECT_EQ(first.text, "");
        executors[static_cast<size_t>(i)].push_back(first.executor);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Phase1Result sized = calls[0].Phase1();
  Discard(sized.executor);
  GuardedBuffer workspace(sized.workspace_bytes);
  for (size_t i = 0; i < 4; ++i) {
    for (size_t n = 0; n + 1 < executors[i].size(); ++n) Discard(executors[i][n]);
    EXPECT_EQ(calls[i].Phase2(workspace.data(), workspace.size(), executors[i].back(), stream_), 0);
    EXPECT_EQ(aclrtSynchronizeStream(stream_), 0);
    EXPECT_EQ(calls[i].Written(), expected);
  }
}

// Both steps leave the data alone until the stream gets to them: indices are read then, not before.
TEST_F(ExecutorProtocol, DataAreReadWhenTheStreamReachesTheCall) {
  const Config config = TinyConfig(Scenario::kPerChannel);
  std::vector<std::vector<uint8_t>> expected;
  MakeExpected(config, &expected);
  PrologCall call(config);
  call.Allocate();
  const std::vector<uint8_t> index = call.buffer(kCacheIndex).Bytes();
  const std::vector<uint8_t> tokens = call.buffer(kTokenX).Bytes();
  call.buffer(kCacheIndex).Fill(0x7F);
  call.buffer(kTokenX).Fill(0xFF);
  const Phase1Result first = call.Phase1();
  ASSERT_EQ(first.status, 0);
  struct Writer {
    PrologCall* call;
    const std::vector<uint8_t>* index;
    const std::vector<uint8_t>* tokens;
  } writer = {&call, &index, &tokens};
  ASSERT_EQ(aclrtLaunchHostFunc(
                stream_,
                [](void* args) {
                  const auto* w = static_cast<const Writer*>(args);
                  std::this_thread::sleep_for(std::chrono::milliseconds(50));
                  std::memcpy(w->call->buffer(kCacheIndex).data(), w->index->data(), w->index->size());
                  std::memcpy(w->call->buffer(kTokenX).data(), w->tokens->data(), w->tokens->size());
                },
                &writer),
            0);
  GuardedBuffer workspace(first.workspace_bytes);
  EXPECT_EQ(call.Phase2(workspace.data(), workspace.size(), first.executor, stream_), 0);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), 0);
  EXPECT_EQ(call.Written(), expected);
}

}  // namespace
}  // namespace mlap::prolog_test
