// Numbers of dimensions and sizes: each legal value, and its illegal neighbours.
#include <string>
#include <vector>

#include "contract_rules.h"

namespace mlap::prolog_v1_test {
namespace {

// The tensor's shape with `rank` dimensions: ones are added in front, or the first dimensions are merged.
std::vector<int64_t> WithRank(std::vector<int64_t> dims, size_t rank) {
  while (dims.size() < rank) dims.insert(dims.begin(), 1);
  while (dims.size() > rank) {
    const int64_t first = dims.front();
    dims.erase(dims.begin());
    if (!dims.empty()) dims.front() *= first;
  }
  return dims;
}

TEST_F(ContractRules, NumbersOfDimensions) {
  struct Rule {
    Param param;
    std::vector<size_t> refused;
  };
  // Numbers that the parameter never has. Weights with a wrong number of dimensions keep their format.
  const std::vector<Rule> rules = {{kTokenX, {0, 1, 4, 5}},  {kWeightDq, {1, 3, 5}},       {kWeightUqQr, {1, 3, 5}},
                                   {kWeightUk, {1, 2, 4}},   {kWeightDkvKr, {1, 3, 5}},    {kGammaCq, {0, 2, 3}},
                                   {kGammaCkv, {0, 2, 3}},   {kRopeSin, {1, 4}},           {kRopeCos, {1, 4}},
                                   {kCacheIndex, {0, 3}},    {kKvCache, {1, 2, 3, 5, 25}}, {kKrCache, {1, 2, 3, 5, 25}},
                                   {kScaleWUqQr, {0, 1, 3}}, {kScaleCkv, {0, 1, 3}},       {kScaleCkr, {0, 1, 3}},
                                   {kSmooth, {0, 1, 3}},     {kQueryOut, {1, 2, 5}},       {kQueryRopeOut, {1, 2, 5}}};
  for (const Config& config : FormsOf(Scenario::kPerChannelSmooth)) {
    for (const Rule& rule : rules) {
      for (const size_t rank : rule.refused) {
        RefuseShape(config, rule.param, WithRank(PrologCall(config)[rule.param].dims, rank), {ParamName(rule.param)});
      }
    }
  }
}

// A shape of the other form of the tokens.
TEST_F(ContractRules, FormsDoNotMix) {
  for (const Scenario scenario : kScenarios) {
    const Config fused = With(scenario).SetFused(4);
    const Config split = With(scenario).SetBatchSeq(2, 2);
    for (const Param param : {kRopeSin, kRopeCos, kCacheIndex, kQueryOut, kQueryRopeOut}) {
      // ropeCos also gives Dr, but its last dimension is the same in both forms.
      RefuseShape(fused, param, PrologCall(split)[param].dims, {ParamName(param)});
      RefuseShape(split, param, PrologCall(fused)[param].dims, {ParamName(param)});
    }
    RefuseShape(fused, kTokenX, PrologCall(split)[kTokenX].dims, {"ropeSin", "ropeCos", "cacheIndex", "tokenX"});
    RefuseShape(split, kTokenX, PrologCall(fused)[kTokenX].dims, {"ropeSin", "ropeCos", "cacheIndex", "tokenX"});
  }
}

TEST_F(ContractRules, HiddenSizes) {
  for (const Scenario scenario : kScenarios) {
    for (const int64_t hidden : {1024, 2048, 3072, 4096, 5120, 6144, 7168, 7680, 8192}) {
      Config config = With(scenario);
      config.hidden = hidden;
      Accept(config, "legal He", [](PrologCall&) {});
      config.nz_2d = true;
      for (const int64_t neighbour : {hidden - 16, hidden - 1, hidden + 1, hidden + 16}) {
        config.hidden = neighbour;
        Refuse(config, "illegal He", [](PrologCall&) {}, kTiling, {"tokenX"});
      }
    }
    for (const int64_t hidden : {0, 1, 16, 512, 1536, 9216, 16384}) {
      Config config = With(scenario);
      config.hidden = hidden;
      Refuse(config, "illegal He", [](PrologCall&) {}, kTiling, {"tokenX"});
    }
  }
}

TEST_F(ContractRules, HeadCounts) {
  for (const Scenario scenario : kScenarios) {
    for (const int64_t heads : {1, 2, 4, 8, 16, 32, 64, 128}) {
      Config config = With(scenario);
      config.heads = heads;
      Accept(config, "legal N", [](PrologCall&) {});
    }
    for (const int64_t heads : {0, 3, 5, 6, 7, 9, 15, 17, 31, 33, 63, 65, 96, 127, 129, 256}) {
      Config config = With(scenario);
      config.heads = heads;
      Refuse(config, "illegal N", [](PrologCall&) {}, kTiling, {"weightUk"});
    }
  }
}

TEST_F(ContractRules, BlockSizes) {
  for (const Config& base : AllConfigs()) {
    for (const int64_t block_size : {16, 32, 48, 128, 512, 1008, 1024}) {
      Config config = base;
      config.block_size = block_size;
      Accept(config, "legal BlockSize", [](PrologCall&) {});
    }
    for (const int64_t block_size : {0, 1, 8, 15, 17, 24, 31, 33, 1023, 1025, 1040, 2048}) {
      Config config = base;
      config.block_size = block_size;
      Refuse(config, "illegal BlockSize", [](PrologCall&) {}, kTiling, {"kvCache"});
    }
  }
}

TEST_F(ContractRules, RanksAndHeadSizes) {
  for (const Scenario scenario : kScenarios) {
    const auto refuse = [&](int64_t Config::*field, int64_t value, const Names& culprits) {
      Config config = With(scenario);
      config.nz_2d = true;
      config.*field = value;
      Refuse(
          config, "consistent, but illegal", [](PrologCall&) {}, kTiling, culprits);
    };
    for (const int64_t q_rank : {0, 16, 1520, 1535, 1537, 1552, 2048}) refuse(&Config::q_rank, q_rank, {"weightDq"});
    for (const int64_t nope : {0, 64, 127, 129, 192, 256}) refuse(&Config::nope, nope, {"weightUk"});
    for (const int64_t kv_rank : {0, 256, 511, 513, 528, 1024}) refuse(&Config::kv_rank, kv_rank, {"weightDkvKr"});
    for (const int64_t rope : {0, 32, 63, 65, 128}) refuse(&Config::rope, rope, {"ropeCos"});
  }
}

TEST_F(ContractRules, BatchesUpToTheirLimit) {
  for (const Scenario scenario : kScenarios) {
    Accept(With(scenario).SetBatchSeq(65535, 1), "", [](PrologCall&) {});
    Accept(With(scenario).SetBatchSeq(65536, 1), "", [](PrologCall&) {});
    Refuse(With(scenario).SetBatchSeq(65537, 1), "", [](PrologCall&) {}, kTiling, {"tokenX"});
  }
}

TEST_F(ContractRules, SequencesAndTokensHaveNoLimit) {
  for (const Scenario scenario : kScenarios) {
    Accept(With(scenario).SetBatchSeq(1, 70000), "", [](PrologCall&) {});
    Accept(With(scenario).SetBatchSeq(4, 17), "", [](PrologCall&) {});
    Accept(With(scenario).SetFused(65537), "", [](PrologCall&) {});
    Accept(With(scenario).SetFused(1048577), "", [](PrologCall&) {});
  }
}

TEST_F(ContractRules, OneKeyValueHead) {
  for (const Config& config : AllConfigs()) {
    for (const int64_t heads : {0, 2}) {
      Refuse(config, "Nkv " + std::to_string(heads),
             [&](PrologCall& call) {
               call[kKvCache].Reshape({2, 16, heads, 512});
               call[kKrCache].Reshape({2, 16, heads, 64});
             },
             kTiling, {"kvCache"});
    }
  }
}

// The last dimension of kvCache is the only one this version leaves open: what lies past Hckv stays untouched.
TEST_F(ContractRules, WiderCacheRowsAreAccepted) {
  for (const Config& config : AllConfigs()) {
    for (const int64_t width : {544, 576, 1024}) AcceptShape(config, kKvCache, {2, 16, 1, width});
    for (const int64_t width : {0, 1, 480, 511}) RefuseShape(config, kKvCache, {2, 16, 1, width}, {"kvCache"});
  }
}

// Each dimension of each tensor, one up and one down.
TEST_F(ContractRules, EveryDimensionCounts) {
  struct Rule {
    Param param;
    size_t dim;
    Names culprits;  // where the change is noticed; the tensor itself unless others take their sizes from it
  };
  for (const Config& config : AllConfigs()) {
    const size_t lead = config.fused ? 1 : 2;
    const PrologCall legal(config);
    std::vector<Rule> rules = {{kTokenX, lead, {"tokenX"}},
                               {kWeightUk, 0, {"weightUk", "weightUqQr"}},
                               {kWeightUk, 1, {"weightUk"}},
                               {kWeightUk, 2, {"weightUk"}},
                               {kGammaCq, 0, {"rmsnormGammaCq"}},
                               {kGammaCkv, 0, {"rmsnormGammaCkv"}},
                               {kRopeSin, lead, {"ropeSin"}},
                               // Hckv is what weightDkvKr has left after Dr, and is looked at first.
                               {kRopeCos, lead, {"ropeCos", "weightDkvKr"}},
                               {kKvCache, 0, {"kvCache", "krCache"}},
                               {kKvCache, 1, {"kvCache"}},
                               {kKvCache, 2, {"kvCache"}},
                               {kQueryOut, lead, {"queryOut"}},
                               {kQueryOut, lead + 1, {"queryOut"}},
                               {kQueryRopeOut, lead, {"queryRopeOut"}},
                               {kQueryRopeOut, lead + 1, {"queryRopeOut"}}};
    for (size_t d = 0; d < lead; ++d) {
      // Everything that has the tokens' dimensions disagrees with tokenX then.
      rules.push_back({kTokenX, d, {"tokenX", "ropeSin"}});
      for (const Param param : {kRopeSin, kRopeCos, kCacheIndex, kQueryOut, kQueryRopeOut}) {
        rules.push_back({param, d, {ParamName(param)}});
      }
    }
    for (const Param param : kNzWeights) {
      for (size_t d = 0; d < 4; ++d) rules.push_back({param, d, {ParamName(param)}});
    }
    for (size_t d = 0; d < 4; ++d) rules.push_back({kKrCache, d, {"krCache"}});
    for (const Param param : kOptional) {
      if (legal[param].null) continue;
      for (size_t d = 0; d < 2; ++d) rules.push_back({param, d, {ParamName(param)}});
    }
    for (const Rule& rule : rules) {
      for (const int64_t delta : {-1, 1}) {
        std::vector<int64_t> dims = legal[rule.param].dims;
        dims[rule.dim] += delta;
        // One batch fewer with T = 0 has its own tests.
        RefuseShape(config, rule.param, dims, rule.culprits);
      }
    }
  }
}

TEST_F(ContractRules, NzViewsOfTwoDimensionsAreChecked) {
  for (Config config : AllConfigs()) {
    config.nz_2d = true;
    for (const Param param : kNzWeights) {
      for (size_t d = 0; d < 2; ++d) {
        for (const int64_t delta : {-16, -1, 1, 16}) {
          std::vector<int64_t> dims = PrologCall(config)[param].dims;
          dims[d] += delta;
          RefuseShape(config, param, dims, {ParamName(param)});
        }
      }
      const std::vector<int64_t> dims = PrologCall(config)[param].dims;
      RefuseShape(config, param, {dims[1], dims[0]}, {ParamName(param)});
    }
  }
}

// The innermost dimension follows from the element type: 32 bytes.
TEST_F(ContractRules, FractalsAreThirtyTwoBytesWide) {
  for (const Config& config : FormsOf(Scenario::kPartial)) {
    const int64_t columns = config.heads * 192;
    RefuseShape(config, kWeightUqQr, {columns / 16, 96, 16, 16}, {"weightUqQr"});
    RefuseShape(config, kWeightUqQr, {columns / 32, 48, 32, 32}, {"weightUqQr"});
    RefuseShape(config, kWeightDq, {48, 64, 16, 32}, {"weightDq"});
    RefuseShape(config, kWeightDkvKr, {18, 64, 16, 32}, {"weightDkvKr"});
    // Blocks of rows and of columns exchanged.
    RefuseShape(config, kWeightDq, {64, 96, 16, 16}, {"weightDq"});
  }
}

}  // namespace
}  // namespace mlap::prolog_v1_test
