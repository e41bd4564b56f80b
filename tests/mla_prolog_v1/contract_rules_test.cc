// What may be null, types, formats, optional tensors and attributes: one accepted and one refused neighbour per rule.
#include "contract_rules.h"

#include <string>
#include <vector>

namespace mlap::prolog_v1_test {
namespace {

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
