// Streams: order, asynchrony, destruction, failures, wrong handles.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "acl_expectations.h"

namespace mlap::cann {
namespace {

struct Note {
  std::vector<int>* sink;
  int value;
};

void TakeNote(void* note) {
  const Note* const taken = static_cast<Note*>(note);
  taken->sink->push_back(taken->value);
}

void CountUp(void* counter) { ++*static_cast<std::atomic<int>*>(counter); }

void Throw(void*) { throw std::runtime_error("a thrown text"); }

std::vector<int> Iota(int count) {
  std::vector<int> values;
  for (int i = 0; i < count; ++i) values.push_back(i);
  return values;
}

TEST_F(DeviceTest, StreamsRunInOrder) {
  aclrtStream created = nullptr;
  ASSERT_EQ(aclrtCreateStream(&created), ACL_SUCCESS);
  for (const aclrtStream stream : {created, aclrtStream{nullptr}}) {
    std::vector<int> sink;
    std::vector<Note> notes;
    for (int i = 0; i < 500; ++i) notes.push_back({&sink, i});
    for (Note& note : notes) ASSERT_EQ(aclrtLaunchHostFunc(stream, &TakeNote, &note), ACL_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    EXPECT_EQ(sink, Iota(500));
  }
  EXPECT_EQ(aclrtDestroyStream(created), ACL_SUCCESS);
}

TEST_F(DeviceTest, WorkIsAsynchronousAndQueryable) {
  Gate gate;
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  aclrtStreamStatus status = ACL_STREAM_STATUS_NOT_READY;
  EXPECT_EQ(aclrtStreamQuery(stream, &status), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_STREAM_STATUS_COMPLETE);
  ASSERT_EQ(aclrtLaunchHostFunc(stream, &Gate::Pass, &gate), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamQuery(stream, &status), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_STREAM_STATUS_NOT_READY);
  for (const int32_t timeout : {0, 20}) {
    ExpectRefused(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, aclrtSynchronizeStreamWithTimeout(stream, timeout),
                  "aclrtSynchronizeStreamWithTimeout");
    ExpectRefused(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, aclrtSynchronizeDeviceWithTimeout(timeout),
                  "aclrtSynchronizeDeviceWithTimeout");
  }
  for (const int32_t timeout : {-2, INT32_MIN}) {
    ExpectRefused(ACL_ERROR_RT_PARAM_INVALID, aclrtSynchronizeStreamWithTimeout(stream, timeout),
                  "aclrtSynchronizeStreamWithTimeout");
    ExpectRefused(ACL_ERROR_RT_PARAM_INVALID, aclrtSynchronizeDeviceWithTimeout(timeout),
                  "aclrtSynchronizeDeviceWithTimeout");
  }
  gate.Open();
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream, -1), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeDeviceWithTimeout(60000), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamQuery(stream, &status), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_STREAM_STATUS_COMPLETE);
}

// Each way to end a stream with work queued: does what has not started still run?
TEST_F(DeviceTest, EndingAStreamWithWorkQueued) {
  struct Way {
    const char* name;
    bool runs_queued;
    aclError (*end)(aclrtStream);
  };
  const Way kWays[] = {
      {"destroy", true, [](aclrtStream stream) { return aclrtDestroyStream(stream); }},
      {"force", false, [](aclrtStream stream) { return aclrtDestroyStreamForce(stream); }},
      {"reset", true, [](aclrtStream) { return aclrtResetDevice(0); }},
      {"force reset", true, [](aclrtStream) { return aclrtResetDeviceForce(0); }},
      {"finalize", true, [](aclrtStream) { return aclInit(nullptr) + aclFinalize(); }},
  };
  for (const Way& way : kWays) {
    SCOPED_TRACE(way.name);
    if (aclrtGetLastError(ACL_RT_THREAD_LEVEL); aclrtResetDeviceForce(0) != ACL_SUCCESS) RecentText();
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    Gate gate;
    std::atomic<int> num_run{0};
    aclrtStream stream = nullptr;
    ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
    ASSERT_EQ(aclrtLaunchHostFunc(stream, &Gate::Pass, &gate), ACL_SUCCESS);
    for (int i = 0; i < 20; ++i) ASSERT_EQ(aclrtLaunchHostFunc(stream, &CountUp, &num_run), ACL_SUCCESS);
    gate.AwaitArrival();
    std::thread opener([&gate] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      gate.Open();
    });
    EXPECT_EQ(way.end(stream), ACL_SUCCESS) << RecentText();
    EXPECT_EQ(num_run, way.runs_queued ? 20 : 0);
    opener.join();
    if (aclrtSetDevice(0) == ACL_SUCCESS) {
      ExpectRefused(ACL_ERROR_RT_INVALID_HANDLE, aclrtDestroyStream(stream), "aclrtDestroyStream");
    }
  }
}

