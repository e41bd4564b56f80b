// Initialisation, errors, devices, contexts, options.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "acl_expectations.h"
#include "aclnn/aclnn_base.h"

namespace mlap::cann {
namespace {

class FileWith {
 public:
  explicit FileWith(const std::string& content) : path_(::testing::TempDir() + "acl_config_XXXXXX") {
    const int descriptor = mkstemp(path_.data());
    EXPECT_GE(descriptor, 0);
    std::ofstream(path_) << content;
    std::fclose(fdopen(descriptor, "r"));
  }
  ~FileWith() { std::remove(path_.c_str()); }
  const char* path() const { return path_.c_str(); }

 private:
  std::string path_;
};

TEST(AclInit, CountsItsUsers) {
  EXPECT_EQ(aclInit(nullptr), ACL_SUCCESS);
  ExpectRefused(ACL_ERROR_REPEAT_INITIALIZE, aclInit(""), "aclInit");
  ExpectRefused(ACL_ERROR_REPEAT_INITIALIZE, aclInit(nullptr), "aclInit");
  uint64_t num_users = 99;
  EXPECT_EQ(aclFinalizeReference(&num_users), ACL_SUCCESS);
  EXPECT_EQ(num_users, 2U);
  EXPECT_EQ(aclFinalizeReference(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclFinalizeReference(&num_users), ACL_SUCCESS);
  EXPECT_EQ(num_users, 0U);
  ExpectRefused(ACL_ERROR_REPEAT_FINALIZE, aclFinalizeReference(&num_users), "aclFinalizeReference");
  ExpectRefused(ACL_ERROR_REPEAT_FINALIZE, aclFinalize(), "aclFinalize");
}

TEST(AclInit, MayFollowFinalize) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(aclInit(nullptr), ACL_SUCCESS);
    ExpectRefused(ACL_ERROR_REPEAT_INITIALIZE, aclInit(nullptr), "aclInit");
    EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
    ExpectRefused(ACL_ERROR_REPEAT_FINALIZE, aclFinalize(), "aclFinalize");
  }
}

TEST(AclInit, ReadsItsFile) {
  const FileWith one("{}");
  const FileWith same("{}");
  const FileWith other("{ }");
  for (const char* missing : {"/nonexistent/acl.json", "/", "acl.json.d/"}) {
    ExpectRefused(ACL_ERROR_INVALID_FILE, aclInit(missing), "aclInit");
    ExpectRefused(161002, aclnnInit(missing), "aclnnInit");
  }
  EXPECT_EQ(aclInit(one.path()), ACL_SUCCESS);
  ExpectRefused(ACL_ERROR_REPEAT_INITIALIZE, aclInit(same.path()), "aclInit");
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclInit(other.path()), "aclInit");
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclInit(nullptr), "aclInit");
  EXPECT_EQ(aclnnInit(other.path()), 0);
  EXPECT_EQ(aclnnInit(nullptr), 0);
  EXPECT_EQ(aclnnFinalize(), 0);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  EXPECT_EQ(RecentText(), "");
}

