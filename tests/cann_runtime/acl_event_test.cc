// Events: order between streams, time, life.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "acl_expectations.h"

namespace mlap::cann {
namespace {

class EventTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    ASSERT_EQ(aclrtCreateStream(&first_), ACL_SUCCESS);
    ASSERT_EQ(aclrtCreateStream(&second_), ACL_SUCCESS);
    ASSERT_EQ(aclrtCreateEvent(&event_), ACL_SUCCESS);
  }

  aclrtEventRecordedStatus Status(aclrtEvent event) {
    auto status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
    EXPECT_EQ(aclrtQueryEventStatus(event, &status), ACL_SUCCESS);
    auto old_status = ACL_EVENT_STATUS_RESERVED;
    EXPECT_EQ(aclrtQueryEvent(event, &old_status), ACL_SUCCESS);
    EXPECT_EQ(old_status == ACL_EVENT_STATUS_COMPLETE, status == ACL_EVENT_RECORDED_STATUS_COMPLETE);
    return status;
  }

  aclrtEventWaitStatus WaitStatus(aclrtEvent event) {
    auto status = ACL_EVENT_WAIT_STATUS_RESERVED;
    EXPECT_EQ(aclrtQueryEventWaitStatus(event, &status), ACL_SUCCESS);
    return status;
  }

  aclrtStream first_ = nullptr;
  aclrtStream second_ = nullptr;
  aclrtEvent event_ = nullptr;
};

TEST_F(EventTest, OrdersStreams) {
  Gate gate;
  int value = 0;
  const aclrtHostFunc set_seven = [](void* target) { *static_cast<int*>(target) = 7; };
  const aclrtHostFunc expect_seven = [](void* target) { EXPECT_EQ(*static_cast<int*>(target), 7); };
  ASSERT_EQ(aclrtLaunchHostFunc(first_, &Gate::Pass, &gate), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchHostFunc(first_, set_seven, &value), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(event_, first_), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEvent(second_, event_), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchHostFunc(second_, expect_seven, &value), ACL_SUCCESS);
  EXPECT_EQ(Status(event_), ACL_EVENT_RECORDED_STATUS_NOT_READY);
  EXPECT_EQ(WaitStatus(event_), ACL_EVENT_WAIT_STATUS_NOT_READY);
  ExpectRefused(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, aclrtSynchronizeStreamWithTimeout(second_, 10),
                "aclrtSynchronizeStreamWithTimeout");
  ExpectRefused(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, aclrtSynchronizeEventWithTimeout(event_, 10),
                "aclrtSynchronizeEventWithTimeout");
  ExpectRefused(ACL_ERROR_RT_PARAM_INVALID, aclrtSynchronizeEventWithTimeout(event_, -2),
                "aclrtSynchronizeEventWithTimeout");
  gate.Open();
  EXPECT_EQ(aclrtSynchronizeEvent(event_), ACL_SUCCESS);
  EXPECT_EQ(value, 7);
  EXPECT_EQ(Status(event_), ACL_EVENT_RECORDED_STATUS_COMPLETE);
  EXPECT_EQ(aclrtSynchronizeStream(second_), ACL_SUCCESS);
  EXPECT_EQ(WaitStatus(event_), ACL_EVENT_WAIT_STATUS_COMPLETE);
}