TEST_F(DeviceTest, DestroyingAContextWithWorkQueued) {
  aclrtContext context = nullptr;
  ASSERT_EQ(aclrtCreateContext(&context, 0), ACL_SUCCESS);
  std::atomic<int> num_run{0};
  std::vector<aclrtStream> streams(3);
  for (aclrtStream& stream : streams) {
    ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
    for (int i = 0; i < 50; ++i) ASSERT_EQ(aclrtLaunchHostFunc(stream, &CountUp, &num_run), ACL_SUCCESS);
  }
  EXPECT_EQ(aclrtDestroyContext(context), ACL_SUCCESS);
  EXPECT_EQ(num_run, 150);
  ExpectRefused(ACL_ERROR_RT_CONTEXT_NULL, aclrtSynchronizeStream(streams[0]), "aclrtSynchronizeStream");
}

TEST_F(DeviceTest, AFailedTaskSurfacesOnce) {
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  const struct {
    const char* function;
    aclError (*synchronize)(aclrtStream);
  } kWays[] = {
      {"aclrtSynchronizeStream", [](aclrtStream s) { return aclrtSynchronizeStream(s); }},
      {"aclrtSynchronizeStreamWithTimeout", [](aclrtStream s) { return aclrtSynchronizeStreamWithTimeout(s, 60000); }},
      {"aclrtSynchronizeDevice", [](aclrtStream) { return aclrtSynchronizeDevice(); }},
      {"aclrtSynchronizeDeviceWithTimeout", [](aclrtStream) { return aclrtSynchronizeDeviceWithTimeout(60000); }},
  };
  for (const auto& way : kWays) {
    SCOPED_TRACE(way.function);
    std::atomic<int> num_run{0};
    ASSERT_EQ(aclrtLaunchHostFunc(stream, &Throw, nullptr), ACL_SUCCESS);
    ASSERT_EQ(aclrtLaunchHostFunc(stream, &CountUp, &num_run), ACL_SUCCESS);
    ASSERT_EQ(aclrtLaunchHostFunc(stream, &Throw, nullptr), ACL_SUCCESS);
    aclrtStreamStatus status = ACL_STREAM_STATUS_NOT_READY;
    while (status == ACL_STREAM_STATUS_NOT_READY) ASSERT_EQ(aclrtStreamQuery(stream, &status), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
    EXPECT_EQ(RecentText(), "");
    EXPECT_EQ(way.synchronize(stream), ACL_ERROR_RT_INTERNAL_ERROR);
    const std::string text = RecentText();
    EXPECT_NE(text.find(way.function), std::string::npos) << text;
    EXPECT_NE(text.find("a thrown text"), std::string::npos) << text;
    EXPECT_NE(text.find("1 later"), std::string::npos) << text;
    EXPECT_EQ(num_run, 1);
    EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
  }
}

struct StreamCall {
  const char* function;
  aclError (*call)(aclrtStream);
};

const StreamCall kStreamCalls[] = {
    {"aclrtDestroyStream", [](aclrtStream s) { return aclrtDestroyStream(s); }},
    {"aclrtDestroyStreamForce", [](aclrtStream s) { return aclrtDestroyStreamForce(s); }},
    {"aclrtSynchronizeStream", [](aclrtStream s) { return aclrtSynchronizeStream(s); }},
    {"aclrtSynchronizeStreamWithTimeout", [](aclrtStream s) { return aclrtSynchronizeStreamWithTimeout(s, 0); }},
    {"aclrtStreamQuery",
     [](aclrtStream s) {
       aclrtStreamStatus status;
       return aclrtStreamQuery(s, &status);
     }},
    {"aclrtLaunchHostFunc",
     [](aclrtStream s) {
       return aclrtLaunchHostFunc(
           s, [](void*) {}, nullptr);
     }},
    {"aclrtMemsetAsync",
     [](aclrtStream s) {
       static char byte;
       return aclrtMemsetAsync(&byte, 1, 0, 1, s);
     }},
    {"aclrtMemcpyAsync",
     [](aclrtStream s) {
       static char bytes[2];
       return aclrtMemcpyAsync(bytes, 1, bytes + 1, 1, ACL_MEMCPY_HOST_TO_DEVICE, s);
     }},
    {"aclrtMemcpy2dAsync",
     [](aclrtStream s) {
       static char bytes[2];
       return aclrtMemcpy2dAsync(bytes, 1, bytes + 1, 1, 1, 1, ACL_MEMCPY_HOST_TO_DEVICE, s);
     }},
};

TEST_F(DeviceTest, WrongStreamsAreRefused) {
  aclrtContext home = nullptr;
  ASSERT_EQ(aclrtGetCurrentContext(&home), ACL_SUCCESS);
  aclrtStream destroyed = nullptr;
  ASSERT_EQ(aclrtCreateStream(&destroyed), ACL_SUCCESS);
  ASSERT_EQ(aclrtDestroyStream(destroyed), ACL_SUCCESS);
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
  // Handles are never issued twice, so a new stream does not revive the old handle.
  aclrtStream live = nullptr;
  ASSERT_EQ(aclrtCreateStream(&live), ACL_SUCCESS);
  int on_the_stack = 0;
  aclrtContext away = nullptr;

  for (const StreamCall& stream_call : kStreamCalls) {
    SCOPED_TRACE(stream_call.function);
    for (const aclrtStream wrong :
         {destroyed, event, home, static_cast<aclrtStream>(&on_the_stack), reinterpret_cast<aclrtStream>(uintptr_t{1}),
          reinterpret_cast<aclrtStream>(UINTPTR_MAX)}) {
      ExpectRefused(ACL_ERROR_RT_INVALID_HANDLE, stream_call.call(wrong), stream_call.function);
    }
    ASSERT_EQ(aclrtCreateContext(&away, 0), ACL_SUCCESS);
    ExpectRefused(ACL_ERROR_RT_STREAM_CONTEXT, stream_call.call(live), stream_call.function);
    ASSERT_EQ(aclrtDestroyContext(away), ACL_SUCCESS);
    ExpectRefused(ACL_ERROR_RT_CONTEXT_NULL, stream_call.call(live), stream_call.function);
    ASSERT_EQ(aclrtSetCurrentContext(home), ACL_SUCCESS);
    std::thread([&] { ExpectRefused(ACL_ERROR_RT_CONTEXT_NULL, stream_call.call(live), stream_call.function); }).join();
  }
  EXPECT_EQ(aclrtSynchronizeStream(live), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
}

TEST_F(DeviceTest, WrongArgumentsOfStreamFunctions) {
  aclrtStream stream = nullptr;
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtCreateStream(nullptr), "aclrtCreateStream");
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtCreateStreamWithConfig(nullptr, 0, 0), "aclrtCreateStreamWithConfig");
  ExpectRefused(ACL_ERROR_RT_PARAM_INVALID, aclrtCreateStreamWithConfig(&stream, 8, 0), "aclrtCreateStreamWithConfig");
  ExpectRefused(ACL_ERROR_RT_PARAM_INVALID, aclrtCreateStreamWithConfig(&stream, 0, 0x40),
                "aclrtCreateStreamWithConfig");
  for (const uint32_t flag :
       {ACL_STREAM_PERSISTENT, ACL_STREAM_CPU_SCHEDULE, ACL_STREAM_DEVICE_USE_ONLY | ACL_STREAM_HUGE}) {
    ExpectRefused(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtCreateStreamWithConfig(&stream, 0, flag),
                  "aclrtCreateStreamWithConfig");
  }
  EXPECT_EQ(stream, nullptr);
  for (uint32_t priority = 0; priority < 8; ++priority) {
    for (const uint32_t flag : {0U, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC, ACL_STREAM_HUGE}) {
      EXPECT_EQ(aclrtCreateStreamWithConfig(&stream, priority, flag), ACL_SUCCESS);
      EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
    }
  }
  ASSERT_EQ(aclrtCtxGetCurrentDefaultStream(&stream), ACL_SUCCESS);
  ExpectRefused(ACL_ERROR_RT_PARAM_INVALID, aclrtDestroyStream(stream), "aclrtDestroyStream");
  ExpectRefused(ACL_ERROR_RT_PARAM_INVALID, aclrtDestroyStreamForce(stream), "aclrtDestroyStreamForce");
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtDestroyStream(nullptr), "aclrtDestroyStream");
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtDestroyStreamForce(nullptr), "aclrtDestroyStreamForce");
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtStreamQuery(stream, nullptr), "aclrtStreamQuery");
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtLaunchHostFunc(stream, nullptr, nullptr), "aclrtLaunchHostFunc");
}

