// Strides, offsets, and numbers no memory has.
#include <string>
#include <vector>

#include "contract_rules.h"

namespace mlap::prolog_test {
namespace {

TEST_F(ContractRules, OutputsMustBeWithoutGaps) {
  for (const Config& config : AllConfigs()) {
    for (const Param param : {kQueryOut, kQueryRopeOut, kScaleQNope, kQueryNorm, kScaleQNorm}) {
      if (PrologCall(config)[param].null) continue;
      const std::vector<int64_t> contiguous = PrologCall(config)[param].ContiguousStrides();
      Accept(config, "explicit strides", [&](PrologCall& call) { call[param].strides = contiguous; });
      for (size_t d = 0; d < contiguous.size(); ++d) {
        for (const int64_t delta : {-1, 1}) {
          std::vector<int64_t> strides = contiguous;
          if (PrologCall(config)[param].dims[d] == 1) continue;
          strides[d] += delta;
          Refuse(config, std::string(ParamName(param)) + " with strides " + Shape(strides),
                 [&](PrologCall& call) { call[param].strides = strides; }, kInvalid, {ParamName(param)});
        }
      }
    }
  }
}

// A dimension of one element is never stepped over, so its stride says nothing.
TEST_F(ContractRules, StridesOfSingleElementDimensionsAreFree) {
  for (Config config : RichConfigs()) {
    config.SetBatchSeq(1, 1);
    config.block_num = 1;
    for (const Param param : ParamsOf(config.scenario.version)) {
      if (IsNzWeight(param) || PrologCall(config)[param].null) continue;
      for (const int64_t stride : {0, 1, 12345}) {
        Accept(config, std::string(ParamName(param)) + " with a stride of " + std::to_string(stride),
               [&](PrologCall& call) {
                 TensorDesc& desc = call[param];
                 std::vector<int64_t> strides = desc.ContiguousStrides();
                 for (size_t d = 0; d < strides.size(); ++d) {
                   if (desc.dims[d] == 1) strides[d] = stride;
                 }
                 desc.strides = strides;
               });
      }
    }
  }
}

TEST_F(ContractRules, CachesMayHaveHolesButNoOverlaps) {
  for (const Config& config : AllConfigs()) {
    for (const Param param : {kKvCache, kKrCache}) {
      const std::vector<int64_t> dims = PrologCall(config)[param].dims;
      if (dims.size() < 3) continue;
      const int64_t width = dims.back();
      const auto strided = [&](std::vector<int64_t> strides) {
        // A 3-D cache has rows only.
        if (dims.size() == 3) strides.erase(strides.begin());
        return [=](PrologCall& call) { call[param].strides = strides; };
      };
      const int64_t rows = dims.size() == 4 ? dims[1] : 1;
      Accept(config, "gaps between pages", strided({rows * width + 64, width, width, 1}));
      Accept(config, "gaps between slots", strided({rows * (width + 32), width + 32, width + 32, 1}));
      Accept(config, "gaps between elements", strided({2 * rows * width, 2 * width, 2 * width, 2}));
      if (dims.size() == 4) Accept(config, "slots outermost", strided({width, dims[0] * width, width, 1}));
      std::vector<std::vector<int64_t>> overlaps = {{rows * width, width - 1, width, 1},
                                                    {rows * width, 0, width, 1},
                                                    {rows * width, width, width, 0},
                                                    {2 * rows * width, 2 * width - 2, width, 2}};
      if (dims.size() == 4) {
        overlaps.push_back({0, width, width, 1});
        overlaps.push_back({rows * width - 1, width, width, 1});
        overlaps.push_back({width, width, width, 1});
      }
      for (const std::vector<int64_t>& strides : overlaps) {
        Refuse(config, std::string(ParamName(param)) + " with strides " + Shape(strides), strided(strides), kInvalid,
               {ParamName(param)});
      }
    }
  }
}

TEST_F(ContractRules, OtherInputsMayBeStrided) {
  for (const Config& config : AllConfigs()) {
    for (const Param param : ParamsOf(config.scenario.version)) {
      if (IsWritten(param) || PrologCall(config)[param].null) continue;
      Accept(config, std::string("strided ") + ParamName(param), [&](PrologCall& call) {
        std::vector<int64_t> strides = call[param].ContiguousStrides();
        for (int64_t& stride : strides) stride *= 2;
        call[param].strides = strides;
      });
    }
  }
}

TEST_F(ContractRules, NzViewsOfTwoDimensionsMustBeWithoutGaps) {
  for (Config config : AllConfigs()) {
    config.nz_2d = true;
    for (const Param param : kNzWeights) {
      const std::vector<int64_t> dims = PrologCall(config)[param].dims;
      for (const std::vector<int64_t>& strides :
           {std::vector<int64_t>{dims[1] + 16, 1}, {2 * dims[1], 2}, {1, dims[0]}, {dims[1] - 1, 1}}) {
        Refuse(config, std::string(ParamName(param)) + " with strides " + Shape(strides),
               [&](PrologCall& call) { call[param].strides = strides; }, kInvalid, {ParamName(param)});
      }
    }
  }
}

TEST_F(ContractRules, NegativeDimensionsAreRefused) {
  for (const Config& config : RichConfigs()) {
    for (const Param param : ParamsOf(config.scenario.version)) {
      const std::vector<int64_t> legal = PrologCall(config)[param].dims;
      if (PrologCall(config)[param].null) continue;
      for (size_t d = 0; d < legal.size(); ++d) {
        for (const int64_t value : {int64_t{-1}, -legal[d], INT64_MIN}) {
          if (value == 0) continue;
          std::vector<int64_t> dims = legal;
          dims[d] = value;
          Refuse(config, std::string(ParamName(param)) + " " + Shape(dims),
                 [&](PrologCall& call) {
                   call[param].dims = dims;
                   call[param].strides = PrologCall(config)[param].ContiguousStrides();
                 },
                 kInvalid, {ParamName(param)});
          Refuse(config, std::string(ParamName(param)) + " " + Shape(dims) + " without strides",
                 [&](PrologCall& call) { call[param].dims = dims; }, kInvalid, {ParamName(param)});
        }
      }
    }
  }
}

TEST_F(ContractRules, HugeDimensionsAreRefused) {
  for (const Config& config : RichConfigs()) {
    for (const char* soc_name : {"ascend910b", "none"}) {
      const ScopedSoc soc(soc_name);
      for (const Param param : ParamsOf(config.scenario.version)) {
        const PrologCall legal(config);
        if (legal[param].null) continue;
        for (size_t d = 0; d < legal[param].dims.size(); ++d) {
          for (const int64_t value : {INT64_MAX, int64_t{1} << 62, int64_t{1} << 61, (int64_t{1} << 32) + 1}) {
            // Rows of any width are legal, and whether there is that much memory cannot be known.
            if (param == kKvCache && d == 3 && value < int64_t{1} << 61 && !config.IsV3()) continue;
            // So are any pages where no other cache has to have the same.
            if (param == kKvCache && d <= 1 && config.PerGroup()) continue;
            // The page of an empty tensor may have any size.
            if (legal[param].NumElements() == 0) continue;
            SCOPED_TRACE(std::string(soc_name) + ": " + ParamName(param) + " dimension " + std::to_string(d) + " = " +
                         std::to_string(value));
            PrologCall call(config);
            call[param].dims[d] = value;
            const Phase1Result result = call.Phase1();
            EXPECT_TRUE(result.status == kInvalid || result.status == kTiling) << result.status << " " << result.text;
            if (result.status == 0) Discard(result.executor);
            EXPECT_NE(FirstNamed(result.text), "");
          }
        }
      }
    }
  }
}

// Sizes that agree with each other but not with any memory.
TEST_F(ContractRules, ConsistentButHugeShapesAreRefused) {
  for (const char* soc_name : {"ascend910b", "none"}) {
    const ScopedSoc soc(soc_name);
    for (const Scenario scenario : kScenarios) {
      for (const int64_t tokens : {int64_t{1} << 54, int64_t{1} << 62, INT64_MAX}) {
        RefuseWithEither(With(scenario).SetFused(tokens), soc_name, [](PrologCall&) {}, {kInvalid, kTiling},
                         {"tokenX", "queryOut", "queryRopeOut", "ropeSin", "ropeCos", "cacheIndex", "dequantScaleX",
                          "dequantScaleQNopeOut", "queryNormOut", "dequantScaleQNormOut"});
      }
      for (const int64_t blocks : {int64_t{1} << 50, int64_t{1} << 62, INT64_MAX}) {
        Config config = With(scenario);
        config.block_num = blocks;
        RefuseWithEither(config, soc_name, [](PrologCall&) {}, {kInvalid, kTiling}, {"kvCache", "krCache"});
      }
      RefuseWithEither(With(scenario).SetBatchSeq(65536, int64_t{1} << 46), soc_name, [](PrologCall&) {},
                       {kInvalid, kTiling},
                       {"tokenX", "queryOut", "queryRopeOut", "ropeSin", "ropeCos", "cacheIndex", "dequantScaleX",
                        "dequantScaleQNopeOut", "queryNormOut", "dequantScaleQNormOut"});
    }
  }
}

TEST_F(ContractRules, OffsetsAndStridesThatOverflowAreRefused) {
  for (const Config& config : RichConfigs()) {
    for (const Param param : ParamsOf(config.scenario.version)) {
      const PrologCall legal(config);
      if (legal[param].null) continue;
      for (const int64_t offset : {INT64_MAX, int64_t{1} << 62, INT64_MIN}) {
        if (legal[param].ElementBytes() == 1 && offset == int64_t{1} << 62) continue;  // far away, but an address
        if (legal[param].NumElements() == 0) continue;
        RefuseWithEither(config, std::string(ParamName(param)) + " at offset " + std::to_string(offset),
                         [&](PrologCall& call) { call[param].offset = offset; }, {kInvalid, kTiling},
                         {ParamName(param)});
      }
      for (size_t d = 0; d < legal[param].dims.size(); ++d) {
        if (legal[param].dims[d] < 3) continue;
        for (const int64_t stride : {INT64_MAX, int64_t{1} << 62, INT64_MIN}) {
          RefuseWithEither(config, std::string(ParamName(param)) + " with a stride of " + std::to_string(stride),
                           [&](PrologCall& call) {
                             call[param].strides = legal[param].ContiguousStrides();
                             (*call[param].strides)[d] = stride;
                           },
                           {kInvalid, kTiling}, {ParamName(param)});
        }
      }
    }
  }
}

}  // namespace
}  // namespace mlap::prolog_test