// A wait is for the record at the time of the call, not for later ones.
TEST_F(EventTest, WaitsForTheLatestRecordAtTheCall) {
  Gate gate;
  ASSERT_EQ(aclrtStreamWaitEvent(second_, event_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(second_), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(event_, first_), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEvent(second_, event_), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchHostFunc(first_, &Gate::Pass, &gate), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(event_, first_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(second_), ACL_SUCCESS);
  EXPECT_EQ(Status(event_), ACL_EVENT_RECORDED_STATUS_NOT_READY);
  gate.Open();
  EXPECT_EQ(aclrtSynchronizeStream(first_), ACL_SUCCESS);
}

TEST_F(EventTest, BeforeTheFirstRecord) {
  aclrtEvent complete = nullptr;
  ASSERT_EQ(aclrtCreateEventExWithFlag(&complete, ACL_EVENT_SYNC), ACL_SUCCESS);
  EXPECT_EQ(Status(complete), ACL_EVENT_RECORDED_STATUS_COMPLETE);
  EXPECT_EQ(Status(event_), ACL_EVENT_RECORDED_STATUS_NOT_READY);
  EXPECT_EQ(aclrtSynchronizeEvent(event_), ACL_SUCCESS);
  uint64_t timestamp = 0;
  ExpectRefused(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, aclrtEventGetTimestamp(event_, &timestamp),
                "aclrtEventGetTimestamp");
}

TEST_F(EventTest, ResetForgetsTheRecordInStreamOrder) {
  ASSERT_EQ(aclrtRecordEvent(event_, first_), ACL_SUCCESS);
  ASSERT_EQ(aclrtResetEvent(event_, first_), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(first_), ACL_SUCCESS);
  EXPECT_EQ(Status(event_), ACL_EVENT_RECORDED_STATUS_NOT_READY);
  // A record after the reset's call survives it.
  Gate gate;
  ASSERT_EQ(aclrtRecordEvent(event_, first_), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchHostFunc(second_, &Gate::Pass, &gate), ACL_SUCCESS);
  ASSERT_EQ(aclrtResetEvent(event_, second_), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(event_, first_), ACL_SUCCESS);
  gate.Open();
  ASSERT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
  EXPECT_EQ(Status(event_), ACL_EVENT_RECORDED_STATUS_COMPLETE);
}

TEST_F(EventTest, MeasuresTime) {
  aclrtEvent end = nullptr;
  ASSERT_EQ(aclrtCreateEventWithFlag(&end, ACL_EVENT_TIME_LINE), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(event_, first_), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchHostFunc(
                first_, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(30)); }, nullptr),
            ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(end, first_), ACL_SUCCESS);
  float ms = -1;
  ASSERT_EQ(aclrtSynchronizeEvent(event_), ACL_SUCCESS);
  ExpectRefused(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, aclrtEventElapsedTime(&ms, event_, end), "aclrtEventElapsedTime");
  ASSERT_EQ(aclrtSynchronizeEvent(end), ACL_SUCCESS);
  ASSERT_EQ(aclrtEventElapsedTime(&ms, event_, end), ACL_SUCCESS);
  EXPECT_GE(ms, 30);
  EXPECT_LT(ms, 30000);
  ExpectRefused(ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL, aclrtEventElapsedTime(&ms, end, event_),
                "aclrtEventElapsedTime");
  uint64_t begin_us = 0;
  uint64_t end_us = 0;
  ASSERT_EQ(aclrtEventGetTimestamp(event_, &begin_us), ACL_SUCCESS);
  ASSERT_EQ(aclrtEventGetTimestamp(end, &end_us), ACL_SUCCESS);
  EXPECT_NEAR(static_cast<double>(end_us - begin_us), 1000.0 * ms, 10);
}

TEST_F(EventTest, MayBeDestroyedWhileQueued) {
  Gate gate;
  ASSERT_EQ(aclrtLaunchHostFunc(first_, &Gate::Pass, &gate), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(event_, first_), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEvent(second_, event_), ACL_SUCCESS);
  ASSERT_EQ(aclrtResetEvent(event_, second_), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyEvent(event_), ACL_SUCCESS);
  ExpectRefused(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, aclrtSynchronizeStreamWithTimeout(second_, 10),
                "aclrtSynchronizeStreamWithTimeout");
  gate.Open();
  EXPECT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
}