// A host function that would wait for itself is told so.
TEST_F(DeviceTest, HostFunctionsCannotWaitForThemselves) {
  struct Inside {
    aclrtContext context = nullptr;
    aclrtStream stream = nullptr;
  } inside;
  ASSERT_EQ(aclrtGetCurrentContext(&inside.context), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateStream(&inside.stream), ACL_SUCCESS);
  const aclrtHostFunc call_everything = [](void* args) {
    const Inside& in = *static_cast<Inside*>(args);
    ASSERT_EQ(aclrtSetCurrentContext(in.context), ACL_SUCCESS);
    ExpectRefused(ACL_ERROR_RT_PARAM_INVALID, aclrtSynchronizeStream(in.stream), "aclrtSynchronizeStream");
    ExpectRefused(ACL_ERROR_RT_PARAM_INVALID, aclrtDestroyStream(in.stream), "aclrtDestroyStream");
    ExpectRefused(ACL_ERROR_RT_PARAM_INVALID, aclrtDestroyStreamForce(in.stream), "aclrtDestroyStreamForce");
    ExpectRefused(ACL_ERROR_RT_PARAM_INVALID, aclrtSynchronizeDevice(), "aclrtSynchronizeDevice");
    ExpectRefused(ACL_ERROR_RT_PARAM_INVALID, aclrtResetDevice(0), "aclrtResetDevice");
    ExpectRefused(ACL_ERROR_RT_PARAM_INVALID, aclrtResetDeviceForce(0), "aclrtResetDeviceForce");
    ExpectRefused(ACL_ERROR_RT_PARAM_INVALID, aclFinalize(), "aclFinalize");
    EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  };
  ASSERT_EQ(aclrtLaunchHostFunc(inside.stream, call_everything, &inside), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(inside.stream), ACL_SUCCESS);
}

