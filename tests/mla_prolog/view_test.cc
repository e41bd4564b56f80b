// Views: offsets on every tensor, strides on every input, and the two shapes of FRACTAL_NZ weights. All give the bits
// of the plain call.
#include <cstring>
#include <string>
#include <vector>

#include "prolog_fixture.h"

namespace mlap::prolog_test {
namespace {

std::vector<Config> AllTiny() {
  std::vector<Config> configs;
  for (const Scenario scenario : kScenarios) {
    configs.push_back(TinyConfig(scenario, "PA_BSND"));
    configs.push_back(TinyConfig(scenario, IndexModesOf(scenario).back()).SetBatchSeq(2, 2));
    if (scenario.version != Version::kV3) continue;
    configs.push_back(TinyConfig(scenario, "TND"));
    if (scenario.kv_mode != 3) configs.push_back(TinyConfig(scenario, "PA_BLK_NZ"));
  }
  // Types that only the 950 has.
  configs.push_back(TinyConfig({Version::kV3, 3, 1, false, true}));
  configs.push_back(TinyConfig({Version::kV3, 5, 3, true, true}));
  return configs;
}

class View : public PrologTest {
 protected:
  void ExpectSameAsPlain(const PrologCall& plain, PrologCall& call) {
    std::vector<std::vector<uint8_t>> holes;
    for (const Param param : kWritten) holes.push_back(call.Holes(param));
    const RunResult result = call.Run(stream_);
    ASSERT_TRUE(result.Ok()) << result;
    for (size_t i = 0; i < kWritten.size(); ++i) {
      ExpectSameBytes(plain.Elements(kWritten[i]), call.Elements(kWritten[i]), ParamName(kWritten[i]));
      ExpectSameBytes(holes[i], call.Holes(kWritten[i]), std::string("holes of ") + ParamName(kWritten[i]));
    }
  }

  ScopedSoc soc_{"none"};
};

TEST_F(View, OffsetsOnEachTensor) {
  for (const Config& config : AllTiny()) {
    PrologCall plain(config);
    plain.Allocate();
    ASSERT_TRUE(plain.Run(stream_).Ok());
    for (const Param param : ParamsOf(config.scenario.version)) {
      if (plain[param].null || plain[param].NumElements() == 0) continue;
      for (const int64_t offset : {1, 16, 1000}) {
        SCOPED_TRACE(config.Name() + ", " + ParamName(param) + " at offset " + std::to_string(offset));
        PrologCall call(config);
        call.Allocate();
        call.Restride(param, call[param].ContiguousStrides(), offset, 0x7F);
        ExpectSameAsPlain(plain, call);
        call.ResetWritten();
        call[param].strides.reset();
        if (!IsWritten(param)) ExpectSameAsPlain(plain, call);
      }
    }
  }
}

// 0x7F bytes are huge or NaN in every type, so that a hole that is read is seen in the results.
TEST_F(View, StridesOnEachInput) {
  for (const Config& config : AllTiny()) {
    PrologCall plain(config);
    plain.Allocate();
    ASSERT_TRUE(plain.Run(stream_).Ok());
    for (const Param param : ParamsOf(config.scenario.version)) {
      if (plain[param].null || IsWritten(param)) continue;
      const std::vector<int64_t> contiguous = plain[param].ContiguousStrides();
      const size_t rank = contiguous.size();
      std::vector<std::vector<int64_t>> variants;
      // Every element three apart.
      variants.push_back(contiguous);
      for (int64_t& stride : variants.back()) stride *= 3;
      // Gaps after each run of the last dimension.
      variants.push_back(contiguous);
      for (size_t d = 0; d + 1 < rank; ++d)
        variants.back()[d] = contiguous[d] / contiguous[rank - 2] * (contiguous[rank - 2] + 8);
      // Transposed memory: the first dimension is the dense one.
      variants.emplace_back(rank, 1);
      for (size_t d = 1; d < rank; ++d) variants.back()[d] = variants.back()[d - 1] * plain[param].dims[d - 1];
      for (size_t variant = 0; variant < variants.size(); ++variant) {
        SCOPED_TRACE(config.Name() + ", " + ParamName(param) + " strided, variant " + std::to_string(variant));
        PrologCall call(config);
        call.Allocate();
        call.Restride(param, variants[variant], 5, 0x7F);
        ExpectSameAsPlain(plain, call);
      }
    }
  }
}

// One row for all tokens.
TEST_F(View, BroadcastInputs) {
  for (const Config& config : AllTiny()) {
    SCOPED_TRACE(config.Name());
    PrologCall plain(config);
    plain.Allocate();
    PrologCall call(config);
    call.Allocate();
    for (const Param param : {kTokenX, kRopeSin, kRopeCos}) {
      uint8_t* elements = plain.buffer(param).data();
      const size_t row = static_cast<size_t>(plain[param].dims.back()) * plain[param].ElementBytes();
      for (int64_t t = 1; t < config.Tokens(); ++t) std::memcpy(elements + static_cast<size_t>(t) * row, elements, row);
      std::vector<int64_t> strides(plain[param].dims.size(), 0);
      strides.back() = 1;
      call[param].strides = strides;
    }
    ASSERT_TRUE(plain.Run(stream_).Ok());
    ExpectSameAsPlain(plain, call);
  }
}

TEST_F(View, NzWeightsOfTwoAndFourDimensions) {
  for (Config config : AllTiny()) {
    SCOPED_TRACE(config.Name());
    PrologCall plain(config);
    plain.Allocate();
    ASSERT_TRUE(plain.Run(stream_).Ok());
    config.nz_2d = true;
    PrologCall call(config);
    call.Allocate();
    ExpectSameAsPlain(plain, call);
  }
}

TEST_F(View, TorchStyleDescriptions) {
  for (const Config& config : AllTiny()) {
    SCOPED_TRACE(config.Name());
    PrologCall plain(config);
    plain.Allocate();
    ASSERT_TRUE(plain.Run(stream_).Ok());
    PrologCall call(config);
    call.Allocate();
    call.UseTorchStyle();
    ExpectSameAsPlain(plain, call);
  }
}

TEST_F(View, TokensAsBatchesAndSequencesOrFused) {
  for (const Scenario scenario : kScenarios) {
    for (const char* mode : IndexModesOf(scenario)) {
      Config config = TinyConfig(scenario, mode).SetFused(6);
      SCOPED_TRACE(config.Name());
      PrologCall fused(config);
      fused.Allocate();
      ASSERT_TRUE(fused.Run(stream_).Ok());
      for (const int64_t batch : {1, 2, 3, 6}) {
        PrologCall split(config.SetBatchSeq(batch, 6 / batch));
        split.Allocate();
        ExpectSameAsPlain(fused, split);
      }
    }
  }
}

}  // namespace
}  // namespace mlap::prolog_test
