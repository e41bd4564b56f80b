// MLAP_SOC: which device's limits the first step applies.
#include <string>

#include "prolog_fixture.h"

namespace mlap::prolog_test {
namespace {

class SocChoice : public PrologTest {};

// Neither step of V1 and V2 is on the 950; V3 is.
TEST_F(SocChoice, VersionsOnAscend950) {
  const ScopedSoc soc("ascend950");
  for (const Version version : {Version::kV1, Version::kV2}) {
    Config config;
    config.scenario.version = version;
    const Phase1Result result = PrologCall(config).Phase1();
    EXPECT_EQ(result.status, ACLNN_ERR_RUNTIME_ERROR);
    EXPECT_NE(result.text.find("950"), std::string::npos) << result.text;
    EXPECT_NE(result.text.find("aclnnMlaPrologV3WeightNz"), std::string::npos) << result.text;
    EXPECT_EQ(Phase2Of(version, nullptr, 0, nullptr, stream_), ACLNN_ERR_RUNTIME_ERROR);
    EXPECT_NE(TakeTexts().find("950"), std::string::npos);
  }
  Config config;
  config.scenario.version = Version::kV3;
  ExpectAccepted(PrologCall(config));
  EXPECT_EQ(Phase2Of(Version::kV3, nullptr, 0, nullptr, stream_), ACLNN_ERR_PARAM_NULLPTR);
  TakeTexts();
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
  EXPECT_EQ(call.Phase2(workspace.data(), workspace.size(), first.executor, stream_), 0);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), 0);
}

TEST_F(SocChoice, NoneLiftsTheLimitsButNotTheRules) {
  const ScopedSoc soc("none");
  std::vector<Scenario> scenarios = AllScenarios();
  scenarios.push_back({Version::kV1, 2, 0});
  for (const Scenario& scenario : scenarios) {
    for (const char* mode : ModesOf(scenario)) {
      const Config tiny = TinyConfig(scenario, mode);
      SCOPED_TRACE(tiny.Name());
      ExpectAccepted(PrologCall(tiny));
      ExpectAccepted(PrologCall(MediumConfig(scenario, mode)));
      for (const Param param : RequiredOf(scenario.version)) {
        // An empty krCache may be of any type.
        if (param == kKrCache && tiny.PerGroup()) continue;
        PrologCall call(tiny);
        call[param].dtype = ACL_FLOAT16;
        ExpectRefused(call, ACLNN_ERR_PARAM_INVALID, {ParamName(param)});
      }
      for (const Param param : {kGammaCq, kGammaCkv, kRopeSin, kCacheIndex, kKrCache, kQueryOut, kQueryRopeOut, kScaleX,
                                kScaleWDq, kScaleWUqQr, kScaleWDkvKr, kScaleCkv, kScaleCkr, kSmooth, kClipAlpha,
                                kScaleQNope, kQueryNorm, kScaleQNorm}) {
        PrologCall call(tiny);
        if (call[param].null || (param == kCacheIndex && tiny.IsBlocks() && tiny.fused)) continue;
        call[param].dims.back() += 1;
        ExpectRefused(call, ACLNN_ERR_INNER_TILING_ERROR, {ParamName(param)});
      }
      PrologCall wrong_mode(tiny);
      wrong_mode.cache_mode = "BNSD";
      ExpectRefused(wrong_mode, ACLNN_ERR_INNER_TILING_ERROR, {"cacheMode"});
    }
  }
}

// Callers of merged caches pass whatever is empty.
TEST_F(SocChoice, NoneTakesAnEmptyKrCacheOfAnyType) {
  const ScopedSoc soc("none");
  for (const int64_t weight_mode : {1, 2, 3, 4, 5}) {
    for (const aclDataType dtype : {ACL_BF16, ACL_INT8, ACL_FLOAT}) {
      PrologCall call(TinyConfig({Version::kV3, weight_mode, 3}));
      call[kKrCache].dtype = dtype;
      call[kKrCache].Reshape({1, 2, 1, 0});
      ExpectAccepted(call);
    }
  }
}

TEST_F(SocChoice, NoneStillNeedsWholeGroupsOfMxFp8) {
  const ScopedSoc soc("none");
  for (const auto field : {&Config::hidden, &Config::q_rank}) {
    Config config = TinyConfig({Version::kV3, 3, 0});
    config.nz_2d = true;
    config.*field += 8;
    ExpectRefused(PrologCall(config), ACLNN_ERR_INNER_TILING_ERROR, {field == &Config::hidden ? "tokenX" : "weightDq"});
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
}  // namespace mlap::prolog_test
