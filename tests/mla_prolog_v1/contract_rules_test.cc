// Every rule of the first step, one accepted and one refused neighbour at a time. No call here may touch data: all
// addresses are inaccessible.
#include <functional>
#include <string>
#include <vector>

#include "prolog_v1_fixture.h"

namespace mlap::prolog_v1_test {
namespace {

constexpr aclnnStatus kNull = ACLNN_ERR_PARAM_NULLPTR;
constexpr aclnnStatus kInvalid = ACLNN_ERR_PARAM_INVALID;
constexpr aclnnStatus kTiling = ACLNN_ERR_INNER_TILING_ERROR;
constexpr aclnnStatus kNoKernel = ACLNN_ERR_INNER_FIND_KERNEL_ERROR;

using Mutation = std::function<void(PrologCall&)>;
using Names = std::vector<std::string>;

std::string Shape(const std::vector<int64_t>& dims) {
  std::string text = "(";
  for (const int64_t dim : dims) text += std::to_string(dim) + ",";
  return text + ")";
}

Config With(Scenario scenario) {
  Config config;
  config.scenario = scenario;
  return config;
}

// Both forms of the tokens and both cache modes of one scenario.
std::vector<Config> FormsOf(Scenario scenario) {
  std::vector<Config> configs;
  for (const char* mode : {"PA_BSND", "PA_NZ"}) {
    for (const bool fused : {true, false}) {
      Config config = With(scenario);
      config.cache_mode = mode;
      config.heads = 2;
      fused ? config.SetFused(3) : config.SetBatchSeq(2, 2);
      configs.push_back(config);
    }
  }
  return configs;
}

std::vector<Config> AllConfigs() {
  std::vector<Config> configs;
  for (const Scenario scenario : kScenarios) {
    for (const Config& config : FormsOf(scenario)) configs.push_back(config);
  }
  return configs;
}

class ContractRules : public PrologV1Test {
 protected:
  static void Refuse(const Config& config, const std::string& what, const Mutation& mutate, aclnnStatus status,
                     const Names& culprits) {
    SCOPED_TRACE(config.Name() + ": " + what);
    PrologCall call(config);
    mutate(call);
    ExpectRefused(call, status, culprits);
  }
  static void RefuseWithEither(const Config& config, const std::string& what, const Mutation& mutate,
                               const std::vector<aclnnStatus>& statuses, const Names& culprits) {
    SCOPED_TRACE(config.Name() + ": " + what);
    PrologCall call(config);
    mutate(call);
    ExpectRefused(call, statuses, culprits);
  }
  static void Accept(const Config& config, const std::string& what, const Mutation& mutate) {
    SCOPED_TRACE(config.Name() + ": " + what);
    PrologCall call(config);
    mutate(call);
    ExpectAccepted(call);
  }
  static void RefuseShape(const Config& config, Param param, const std::vector<int64_t>& dims, const Names& culprits) {
    Refuse(
        config, std::string(ParamName(param)) + " " + Shape(dims), [&](PrologCall& call) { call[param].Reshape(dims); },
        kTiling, culprits);
  }
  static void AcceptShape(const Config& config, Param param, const std::vector<int64_t>& dims) {
    Accept(config, std::string(ParamName(param)) + " " + Shape(dims),
           [&](PrologCall& call) { call[param].Reshape(dims); });
  }
};

TEST_F(ContractRules, EveryScenarioFormAndModeIsAccepted) {
  for (const char* soc_name : {"ascend910b", "ascend910_93", "none"}) {
    const ScopedSoc soc(soc_name);
    for (const Config& config : AllConfigs()) Accept(config, soc_name, [](PrologCall&) {});
  }
}

TEST_F(ContractRules, TorchStyleDescriptionsAreAccepted) {
  for (const Config& config : AllConfigs())
    Accept(config, "torch style", [](PrologCall& call) { call.UseTorchStyle(); });
}

// ---- Null
// ------------------------------------------------------------------------------------------------------------

TEST_F(ContractRules, RequiredTensorsMayNotBeNull) {
  for (const Config& config : AllConfigs()) {
    for (const Param param : kRequired) {
      Refuse(config, std::string("null ") + ParamName(param), [&](PrologCall& call) { call[param].null = true; }, kNull,
             {ParamName(param)});
    }
  }
}

TEST_F(ContractRules, OutPointersMayNotBeNull) {
  const PrologCall call{Config()};
  Handles handles;
  call.Create(&handles);
  const auto& t = handles.tensors;
  char mode[] = "PA_BSND";
  const auto phase1 = [&](uint64_t* workspace_bytes, aclOpExecutor** executor) {
    TakeTexts();
    return aclnnMlaPrologGetWorkspaceSize(t[kTokenX], t[kWeightDq], t[kWeightUqQr], t[kWeightUk], t[kWeightDkvKr],
                                          t[kGammaCq], t[kGammaCkv], t[kRopeSin], t[kRopeCos], t[kCacheIndex],
                                          handles.owned[kKvCache], handles.owned[kKrCache], nullptr, nullptr, nullptr,
                                          nullptr, nullptr, nullptr, nullptr, 1e-5, 1e-5, mode, t[kQueryOut],
                                          t[kQueryRopeOut], workspace_bytes, executor);
  };
  uint64_t workspace_bytes = 0;
  aclOpExecutor* executor = nullptr;
  EXPECT_EQ(phase1(&workspace_bytes, nullptr), kNull);
  EXPECT_EQ(FirstNamed(TakeTexts()), "executor");
  EXPECT_EQ(phase1(nullptr, &executor), kNull);
  EXPECT_EQ(FirstNamed(TakeTexts()), "workspaceSize");
  EXPECT_EQ(phase1(nullptr, nullptr), kNull);
  EXPECT_EQ(FirstNamed(TakeTexts()), "executor");
  EXPECT_EQ(phase1(&workspace_bytes, &executor), 0);
  Discard(executor);
}

TEST_F(ContractRules, DeadAndInventedHandlesAreRecognised) {
  const std::vector<int64_t> dims = {1};
  aclTensor* dead =
      aclCreateTensor(dims.data(), 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims.data(), 1, UntouchableAddress(31));
  ASSERT_NE(dead, nullptr);
  ASSERT_EQ(aclDestroyTensor(dead), 0);
  int not_a_handle = 0;
  const auto* invented = reinterpret_cast<const aclTensor*>(&not_a_handle);
  for (int param = 0; param < kNumParams; ++param) {
    for (const aclTensor* handle : {static_cast<const aclTensor*>(dead), invented}) {
      Refuse(With(Scenario::kPerChannelSmooth), std::string("no handle: ") + ParamName(static_cast<Param>(param)),
             [&](PrologCall& call) { call[static_cast<Param>(param)].raw_handle = handle; }, kInvalid,
             {ParamName(static_cast<Param>(param))});
    }
  }
}

TEST_F(ContractRules, TensorsWithElementsNeedAnAddress) {
  const Config config = With(Scenario::kPerChannelSmooth);
  for (int i = 0; i < kNumParams; ++i) {
    const Param param = static_cast<Param>(i);
    if (PrologCall(config)[param].null) continue;
    Refuse(config, std::string("no data: ") + ParamName(param), [&](PrologCall& call) { call[param].data = nullptr; },
           kInvalid, {ParamName(param)});
  }
}

// ---- Element types
// ---------------------------------------------------------------------------------------------------

constexpr aclDataType kDtypes[] = {
    ACL_DT_UNDEFINED, ACL_FLOAT,       ACL_FLOAT16,     ACL_INT8,        ACL_INT32,         ACL_UINT8,
    ACL_INT16,        ACL_UINT16,      ACL_UINT32,      ACL_INT64,       ACL_UINT64,        ACL_DOUBLE,
    ACL_BOOL,         ACL_STRING,      ACL_COMPLEX64,   ACL_COMPLEX128,  ACL_BF16,          ACL_INT4,
    ACL_UINT1,        ACL_COMPLEX32,   ACL_HIFLOAT8,    ACL_FLOAT8_E5M2, ACL_FLOAT8_E4M3FN, ACL_FLOAT8_E8M0,
    ACL_FLOAT6_E3M2,  ACL_FLOAT6_E2M3, ACL_FLOAT4_E2M1, ACL_FLOAT4_E1M2};

// A change of one type never leads to another legal column of types, with the two exceptions of the next test.
TEST_F(ContractRules, RequiredTypesDecideTheKernel) {
  for (const Scenario scenario : kScenarios) {
    const Config config = With(scenario);
    for (const Param param : kRequired) {
      const aclDataType legal = PrologCall(config)[param].dtype;
      for (const aclDataType dtype : kDtypes) {
        if (dtype == legal || (param == kWeightUqQr && (dtype == ACL_BF16 || dtype == ACL_INT8))) continue;
        // INT8 tokens or caches belong to other columns, so that one may as well blame what else they would need.
        const bool ambiguous = dtype == ACL_INT8 || dtype == ACL_BF16;
        Names culprits = {ParamName(param)};
        if (ambiguous) {
          for (const Param other : {kTokenX, kWeightDq, kWeightUqQr, kWeightDkvKr, kKvCache, kKrCache, kQueryOut}) {
            culprits.push_back(ParamName(other));
          }
        }
        Refuse(
            config, std::string(ParamName(param)) + " of type " + std::to_string(dtype),
            [&](PrologCall& call) { call[param].dtype = dtype; }, kInvalid, culprits);
      }
    }
  }
}

// The types of weightUqQr and of the caches choose the scenario; what the scenario then lacks is found by the tiling.
TEST_F(ContractRules, TypesThatMeanAnotherScenarioNeedItsScales) {
  for (const Config& config : FormsOf(Scenario::kNonQuant)) {
    Refuse(config, "int8 weightUqQr without its scale",
           [](PrologCall& call) {
             call[kWeightUqQr].dtype = ACL_INT8;
             call[kWeightUqQr].Reshape({call.config.heads * 192 / 32, 96, 16, 32});
           },
           kTiling, {"dequantScaleWUqQr"});
    Refuse(config, "int8 caches with bf16 weights",
           [](PrologCall& call) { call[kKvCache].dtype = call[kKrCache].dtype = ACL_INT8; }, kInvalid,
           {"weightUqQr", "kvCache", "krCache"});
  }
  for (const Config& config : FormsOf(Scenario::kPartial)) {
    Refuse(config, "bf16 weightUqQr with a scale",
           [](PrologCall& call) {
             call[kWeightUqQr].dtype = ACL_BF16;
             call[kWeightUqQr].Reshape({call.config.heads * 192 / 16, 96, 16, 16});
           },
           kTiling, {"dequantScaleWUqQr"});
    Refuse(config, "int8 caches without their scales",
           [](PrologCall& call) { call[kKvCache].dtype = call[kKrCache].dtype = ACL_INT8; }, kTiling,
           {"quantScaleCkv", "quantScaleCkr"});
  }
  for (const Config& config : FormsOf(Scenario::kPerChannel)) {
    Refuse(config, "bf16 caches with scales",
           [](PrologCall& call) { call[kKvCache].dtype = call[kKrCache].dtype = ACL_BF16; }, kTiling,
           {"quantScaleCkv", "quantScaleCkr"});
  }
}

void MakeFullInt8(PrologCall& call) {
  const Config& c = call.config;
  call[kTokenX].dtype = ACL_INT8;
  call[kWeightDq].dtype = call[kWeightUqQr].dtype = call[kWeightDkvKr].dtype = ACL_INT8;
  call[kWeightDq].Reshape({c.q_rank / 32, c.hidden / 16, 16, 32});
  call[kWeightUqQr].Reshape({c.heads * (c.nope + c.rope) / 32, c.q_rank / 16, 16, 32});
  call[kWeightDkvKr].Reshape({(c.kv_rank + c.rope) / 32, c.hidden / 16, 16, 32});
  call[kScaleX].null = call[kScaleWDq].null = call[kScaleWUqQr].null = call[kScaleWDkvKr].null = false;
}

// Columns of types the operator's definition lists but no kernel of this version serves.
TEST_F(ContractRules, Int8TokensHaveNoKernel) {
  for (const Config& config : FormsOf(Scenario::kNonQuant)) {
    Refuse(config, "int8 everywhere, plain caches", MakeFullInt8, kNoKernel,
           {"tokenX", "weightDq", "weightUqQr", "weightDkvKr"});
    Refuse(config, "int8 everywhere, int8 caches",
           [](PrologCall& call) {
             MakeFullInt8(call);
             call[kKvCache].dtype = call[kKrCache].dtype = ACL_INT8;
             call[kScaleCkv].null = call[kScaleCkr].null = false;
           },
           kTiling, {"tokenX", "weightDq", "weightUqQr", "kvCache", "krCache"});
    Refuse(config, "int8 everywhere, per-tensor cache: a column of the next version only",
           [](PrologCall& call) {
             MakeFullInt8(call);
             call[kKvCache].dtype = call[kQueryOut].dtype = ACL_INT8;
             call[kScaleCkv].null = false;
           },
           kInvalid, {"tokenX", "weightDq", "weightUqQr", "kvCache", "krCache", "queryOut"});
  }
}

TEST_F(ContractRules, ScalesAreFloat) {
  for (const Config& config : FormsOf(Scenario::kPerChannelSmooth)) {
    for (const Param param : {kScaleWUqQr, kScaleCkv, kScaleCkr, kSmooth}) {
      for (const aclDataType dtype : kDtypes) {
        if (dtype == ACL_FLOAT) continue;
        Refuse(config, std::string(ParamName(param)) + " of type " + std::to_string(dtype),
               [&](PrologCall& call) { call[param].dtype = dtype; }, kTiling, {ParamName(param)});
      }
    }
  }
}

// ---- Formats
// ---------------------------------------------------------------------------------------------------------

TEST_F(ContractRules, PlainTensorsTakeThePlainFormats) {
  const Config config = With(Scenario::kPerChannelSmooth);
  for (int i = 0; i < kNumParams; ++i) {
    const Param param = static_cast<Param>(i);
    if (IsNzWeight(param) || PrologCall(config)[param].null) continue;
    for (const aclFormat format : {ACL_FORMAT_ND, ACL_FORMAT_NCHW, ACL_FORMAT_NCL, ACL_FORMAT_NCDHW}) {
      Accept(config, std::string(ParamName(param)) + " of format " + std::to_string(format),
             [&](PrologCall& call) { call[param].format = format; });
    }
    Refuse(config, std::string(ParamName(param)) + " of format NHWC",
           [&](PrologCall& call) { call[param].format = ACL_FORMAT_NHWC; }, kTiling, {ParamName(param)});
    for (const aclFormat format : {ACL_FORMAT_UNDEFINED, ACL_FORMAT_NC1HWC0, ACL_FORMAT_FRACTAL_Z, ACL_FORMAT_HWCN,
                                   ACL_FORMAT_NDHWC, ACL_FORMAT_FRACTAL_NZ, ACL_FORMAT_NC}) {
      RefuseWithEither(config, std::string(ParamName(param)) + " of format " + std::to_string(format),
                       [&](PrologCall& call) { call[param].format = format; }, {kTiling, kInvalid}, {ParamName(param)});
    }
  }
}

TEST_F(ContractRules, WeightsAreFractalNz) {
  for (const Config& config : AllConfigs()) {
    for (const Param param : kNzWeights) {
      for (const aclFormat format : {ACL_FORMAT_ND, ACL_FORMAT_NCHW, ACL_FORMAT_NHWC, ACL_FORMAT_NCL,
                                     ACL_FORMAT_FRACTAL_Z, ACL_FORMAT_UNDEFINED}) {
        Refuse(config, std::string(ParamName(param)) + " of format " + std::to_string(format),
               [&](PrologCall& call) { call[param].format = format; }, kInvalid, {ParamName(param)});
      }
    }
  }
}

TEST_F(ContractRules, NzViewsOfTwoAndFourDimensionsMix) {
  for (const Scenario scenario : {Scenario::kNonQuant, Scenario::kPartial}) {
    for (int mask = 0; mask < 8; ++mask) {
      Accept(With(scenario), "2-D views " + std::to_string(mask), [&](PrologCall& call) {
        for (size_t i = 0; i < kNzWeights.size(); ++i) {
          if ((mask >> i & 1) == 0) continue;
          TensorDesc& desc = call[kNzWeights[i]];
          desc.dims = {desc.dims[1] * desc.dims[2], desc.dims[0] * desc.dims[3]};
        }
      });
    }
  }
}

// The storage's shape is not looked at: the view decides.
TEST_F(ContractRules, StorageShapesAreIgnored) {
  const Config config = With(Scenario::kPerChannelSmooth);
  for (int i = 0; i < kNumParams; ++i) {
    const Param param = static_cast<Param>(i);
    if (PrologCall(config)[param].null) continue;
    for (const std::vector<int64_t>& storage : {std::vector<int64_t>{}, {1}, {7, 7}, {1, 2, 3, 4, 5}}) {
      Accept(config, std::string(ParamName(param)) + " with storage " + Shape(storage),
             [&](PrologCall& call) { call[param].storage_dims = storage; });
    }
  }
}

// ---- Numbers of dimensions
// -------------------------------------------------------------------------------------------

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

// ---- Sizes
// -----------------------------------------------------------------------------------------------------------

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

// ---- Optional tensors
// ------------------------------------------------------------------------------------------------

TEST_F(ContractRules, OptionalTensorsBelongToTheirScenario) {
  for (const Config& config : AllConfigs()) {
    const PrologCall legal(config);
    for (const Param param : kOptional) {
      if (!legal[param].null) continue;
      if (param == kSmooth && config.PartialQuant()) {
        Accept(config, "smoothScalesCq added", [](PrologCall& call) { call[kSmooth].null = false; });
        continue;
      }
      Refuse(config, std::string("superfluous ") + ParamName(param),
             [&](PrologCall& call) { call[param].null = false; }, kTiling, {ParamName(param)});
      Refuse(config, std::string("superfluous and empty ") + ParamName(param),
             [&](PrologCall& call) {
               call[param].null = false;
               call[param].Reshape({0});
             },
             kTiling, {ParamName(param)});
    }
    for (const Param param : kOptional) {
      if (legal[param].null) continue;
      if (param == kSmooth) {
        Accept(config, "smoothScalesCq left out", [](PrologCall& call) { call[kSmooth].null = true; });
      } else {
        Refuse(config, std::string("missing ") + ParamName(param), [&](PrologCall& call) { call[param].null = true; },
               kTiling, {ParamName(param)});
      }
      // Present but empty is not the same as absent.
      for (const std::vector<int64_t>& dims :
           {std::vector<int64_t>{0}, {1, 0}, {0, legal[param].dims[1]}, {legal[param].dims[1]}}) {
        RefuseShape(config, param, dims, {ParamName(param)});
      }
    }
  }
}

// ---- Attributes
// ------------------------------------------------------------------------------------------------------

TEST_F(ContractRules, CacheModes) {
  for (const Config& config : AllConfigs()) {
    for (const char* mode : {"", "pa_bsnd", "Pa_BSND", "PA_BSND ", " PA_BSND", "PA_BSN", "PA_BSNDX", "PA", "pa_nz",
                             "NZ", "BNSD", "BSND", "TND", "PA_BLK_BSND", "PA_BLK_NZ", "ND", "PA_NZ\n"}) {
      Refuse(config, std::string("mode '") + mode + "'", [&](PrologCall& call) { call.cache_mode = mode; }, kTiling,
             {"cacheMode"});
    }
    for (const char* mode : {"PA_BSND", "PA_NZ"}) {
      Accept(config, mode, [&](PrologCall& call) { call.cache_mode = mode; });
    }
  }
}

TEST_F(ContractRules, AbsentCacheModeIsRefusedWithAdvice) {
  for (const Config& config : AllConfigs()) {
    SCOPED_TRACE(config.Name());
    PrologCall call(config);
    call.cache_mode.reset();
    ExpectRefused(call, kTiling, {"cacheMode"});
    const std::string text = call.Phase1().text;
    EXPECT_NE(text.find("PA_BSND"), std::string::npos) << text;
    EXPECT_NE(text.find("PA_NZ"), std::string::npos) << text;
  }
}

// ---- Strides and offsets
// ---------------------------------------------------------------------------------------------

TEST_F(ContractRules, OutputsMustBeWithoutGaps) {
  for (const Config& config : AllConfigs()) {
    for (const Param param : {kQueryOut, kQueryRopeOut}) {
      const std::vector<int64_t> contiguous = PrologCall(config)[param].ContiguousStrides();
      Accept(config, "explicit strides", [&](PrologCall& call) { call[param].strides = contiguous; });
      for (size_t d = 0; d < contiguous.size(); ++d) {
        for (const int64_t delta : {-1, 1}) {
          std::vector<int64_t> strides = contiguous;
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
  Config config = With(Scenario::kPerChannelSmooth).SetBatchSeq(1, 1);
  config.block_num = 1;
  for (const Param param : {kTokenX, kRopeSin, kRopeCos, kCacheIndex, kKvCache, kKrCache, kQueryOut, kQueryRopeOut,
                            kScaleWUqQr, kSmooth, kWeightUk}) {
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

TEST_F(ContractRules, CachesMayHaveHolesButNoOverlaps) {
  for (const Config& config : AllConfigs()) {
    for (const Param param : {kKvCache, kKrCache}) {
      const int64_t width = PrologCall(config)[param].dims[3];
      const auto strided = [&](std::vector<int64_t> strides) {
        return [=](PrologCall& call) { call[param].strides = strides; };
      };
      Accept(config, "gaps between pages", strided({16 * width + 64, width, width, 1}));
      Accept(config, "gaps between slots", strided({16 * (width + 32), width + 32, width + 32, 1}));
      Accept(config, "gaps between elements", strided({32 * width, 2 * width, 2 * width, 2}));
      Accept(config, "slots outermost", strided({width, 2 * width, 2 * width, 1}));
      for (const std::vector<int64_t>& strides : {std::vector<int64_t>{0, width, width, 1},
                                                  {16 * width - 1, width, width, 1},
                                                  {16 * width, width - 1, width, 1},
                                                  {16 * width, 0, width, 1},
                                                  {16 * width, width, width, 0},
                                                  {width, width, width, 1},
                                                  {32 * width, 2 * width - 2, width, 2}}) {
        Refuse(config, std::string(ParamName(param)) + " with strides " + Shape(strides), strided(strides), kInvalid,
               {ParamName(param)});
      }
    }
  }
}

TEST_F(ContractRules, OtherInputsMayBeStrided) {
  for (const Config& config : FormsOf(Scenario::kPerChannelSmooth)) {
    for (int i = 0; i < kNumParams; ++i) {
      const Param param = static_cast<Param>(i);
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

// ---- Absurd numbers
// --------------------------------------------------------------------------------------------------

TEST_F(ContractRules, NegativeDimensionsAreRefused) {
  const Config config = With(Scenario::kPerChannelSmooth);
  for (int i = 0; i < kNumParams; ++i) {
    const Param param = static_cast<Param>(i);
    const std::vector<int64_t> legal = PrologCall(config)[param].dims;
    if (PrologCall(config)[param].null) continue;
    for (size_t d = 0; d < legal.size(); ++d) {
      for (const int64_t value : {int64_t{-1}, -legal[d], INT64_MIN}) {
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

TEST_F(ContractRules, HugeDimensionsAreRefused) {
  const Config config = With(Scenario::kPerChannelSmooth);
  for (const char* soc_name : {"ascend910b", "none"}) {
    const ScopedSoc soc(soc_name);
    for (int i = 0; i < kNumParams; ++i) {
      const Param param = static_cast<Param>(i);
      const PrologCall legal(config);
      if (legal[param].null) continue;
      for (size_t d = 0; d < legal[param].dims.size(); ++d) {
        for (const int64_t value : {INT64_MAX, int64_t{1} << 62, int64_t{1} << 61, (int64_t{1} << 32) + 1}) {
          // Rows of any width are legal, and whether there is that much memory cannot be known.
          if (param == kKvCache && d == 3 && value < int64_t{1} << 61) continue;
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

// Sizes that agree with each other but not with any memory.
TEST_F(ContractRules, ConsistentButHugeShapesAreRefused) {
  for (const char* soc_name : {"ascend910b", "none"}) {
    const ScopedSoc soc(soc_name);
    for (const Scenario scenario : kScenarios) {
      for (const int64_t tokens : {int64_t{1} << 54, int64_t{1} << 62, INT64_MAX}) {
        RefuseWithEither(With(scenario).SetFused(tokens), soc_name, [](PrologCall&) {}, {kInvalid, kTiling},
                         {"tokenX", "queryOut", "queryRopeOut", "ropeSin", "ropeCos", "cacheIndex"});
      }
      for (const int64_t blocks : {int64_t{1} << 50, int64_t{1} << 62, INT64_MAX}) {
        Config config = With(scenario);
        config.block_num = blocks;
        RefuseWithEither(config, soc_name, [](PrologCall&) {}, {kInvalid, kTiling}, {"kvCache", "krCache"});
      }
      RefuseWithEither(With(scenario).SetBatchSeq(65536, int64_t{1} << 46), soc_name, [](PrologCall&) {},
                       {kInvalid, kTiling}, {"tokenX", "queryOut", "queryRopeOut", "ropeSin", "ropeCos", "cacheIndex"});
    }
  }
}

TEST_F(ContractRules, OffsetsAndStridesThatOverflowAreRefused) {
  const Config config = With(Scenario::kPerChannelSmooth);
  for (int i = 0; i < kNumParams; ++i) {
    const Param param = static_cast<Param>(i);
    const PrologCall legal(config);
    if (legal[param].null) continue;
    for (const int64_t offset : {INT64_MAX, int64_t{1} << 62, INT64_MIN}) {
      if (legal[param].ElementBytes() == 1 && offset == int64_t{1} << 62) continue;  // far away, but an address
      RefuseWithEither(config, std::string(ParamName(param)) + " at offset " + std::to_string(offset),
                       [&](PrologCall& call) { call[param].offset = offset; }, {kInvalid, kTiling}, {ParamName(param)});
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

// ---- Texts
// -----------------------------------------------------------------------------------------------------------

// The text has the found and the expected number, and the numbers' owner.
TEST_F(ContractRules, TextsNameWhatWasFoundAndExpected) {
  struct Case {
    Param param;
    std::vector<int64_t> dims;
    std::vector<const char*> words;
  };
  Config config = With(Scenario::kPerChannelSmooth);
  config.heads = 2;
  const std::vector<Case> cases = {{kTokenX, {2, 1025}, {"1025", "1024", "8192"}},
                                   {kWeightUk, {3, 128, 512}, {"3", "128"}},
                                   {kKvCache, {2, 24, 1, 512}, {"24", "16", "1024"}},
                                   {kGammaCq, {1535}, {"1535", "1536"}},
                                   {kScaleWUqQr, {1, 385}, {"385", "384"}},
                                   {kQueryOut, {2, 2, 513}, {"513", "512"}},
                                   {kRopeSin, {3, 64}, {"3", "2"}}};
  for (const Case& c : cases) {
    PrologCall call(config);
    call[c.param].Reshape(c.dims);
    const Phase1Result result = call.Phase1();
    EXPECT_EQ(result.status, kTiling);
    for (const char* word : c.words)
      EXPECT_NE(result.text.find(word), std::string::npos) << word << ": " << result.text;
  }
}

TEST_F(ContractRules, AnAcceptedCallAfterARefusedOne) {
  for (const Config& config : AllConfigs()) {
    Refuse(config, "refused first", [](PrologCall& call) { call[kTokenX].null = true; }, kNull, {"tokenX"});
    Accept(config, "then accepted", [](PrologCall&) {});
  }
}

}  // namespace
}  // namespace mlap::prolog_v1_test
