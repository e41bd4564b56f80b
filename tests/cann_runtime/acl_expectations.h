// What the tests of the CANN-compatible runtime share.
#ifndef MLAP_TESTS_CANN_RUNTIME_ACL_EXPECTATIONS_H_
#define MLAP_TESTS_CANN_RUNTIME_ACL_EXPECTATIONS_H_

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <string>

#include "acl/acl.h"

namespace mlap::cann {

inline std::string RecentText() {
  const char* const text = aclGetRecentErrMsg();
  return text == nullptr ? "" : text;
}

// `code` is the one expected, and exactly one text that names `function` was left.
inline void ExpectRefused(int expected, int code, const std::string& function) {
  const std::string text = RecentText();
  EXPECT_EQ(code, expected) << function << "\n" << text;
  EXPECT_EQ(text.rfind(function + ":", 0), 0U) << function << " left the text \"" << text << "\"";
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}

// Holds up host functions until it is opened. The stream must be synchronised before the gate goes.
class Gate {
 public:
  // Opens also when a test has failed halfway, and lets those who have arrived leave first.
  ~Gate() {
    Open();
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return num_inside_ == 0; });
  }

  void Open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }

  // Returns once a host function has arrived at the gate.
  void AwaitArrival() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return has_arrival_; });
  }

  // An aclrtHostFunc whose argument is the gate.
  static void Pass(void* gate) { static_cast<Gate*>(gate)->PassThrough(); }

 private:
  void PassThrough() {
    std::unique_lock<std::mutex> lock(mutex_);
    has_arrival_ = true;
    ++num_inside_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return is_open_; });
    --num_inside_;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = false;
  bool has_arrival_ = false;
  int num_inside_ = 0;
};

// A thread with the device's default context, and no texts or streams left from other tests.
class DeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    RecentText();
    aclrtGetLastError(ACL_RT_THREAD_LEVEL);
  }

  void TearDown() override { EXPECT_EQ(aclrtResetDeviceForce(0), ACL_SUCCESS) << RecentText(); }
};

}  // namespace mlap::cann

#endif  // MLAP_TESTS_CANN_RUNTIME_ACL_EXPECTATIONS_H_