// A record that is dropped with its stream must not hold anybody up for ever.
TEST_F(EventTest, DroppedRecordsReleaseWhoeverWaits) {
  Gate gate;
  ASSERT_EQ(aclrtLaunchHostFunc(first_, &Gate::Pass, &gate), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(event_, first_), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEvent(second_, event_), ACL_SUCCESS);
  gate.AwaitArrival();
  std::thread destroyer([this] {
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    EXPECT_EQ(aclrtDestroyStreamForce(first_), ACL_SUCCESS);
  });
  EXPECT_EQ(aclrtSynchronizeEvent(event_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(second_), ACL_SUCCESS);
  gate.Open();
  destroyer.join();
  uint64_t timestamp = 0;
  ExpectRefused(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, aclrtEventGetTimestamp(event_, &timestamp),
                "aclrtEventGetTimestamp");
}

TEST_F(EventTest, HostFunctionsCannotWaitForTheirOwnStream) {
  Gate gate;
  const aclrtHostFunc synchronize = [](void* event) {
    ExpectRefused(ACL_ERROR_RT_PARAM_INVALID, aclrtSynchronizeEvent(event), "aclrtSynchronizeEvent");
  };
  ASSERT_EQ(aclrtLaunchHostFunc(first_, &Gate::Pass, &gate), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchHostFunc(first_, synchronize, event_), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(event_, first_), ACL_SUCCESS);
  gate.Open();
  EXPECT_EQ(aclrtSynchronizeStream(first_), ACL_SUCCESS);
}

TEST_F(EventTest, WrongEventsAreRefused) {
  static aclrtStream stream;
  stream = first_;
  static aclrtEvent good;
  good = event_;
  const struct {
    const char* function;
    aclError (*call)(aclrtEvent);
  } kCalls[] = {
      {"aclrtDestroyEvent", [](aclrtEvent e) { return aclrtDestroyEvent(e); }},
      {"aclrtRecordEvent", [](aclrtEvent e) { return aclrtRecordEvent(e, stream); }},
      {"aclrtResetEvent", [](aclrtEvent e) { return aclrtResetEvent(e, stream); }},
      {"aclrtStreamWaitEvent", [](aclrtEvent e) { return aclrtStreamWaitEvent(stream, e); }},
      {"aclrtQueryEventStatus",
       [](aclrtEvent e) {
         aclrtEventRecordedStatus status;
         return aclrtQueryEventStatus(e, &status);
       }},
      {"aclrtQueryEvent",
       [](aclrtEvent e) {
         aclrtEventStatus status;
         return aclrtQueryEvent(e, &status);
       }},
      {"aclrtQueryEventWaitStatus",
       [](aclrtEvent e) {
         aclrtEventWaitStatus status;
         return aclrtQueryEventWaitStatus(e, &status);
       }},
      {"aclrtSynchronizeEvent", [](aclrtEvent e) { return aclrtSynchronizeEvent(e); }},
      {"aclrtSynchronizeEventWithTimeout", [](aclrtEvent e) { return aclrtSynchronizeEventWithTimeout(e, 0); }},
      {"aclrtEventElapsedTime",
       [](aclrtEvent e) {
         float ms;
         return aclrtEventElapsedTime(&ms, e, good);
       }},
      {"aclrtEventElapsedTime",
       [](aclrtEvent e) {
         float ms;
         return aclrtEventElapsedTime(&ms, good, e);
       }},
      {"aclrtEventGetTimestamp",
       [](aclrtEvent e) {
         uint64_t timestamp;
         return aclrtEventGetTimestamp(e, &timestamp);
       }},
  };
  ASSERT_EQ(aclrtRecordEvent(event_, first_), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeEvent(event_), ACL_SUCCESS);
  aclrtEvent destroyed = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&destroyed), ACL_SUCCESS);
  ASSERT_EQ(aclrtDestroyEvent(destroyed), ACL_SUCCESS);
  int on_the_stack = 0;
  for (const auto& event_call : kCalls) {
    SCOPED_TRACE(event_call.function);
    for (const aclrtEvent wrong : {destroyed, first_, static_cast<aclrtEvent>(&on_the_stack)}) {
      ExpectRefused(ACL_ERROR_RT_INVALID_HANDLE, event_call.call(wrong), event_call.function);
    }
    ExpectRefused(ACL_ERROR_INVALID_PARAM, event_call.call(nullptr), event_call.function);
  }
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtQueryEventStatus(event_, nullptr), "aclrtQueryEventStatus");
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtQueryEvent(event_, nullptr), "aclrtQueryEvent");
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtQueryEventWaitStatus(event_, nullptr), "aclrtQueryEventWaitStatus");
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtEventElapsedTime(nullptr, event_, event_), "aclrtEventElapsedTime");
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtEventGetTimestamp(event_, nullptr), "aclrtEventGetTimestamp");
}

