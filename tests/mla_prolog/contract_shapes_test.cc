// Numbers of dimensions and sizes: each legal value, and its illegal neighbours.
#include <string>
#include <vector>

#include "contract_rules.h"

namespace mlap::prolog_test {
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
  const std::vector<Rule> rules = {
      {kTokenX, {0, 1, 4, 5}},   {kWeightDq, {1, 3, 5}}, {kWeightUqQr, {1, 3, 5}},   {kWeightUk, {1, 2, 4}},
      {kWeightDkvKr, {1, 3, 5}}, {kGammaCq, {0, 2, 3}},  {kGammaCkv, {0, 2, 3}},     {kRopeSin, {1, 4}},
      {kRopeCos, {1, 4}},        {kCacheIndex, {0, 3}},  {kKvCache, {1, 2, 5, 25}},  {kKrCache, {1, 2, 5, 25}},
      {kScaleX, {0, 1, 3}},      {kScaleWDq, {0, 1, 3}}, {kScaleWUqQr, {0, 1, 3}},   {kScaleWDkvKr, {0, 1, 3}},
      {kScaleCkr, {0, 1, 3}},    {kSmooth, {0, 1, 3}},   {kActualSeqLen, {2, 3}},    {kClipAlpha, {0, 2, 3}},
      {kScaleCkv, {0, 3}},       {kQueryOut, {1, 2, 5}}, {kQueryRopeOut, {1, 2, 5}}, {kScaleQNope, {1, 2, 4}},
      {kQueryNorm, {1, 4}},      {kScaleQNorm, {1, 3}}};
  for (const Config& rich : RichConfigs()) {
    for (Config config : FormsOf(rich.scenario)) {
      config.soc = rich.soc;
      for (const Rule& rule : rules) {
        // Scales of V2's query are looked at where they are written only; an empty krCache has rules of its own.
        if (PrologCall(config)[rule.param].null || (rule.param == kKrCache && config.PerGroup())) continue;
        for (const size_t rank : rule.refused) {
          RefuseShape(config, rule.param, WithRank(PrologCall(config)[rule.param].dims, rank), {ParamName(rule.param)});
        }
      }
    }
  }
}

// A shape of the other form of the tokens.
TEST_F(ContractRules, FormsDoNotMix) {
  for (const Config& rich : RichConfigs()) {
    const Config fused = Config(rich).SetFused(4);
    const Config split = Config(rich).SetBatchSeq(2, 2);
    for (const Param param : {kRopeSin, kRopeCos, kCacheIndex, kQueryOut, kQueryRopeOut, kQueryNorm}) {
      if (PrologCall(fused)[param].null) continue;
      // ropeCos also gives Dr, but its last dimension is the same in both forms.
      RefuseShape(fused, param, PrologCall(split)[param].dims, {ParamName(param)});
      RefuseShape(split, param, PrologCall(fused)[param].dims, {ParamName(param)});
    }
    RefuseShape(fused, kTokenX, PrologCall(split)[kTokenX].dims, {"ropeSin", "ropeCos", "cacheIndex", "tokenX"});
    RefuseShape(split, kTokenX, PrologCall(fused)[kTokenX].dims, {"ropeSin", "ropeCos", "cacheIndex", "tokenX"});
  }
}

TEST_F(ContractRules, HiddenSizes) {
  for (const Config& rich : RichConfigs()) {
    for (const int64_t hidden : {1024, 2048, 3072, 4096, 5120, 6144, 7168, 7680, 8192}) {
      Config config = rich;
      config.hidden = hidden;
      Accept(config, "legal He", [](PrologCall&) {});
      config.nz_2d = true;
      for (const int64_t neighbour : {hidden - 32, hidden - 1, hidden + 1, hidden + 32}) {
        config.hidden = neighbour;
        Refuse(config, "illegal He", [](PrologCall&) {}, kTiling, {"tokenX"});
      }
    }
    for (const int64_t hidden : {0, 1, 16, 512, 1536, 9216, 16384}) {
      Config config = rich;
      config.hidden = hidden;
      Refuse(config, "illegal He", [](PrologCall&) {}, kTiling, {"tokenX"});
    }
  }
}

