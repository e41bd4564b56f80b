// Empty tensors, and attributes that no rule restricts.
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "prolog_fixture.h"

namespace mlap::prolog_test {
namespace {

class EmptyAndEdge : public PrologTest {};

std::vector<Config> AllTiny() {
  std::vector<Config> configs;
  for (const Scenario scenario : kScenarios) {
    for (const char* mode : ModesOf(scenario)) configs.push_back(TinyConfig(scenario, mode));
  }
  return configs;
}

void ExpectNothingHappens(const Config& config, aclrtStream stream) {
  SCOPED_TRACE(config.Name());
  PrologCall call(config);
  call.Allocate();
  const auto before = call.Written();
  const RunResult result = call.Run(stream);
  EXPECT_TRUE(result.Ok()) << result;
  EXPECT_EQ(call.Written(), before);
}

TEST_F(EmptyAndEdge, WithoutTokensNothingIsWritten) {
  for (const Scenario scenario : kScenarios) {
    for (const char* mode : ModesOf(scenario)) {
      Config config;
      config.scenario = scenario;
      config.cache_mode = mode;
      if (config.cache_mode != "BSND") ExpectNothingHappens(config.SetFused(0), stream_);
      if (config.cache_mode == "TND") continue;
      ExpectNothingHappens(config.SetBatchSeq(0, 1), stream_);
      ExpectNothingHappens(config.SetBatchSeq(0, 5), stream_);
      ExpectNothingHappens(config.SetBatchSeq(3, 0), stream_);
      ExpectNothingHappens(config.SetBatchSeq(0, 0), stream_);
    }
  }
}

// The tensors that have elements still have to be right.
TEST_F(EmptyAndEdge, WithoutTokensTheRulesStillHold) {
  for (const Scenario scenario : kScenarios) {
    Config config;
    config.scenario = scenario;
    config.SetFused(0);
    PrologCall wrong_gamma(config);
    wrong_gamma[kGammaCq].Reshape({1535});
    ExpectRefused(wrong_gamma, ACLNN_ERR_INNER_TILING_ERROR, {"rmsnormGammaCq"});
    PrologCall wrong_index(config);
    wrong_index[kCacheIndex].Reshape({1});
    ExpectRefused(wrong_index, ACLNN_ERR_INNER_TILING_ERROR, {"cacheIndex"});
    PrologCall wrong_index_form(config);
    wrong_index_form[kCacheIndex].Reshape({0, 1});
    ExpectRefused(wrong_index_form, ACLNN_ERR_INNER_TILING_ERROR, {"cacheIndex"});
    PrologCall wrong_mode(config);
    wrong_mode.cache_mode = "BNSD";
    ExpectRefused(wrong_mode, ACLNN_ERR_INNER_TILING_ERROR, {"cacheMode"});
    PrologCall null_index(config);
    null_index[kCacheIndex].null = true;
    ExpectRefused(null_index, config.IsV3() ? ACLNN_ERR_INNER_TILING_ERROR : ACLNN_ERR_PARAM_NULLPTR, {"cacheIndex"});
  }
}

// Empty tensors need no memory.
TEST_F(EmptyAndEdge, EmptyTensorsMayLackAnAddress) {
  Config config;
  config.SetFused(0);
  PrologCall call(config);
  call.Allocate();
  for (const Param param : {kTokenX, kRopeSin, kRopeCos, kCacheIndex, kQueryOut, kQueryRopeOut}) {
    call[param].data = nullptr;
  }
  EXPECT_TRUE(call.Run(stream_).Ok());

  config.SetFused(2);
  config.block_num = 0;
  PrologCall no_cache(config);
  no_cache.Allocate();
  no_cache[kKvCache].data = nullptr;
  no_cache[kKrCache].data = nullptr;
  EXPECT_TRUE(no_cache.Run(stream_).Ok());
}

TEST_F(EmptyAndEdge, WithoutCachePagesTheQueriesAreTheSame) {
  const ScopedSoc soc("none");
  for (Config config : AllTiny()) {
    SCOPED_TRACE(config.Name());
    PrologCall with_cache(config);
    with_cache.Allocate();
    ASSERT_TRUE(with_cache.Run(stream_).Ok());
    if (config.IsTokens()) continue;  // whose caches have as many rows as there are tokens
    config.block_num = 0;
    PrologCall without(config);
    without.Allocate();
    // The index has its shape but is not read, so no number in it is out of range.
    for (int64_t i = 0; i < without[kCacheIndex].NumElements(); ++i) without.slots()[i] = 1000 - 700 * i;
    const RunResult result = without.Run(stream_);
    ASSERT_TRUE(result.Ok()) << result;
    for (const Param param : {kQueryOut, kQueryRopeOut, kScaleQNope, kQueryNorm, kScaleQNorm}) {
      ExpectSameBytes(with_cache.buffer(param).Bytes(), without.buffer(param).Bytes(), ParamName(param));
    }
  }
}

TEST_F(EmptyAndEdge, WithoutCachePagesTheBlockSizeMustStillBeLegal) {
  Config config;
  config.block_num = 0;
  for (const Scenario scenario : kScenarios) {
    config.scenario = scenario;
    config.block_size = 16;
    ExpectAccepted(PrologCall(config));
    config.block_size = 24;
    ExpectRefused(PrologCall(config), ACLNN_ERR_INNER_TILING_ERROR, {"kvCache"});
    config.block_size = 0;
    ExpectRefused(PrologCall(config), ACLNN_ERR_INNER_TILING_ERROR, {"kvCache"});
  }
}

// If all four outputs are empty the call succeeds before any shape is compared.
TEST_F(EmptyAndEdge, WhenEverythingWrittenIsEmptyNoShapeIsValidated) {
  for (const Scenario scenario : kScenarios) {
    Config config;
    config.scenario = scenario;
    config.SetFused(0);
    config.block_num = 0;
    PrologCall call(config);
    const auto expect_shortcut = [&](const char* what) {
      SCOPED_TRACE(what);
      Phase1Result first = call.Phase1();
      ASSERT_EQ(first.status, 0) << first.text;
      EXPECT_EQ(first.workspace_bytes, 0u);
      EXPECT_EQ(call.Phase2(nullptr, 0, first.executor, stream_), 0) << TakeTexts();
      EXPECT_EQ(aclrtSynchronizeStream(stream_), 0);
    };
    expect_shortcut("legal shapes");
    call[kTokenX].Reshape({5, 17});
    expect_shortcut("tokenX");
    call[kWeightUk].Reshape({3});
    call[kGammaCq].Reshape({1, 2, 3, 4});
    expect_shortcut("weights");
    call[kKvCache].Reshape({3, 0});
    call[kQueryOut].Reshape({0});
    expect_shortcut("outputs of other ranks");
    call.cache_mode = "BNSD";
    expect_shortcut("cacheMode");
    call.cache_mode.reset();
    expect_shortcut("no cacheMode");
    call[kScaleX].null = !call[kScaleX].null;
    expect_shortcut("missing or superfluous scale");
    call.modes.tile_size = 1;
    call.modes.ckvkr_repo = 7;
    call[kCacheIndex].null = config.IsV3();
    expect_shortcut("attributes and optional inputs of V3");
    call[kScaleWUqQr].null = true;
    expect_shortcut("missing scale");

    // The element types are looked at before.
    PrologCall wrong_type(config);
    wrong_type[kGammaCq].dtype = ACL_FLOAT;
    ExpectRefused(wrong_type, ACLNN_ERR_PARAM_INVALID, {"rmsnormGammaCq"});
    PrologCall not_nz(config);
    not_nz[kWeightDq].format = ACL_FORMAT_ND;
    ExpectRefused(not_nz, ACLNN_ERR_PARAM_INVALID, {"weightDq"});
  }
}

// One tensor with elements among those that are written brings all the rules back.
TEST_F(EmptyAndEdge, OneTensorThatIsWrittenBringsTheRulesBack) {
  for (const Scenario& scenario : kScenarios) {
    for (const Param param : kWritten) {
      Config config;
      config.scenario = scenario;
      config.SetFused(0);
      config.block_num = 0;
      PrologCall call(config);
      if (call[param].null) continue;
      SCOPED_TRACE(config.Name() + ": " + ParamName(param));
      call[param].dims[0] = 1;
      call.cache_mode = "BNSD";
      ExpectRefused(call, ACLNN_ERR_INNER_TILING_ERROR, {"cacheMode"});
      call[param].dims[0] = 0;
      ExpectAccepted(call);
    }
  }
}

TEST_F(EmptyAndEdge, NoEpsilonIsRefused) {
  const ScopedSoc soc("none");
  for (const Config& config : AllTiny()) {
    SCOPED_TRACE(config.Name());
    PrologCall call(config);
    call.Allocate();
    for (const double epsilon : {0.0, -0.0, -1.0, 1e-40, 1e300, -1e300, std::numeric_limits<double>::infinity(),
                                 -std::numeric_limits<double>::infinity(), std::nan("")}) {
      call.epsilon_cq = epsilon;
      call.epsilon_ckv = 1e-5;
      call.ResetWritten();
      RunResult result = call.Run(stream_);
      EXPECT_TRUE(result.Ok()) << epsilon << ": " << result;
      call.epsilon_cq = 1e-5;
      call.epsilon_ckv = epsilon;
      call.ResetWritten();
      result = call.Run(stream_);
      EXPECT_TRUE(result.Ok()) << epsilon << ": " << result;
    }
  }
}

// Each epsilon belongs to its own norm.
TEST_F(EmptyAndEdge, EpsilonsActOnTheirOwnBranch) {
  const ScopedSoc soc("none");
  for (const Config& config : AllTiny()) {
    SCOPED_TRACE(config.Name());
    PrologCall call(config);
    call.Allocate();
    ASSERT_TRUE(call.Run(stream_).Ok());
    const auto plain = call.Written();
    call.epsilon_cq = 10;
    call.ResetWritten();
    ASSERT_TRUE(call.Run(stream_).Ok());
    EXPECT_EQ(call.Written()[0], plain[0]);
    EXPECT_EQ(call.Written()[1], plain[1]);
    // A quantised query keeps its numbers when all of them shrink, and has a smaller scale.
    EXPECT_NE(call.Written()[config.PerTensor() ? 4 : 2], plain[config.PerTensor() ? 4 : 2]);
    if (!config.PerTensor()) {
      EXPECT_NE(call.Written()[3], plain[3]);
    }
    call.epsilon_cq = 1e-5;
    call.epsilon_ckv = 10;
    call.ResetWritten();
    ASSERT_TRUE(call.Run(stream_).Ok());
    EXPECT_NE(call.Written()[0], plain[0]);
    for (size_t i = 1; i < plain.size(); ++i) EXPECT_EQ(call.Written()[i], plain[i]) << i;
  }
}

// The attribute is narrowed to float: what a float cannot tell apart gives the same bits.
TEST_F(EmptyAndEdge, EpsilonsAreNarrowedToFloat) {
  const ScopedSoc soc("none");
  PrologCall call(TinyConfig(Scenario::kPartial));
  call.Allocate();
  ASSERT_TRUE(call.Run(stream_).Ok());
  const auto plain = call.Written();
  call.epsilon_cq = call.epsilon_ckv = static_cast<double>(1e-5f);
  call.ResetWritten();
  ASSERT_TRUE(call.Run(stream_).Ok());
  EXPECT_EQ(call.Written(), plain);
}

// Each factor belongs to its own norm, and the nearest floats to 1 are none.
TEST_F(EmptyAndEdge, FactorsActOnTheirOwnBranch) {
  const ScopedSoc soc("none");
  for (const Config& config : AllTiny()) {
    if (!config.IsV3()) continue;
    SCOPED_TRACE(config.Name());
    PrologCall call(config);
    call.Allocate();
    ASSERT_TRUE(call.Run(stream_).Ok());
    const auto plain = call.Written();
    const auto written = [&](double qc_qr, double kc) {
      call.modes.qc_qr_scale = qc_qr;
      call.modes.kc_scale = kc;
      call.ResetWritten();
      EXPECT_TRUE(call.Run(stream_).Ok());
      return call.Written();
    };
    const auto query_scaled = written(0.625, 1.0);
    EXPECT_EQ(query_scaled[0], plain[0]);
    EXPECT_EQ(query_scaled[1], plain[1]);
    EXPECT_NE(query_scaled[config.PerTensor() ? 4 : 2], plain[config.PerTensor() ? 4 : 2]);
    const auto key_scaled = written(1.0, 0.625);
    EXPECT_NE(key_scaled[0], plain[0]);
    for (size_t i = 1; i < plain.size(); ++i) EXPECT_EQ(key_scaled[i], plain[i]) << i;
    EXPECT_EQ(written(1.0 + 1e-9, 1.0 - 1e-9), plain);
    EXPECT_EQ(written(std::nan(""), std::nan("")), plain);
  }
}

// A token of zeros has a zero norm; partial quantisation then has no scale. Only that token may be unusual.
TEST_F(EmptyAndEdge, ZeroTokensDoNotDisturbOthers) {
  const ScopedSoc soc("none");
  for (const Config& config : AllTiny()) {
    SCOPED_TRACE(config.Name());
    PrologCall call(config);
    call.Allocate();
    ASSERT_TRUE(call.Run(stream_).Ok());
    const auto plain = call.Written();
    call.ResetWritten();
    const size_t token_bytes = static_cast<size_t>(config.hidden) * call[kTokenX].ElementBytes();
    std::memset(call.buffer(kTokenX).data() + token_bytes, 0, token_bytes);  // token 1
    const RunResult result = call.Run(stream_);
    ASSERT_TRUE(result.Ok()) << result;
    for (const size_t output : {size_t{2}, size_t{3}}) {
      const auto now = call.Written()[output];
      const size_t row = now.size() / static_cast<size_t>(config.Tokens());
      for (const size_t token : {size_t{0}, size_t{2}}) {
        EXPECT_TRUE(
            std::equal(now.begin() + token * row, now.begin() + (token + 1) * row, plain[output].begin() + token * row))
            << "token " << token;
      }
      // Zeros in, zeros out: all products are zero, and so is what is left of them after the norm.
      for (size_t i = row; i < 2 * row && !config.PerTensor(); i += 2) {
        EXPECT_EQ((now[i] | now[i + 1] << 8) & 0x7FFF, 0) << "byte " << i;
      }
    }
  }
}

}  // namespace
}  // namespace mlap::prolog_test