TEST_F(EventTest, CreationChecksItsArguments) {
  aclrtEvent event = nullptr;
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtCreateEvent(nullptr), "aclrtCreateEvent");
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtCreateEventWithFlag(nullptr, 0), "aclrtCreateEventWithFlag");
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtCreateEventExWithFlag(nullptr, 0), "aclrtCreateEventExWithFlag");
  for (const uint32_t unknown : {0x4U, 0x80U, 0x80000000U}) {
    ExpectRefused(ACL_ERROR_RT_PARAM_INVALID, aclrtCreateEventWithFlag(&event, unknown), "aclrtCreateEventWithFlag");
    ExpectRefused(ACL_ERROR_RT_PARAM_INVALID, aclrtCreateEventExWithFlag(&event, unknown),
                  "aclrtCreateEventExWithFlag");
  }
  ExpectRefused(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC),
                "aclrtCreateEventExWithFlag");
  std::thread([&event] {
    ExpectRefused(ACL_ERROR_RT_CONTEXT_NULL, aclrtCreateEvent(&event), "aclrtCreateEvent");
  }).join();
  EXPECT_EQ(event, nullptr);
}

// Four threads whose streams wait for each other cannot lock up; and a value passed round the ring of streams arrives
// whole.
TEST_F(EventTest, RingOfFourThreads) {
  constexpr int kNumThreads = 4;
  constexpr int kNumRounds = 50;
  std::vector<aclrtStream> streams(kNumThreads);
  std::vector<aclrtEvent> events(kNumThreads);
  for (int i = 0; i < kNumThreads; ++i) {
    ASSERT_EQ(aclrtCreateStream(&streams[i]), ACL_SUCCESS);
    ASSERT_EQ(aclrtCreateEvent(&events[i]), ACL_SUCCESS);
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < kNumThreads; ++t) {
    threads.emplace_back([&, t] {
      ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
      for (int round = 0; round < kNumRounds; ++round) {
        ASSERT_EQ(aclrtStreamWaitEvent(streams[t], events[(t + 1) % kNumThreads]), ACL_SUCCESS);
        ASSERT_EQ(aclrtRecordEvent(events[t], streams[t]), ACL_SUCCESS);
        if (round % 10 == 0) {
          ASSERT_EQ(aclrtSynchronizeEvent(events[(t + 2) % kNumThreads]), ACL_SUCCESS);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(aclrtSynchronizeDeviceWithTimeout(60000), ACL_SUCCESS);
  // In one thread the order is known: a value is passed round the ring, without a lock.
  int value = 0;
  const aclrtHostFunc add_one = [](void* target) { ++*static_cast<int*>(target); };
  for (int i = 0; i < kNumThreads * kNumRounds; ++i) {
    ASSERT_EQ(aclrtLaunchHostFunc(streams[i % kNumThreads], add_one, &value), ACL_SUCCESS);
    ASSERT_EQ(aclrtRecordEvent(events[i % kNumThreads], streams[i % kNumThreads]), ACL_SUCCESS);
    ASSERT_EQ(aclrtStreamWaitEvent(streams[(i + 1) % kNumThreads], events[i % kNumThreads]), ACL_SUCCESS);
  }
  EXPECT_EQ(aclrtSynchronizeDeviceWithTimeout(60000), ACL_SUCCESS);
  EXPECT_EQ(value, kNumThreads * kNumRounds);
}

}  // namespace
}  // namespace mlap::cann