TEST_F(ContractRules, HeadCounts) {
  for (const Config& rich : RichConfigs()) {
    for (const int64_t heads : {1, 2, 4, 8, 16, 32, 64, 128}) {
      Config config = rich;
      config.heads = heads;
      Accept(config, "legal N", [](PrologCall&) {});
    }
    for (const int64_t heads : {0, 3, 5, 6, 7, 9, 15, 17, 31, 33, 63, 65, 96, 127, 129, 256}) {
      Config config = rich;
      config.heads = heads;
      Refuse(config, "illegal N", [](PrologCall&) {}, kTiling, {"weightUk"});
    }
  }
}

TEST_F(ContractRules, BlockSizes) {
  for (const Config& base : AllConfigs()) {
    if (base.IsTokens()) continue;  // there are no blocks
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
  for (const Config& rich : RichConfigs()) {
    const auto refuse = [&](int64_t Config::*field, int64_t value, const Names& culprits) {
      Config config = rich;
      config.nz_2d = true;
      config.*field = value;
      Refuse(
          config, "consistent, but illegal", [](PrologCall&) {}, kTiling, culprits);
    };
    for (const int64_t q_rank : {0, 32, 1520, 1535, 1537, 1552, 2047, 2049, 3072}) {
      refuse(&Config::q_rank, q_rank, {"weightDq"});
    }
    for (const int64_t nope : {0, 64, 127, 129, 191, 193, 256}) refuse(&Config::nope, nope, {"weightUk"});
    for (const int64_t kv_rank : {0, 256, 511, 513, 528, 1024}) refuse(&Config::kv_rank, kv_rank, {"weightDkvKr"});
    for (const int64_t rope : {0, 32, 63, 65, 128}) refuse(&Config::rope, rope, {"ropeCos"});
    // V3 knows two of each, in any combination.
    for (const int64_t q_rank : {1536, 2048}) {
      for (const int64_t nope : {128, 192}) {
        Config config = rich;
        config.q_rank = q_rank;
        config.nope = nope;
        if (config.IsV3() || (q_rank == 1536 && nope == 128)) {
          Accept(config, "legal Hcq and D", [](PrologCall&) {});
        } else {
          Refuse(config, "Hcq and D of V3", [](PrologCall&) {}, kTiling, {q_rank == 2048 ? "weightDq" : "weightUk"});
        }
      }
    }
  }
}

TEST_F(ContractRules, BatchesUpToTheirLimit) {
  for (const Config& config : RichConfigs()) {
    Accept(Config(config).SetBatchSeq(65535, 1), "", [](PrologCall&) {});
    Accept(Config(config).SetBatchSeq(65536, 1), "", [](PrologCall&) {});
    Refuse(Config(config).SetBatchSeq(65537, 1), "", [](PrologCall&) {}, kTiling, {"tokenX"});
    if (!config.IsV3() || config.PerGroup()) continue;
    // Fused tokens have as many batches as actualSeqLen has entries.
    for (const int64_t batch : {65536, 65537}) {
      Config fused = Config(config).SetFused(2);
      fused.cache_mode = "PA_BLK_BSND";
      fused.sequences.assign(static_cast<size_t>(batch), 0);
      fused.sequences[0] = 2;
      if (batch == 65536) {
        Accept(fused, "", [](PrologCall&) {});
      } else {
        Refuse(fused, "", [](PrologCall&) {}, kTiling, {"actualSeqLen"});
      }
    }
  }
}

TEST_F(ContractRules, SequencesAndTokensHaveNoLimit) {
  for (const Config& config : RichConfigs()) {
    Accept(Config(config).SetBatchSeq(1, 70000), "", [](PrologCall&) {});
    Accept(Config(config).SetBatchSeq(4, 17), "", [](PrologCall&) {});
    Accept(Config(config).SetFused(65537), "", [](PrologCall&) {});
    Accept(Config(config).SetFused(1048577), "", [](PrologCall&) {});
  }
}

TEST_F(ContractRules, OneKeyValueHead) {
  for (const Config& config : AllConfigs()) {
    for (const int64_t heads : {0, 2}) {
      Refuse(config, "Nkv " + std::to_string(heads),
             [&](PrologCall& call) {
               for (const Param param : {kKvCache, kKrCache}) {
                 std::vector<int64_t> dims = call[param].dims;
                 if (dims.size() < 3) continue;
                 dims[dims.size() - 2] = heads;
                 call[param].Reshape(dims);
               }
             },
             kTiling, {"kvCache"});
    }
  }
}

// The last dimension of kvCache is open in V1 and V2: what lies past Hckv stays untouched. V3 wants its own.
TEST_F(ContractRules, WidthsOfCacheRows) {
  for (const Config& config : AllConfigs()) {
    std::vector<int64_t> dims = PrologCall(config)[kKvCache].dims;
    const int64_t legal = dims.back();
    const int64_t c0 = 32 / static_cast<int64_t>(PrologCall(config)[kKvCache].ElementBytes());
    for (const int64_t width : {0, 1, 480, 511, 512, 544, 576, 640, 656, 672, 1024}) {
      dims.back() = width;
      const bool accepted = config.IsV3() ? width == legal : width >= 512 && (!config.IsNzCache() || width % c0 == 0);
      if (accepted) {
        AcceptShape(config, kKvCache, dims);
      } else {
        RefuseShape(config, kKvCache, dims, {"kvCache"});
      }
    }
  }
}

// The one tensor that must be empty, in whatever shape.
TEST_F(ContractRules, MergedCachesLeaveKrCacheEmpty) {
  for (const Config& rich : RichConfigs()) {
    if (!rich.PerGroup()) continue;
    for (Config config : FormsOf(rich.scenario)) {
      config.soc = rich.soc;
      for (const std::vector<int64_t>& dims : {std::vector<int64_t>{0}, {0, 1, 64}, {1, 2, 1, 0}, {0, 0, 1, 64}}) {
        AcceptShape(config, kKrCache, dims);
      }
      for (const std::vector<int64_t>& dims : {std::vector<int64_t>{0, 0}, {0, 1, 2, 3, 4}}) {
        if (config.soc.empty()) {
          AcceptShape(config, kKrCache, dims);
        } else {
          RefuseShape(config, kKrCache, dims, {"krCache"});
        }
      }
      for (const std::vector<int64_t>& dims : {std::vector<int64_t>{1}, {2, 16, 1, 64}, {3, 1, 64}}) {
        RefuseShape(config, kKrCache, dims, {"krCache"});
      }
      Accept(config, "no address", [](PrologCall& call) { call[kKrCache].data = nullptr; });
    }
  }
}

// Pages of sequences: for (B, S) tokens ceil(S / BlockSize) each, for fused ones a list of any length.
TEST_F(ContractRules, ListsOfPages) {
  for (const Scenario& scenario : kScenarios) {
    if (scenario.version != Version::kV3 || scenario.kv_mode == 3) continue;
    for (const char* mode : {"PA_BLK_BSND", "PA_BLK_NZ"}) {
      Config config = With(scenario);
      config.cache_mode = mode;
      for (const auto& [seq, pages] :
           std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {15, 1}, {16, 1}, {17, 2}, {33, 3}}) {
        const Config split = Config(config).SetBatchSeq(2, seq);
        AcceptShape(split, kCacheIndex, {2, pages});
        RefuseShape(split, kCacheIndex, {2, pages + 1}, {"cacheIndex"});
        RefuseShape(split, kCacheIndex, {2, pages - 1}, {"cacheIndex"});
        RefuseShape(split, kCacheIndex, {2 * pages}, {"cacheIndex"});
      }
      const Config fused = Config(config).SetFused(5);
      for (const int64_t length : {0, 1, 2, 5, 1000}) AcceptShape(fused, kCacheIndex, {length});
      RefuseShape(fused, kCacheIndex, {2, 1}, {"cacheIndex"});
      RefuseShape(fused, kCacheIndex, {}, {"cacheIndex"});
      // actualSeqLen's length is the number of sequences, whatever it is.
      for (const int64_t length : {0, 1, 7}) AcceptShape(fused, kActualSeqLen, {length});
      RefuseShape(fused, kActualSeqLen, {2, 1}, {"actualSeqLen"});
    }
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
    const bool v3 = config.IsV3();
    std::vector<Rule> rules = {{kTokenX, lead, {"tokenX"}},
                               {kWeightUk, 0, {"weightUk", "weightUqQr"}},
                               {kWeightUk, 1, {"weightUk"}},
                               {kWeightUk, 2, {"weightUk"}},
                               {kGammaCq, 0, {"rmsnormGammaCq"}},
                               {kGammaCkv, 0, {"rmsnormGammaCkv"}},
                               {kRopeSin, lead, {"ropeSin"}},
                               // Hckv is what weightDkvKr has left after Dr, and is looked at first.
                               {kRopeCos, lead, {"ropeCos", "weightDkvKr"}},
                               {kQueryOut, lead, {"queryOut"}},
                               {kQueryOut, lead + 1, {"queryOut"}},
                               {kQueryRopeOut, lead, {"queryRopeOut"}},
                               {kQueryRopeOut, lead + 1, {"queryRopeOut"}}};
    for (size_t d = 0; d < lead; ++d) {
      // Everything that has the tokens' dimensions disagrees with tokenX then.
      rules.push_back({kTokenX, d, {"tokenX", "ropeSin"}});
      for (const Param param : {kRopeSin, kRopeCos, kQueryOut, kQueryRopeOut}) {
        rules.push_back({param, d, {ParamName(param)}});
      }
    }
    for (const Param param : kNzWeights) {
      for (size_t d = 0; d < 4; ++d) rules.push_back({param, d, {ParamName(param)}});
    }
    // Where there are pages, their number and the width of V1's and V2's rows are kvCache's own.
    for (size_t d = 0; d + (v3 ? 0 : 1) < legal[kKvCache].dims.size(); ++d) {
      if (d == 0 && !config.IsTokens() && config.PerGroup()) continue;
      rules.push_back({kKvCache, d, {"kvCache", "krCache"}});
    }
    for (size_t d = 0; d < legal[kKrCache].dims.size(); ++d) rules.push_back({kKrCache, d, {"krCache"}});
    for (const Param param : {kCacheIndex, kScaleX, kScaleWDq, kScaleWUqQr, kScaleWDkvKr, kScaleCkv, kScaleCkr, kSmooth,
                              kClipAlpha, kScaleQNope, kQueryNorm, kScaleQNorm}) {
      // The length of a list of pages is free.
      if (legal[param].null || (param == kCacheIndex && config.IsBlocks() && config.fused)) continue;
      for (size_t d = 0; d < legal[param].dims.size(); ++d) rules.push_back({param, d, {ParamName(param)}});
    }
    for (const Rule& rule : rules) {
      for (const int64_t delta : {-1, 1}) {
        std::vector<int64_t> dims = legal[rule.param].dims;
        dims[rule.dim] += delta;
        if (dims[rule.dim] < 0) continue;
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
        for (const int64_t delta : {-32, -1, 1, 32}) {
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
  for (const Config& config : AllConfigs()) {
    const PrologCall legal(config);
    for (const Param param : kNzWeights) {
      const std::vector<int64_t> dims = legal[param].dims;
      const int64_t c0 = legal[param].dtype == ACL_BF16 ? 16 : 32;
      ASSERT_EQ(dims[3], c0);
      // Those of the other width, twice as high, and with blocks of rows and of columns exchanged.
      const int64_t other = 48 - c0;
      RefuseShape(config, param, {dims[0] * c0 / other, dims[1], 16, other}, {ParamName(param)});
      RefuseShape(config, param, {dims[0], dims[1] / 2, 32, c0}, {ParamName(param)});
      if (dims[0] != dims[1]) RefuseShape(config, param, {dims[1], dims[0], 16, c0}, {ParamName(param)});
    }
  }
}

}  // namespace
}  // namespace mlap::prolog_test
