// Two faults at once: the rule that comes first decides the status and the text.
#include <functional>
#include <string>
#include <vector>

#include "prolog_fixture.h"

namespace mlap::prolog_test {
namespace {

constexpr aclnnStatus kNull = ACLNN_ERR_PARAM_NULLPTR;
constexpr aclnnStatus kInvalid = ACLNN_ERR_PARAM_INVALID;
constexpr aclnnStatus kTiling = ACLNN_ERR_INNER_TILING_ERROR;

struct Fault {
  std::string name;
  aclnnStatus status;
  std::vector<std::string> culprits;
  std::function<void(PrologCall&)> inject;
};

Fault NullTensor(Param param) {
  return {std::string("null ") + ParamName(param), kNull, {ParamName(param)}, [param](PrologCall& call) {
            call[param].null = true;
          }};
}

Fault DeadTensor(Param param) {
  static int not_a_handle = 0;
  return {std::string("dead ") + ParamName(param), kInvalid, {ParamName(param)}, [param](PrologCall& call) {
            call[param].raw_handle = reinterpret_cast<const aclTensor*>(&not_a_handle);
          }};
}

Fault WrongType(Param param) {
  return {std::string("type of ") + ParamName(param), kInvalid, {ParamName(param)}, [param](PrologCall& call) {
            call[param].dtype = ACL_FLOAT16;
          }};
}

Fault NoNz(Param param) {
  return {std::string("format of ") + ParamName(param), kInvalid, {ParamName(param)}, [param](PrologCall& call) {
            call[param].format = ACL_FORMAT_ND;
          }};
}

Fault Nhwc(Param param) {
  return {std::string("NHWC ") + ParamName(param), kTiling, {ParamName(param)}, [param](PrologCall& call) {
            call[param].format = ACL_FORMAT_NHWC;
          }};
}

Fault Shape(Param param, const std::vector<int64_t>& dims) {
  std::string name = std::string("shape of ") + ParamName(param);
  for (const int64_t dim : dims) name.append(1, ' ').append(std::to_string(dim));
  return {name, kTiling, {ParamName(param)}, [param, dims](PrologCall& call) { call[param].Reshape(dims); }};
}

Fault Mode(const char* mode) {
  return {std::string("mode ") + mode, kTiling, {"cacheMode"}, [mode](PrologCall& call) { call.cache_mode = mode; }};
}

Fault Missing(Param param) {
  return {std::string("missing ") + ParamName(param), kTiling, {ParamName(param)}, [param](PrologCall& call) {
            call[param].null = true;
          }};
}

// An attribute that is not what it should be.
Fault Attribute(const char* name, int64_t Modes::*field, int64_t value, aclnnStatus status) {
  return {std::string(name) + " " + std::to_string(value), status, {name}, [field, value](PrologCall& call) {
            call.modes.*field = value;
          }};
}

// In the order of the checks: each must win against all that follow.
void ExpectOrder(const std::vector<Fault>& faults, const Config& config) {
  for (size_t first = 0; first < faults.size(); ++first) {
    for (size_t second = first + 1; second < faults.size(); ++second) {
      SCOPED_TRACE(config.Name() + ": " + faults[first].name + " and " + faults[second].name);
      PrologCall call(config);
      // The earlier rule must win wherever the faults are injected, so the order here does not matter.
      faults[second].inject(call);
      faults[first].inject(call);
      ExpectRefused(call, faults[first].status, faults[first].culprits);
    }
  }
}

Config PlainOf(Version version) {
  Config config;
  config.scenario = {version, 0, 0};
  return config;
}

bool HasCacheIndexCheck(Version version) { return version != Version::kV3; }

class CheckOrder : public PrologTest {};

TEST_F(CheckOrder, NullTensorsInTheOrderOfTheParameters) {
  for (const Version version : kVersions) {
    std::vector<Fault> faults;
    for (const Param param : RequiredOf(version)) faults.push_back(NullTensor(param));
    ExpectOrder(faults, PlainOf(version));
  }
}

TEST_F(CheckOrder, NullBeforeHandlesBeforeKernelBeforeTiling) {
  for (const Version version : kVersions) {
    const Config config = PlainOf(version);
    for (const Param param : {kTokenX, kKrCache, kQueryRopeOut}) {
      ExpectOrder({NullTensor(kQueryRopeOut), DeadTensor(kTokenX)}, config);
      ExpectOrder({NullTensor(param), WrongType(kWeightUk), Shape(kGammaCq, {1, 1536})}, config);
      ExpectOrder({DeadTensor(param), WrongType(kWeightUk), Shape(kGammaCq, {1, 1536})}, config);
    }
    ExpectOrder({DeadTensor(kSmooth), WrongType(kTokenX), Shape(kWeightUk, {1, 1})}, config);
    ExpectOrder({WrongType(kQueryRopeOut), Shape(kTokenX, {1024})}, config);
    ExpectOrder({WrongType(kKrCache), Mode("BNSD")}, config);
    ExpectOrder({NoNz(kWeightDkvKr), Shape(kTokenX, {1024})}, config);
    ExpectOrder({NoNz(kWeightDkvKr), Nhwc(kTokenX)}, config);
    ExpectOrder({WrongType(kQueryOut), Mode("")}, config);
  }
}

TEST_F(CheckOrder, TensorsBeforeOutPointersBeforeHandles) {
  for (const Version version : kVersions) {
    PrologCall call(PlainOf(version));
    const auto phase1 = [&](uint64_t* workspace_bytes, aclOpExecutor** executor) {
      Handles handles;
      call.Create(&handles);
      TakeTexts();
      return call.Phase1(handles, workspace_bytes, executor);
    };
    call.cache_mode = "BNSD";
    uint64_t workspace_bytes = 0;
    aclOpExecutor* executor = nullptr;
    call[kQueryRopeOut].null = true;
    EXPECT_EQ(phase1(nullptr, nullptr), kNull);
    EXPECT_EQ(FirstNamed(TakeTexts()), "queryRopeOut");
    call[kQueryRopeOut].null = false;

    DeadTensor(kTokenX).inject(call);
    EXPECT_EQ(phase1(&workspace_bytes, nullptr), kNull);
    EXPECT_EQ(FirstNamed(TakeTexts()), "executor");
    EXPECT_EQ(phase1(nullptr, &executor), kNull);
    EXPECT_EQ(FirstNamed(TakeTexts()), "workspaceSize");
    EXPECT_EQ(phase1(&workspace_bytes, &executor), kInvalid);
    EXPECT_EQ(FirstNamed(TakeTexts()), "tokenX");
  }
}

// V1 and V2 are not on the 950; V3 is on every device that exists.
TEST_F(CheckOrder, DeviceBeforeEverything) {
  for (const Version version : kVersions) {
    PrologCall call(PlainOf(version));
    for (const Param param : ParamsOf(version)) call[param].null = true;
    call.modes.weight_quant = 9;
    const auto nothing = [&] {
      Handles handles;
      call.Create(&handles);
      return call.Phase1(handles, nullptr, nullptr);
    };
    for (const char* soc_name : {"ascend950", "a310"}) {
      const ScopedSoc soc(soc_name);
      const bool is_v3_on_950 = version == Version::kV3 && std::string(soc_name) == "ascend950";
      EXPECT_EQ(nothing(), is_v3_on_950 ? kInvalid : ACLNN_ERR_RUNTIME_ERROR) << TakeTexts();
    }
    EXPECT_EQ(nothing(), version == Version::kV3 ? kInvalid : kNull);
    TakeTexts();
  }
}

// V3's modes before any tensor, and the outputs they want before all that must not be null.
TEST_F(CheckOrder, ModesBeforeTensors) {
  Config config = PlainOf(Version::kV3);
  for (const char* soc : {"", "ascend950"}) {
    config.soc = soc;
    const Fault unwanted_scale = {"dequantScaleQNopeOut", kInvalid, {"dequantScaleQNopeOut"}, [](PrologCall& call) {
                                    call[kScaleQNope].null = false;
                                  }};
    const Fault unwanted_norm_scale = {
        "dequantScaleQNormOut", kInvalid, {"dequantScaleQNormOut"}, [](PrologCall& call) {
          call[kScaleQNorm].null = false;
        }};
    ExpectOrder({Attribute("weightQuantMode", &Modes::weight_quant, 9, kInvalid),
                 Attribute("kvCacheQuantMode", &Modes::kv_cache_quant, 3, kInvalid),
                 Attribute("queryQuantMode", &Modes::query_quant, 2, kInvalid), unwanted_scale, unwanted_norm_scale,
                 NullTensor(kTokenX), NullTensor(kKvCache), NullTensor(kQueryRopeOut), DeadTensor(kWeightDq),
                 WrongType(kWeightUk)},
                config);
  }
}

// The kernel for int8 tokens is missed before any shape is looked at.
TEST_F(CheckOrder, MissingKernelBeforeShapes) {
  PrologCall call{Config()};
  for (const Param param : {kTokenX, kWeightDq, kWeightUqQr, kWeightDkvKr}) call[param].dtype = ACL_INT8;
  call.cache_mode = "BNSD";
  ExpectRefused(call, ACLNN_ERR_INNER_FIND_KERNEL_ERROR, {"tokenX", "weightDq", "weightUqQr", "weightDkvKr"});
}

// One parameter after the other, and the format before the number of dimensions.
TEST_F(CheckOrder, SingleParametersThenTheModeThenSizesThenTheTable) {
  for (const Version version : kVersions) {
    const Config config = PlainOf(version);
    const char* unknown = version == Version::kV3 ? "BNSD" : "PA_BLK_NZ";
    ExpectOrder({Nhwc(kTokenX), Shape(kWeightDq, {1})}, config);
    std::vector<Fault> shapes = {Shape(kTokenX, {1, 1, 2, 1024}),
                                 Shape(kWeightDq, {1}),
                                 Shape(kWeightUqQr, {1, 2, 3}),
                                 Shape(kWeightUk, {1, 1}),
                                 Shape(kWeightDkvKr, {7}),
                                 Shape(kGammaCq, {1, 1536}),
                                 Shape(kGammaCkv, {1, 512}),
                                 Shape(kRopeSin, {64}),
                                 Shape(kRopeCos, {64}),
                                 Shape(kCacheIndex, {1, 1, 2}),
                                 Shape(kKvCache, {32, 512}),
                                 Shape(kKrCache, {32, 64}),
                                 Mode(unknown),
                                 Shape(kTokenX, {2, 1000})};
    std::vector<Fault> formats = {Nhwc(kTokenX),  Nhwc(kWeightUk), Nhwc(kGammaCq), Nhwc(kGammaCkv), Nhwc(kRopeSin),
                                  Nhwc(kRopeCos), Nhwc(kKvCache),  Nhwc(kKrCache), Mode("")};
    if (HasCacheIndexCheck(version)) {
      formats.insert(formats.begin() + 6, Nhwc(kCacheIndex));
    } else {
      shapes.erase(shapes.begin() + 9);
    }
    ExpectOrder(shapes, config);
    ExpectOrder(formats, config);
    ExpectOrder({Mode(unknown), Shape(kTokenX, {2, 1000})}, config);
    ExpectOrder({Mode(unknown), Shape(kKvCache, {2, 24, 1, 512})}, config);
    ExpectOrder({Mode(unknown), Shape(kQueryOut, {2, 1, 511})}, config);
  }
}

// V3's attributes: ranges before the single parameters, what they must be together behind the cache mode.
TEST_F(CheckOrder, AttributesOfV3) {
  for (const char* soc : {"", "ascend950"}) {
    Config config;
    config.soc = soc;
    config.scenario = {Version::kV3, 2, 1};
    ExpectOrder(
        {WrongType(kGammaCq), Attribute("ckvkrRepoMode", &Modes::ckvkr_repo, 2, kTiling),
         Attribute("quantScaleRepoMode", &Modes::quant_scale_repo, -1, kTiling),
         Attribute("tileSize", &Modes::tile_size, 64, kTiling), Nhwc(kTokenX), Shape(kKvCache, {1, 2}), Mode("NZ")},
        config);
    ExpectOrder({Mode("NZ"), Attribute("ckvkrRepoMode", &Modes::ckvkr_repo, 1, kTiling),
                 Attribute("quantScaleRepoMode", &Modes::quant_scale_repo, 1, kTiling),
                 Attribute("queryQuantMode", &Modes::query_quant, 0, kTiling), Shape(kTokenX, {2, 1000}),
                 Shape(kKvCache, {2, 24, 1, 512}), Shape(kKvCache, {2, 16, 1, 513}), Missing(kCacheIndex)},
                config);
  }
}

TEST_F(CheckOrder, ListsOfSequences) {
  for (const char* soc : {"", "ascend950"}) {
    Config config;
    config.soc = soc;
    config.scenario = {Version::kV3, 1, 0};
    config.cache_mode = "PA_BLK_BSND";
    const Fault wrong_type = {"type of actualSeqLen", kTiling, {"actualSeqLen"}, [](PrologCall& call) {
                                call[kActualSeqLen].dtype = ACL_INT64;
                              }};
    ExpectOrder({Shape(kKrCache, {1, 2}), wrong_type, Mode("BNSD"), Missing(kActualSeqLen), Shape(kTokenX, {2, 1000}),
                 Missing(kCacheIndex), Shape(kGammaCq, {1535})},
                config);
    ExpectOrder({Shape(kTokenX, {2, 1000}), Shape(kCacheIndex, {1, 2}), Shape(kGammaCq, {1535})}, config);
  }
}

TEST_F(CheckOrder, MergedCaches) {
  Config config;
  config.scenario = {Version::kV3, 1, 3};
  ExpectOrder(
      {Mode("NZ"), Mode("PA_NZ"), Attribute("ckvkrRepoMode", &Modes::ckvkr_repo, 0, kTiling), Shape(kTokenX, {2, 1000}),
       Shape(kKvCache, {2, 16, 1, 512}), Shape(kKrCache, {2, 16, 1, 64}), Missing(kClipAlpha)},
      config);
}

TEST_F(CheckOrder, SizesInTheirOrder) {
  for (const Version version : kVersions) {
    Config config = PlainOf(version);
    config.SetBatchSeq(1, 2);
    // Each change is illegal by itself and makes other tensors disagree, which is noticed later.
    const Fault batch = {"B", kTiling, {"tokenX"}, [](PrologCall& call) { call[kTokenX].Reshape({65537, 1, 1024}); }};
    const Fault hidden = Shape(kTokenX, {1, 2, 1000});
    const Fault heads = Shape(kWeightUk, {3, 128, 512});
    const Fault kv_rank = Shape(kWeightDkvKr, {37, 64, 16, 16});
    const Fault rope = {"Dr", kTiling, {"ropeCos"}, [](PrologCall& call) {
                          call[kRopeCos].Reshape({1, 2, 128});
                          call[kWeightDkvKr].Reshape({40, 64, 16, 16});
                        }};
    const Fault kv_heads = Shape(kKvCache, {2, 16, 2, 512});
    const Fault block_size = Shape(kKvCache, {2, 24, 1, 512});
    const Fault q_rank = Shape(kWeightDq, {97, 64, 16, 16});
    const Fault nope = Shape(kWeightUk, {1, 160, 512});
    const Fault table = Shape(kGammaCq, {1535});
    ExpectOrder({batch, heads, kv_rank, kv_heads, q_rank, table}, config);
    ExpectOrder({hidden, heads, kv_rank, block_size, q_rank, table}, config);
    ExpectOrder({hidden, heads, rope, kv_heads, q_rank, table}, config);
    ExpectOrder({kv_rank, kv_heads, nope, table}, config);
    ExpectOrder({rope, block_size, q_rank, nope, table}, config);
    if (version == Version::kV3) ExpectOrder({q_rank, nope, Shape(kKvCache, {2, 16, 1, 513}), table}, config);

    // Both in the last dimension of tokenX: the batch is the one the text is about.
    PrologCall call(config);
    call[kTokenX].Reshape({65537, 1, 1000});
    const Phase1Result result = call.Phase1();
    EXPECT_EQ(result.status, kTiling);
    EXPECT_NE(result.text.find("65537"), std::string::npos) << result.text;
  }
}

}  // namespace
}  // namespace mlap::prolog_test