TEST(AclFinalize, DestroysWhatIsLeft) {
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  bool has_run = false;
  ASSERT_EQ(aclrtLaunchHostFunc(
                stream, [](void* flag) { *static_cast<bool*>(flag) = true; }, &has_run),
            ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  EXPECT_TRUE(has_run);
  ExpectRefused(ACL_ERROR_RT_CONTEXT_NULL, aclrtDestroyStream(stream), "aclrtDestroyStream");
  ExpectRefused(ACL_ERROR_RT_CONTEXT_NULL, aclrtResetDevice(0), "aclrtResetDevice");
}

// A host function that initialises while the finalisation waits for it is refused, and does not wait in turn.
TEST(AclFinalize, DoesNotWaitForAnAclInitInAHostFunction) {
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  int code = 0;
  ASSERT_EQ(aclrtLaunchHostFunc(
                nullptr,
                [](void* result) {
                  std::this_thread::sleep_for(std::chrono::milliseconds(100));
                  *static_cast<int*>(result) = aclInit(nullptr);
                  ExpectRefused(ACL_ERROR_RT_PARAM_INVALID, *static_cast<int*>(result), "aclInit");
                },
                &code),
            ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  EXPECT_EQ(code, ACL_ERROR_RT_PARAM_INVALID);
}

TEST(AclrtGetSocName, FollowsTheEnvironment) {
  const struct {
    const char* variable;
    const char* name;
  } kCases[] = {{"ascend910b", "Ascend910B3"},
                {"ascend910_93", "Ascend910_9391"},
                {"ascend950", "Ascend950PR_9599"},
                {"none", "mlaprolog-cpu"}};
  for (const auto& soc : kCases) {
    setenv("MLAP_SOC", soc.variable, 1);
    EXPECT_STREQ(aclrtGetSocName(), soc.name);
  }
  for (const char* wrong : {"Ascend910B", "910b", " none"}) {
    setenv("MLAP_SOC", wrong, 1);
    EXPECT_EQ(aclrtGetSocName(), nullptr);
    const std::string text = RecentText();
    for (const auto& soc : kCases) EXPECT_NE(text.find(soc.variable), std::string::npos) << text;
    EXPECT_NE(text.find(wrong), std::string::npos) << text;
  }
  unsetenv("MLAP_SOC");
  EXPECT_STREQ(aclrtGetSocName(), "Ascend910B3");
}

TEST(AclrtGetVersion, IsTheHeaders) {
  int32_t version[3] = {};
  EXPECT_EQ(aclrtGetVersion(&version[0], &version[1], &version[2]), ACL_SUCCESS);
  EXPECT_EQ(version[0], ACL_MAJOR_VERSION);
  EXPECT_EQ(version[1], ACL_MINOR_VERSION);
  EXPECT_EQ(version[2], ACL_PATCH_VERSION);
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtGetVersion(&version[0], nullptr, &version[2]), "aclrtGetVersion");
}

TEST(AclGetRecentErrMsg, IsPerThreadNewestFirstAndClears) {
  RecentText();
  aclrtSetDevice(7);
  aclrtFree(nullptr);
  std::thread([] { EXPECT_EQ(aclGetRecentErrMsg(), nullptr); }).join();
  const std::string text = RecentText();
  EXPECT_LT(text.find("aclrtFree"), text.find("aclrtSetDevice"));
  EXPECT_NE(text.find("found 7"), std::string::npos) << text;
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
  for (int i = 0; i < 1000; ++i) aclrtSetDevice(i + 1);
  const std::string newest = RecentText();
  EXPECT_NE(newest.find("found 1000"), std::string::npos);
  EXPECT_LT(newest.size(), 10000U);
}

TEST(AclrtGetLastError, PeeksAndClears) {
  aclrtGetLastError(ACL_RT_THREAD_LEVEL);
  aclrtSetDevice(7);
  aclrtFree(nullptr);  // 100000 is not a runtime code
  std::thread([] { EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS); }).join();
  EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS);
}

TEST(Device, RefusesOtherNumbers) {
  for (const int32_t device : {-1, 1, 2, INT32_MAX, INT32_MIN}) {
    aclrtContext context = nullptr;
    RecentText();
    ExpectRefused(ACL_ERROR_RT_INVALID_DEVICEID, aclrtSetDevice(device), "aclrtSetDevice");
    ExpectRefused(ACL_ERROR_RT_INVALID_DEVICEID, aclrtResetDevice(device), "aclrtResetDevice");
    ExpectRefused(ACL_ERROR_RT_INVALID_DEVICEID, aclrtResetDeviceForce(device), "aclrtResetDeviceForce");
    ExpectRefused(ACL_ERROR_RT_INVALID_DEVICEID, aclrtCreateContext(&context, device), "aclrtCreateContext");
    EXPECT_EQ(context, nullptr);
  }
}

TEST(Device, CountsItsUsersAcrossThreads) {
  uint32_t count = 0;
  EXPECT_EQ(aclrtGetDeviceCount(&count), ACL_SUCCESS);
  EXPECT_EQ(count, 1U);
  aclrtRunMode mode = ACL_DEVICE;
  EXPECT_EQ(aclrtGetRunMode(&mode), ACL_SUCCESS);
  EXPECT_EQ(mode, ACL_HOST);

  aclrtContext mine = nullptr;
  aclrtContext other = nullptr;
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  ASSERT_EQ(aclrtGetCurrentContext(&mine), ACL_SUCCESS);
  std::thread([&other] {
    int32_t device = -1;
    EXPECT_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    ASSERT_EQ(aclrtGetCurrentContext(&other), ACL_SUCCESS);
  }).join();
  EXPECT_EQ(mine, other);
  EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  int32_t device = -1;
  EXPECT_EQ(aclrtGetDevice(&device), ACL_SUCCESS);
  EXPECT_EQ(device, 0);
  EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  ExpectRefused(ACL_ERROR_RT_CONTEXT_NULL, aclrtGetDevice(&device), "aclrtGetDevice");
  ExpectRefused(ACL_ERROR_RT_CONTEXT_NULL, aclrtResetDevice(0), "aclrtResetDevice");
  ExpectRefused(ACL_ERROR_RT_CONTEXT_NULL, aclrtResetDeviceForce(0), "aclrtResetDeviceForce");
}

