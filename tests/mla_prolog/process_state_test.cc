// What a program does to its threads, its memory and its floating-point environment does not reach the operator.
#include <sched.h>

#include <cfenv>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "mlaprolog/cann_report.h"
#include "prolog_fixture.h"

namespace mlap::prolog_test {
namespace {

class ProcessState : public PrologTest {
  ScopedSoc soc_{"none"};
};

std::vector<std::vector<uint8_t>> Results(const Config& config, aclrtStream stream) {
  PrologCall call(config);
  call.Allocate();
  EXPECT_TRUE(call.Run(stream).Ok());
  return call.Written();
}

// The workspace ends at an inaccessible page: a worker without scratch of its own would be seen.
TEST_F(ProcessState, APinnedThreadAndALaterThreadCountDoNotMatter) {
  const Config config = TinyConfig(Scenario::kPartialSmooth).SetFused(64);
  const auto expected = Results(config, stream_);
  std::thread pinned([&] {
    aclrtSetDevice(0);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    sched_setaffinity(0, sizeof(one), &one);
    aclrtStream stream = nullptr;
    EXPECT_EQ(aclrtCreateStream(&stream), 0);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(Results(config, stream), expected);
    EXPECT_EQ(aclrtDestroyStream(stream), 0);
  });
  pinned.join();
  for (const char* threads : {"16", "1", "5"}) {
    setenv("MLAP_NUM_THREADS", threads, 1);
    EXPECT_EQ(Results(config, stream_), expected) << threads;
  }
  unsetenv("MLAP_NUM_THREADS");
}

TEST_F(ProcessState, TheRoundingModeOfTheCallerDoesNotMatter) {
  for (const Scenario& scenario : AllScenarios()) {
    const Config config = TinyConfig(scenario).SetFused(9);
    const auto expected = Results(config, stream_);
    for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
      PrologCall call(config);
      call.Allocate();
      std::fesetround(mode);
      const bool ok = call.Run(stream_).Ok();
      const int mode_after = std::fegetround();
      std::fesetround(FE_TONEAREST);
      EXPECT_TRUE(ok);
      EXPECT_EQ(mode_after, mode);
      EXPECT_EQ(call.Written(), expected) << config.Name();
    }
  }
}

TEST_F(ProcessState, TheReportBelongsToALiveStream) {
  mlap_cann_report report = {};
  EXPECT_EQ(mlap_cann_last_report(stream_, &report), ACL_ERROR_INVALID_PARAM);
  report.struct_size = sizeof(report);
  EXPECT_EQ(mlap_cann_last_report(stream_, nullptr), ACL_ERROR_INVALID_PARAM);
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), 0);
  EXPECT_EQ(mlap_cann_last_report(stream, &report), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
  const Config config = TinyConfig(Scenario::kNonQuant).SetFused(3);
  Results(config, stream);
  ASSERT_EQ(mlap_cann_last_report(stream, &report), 0);
  EXPECT_EQ(report.tokens, 3);
  EXPECT_STREQ(report.op, "aclnnMlaProlog");
  ASSERT_EQ(aclrtDestroyStream(stream), 0);
  EXPECT_EQ(mlap_cann_last_report(stream, &report), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(mlap_cann_last_report(reinterpret_cast<void*>(0x1234567), &report), ACL_ERROR_RT_INVALID_HANDLE);
  TakeTexts();
}

}  // namespace
}  // namespace mlap::prolog_test
