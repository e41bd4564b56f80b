// A token's results do not depend on the batch it is in, on its place there, or on the form of the batch: bit for bit.
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "prolog_fixture.h"

namespace mlap::prolog_test {
namespace {

constexpr int64_t kMaxTokens = 130;

constexpr std::array<Param, 5> kOutputs = {kQueryOut, kQueryRopeOut, kScaleQNope, kQueryNorm, kScaleQNorm};

class BatchInvariance : public PrologTest {
 protected:
  // What token `t` gives in a call of its own.
  void RunAlone(const Config& base, int64_t t, PrologCall* call) {
    call->FillInput(kTokenX, 1, t * base.hidden);
    call->FillInput(kRopeSin, 1, t * base.rope);
    call->FillInput(kRopeCos, 1, t * base.rope);
    if (base.IsFull()) call->FillInput(kScaleX, 1, t * (*call)[kScaleX].dims.back());
    call->slots()[0] = DefaultSlot(t, base.Capacity());
    const RunResult result = call->RunQuick(stream_);
    ASSERT_TRUE(result.Ok()) << result;
  }

  void CheckScenario(Config base) {
    // All single calls write one cache after the other: afterwards it has to be what one call for all makes of it.
    PrologCall alone(base.SetFused(1));
    alone.Allocate();
    std::array<std::vector<uint8_t>, kNumParams> rows;      // of the outputs that belong to tokens, one after another
    std::vector<std::vector<std::vector<uint8_t>>> caches;  // after t tokens
    for (int64_t t = 0; t < kMaxTokens; ++t) {
      RunAlone(base, t, &alone);
      if (HasFatalFailure()) return;
      for (const Param param : kOutputs) {
        const auto row = alone.buffer(param).Bytes();
        rows[param].insert(rows[param].end(), row.begin(), row.end());
      }
      caches.push_back({alone.buffer(kKvCache).Bytes(), alone.buffer(kKrCache).Bytes()});
    }
    for (const int64_t tokens : {1, 2, 5, 16, 17, 63, 130}) {
      std::vector<Config> forms = {Config(base).SetFused(tokens), Config(base).SetBatchSeq(1, tokens),
                                   Config(base).SetBatchSeq(tokens, 1)};
      if (tokens == 130) forms.push_back(Config(base).SetBatchSeq(10, 13));
      for (const Config& form : forms) {
        SCOPED_TRACE(form.Name());
        PrologCall together(form);
        together.Allocate();
        const RunResult result = together.RunQuick(stream_);
        ASSERT_TRUE(result.Ok()) << result;
        const size_t count = static_cast<size_t>(tokens);
        for (const Param param : kOutputs) {
          const size_t row = alone.buffer(param).size();
          ExpectSameBytes({rows[param].data(), rows[param].data() + count * row}, together.buffer(param).Bytes(),
                          ParamName(param));
        }
        ExpectSameBytes(caches[count - 1][0], together.buffer(kKvCache).Bytes(), "kvCache");
        ExpectSameBytes(caches[count - 1][1], together.buffer(kKrCache).Bytes(), "krCache");
      }
    }
  }
};

TEST_F(BatchInvariance, RowsCaches) {
  const ScopedSoc soc("none");
  for (const Scenario& scenario : AllScenarios()) CheckScenario(MediumConfig(scenario, "PA_BSND"));
}

TEST_F(BatchInvariance, NzCaches) {
  const ScopedSoc soc("none");
  for (const Scenario& scenario : kScenarios) {
    if (scenario.kv_mode != 3) CheckScenario(MediumConfig(scenario, "PA_NZ"));
  }
}

// The device's own sizes, whose products are summed over many more terms.
TEST_F(BatchInvariance, DeviceSizes) {
  for (const Scenario& scenario :
       {Scenario::kNonQuant, Scenario::kPerChannelSmooth, Scenario{Version::kV3, 2, 1, true, true},
        Scenario{Version::kV3, 1, 3, false, true}}) {
    Config config;
    config.scenario = scenario;
    config.heads = 2;
    PrologCall together(config.SetFused(9));
    SCOPED_TRACE(config.Name());
    together.Allocate();
    const RunResult result = together.Run(stream_);
    ASSERT_TRUE(result.Ok()) << result;
    PrologCall alone(config.SetFused(1));
    alone.Allocate();
    for (int64_t t = 0; t < 9; ++t) {
      RunAlone(config, t, &alone);
      if (HasFatalFailure()) return;
      for (const Param param : kOutputs) {
        const size_t row = alone.buffer(param).size();
        const uint8_t* expected = together.buffer(param).data() + static_cast<size_t>(t) * row;
        ExpectSameBytes({expected, expected + row}, alone.buffer(param).Bytes(), ParamName(param));
      }
    }
    ExpectSameBytes(together.buffer(kKvCache).Bytes(), alone.buffer(kKvCache).Bytes(), "kvCache");
    ExpectSameBytes(together.buffer(kKrCache).Bytes(), alone.buffer(kKrCache).Bytes(), "krCache");
  }
}

}  // namespace
}  // namespace mlap::prolog_test