// Handlers of the program's signals run on the program's threads; faults of the thread itself still reach theirs.
TEST_F(DeviceTest, ThreadsOfStreamsBlockSignals) {
  sigset_t before;
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, nullptr, &before), 0);
  sigset_t inside;
  sigemptyset(&inside);
  ASSERT_EQ(
      aclrtLaunchHostFunc(
          nullptr, [](void* mask) { pthread_sigmask(SIG_BLOCK, nullptr, static_cast<sigset_t*>(mask)); }, &inside),
      ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGALRM, SIGCHLD}) {
    EXPECT_EQ(sigismember(&inside, signal), 1) << signal;
  }
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) EXPECT_EQ(sigismember(&inside, signal), 0) << signal;
  sigset_t after;
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, nullptr, &after), 0);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
    EXPECT_EQ(sigismember(&after, signal), sigismember(&before, signal)) << signal;
  }
}

#ifdef __linux__
TEST_F(DeviceTest, ThreadsOfStreamsAreNotBoundAsTheirCreators) {
  cpu_set_t of_main;
  ASSERT_EQ(sched_getaffinity(getpid(), sizeof of_main, &of_main), 0);
  if (CPU_COUNT(&of_main) < 2) GTEST_SKIP() << "there is one processor";
  cpu_set_t inside;
  CPU_ZERO(&inside);
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int i = 0; CPU_COUNT(&one) == 0; ++i) {
      if (CPU_ISSET(i, &of_main)) CPU_SET(i, &one);
    }
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    ASSERT_EQ(
        aclrtLaunchHostFunc(
            nullptr, [](void* set) { sched_getaffinity(0, sizeof(cpu_set_t), static_cast<cpu_set_t*>(set)); }, &inside),
        ACL_SUCCESS);
  }).join();
  ASSERT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  EXPECT_TRUE(CPU_EQUAL(&inside, &of_main));
}
#endif

TEST(Streams, ServeFourThreadsAtOnce) {
  constexpr int kNumThreads = 4;
  constexpr int kNumRounds = 100;
  std::vector<std::thread> threads;
  for (int t = 0; t < kNumThreads; ++t) {
    threads.emplace_back([t] {
      ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
      std::vector<int> sink;
      std::vector<Note> notes;
      for (int i = 0; i < 10 * kNumRounds; ++i) notes.push_back({&sink, i});
      aclrtStream streams[2] = {};
      for (int round = 0; round < kNumRounds; ++round) {
        aclrtStream& stream = streams[round % 2];
        if (stream == nullptr) {
          ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
        }
        for (int i = 0; i < 10; ++i) {
          ASSERT_EQ(aclrtLaunchHostFunc(stream, &TakeNote, &notes[10 * round + i]), ACL_SUCCESS);
        }
        if (round % 10 == t) {
          ASSERT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
          stream = nullptr;
        } else {
          ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
        }
      }
      EXPECT_EQ(sink, Iota(10 * kNumRounds));
      ASSERT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Threads that use, synchronise and destroy the same streams: each call succeeds or is refused.
TEST(Streams, SurviveARaceForThem) {
  for (int round = 0; round < 30; ++round) {
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    aclrtStream stream = nullptr;
    ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
    std::atomic<int> num_destroyed{0};
    std::atomic<int> num_run{0};
    std::atomic<int> num_queued{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
        for (int i = 0; i < 5; ++i) num_queued += aclrtLaunchHostFunc(stream, &CountUp, &num_run) == ACL_SUCCESS;
        if (t == 0) aclrtSynchronizeStream(stream);
        if (t == 1) aclrtSynchronizeDevice();
        num_destroyed += aclrtDestroyStream(stream) == ACL_SUCCESS;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(num_destroyed, 1);
    EXPECT_EQ(num_run, num_queued);
    ASSERT_EQ(aclrtResetDeviceForce(0), ACL_SUCCESS);
  }
}

}  // namespace
}  // namespace mlap::cann
