// What may be null, types, formats, optional tensors and attributes: one accepted and one refused neighbour per rule.
#include "contract_rules.h"

#include <algorithm>
#include <string>
#include <vector>

namespace mlap::prolog_test {
namespace {

TEST_F(ContractRules, EveryScenarioFormAndModeIsAccepted) {
  for (const char* soc_name : {"ascend910b", "ascend910_93", "none"}) {
    const ScopedSoc soc(soc_name);
    for (const Config& config : AllConfigs()) Accept(config, soc_name, [](PrologCall&) {});
  }
  const ScopedSoc soc("none");
  for (Config config : AllConfigs()) {
    config.soc.clear();
    Accept(config, "without a device", [](PrologCall&) {});
  }
}

TEST_F(ContractRules, TorchStyleDescriptionsAreAccepted) {
  for (const Config& config : AllConfigs())
    Accept(config, "torch style", [](PrologCall& call) { call.UseTorchStyle(); });
}

TEST_F(ContractRules, RequiredTensorsMayNotBeNull) {
  for (const Config& config : AllConfigs()) {
    for (const Param param : RequiredOf(config.scenario.version)) {
      Refuse(config, std::string("null ") + ParamName(param), [&](PrologCall& call) { call[param].null = true; }, kNull,
             {ParamName(param)});
    }
  }
}

TEST_F(ContractRules, OutPointersMayNotBeNull) {
  for (const Version version : kVersions) {
    const PrologCall call(With({version, 0, 0}));
    Handles handles;
    call.Create(&handles);
    const auto phase1 = [&](uint64_t* workspace_bytes, aclOpExecutor** executor) {
      TakeTexts();
      return call.Phase1(handles, workspace_bytes, executor);
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
}

TEST_F(ContractRules, DeadAndInventedHandlesAreRecognised) {
  const std::vector<int64_t> dims = {1};
  aclTensor* dead =
      aclCreateTensor(dims.data(), 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims.data(), 1, UntouchableAddress(31));
  ASSERT_NE(dead, nullptr);
  ASSERT_EQ(aclDestroyTensor(dead), 0);
  int not_a_handle = 0;
  const auto* invented = reinterpret_cast<const aclTensor*>(&not_a_handle);
  for (const Config& config : RichConfigs()) {
    for (const Param param : ParamsOf(config.scenario.version)) {
      // Outputs that V3's modes want or do not want are counted before they are looked at.
      if (config.IsV3() && (param == kScaleQNope || param == kScaleQNorm) && PrologCall(config)[param].null) continue;
      for (const aclTensor* handle : {static_cast<const aclTensor*>(dead), invented}) {
        Refuse(config, std::string("no handle: ") + ParamName(param),
               [&](PrologCall& call) { call[param].raw_handle = handle; }, kInvalid, {ParamName(param)});
      }
    }
  }
}

TEST_F(ContractRules, TensorsWithElementsNeedAnAddress) {
  for (const Config& config : RichConfigs()) {
    for (const Param param : ParamsOf(config.scenario.version)) {
      const PrologCall legal(config);
      if (legal[param].null || legal[param].NumElements() == 0) continue;
      Refuse(config, std::string("no data: ") + ParamName(param), [&](PrologCall& call) { call[param].data = nullptr; },
             kInvalid, {ParamName(param)});
    }
  }
}

constexpr aclDataType kDtypes[] = {
    ACL_DT_UNDEFINED, ACL_FLOAT,       ACL_FLOAT16,     ACL_INT8,        ACL_INT32,         ACL_UINT8,
    ACL_INT16,        ACL_UINT16,      ACL_UINT32,      ACL_INT64,       ACL_UINT64,        ACL_DOUBLE,
    ACL_BOOL,         ACL_STRING,      ACL_COMPLEX64,   ACL_COMPLEX128,  ACL_BF16,          ACL_INT4,
    ACL_UINT1,        ACL_COMPLEX32,   ACL_HIFLOAT8,    ACL_FLOAT8_E5M2, ACL_FLOAT8_E4M3FN, ACL_FLOAT8_E8M0,
    ACL_FLOAT6_E3M2,  ACL_FLOAT6_E2M3, ACL_FLOAT4_E2M1, ACL_FLOAT4_E1M2};

// The types by which the device finds a kernel; a version's definition lists the combinations.
using Column = std::vector<std::pair<Param, aclDataType>>;

Column ColumnOf(const ScenarioRow& row, bool int8_caches) {
  return {{kTokenX, row.token_x},
          {kWeightDq, row.token_x},
          {kWeightUqQr, row.weight_uq_qr},
          {kWeightDkvKr, row.token_x},
          {kKvCache, int8_caches ? ACL_INT8 : row.kv_cache},
          {kKrCache, int8_caches ? ACL_INT8 : row.kr_cache},
          {kQueryOut, row.query},
          {kQueryNorm, row.query_norm},
          {kScaleQNorm, row.scale}};
}

std::vector<Column> ColumnsOf(const Config& config) {
  std::vector<Column> columns;
  for (const ScenarioRow& row : ScenarioTable()) {
    const bool in_v1 = row.weight_mode == 0 || (row.weight_mode == 1 && row.kv_mode != 3);
    const bool in_v2 = in_v1 || (row.weight_mode == 2 && row.kv_mode != 3);
    // V1 lists int8 tokens, for which it has no kernel.
    const bool listed = config.scenario.version == Version::kV1   ? in_v1 || (row.weight_mode == 2 && row.kv_mode == 0)
                        : config.scenario.version == Version::kV2 ? in_v2
                                                                  : row.weight_mode <= 2 || !config.soc.empty();
    if (listed) columns.push_back(ColumnOf(row, false));
    if (row.weight_mode == 2 && row.kv_mode == 0 && config.soc.empty()) columns.push_back(ColumnOf(row, true));
  }
  return columns;
}

// Outputs that are absent count as of the type they would have.
bool IsColumn(const Column& column, const PrologCall& call) {
  const ScenarioRow& row = RowOf(call.config.scenario);
  return std::all_of(column.begin(), column.end(), [&](const auto& entry) {
    const auto [param, dtype] = entry;
    const bool is_absent = call[param].null && IsWritten(param);
    const aclDataType absent = param == kQueryNorm ? row.query_norm : row.scale;
    if (call.config.scenario.version != Version::kV3 && (param == kQueryNorm || param == kScaleQNorm)) return true;
    return (is_absent ? absent : call[param].dtype) == dtype;
  });
}

// One changed type at a time, of everything that takes part: 161002 unless the version lists the result as well, in
// which case the tensors do not fit the scenario, or their scales are missing.
TEST_F(ContractRules, RequiredTypesDecideTheKernel) {
  for (const Config& config : RichConfigs()) {
    std::vector<Param> params = RequiredOf(config.scenario.version);
    for (const Param param : {kScaleQNope, kQueryNorm, kScaleQNorm}) {
      if (!PrologCall(config)[param].null) params.push_back(param);
    }
    const std::vector<Column> columns = ColumnsOf(config);
    for (const Param param : params) {
      const aclDataType legal = PrologCall(config)[param].dtype;
      for (const aclDataType dtype : kDtypes) {
        if (dtype == legal) continue;
        PrologCall call(config);
        call[param].dtype = dtype;
        const bool in_column = std::any_of(columns.begin(), columns.end(), [&](const Column& column) {
          const bool takes_part =
              std::any_of(column.begin(), column.end(), [&](const auto& e) { return e.first == param; });
          return takes_part && IsColumn(column, call);
        });
        // A change of one type may as well be seen as others missing theirs.
        const bool ambiguous = std::find_if(columns.begin(), columns.end(), [&](const Column& column) {
                                 return std::any_of(column.begin(), column.end(), [&](const auto& e) {
                                   return e.first == param && e.second == dtype;
                                 });
                               }) != columns.end();
        Names culprits = {ParamName(param)};
        if (ambiguous) {
          for (const Param other : ParamsOf(config.scenario.version)) culprits.push_back(ParamName(other));
        }
        SCOPED_TRACE(config.Name() + ": " + ParamName(param) + " of type " + std::to_string(dtype));
        // An empty krCache is not compared with the scenario any more.
        if (in_column && param == kKrCache && config.PerGroup()) {
          ExpectAccepted(call);
          continue;
        }
        ExpectRefused(call, in_column ? kTiling : kInvalid, culprits);
      }
    }
  }
}

// The types of weightUqQr and of the caches choose V1's and V2's scenario; what it then lacks is found by the tiling.
TEST_F(ContractRules, TypesThatMeanAnotherScenarioNeedItsScales) {
  for (const Version version : {Version::kV1, Version::kV2}) {
    for (const Config& config : FormsOf(Scenario{version, 0, 0})) {
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
    for (const Config& config : FormsOf(Scenario{version, 1, 0})) {
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
    for (const Config& config : FormsOf(Scenario{version, 1, 2})) {
      Refuse(config, "bf16 caches with scales",
             [](PrologCall& call) { call[kKvCache].dtype = call[kKrCache].dtype = ACL_BF16; }, kTiling,
             {"quantScaleCkv", "quantScaleCkr"});
    }
  }
}

PrologCall FullInt8(Version version, const Config& form) {
  Config config = form;
  config.scenario = {Version::kV2, 2, 0};
  PrologCall call(config);
  call.config.scenario.version = version;
  return call;
}

// Columns of types that V1's definition lists but no kernel of it serves.
TEST_F(ContractRules, Int8TokensHaveNoKernelInV1) {
  for (const Config& config : FormsOf(Scenario::kNonQuant)) {
    SCOPED_TRACE(config.Name());
    PrologCall plain = FullInt8(Version::kV1, config);
    ExpectRefused(plain, kNoKernel, {"tokenX", "weightDq", "weightUqQr", "weightDkvKr"});
    PrologCall per_tensor = FullInt8(Version::kV1, config);  // a column of the next version only
    per_tensor[kKvCache].dtype = per_tensor[kQueryOut].dtype = ACL_INT8;
    per_tensor[kScaleCkv].null = false;
    ExpectRefused(per_tensor, kInvalid, {"tokenX", "weightDq", "weightUqQr", "kvCache", "krCache", "queryOut"});
    // Without a device's kernels nothing is missing.
    const ScopedSoc soc("none");
    ExpectAccepted(plain);
    ExpectRefused(per_tensor, kInvalid, {"tokenX", "weightDq", "weightUqQr", "kvCache", "krCache", "queryOut"});
  }
}

// All definitions list int8 for everything, which no scenario is.
TEST_F(ContractRules, Int8ForEverythingIsNoScenario) {
  for (const Version version : kVersions) {
    for (const Config& config : FormsOf(Scenario::kNonQuant)) {
      SCOPED_TRACE(config.Name());
      PrologCall call = FullInt8(version, config);
      call.modes.weight_quant = 2;
      call[kKvCache].dtype = call[kKrCache].dtype = ACL_INT8;
      call[kScaleCkv].null = call[kScaleCkr].null = version == Version::kV3;
      ExpectRefused(call, kTiling, {"tokenX", "weightDq", "weightUqQr", "kvCache", "krCache", "quantScaleCkr"});
    }
  }
}

// Modes of one scenario with the tensors of another: the text names the modes that the types mean.
TEST_F(ContractRules, TypesOfOtherModesAreRecognised) {
  const ScopedSoc soc("ascend910b");
  for (const ScenarioRow& meant : ScenarioTable()) {
    if (meant.weight_mode > 2) continue;
    for (const ScenarioRow& passed : ScenarioTable()) {
      // The scale of an 8-bit query is counted, and the width of the cache's rows seen, before types are compared.
      if (passed.weight_mode > 2 || passed.query != meant.query || (passed.kv_mode == 3) != (meant.kv_mode == 3)) {
        continue;
      }
      if (passed.token_x == meant.token_x && passed.weight_uq_qr == meant.weight_uq_qr &&
          passed.kv_cache == meant.kv_cache && passed.kr_cache == meant.kr_cache) {
        continue;
      }
      PrologCall call(With({Version::kV3, meant.weight_mode, meant.kv_mode}));
      call.modes.weight_quant = passed.weight_mode;
      call.modes.kv_cache_quant = passed.kv_mode;
      call.modes.query_quant = passed.kv_mode == 1 ? 1 : 0;
      call.modes.ckvkr_repo = call.modes.quant_scale_repo = passed.kv_mode == 3 ? 1 : 0;
      const Phase1Result result = call.Phase1();
      EXPECT_TRUE(result.status == kInvalid || result.status == kTiling) << result.status;
      const std::string advice = "weightQuantMode " + std::to_string(meant.weight_mode) + ", kvCacheQuantMode " +
                                 std::to_string(meant.kv_mode) + " (";
      EXPECT_NE(result.text.rfind(advice), std::string::npos) << advice << "; " << result.text;
    }
  }
}

// V1 and V2 take cacheIndex before the caches, V3 behind them.
TEST_F(ContractRules, ExchangedCacheAndIndexAreRecognised) {
  for (const Config& config : RichConfigs()) {
    PrologCall call(config);
    std::swap(call[kKvCache].dtype, call[kCacheIndex].dtype);
    const std::string text = call.Phase1().text;
    SCOPED_TRACE(config.Name() + ": " + text);
    EXPECT_NE(text.find(config.IsV3() ? "takes kvCacheRef before cacheIndex" : "takes cacheIndex before kvCacheRef"),
              std::string::npos);
  }
}

// The same order of caches in all versions; only V3 compares the width of their rows.
TEST_F(ContractRules, ExchangedCachesAreRecognised) {
  int exchanged = 0;
  for (const Config& config : RichConfigs()) {
    PrologCall call(config);
    if (!config.IsV3() || config.PerGroup() || call[kKvCache].dtype != call[kKrCache].dtype) continue;
    std::swap(call[kKvCache], call[kKrCache]);
    const std::string text = call.Phase1().text;
    SCOPED_TRACE(config.Name() + ": " + text);
    EXPECT_EQ(FirstNamed(text), "kvCache");
    EXPECT_NE(text.find("takes kvCacheRef before krCacheRef"), std::string::npos);
    ++exchanged;
  }
  EXPECT_GT(exchanged, 0);
}

// An empty krCache is what the types of per-group rows need besides.
TEST_F(ContractRules, AForgottenCacheTypeIsNotTakenForOtherModes) {
  PrologCall call(With({Version::kV3, 1, 2}));
  call[kKrCache].dtype = ACL_BF16;
  const std::string text = call.Phase1().text;
  EXPECT_EQ(FirstNamed(text), "krCache") << text;
  EXPECT_EQ(text.find("weightQuantMode 1, kvCacheQuantMode 3"), std::string::npos) << text;
}

// The device's limits are named where lifting them helps: all sizes fit together, and one of them is not the device's.
TEST_F(ContractRules, TheAdviceToLiftLimitsIsGivenWhereItHelps) {
  const ScopedSoc soc("ascend910b");
  for (const Version version : kVersions) {
    const Config device = With({version, 0, 0});
    PrologCall transposed(device);
    std::swap(transposed[kWeightDq].dims[0], transposed[kWeightDq].dims[1]);
    transposed[kWeightDq].Reshape(transposed[kWeightDq].dims);
    PrologCall other_tokens(device);
    other_tokens[kTokenX].Reshape({device.tokens, 1000});
    for (const PrologCall* call : {&transposed, &other_tokens}) {
      const Phase1Result result = call->Phase1();
      EXPECT_NE(result.status, 0);
      EXPECT_EQ(result.text.find("MLAP_SOC=none"), std::string::npos) << result.text;
    }
    const Phase1Result tiny = PrologCall(TinyConfig({version, 0, 0})).Phase1();
    EXPECT_NE(tiny.status, 0);
    EXPECT_NE(tiny.text.find("MLAP_SOC=none"), std::string::npos) << tiny.text;
  }
}

TEST_F(ContractRules, OptionalInputsHaveOneType) {
  for (const Config& rich : RichConfigs()) {
    for (const Config& config : FormsOf(rich.scenario)) {
      for (const Param param : OptionalInputsOf(config.scenario.version)) {
        PrologCall call(config);
        call.config.soc = rich.soc;
        if (call[param].null) continue;
        const aclDataType legal = call[param].dtype;
        for (const aclDataType dtype : kDtypes) {
          if (dtype == legal) continue;
          SCOPED_TRACE(config.Name() + ": " + ParamName(param) + " of type " + std::to_string(dtype));
          call[param].dtype = dtype;
          ExpectRefused(call, kTiling, {ParamName(param)});
        }
      }
    }
  }
}

TEST_F(ContractRules, PlainTensorsTakeThePlainFormats) {
  for (const Config& config : RichConfigs()) {
    for (const Param param : ParamsOf(config.scenario.version)) {
      if (IsNzWeight(param) || PrologCall(config)[param].null) continue;
      for (const aclFormat format : {ACL_FORMAT_ND, ACL_FORMAT_NCHW, ACL_FORMAT_NCL, ACL_FORMAT_NCDHW}) {
        Accept(config, std::string(ParamName(param)) + " of format " + std::to_string(format),
               [&](PrologCall& call) { call[param].format = format; });
      }
      // Where A2 and A3 merge the caches they do not look at the empty one.
      if (param == kKrCache && config.PerGroup() && config.soc.empty()) continue;
      Refuse(config, std::string(ParamName(param)) + " of format NHWC",
             [&](PrologCall& call) { call[param].format = ACL_FORMAT_NHWC; }, kTiling, {ParamName(param)});
      for (const aclFormat format : {ACL_FORMAT_UNDEFINED, ACL_FORMAT_NC1HWC0, ACL_FORMAT_FRACTAL_Z, ACL_FORMAT_HWCN,
                                     ACL_FORMAT_NDHWC, ACL_FORMAT_FRACTAL_NZ, ACL_FORMAT_NC}) {
        RefuseWithEither(config, std::string(ParamName(param)) + " of format " + std::to_string(format),
                         [&](PrologCall& call) { call[param].format = format; }, {kTiling, kInvalid},
                         {ParamName(param)});
      }
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
  for (const Config& config : RichConfigs()) {
    for (int mask = 0; mask < 8; ++mask) {
      Accept(config, "2-D views " + std::to_string(mask), [&](PrologCall& call) {
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
  for (const Config& config : RichConfigs()) {
    for (const Param param : ParamsOf(config.scenario.version)) {
      if (PrologCall(config)[param].null) continue;
      for (const std::vector<int64_t>& storage : {std::vector<int64_t>{}, {1}, {7, 7}, {1, 2, 3, 4, 5}}) {
        Accept(config, std::string(ParamName(param)) + " with storage " + Shape(storage),
               [&](PrologCall& call) { call[param].storage_dims = storage; });
      }
    }
  }
}

TEST_F(ContractRules, OptionalInputsBelongToTheirScenario) {
  for (const Config& config : AllConfigs()) {
    const PrologCall legal(config);
    for (const Param param : OptionalInputsOf(config.scenario.version)) {
      const bool is_free = param == kSmooth && RowOf(config.scenario).may_smooth;
      if (is_free) {
        Accept(config, "smoothScalesCq or not", [](PrologCall& call) { call[kSmooth].null = !call[kSmooth].null; });
      }
      if (legal[param].null) {
        if (is_free) continue;
        Refuse(config, std::string("superfluous ") + ParamName(param),
               [&](PrologCall& call) { call[param].null = false; }, kTiling, {ParamName(param)});
        Refuse(config, std::string("superfluous and empty ") + ParamName(param),
               [&](PrologCall& call) {
                 call[param].null = false;
                 call[param].Reshape({0});
               },
               kTiling, {ParamName(param)});
        continue;
      }
      if (!is_free) {
        Refuse(config, std::string("missing ") + ParamName(param), [&](PrologCall& call) { call[param].null = true; },
               kTiling, {ParamName(param)});
      }
      // Present but empty is not the same as absent.
      if (param == kCacheIndex || param == kActualSeqLen) continue;
      for (const std::vector<int64_t>& dims : {std::vector<int64_t>{0}, {1, 0}, {0, legal[param].dims.back()}}) {
        RefuseShape(config, param, dims, {ParamName(param)});
      }
    }
  }
}

// dequantScaleQNopeOut belongs to the per-tensor cache. Elsewhere V2 takes whatever comes, as long as it is FLOAT.
TEST_F(ContractRules, QueryScalesOfV2) {
  for (const Scenario& scenario : kScenarios) {
    if (scenario.version != Version::kV2) continue;
    for (const Config& config : FormsOf(scenario)) {
      if (config.PerTensor()) {
        Refuse(config, "no dequantScaleQNopeOut", [](PrologCall& call) { call[kScaleQNope].null = true; }, kTiling,
               {"dequantScaleQNopeOut"});
        for (const std::vector<int64_t>& dims :
             {std::vector<int64_t>{config.Tokens(), 2}, {config.Tokens(), 1, 2}, {2, config.Tokens(), 1}, {1}, {0}}) {
          RefuseShape(config, kScaleQNope, dims, {"dequantScaleQNopeOut"});
        }
        continue;
      }
      for (const std::vector<int64_t>& dims : {std::vector<int64_t>{1}, {}, {0}, {3, 7}, {1, 2, 3, 4, 5, 6}}) {
        for (const aclFormat format : {ACL_FORMAT_ND, ACL_FORMAT_NHWC, ACL_FORMAT_FRACTAL_NZ}) {
          const auto add = [&](PrologCall& call) {
            call[kScaleQNope].null = false;
            call[kScaleQNope].Reshape(dims);
            call[kScaleQNope].format = format;
          };
          Accept(config, "a superfluous dequantScaleQNopeOut", add);
          Accept(config, "a superfluous dequantScaleQNopeOut without memory", [&](PrologCall& call) {
            add(call);
            call[kScaleQNope].data = nullptr;
          });
          Refuse(config, "a superfluous dequantScaleQNopeOut of another type",
                 [&](PrologCall& call) {
                   add(call);
                   call[kScaleQNope].dtype = ACL_BF16;
                 },
                 kInvalid, {"dequantScaleQNopeOut"});
        }
      }
    }
  }
}

// The text has the found and the expected number, and the numbers' owner.
TEST_F(ContractRules, TextsNameWhatWasFoundAndExpected) {
  struct Case {
    Scenario scenario;
    Param param;
    std::vector<int64_t> dims;
    std::vector<const char*> words;
  };
  const Scenario v1 = Scenario::kPerChannelSmooth;
  const Scenario v3 = {Version::kV3, 2, 3, false, true};
  const std::vector<Case> cases = {{v1, kTokenX, {2, 1025}, {"1025", "1024", "8192"}},
                                   {v1, kWeightUk, {3, 128, 512}, {"3", "128"}},
                                   {v1, kWeightDkvKr, {32, 64, 16, 16}, {"448", "512", "Hckv + Dr = 576", "ropeCos"}},
                                   {v1, kKvCache, {2, 24, 1, 512}, {"24", "16", "1024"}},
                                   {v1, kGammaCq, {1535}, {"1535", "1536"}},
                                   {v1, kScaleWUqQr, {1, 385}, {"385", "384"}},
                                   {v1, kQueryOut, {2, 2, 513}, {"513", "512"}},
                                   {v1, kRopeSin, {3, 64}, {"3", "2"}},
                                   {v3, kKvCache, {2, 16, 1, 512}, {"512", "656"}},
                                   {v3, kKrCache, {2, 16, 1, 64}, {"empty", "weightQuantMode 2", "kvCacheQuantMode 3"}},
                                   {v3, kCacheIndex, {3}, {"cacheIndexOptional", "3", "[2]"}},
                                   {v3, kQueryNorm, {2, 1537}, {"1537", "1536"}},
                                   {v3, kScaleQNorm, {2}, {"[2]", "(T, 1)"}}};
  for (const Case& c : cases) {
    Config config = With(c.scenario);
    config.heads = 2;
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
}  // namespace mlap::prolog_test