TEST(Device, ForcedResetIgnoresTheCount) {
  for (int i = 0; i < 5; ++i) ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  aclrtContext context = nullptr;
  ASSERT_EQ(aclrtCreateContext(&context, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDeviceForce(0), ACL_SUCCESS);
  ExpectRefused(ACL_ERROR_RT_CONTEXT_NULL, aclrtSynchronizeDevice(), "aclrtSynchronizeDevice");
  ExpectRefused(ACL_ERROR_RT_INVALID_HANDLE, aclrtSetCurrentContext(context), "aclrtSetCurrentContext");
}

TEST_F(DeviceTest, ContextsAreIndependent) {
  aclrtContext first = nullptr;
  ASSERT_EQ(aclrtGetCurrentContext(&first), ACL_SUCCESS);
  aclrtContext second = nullptr;
  ASSERT_EQ(aclrtCreateContext(&second, 0), ACL_SUCCESS);
  aclrtContext current = nullptr;
  ASSERT_EQ(aclrtGetCurrentContext(&current), ACL_SUCCESS);
  EXPECT_EQ(current, second);
  aclrtStream second_default = nullptr;
  ASSERT_EQ(aclrtCtxGetCurrentDefaultStream(&second_default), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetCurrentContext(first), ACL_SUCCESS);
  aclrtStream first_default = nullptr;
  ASSERT_EQ(aclrtCtxGetCurrentDefaultStream(&first_default), ACL_SUCCESS);
  EXPECT_NE(first_default, second_default);
  ExpectRefused(ACL_ERROR_RT_PARAM_INVALID, aclrtDestroyContext(first), "aclrtDestroyContext");
  EXPECT_EQ(aclrtDestroyContext(second), ACL_SUCCESS);
  int on_the_stack = 0;
  for (const aclrtContext wrong : {second, first_default, static_cast<aclrtContext>(&on_the_stack)}) {
    ExpectRefused(ACL_ERROR_RT_INVALID_HANDLE, aclrtDestroyContext(wrong), "aclrtDestroyContext");
    ExpectRefused(ACL_ERROR_RT_INVALID_HANDLE, aclrtSetCurrentContext(wrong), "aclrtSetCurrentContext");
  }
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtDestroyContext(nullptr), "aclrtDestroyContext");
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtSetCurrentContext(nullptr), "aclrtSetCurrentContext");
}

TEST_F(DeviceTest, NullResultsAreRefused) {
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtGetDevice(nullptr), "aclrtGetDevice");
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtGetDeviceCount(nullptr), "aclrtGetDeviceCount");
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtGetRunMode(nullptr), "aclrtGetRunMode");
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtCreateContext(nullptr, 0), "aclrtCreateContext");
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtGetCurrentContext(nullptr), "aclrtGetCurrentContext");
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtCtxGetCurrentDefaultStream(nullptr), "aclrtCtxGetCurrentDefaultStream");
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, nullptr),
                "aclrtCtxGetSysParamOpt");
  ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, nullptr), "aclrtGetSysParamOpt");
}

TEST_F(DeviceTest, OptionsKeepTheirRanges) {
  const int64_t max_values[] = {3, 1, 1, 1};
  for (int opt = 0; opt < 4; ++opt) {
    const auto option = static_cast<aclSysParamOpt>(opt);
    int64_t value = 99;
    EXPECT_EQ(aclrtGetSysParamOpt(option, &value), ACL_SUCCESS);
    EXPECT_EQ(value, 0);
    ExpectRefused(ACL_ERROR_RT_SYSPARAMOPT_NOT_SET, aclrtCtxGetSysParamOpt(option, &value), "aclrtCtxGetSysParamOpt");
    for (int64_t set = 0; set <= max_values[opt]; ++set) {
      EXPECT_EQ(aclrtSetSysParamOpt(option, set), ACL_SUCCESS);
      EXPECT_EQ(aclrtCtxSetSysParamOpt(option, max_values[opt] - set), ACL_SUCCESS);
      EXPECT_EQ(aclrtGetSysParamOpt(option, &value), ACL_SUCCESS);
      EXPECT_EQ(value, set);
      EXPECT_EQ(aclrtCtxGetSysParamOpt(option, &value), ACL_SUCCESS);
      EXPECT_EQ(value, max_values[opt] - set);
    }
    for (const int64_t wrong : {int64_t{-1}, max_values[opt] + 1, INT64_MAX, INT64_MIN}) {
      ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtSetSysParamOpt(option, wrong), "aclrtSetSysParamOpt");
      ExpectRefused(ACL_ERROR_INVALID_PARAM, aclrtCtxSetSysParamOpt(option, wrong), "aclrtCtxSetSysParamOpt");
    }
    EXPECT_EQ(aclrtSetSysParamOpt(option, 0), ACL_SUCCESS);
  }
}

}  // namespace
}  // namespace mlap::cann
