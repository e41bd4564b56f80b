// Many calls on many streams at once, and the order between them.
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "prolog_fixture.h"

namespace mlap::prolog_test {
namespace {

constexpr int kNumThreads = 4;
constexpr int kCallsPerThread = 200;

class StreamStress : public PrologTest {
 protected:
  ScopedSoc soc_{"none"};
};

// Runs a call without waiting for it. The workspace must live until the stream is synchronised.
aclnnStatus Queue(const PrologCall& call, aclrtStream stream, std::vector<uint8_t>* workspace) {
  const Phase1Result first = call.Phase1();
  if (first.status != 0) return first.status;
  if (workspace->size() < first.workspace_bytes) workspace->resize(first.workspace_bytes);
  return call.Phase2(workspace->data(), workspace->size(), first.executor, stream);
}

TEST_F(StreamStress, FourThreadsOnTheirOwnStreams) {
  struct Work {
    PrologCall call;
    std::vector<std::vector<uint8_t>> expected;
  };
  // Each thread has calls of its own, made before so that only the operator runs concurrently.
  std::vector<std::vector<Work>> work(kNumThreads);
  for (int thread = 0; thread < kNumThreads; ++thread) {
    for (size_t i = 0; i < kScenarios.size(); ++i) {
      Config config = TinyConfig(
          kScenarios[i], (i + static_cast<size_t>(thread)) % 2 == 0 ? "PA_BSND" : IndexModesOf(kScenarios[i]).back());
      PrologCall call(config.SetFused(1 + thread));
      call.Allocate(static_cast<uint64_t>(thread * 10 + static_cast<int>(i)));
      ASSERT_TRUE(call.Run(stream_).Ok());
      std::vector<std::vector<uint8_t>> expected = call.Written();
      work[static_cast<size_t>(thread)].push_back({std::move(call), std::move(expected)});
    }
  }
  std::vector<std::thread> threads;
  for (auto& own : work) {
    threads.emplace_back([&own] {
      EXPECT_EQ(aclrtSetDevice(0), 0);
      aclrtStream stream = nullptr;
      EXPECT_EQ(aclrtCreateStream(&stream), 0);
      std::vector<std::vector<uint8_t>> workspaces(own.size());
      for (int done = 0; done < kCallsPerThread; done += static_cast<int>(own.size())) {
        for (Work& w : own) w.call.ResetWritten();
        // All are queued before the first is waited for.
        for (size_t i = 0; i < own.size(); ++i) EXPECT_EQ(Queue(own[i].call, stream, &workspaces[i]), 0);
        EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
        for (Work& w : own) EXPECT_EQ(w.call.Written(), w.expected);
      }
      EXPECT_EQ(aclrtDestroyStream(stream), 0);
      EXPECT_EQ(aclrtResetDevice(0), 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Two streams take turns on one cache, ordered by events only.
TEST_F(StreamStress, EventsOrderCopiesAndCalls) {
  const Config config = TinyConfig(Scenario::kPerChannel);
  aclrtStream copies = nullptr;
  ASSERT_EQ(aclrtCreateStream(&copies), 0);
  constexpr int kRounds = 30;
  const size_t token_bytes = PrologCall(config)[kTokenX].NumElements() * sizeof(uint16_t);
  const size_t query_bytes = PrologCall(config)[kQueryOut].NumElements() * sizeof(uint16_t);

  // Device memory, so that the copies are asynchronous.
  void* tokens_device = nullptr;
  void* sources = nullptr;
  void* results = nullptr;
  ASSERT_EQ(aclrtMalloc(&tokens_device, token_bytes, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  ASSERT_EQ(aclrtMalloc(&sources, kRounds * token_bytes, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  ASSERT_EQ(aclrtMalloc(&results, kRounds * query_bytes, ACL_MEM_MALLOC_HUGE_FIRST), 0);

  std::vector<std::vector<uint8_t>> expected;
  for (int round = 0; round < kRounds; ++round) {
    PrologCall serial(config);
    serial.Allocate();
    serial.FillInput(kTokenX, 100 + static_cast<uint64_t>(round));
    std::memcpy(static_cast<uint8_t*>(sources) + static_cast<size_t>(round) * token_bytes,
                serial.buffer(kTokenX).data(), token_bytes);
    ASSERT_TRUE(serial.RunQuick(stream_).Ok());
    expected.push_back(serial.buffer(kQueryOut).Bytes());
  }

  PrologCall call(config);
  call.Allocate();
  call[kTokenX].data = tokens_device;
  std::vector<uint8_t> workspace;
  std::vector<aclrtEvent> events;
  const auto order = [&](aclrtStream before, aclrtStream after) {
    aclrtEvent event = nullptr;
    ASSERT_EQ(aclrtCreateEvent(&event), 0);
    events.push_back(event);
    ASSERT_EQ(aclrtRecordEvent(event, before), 0);
    ASSERT_EQ(aclrtStreamWaitEvent(after, event), 0);
  };
  for (int round = 0; round < kRounds; ++round) {
    ASSERT_EQ(aclrtMemcpyAsync(tokens_device, token_bytes,
                               static_cast<uint8_t*>(sources) + static_cast<size_t>(round) * token_bytes, token_bytes,
                               ACL_MEMCPY_DEVICE_TO_DEVICE, copies),
              0);
    order(copies, stream_);
    const Phase1Result first = call.Phase1();
    ASSERT_EQ(first.status, 0);
    if (workspace.empty()) workspace.resize(first.workspace_bytes);
    ASSERT_EQ(call.Phase2(workspace.data(), workspace.size(), first.executor, stream_), 0);
    // On the operator's own stream, in order without an event. The host memory is unknown to the library, so the copy
    // may wait; that must not change anything.
    ASSERT_EQ(aclrtMemcpyAsync(static_cast<uint8_t*>(results) + static_cast<size_t>(round) * query_bytes, query_bytes,
                               call.buffer(kQueryOut).data(), query_bytes, ACL_MEMCPY_DEVICE_TO_DEVICE, stream_),
              0);
    order(stream_, copies);
  }
  ASSERT_EQ(aclrtSynchronizeStream(copies), 0);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), 0);
  for (int round = 0; round < kRounds; ++round) {
    const auto* result = static_cast<const uint8_t*>(results) + static_cast<size_t>(round) * query_bytes;
    ExpectSameBytes(expected[static_cast<size_t>(round)], {result, result + query_bytes},
                    "queryOut of round " + std::to_string(round));
  }
  for (aclrtEvent event : events) EXPECT_EQ(aclrtDestroyEvent(event), 0);
  for (void* memory : {tokens_device, sources, results}) EXPECT_EQ(aclrtFree(memory), 0);
  EXPECT_EQ(aclrtDestroyStream(copies), 0);
}

// A second call reads what the first one wrote: queryOut of the first is tokenX of the second.
TEST_F(StreamStress, CallsOnOneStreamRunInOrder) {
  Config config = TinyConfig(Scenario::kNonQuant);
  config.heads = 1;  // so that a query row is as long as a token
  PrologCall first(config);
  first.Allocate();
  PrologCall second(config);
  second.Allocate();
  second[kTokenX].data = first[kQueryOut].data;
  ASSERT_TRUE(first.RunQuick(stream_).Ok());
  ASSERT_TRUE(second.RunQuick(stream_).Ok());
  const auto expected = second.Written();
  for (int round = 0; round < 50; ++round) {
    first.ResetWritten();
    second.ResetWritten();
    std::vector<uint8_t> workspace;
    std::vector<uint8_t> other_workspace;
    ASSERT_EQ(Queue(first, stream_, &workspace), 0);
    ASSERT_EQ(Queue(second, stream_, &other_workspace), 0);
    ASSERT_EQ(aclrtSynchronizeStream(stream_), 0);
    ASSERT_EQ(second.Written(), expected);
  }
}

TEST_F(StreamStress, DestroyingAStreamWaitsForItsCalls) {
  const Config config = TinyConfig(Scenario::kPartial);
  PrologCall serial(config);
  serial.Allocate();
  ASSERT_TRUE(serial.Run(stream_).Ok());
  std::vector<PrologCall> calls;
  std::vector<std::vector<uint8_t>> workspaces(40);
  for (size_t i = 0; i < workspaces.size(); ++i) {
    calls.emplace_back(config);
    calls.back().Allocate();
  }
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), 0);
  for (size_t i = 0; i < calls.size(); ++i) ASSERT_EQ(Queue(calls[i], stream, &workspaces[i]), 0);
  EXPECT_EQ(aclrtDestroyStream(stream), 0);
  for (const PrologCall& call : calls) EXPECT_EQ(call.Written(), serial.Written());
}

// Calls that have not started are dropped; those that have are complete.
TEST_F(StreamStress, ForcedDestructionLeavesNoHalfWrittenCall) {
  const Config config = TinyConfig(Scenario::kPartial);
  PrologCall serial(config);
  serial.Allocate();
  const auto untouched = serial.Written();
  ASSERT_TRUE(serial.Run(stream_).Ok());
  std::vector<PrologCall> calls;
  std::vector<std::vector<uint8_t>> workspaces(40);
  for (size_t i = 0; i < workspaces.size(); ++i) {
    calls.emplace_back(config);
    calls.back().Allocate();
  }
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), 0);
  std::atomic<bool> started = false;
  ASSERT_EQ(aclrtLaunchHostFunc(
                stream,
                [](void* args) {
                  static_cast<std::atomic<bool>*>(args)->store(true);
                  std::this_thread::sleep_for(std::chrono::milliseconds(100));
                },
                &started),
            0);
  for (size_t i = 0; i < calls.size(); ++i) ASSERT_EQ(Queue(calls[i], stream, &workspaces[i]), 0);
  while (!started) std::this_thread::yield();
  EXPECT_EQ(aclrtDestroyStreamForce(stream), 0);
  for (const PrologCall& call : calls) {
    const auto written = call.Written();
    EXPECT_TRUE(written == untouched || written == serial.Written());
  }
}

// First steps, second steps and refusals of several threads on one stream.
TEST_F(StreamStress, SeveralThreadsFeedOneStream) {
  const Config config = TinyConfig(Scenario::kPerChannelSmooth);
  PrologCall serial(config);
  serial.Allocate();
  ASSERT_TRUE(serial.Run(stream_).Ok());
  const auto expected = serial.Written();
  std::vector<PrologCall> calls;
  for (int i = 0; i < kNumThreads; ++i) {
    calls.emplace_back(config);
    calls.back().Allocate();
  }
  std::vector<std::thread> threads;
  for (PrologCall& call : calls) {
    threads.emplace_back([&] {
      EXPECT_EQ(aclrtSetDevice(0), 0);
      std::vector<uint8_t> workspace;
      for (int i = 0; i < 50; ++i) {
        EXPECT_EQ(Queue(call, stream_, &workspace), 0);
        if (i % 10 == 9) {
          EXPECT_EQ(aclrtSynchronizeStream(stream_), 0);
        }
      }
      EXPECT_EQ(aclrtSynchronizeStream(stream_), 0);
      EXPECT_EQ(call.Written(), expected);
      EXPECT_EQ(aclrtResetDevice(0), 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace mlap::prolog_test
