// MLAP_SOC: which device's limits the first step applies.
#include <string>

#include "prolog_v1_fixture.h"

namespace mlap::prolog_v1_test {
namespace {

class SocChoice : public PrologV1Test {};

TEST_F(SocChoice, ThisVersionIsNotOfferedOnAscend950) {
  PrologCall call{Config()};
  const ScopedSoc soc("ascend950");
  const Phase1Result result = call.Phase1();
  EXPECT_EQ(result.status, ACLNN_ERR_RUNTIME_ERROR);
  EXPECT_NE(result.text.find("950"), std::string::npos) << result.text;
}

TEST_F(SocChoice, NeitherIsItsSecondStep) {
  const ScopedSoc soc("ascend950");
  TakeTexts();
  EXPECT_EQ(aclnnMlaProlog(nullptr, 0, nullptr, stream_), ACLNN_ERR_RUNTIME_ERROR);
  EXPECT_NE(TakeTexts().find("950"), std::string::npos);
}

TEST_F(SocChoice, UnknownNamesAreRefusedWithTheLegalOnes) {
  PrologCall call{Config()};
  for (const char* name : {"ascend310", "910b", "ASCEND910B", "none ", "Ascend910B3"}) {
    const ScopedSoc soc(name);
    const Phase1Result result = call.Phase1();
    EXPECT_EQ(result.status, ACLNN_ERR_RUNTIME_ERROR) << name;
    for (const char* legal : {"MLAP_SOC", "ascend910b", "ascend910_93", "ascend950", "none"}) {
      EXPECT_NE(result.text.find(legal), std::string::npos) << legal << " in: " << result.text;
    }
    EXPECT_NE(result.text.find(name), std::string::npos) << name << " in: " << result.text;
  }
}

TEST_F(SocChoice, IsReadAtEachFirstStep) {
  PrologCall small(TinyConfig(Scenario::kNonQuant));
  ExpectRefused(small, ACLNN_ERR_INNER_TILING_ERROR, {"tokenX"});
  {
    const ScopedSoc soc("none");
    ExpectAccepted(small);
  }
  ExpectRefused(small, ACLNN_ERR_INNER_TILING_ERROR, {"tokenX"});
  {
    const ScopedSoc soc("");
    ExpectRefused(small, ACLNN_ERR_INNER_TILING_ERROR, {"tokenX"});
    ExpectAccepted(PrologCall{Config()});
  }
}

// The second step does what the first one decided.
TEST_F(SocChoice, TheSecondStepFollowsTheExecutor) {
  PrologCall call(TinyConfig(Scenario::kPartial));
  call.Allocate();
  Phase1Result first;
  {
    const ScopedSoc soc("none");
    first = call.Phase1();
  }
  ASSERT_EQ(first.status, 0) << first.text;
  GuardedBuffer workspace(first.workspace_bytes);
  EXPECT_EQ(aclnnMlaProlog(workspace.data(), workspace.size(), first.executor, stream_), 0);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), 0);
}

TEST_F(SocChoice, NoneLiftsTheLimitsButNotTheRules) {
  const ScopedSoc soc("none");
  for (const Scenario scenario : kScenarios) {
    for (const char* mode : {"PA_BSND", "PA_NZ"}) {
      const Config tiny = TinyConfig(scenario, mode);
      SCOPED_TRACE(tiny.Name());
      ExpectAccepted(PrologCall(tiny));
      ExpectAccepted(PrologCall(MediumConfig(scenario, mode)));
      for (const Param param : kRequired) {
        PrologCall call(tiny);
        call[param].dtype = ACL_FLOAT16;
        ExpectRefused(call, ACLNN_ERR_PARAM_INVALID, {ParamName(param)});
      }
      for (const Param param : {kGammaCq, kGammaCkv, kRopeSin, kCacheIndex, kKrCache, kQueryOut, kQueryRopeOut}) {
        PrologCall call(tiny);
        call[param].dims.back() += 1;
        ExpectRefused(call, ACLNN_ERR_INNER_TILING_ERROR, {ParamName(param)});
      }
      PrologCall wrong_mode(tiny);
      wrong_mode.cache_mode = "BNSD";
      ExpectRefused(wrong_mode, ACLNN_ERR_INNER_TILING_ERROR, {"cacheMode"});
    }
  }
}

TEST_F(SocChoice, NoneStillNeedsPairsToRotate) {
  const ScopedSoc soc("none");
  Config config = TinyConfig(Scenario::kNonQuant);
  config.nz_2d = true;
  config.rope = 7;
  ExpectRefused(PrologCall(config), ACLNN_ERR_INNER_TILING_ERROR, {"ropeCos", "ropeSin"});
  config.rope = 6;
  ExpectAccepted(PrologCall(config));
}

TEST_F(SocChoice, NoneTakesAnyNumberOfBatchesAndHeads) {
  const ScopedSoc soc("none");
  ExpectAccepted(PrologCall(TinyConfig(Scenario::kNonQuant).SetBatchSeq(65537, 1)));
  for (const int64_t heads : {1, 3, 5, 7, 100}) {
    Config config = TinyConfig(Scenario::kNonQuant);
    config.heads = heads;
    ExpectAccepted(PrologCall(config));
  }
}

}  // namespace
}  // namespace mlap::prolog_v1_test
