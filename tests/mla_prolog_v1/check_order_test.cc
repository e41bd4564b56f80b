// Two faults at once: the rule that comes first decides the status and the text.
#include <functional>
#include <string>
#include <vector>

#include "prolog_v1_fixture.h"

namespace mlap::prolog_v1_test {
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

// In the order of the checks: each must win against all that follow.
void ExpectOrder(const std::vector<Fault>& faults, const Config& config = Config()) {
  for (size_t first = 0; first < faults.size(); ++first) {
    for (size_t second = first + 1; second < faults.size(); ++second) {
      SCOPED_TRACE(faults[first].name + " and " + faults[second].name);
      PrologCall call(config);
      // The earlier rule must win wherever the faults are injected, so the order here does not matter.
      faults[second].inject(call);
      faults[first].inject(call);
      ExpectRefused(call, faults[first].status, faults[first].culprits);
    }
  }
}

class CheckOrder : public PrologV1Test {};

TEST_F(CheckOrder, NullTensorsInTheOrderOfTheParameters) {
  std::vector<Fault> faults;
  for (const Param param : kRequired) faults.push_back(NullTensor(param));
  ExpectOrder(faults);
}

TEST_F(CheckOrder, NullBeforeHandlesBeforeKernelBeforeTiling) {
  for (const Param param : {kTokenX, kKrCache, kQueryRopeOut}) {
    ExpectOrder({NullTensor(kQueryRopeOut), DeadTensor(kTokenX)});
    ExpectOrder({NullTensor(param), WrongType(kWeightUk), Shape(kGammaCq, {1, 1536})});
    ExpectOrder({DeadTensor(param), WrongType(kWeightUk), Shape(kGammaCq, {1, 1536})});
  }
  ExpectOrder({DeadTensor(kSmooth), WrongType(kTokenX), Shape(kWeightUk, {1, 1})});
  ExpectOrder({WrongType(kQueryRopeOut), Shape(kTokenX, {1024})});
  ExpectOrder({WrongType(kKrCache), Mode("BNSD")});
  ExpectOrder({NoNz(kWeightDkvKr), Shape(kTokenX, {1024})});
  ExpectOrder({NoNz(kWeightDkvKr), Nhwc(kTokenX)});
  ExpectOrder({WrongType(kQueryOut), Mode("")});
}

TEST_F(CheckOrder, TensorsBeforeOutPointersBeforeHandles) {
  const auto phase1 = [](const PrologCall& call, uint64_t* workspace_bytes, aclOpExecutor** executor) {
    Handles handles;
    call.Create(&handles);
    const auto& t = handles.tensors;
    char mode[] = "BNSD";
    TakeTexts();
    return aclnnMlaPrologGetWorkspaceSize(t[kTokenX], t[kWeightDq], t[kWeightUqQr], t[kWeightUk], t[kWeightDkvKr],
                                          t[kGammaCq], t[kGammaCkv], t[kRopeSin], t[kRopeCos], t[kCacheIndex],
                                          handles.owned[kKvCache], handles.owned[kKrCache], nullptr, nullptr, nullptr,
                                          nullptr, nullptr, nullptr, nullptr, 1e-5, 1e-5, mode, t[kQueryOut],
                                          t[kQueryRopeOut], workspace_bytes, executor);
  };
  PrologCall call{Config()};
  uint64_t workspace_bytes = 0;
  aclOpExecutor* executor = nullptr;
  call[kQueryRopeOut].null = true;
  EXPECT_EQ(phase1(call, nullptr, nullptr), kNull);
  EXPECT_EQ(FirstNamed(TakeTexts()), "queryRopeOut");
  call[kQueryRopeOut].null = false;

  DeadTensor(kTokenX).inject(call);
  EXPECT_EQ(phase1(call, &workspace_bytes, nullptr), kNull);
  EXPECT_EQ(FirstNamed(TakeTexts()), "executor");
  EXPECT_EQ(phase1(call, nullptr, &executor), kNull);
  EXPECT_EQ(FirstNamed(TakeTexts()), "workspaceSize");
  EXPECT_EQ(phase1(call, &workspace_bytes, &executor), kInvalid);
  EXPECT_EQ(FirstNamed(TakeTexts()), "tokenX");
}

TEST_F(CheckOrder, DeviceBeforeEverything) {
  for (const char* soc_name : {"ascend950", "a310"}) {
    const ScopedSoc soc(soc_name);
    PrologCall call{Config()};
    for (const Param param : kRequired) call[param].null = true;
    const Phase1Result result = call.Phase1();
    EXPECT_EQ(result.status, ACLNN_ERR_RUNTIME_ERROR) << result.text;
    EXPECT_EQ(
        aclnnMlaPrologGetWorkspaceSize(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                                       nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                                       nullptr, 0, 0, nullptr, nullptr, nullptr, nullptr, nullptr),
        ACLNN_ERR_RUNTIME_ERROR);
  }
  EXPECT_EQ(
      aclnnMlaPrologGetWorkspaceSize(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                                     nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                                     nullptr, 0, 0, nullptr, nullptr, nullptr, nullptr, nullptr),
      kNull);
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
  ExpectOrder({Nhwc(kTokenX), Shape(kWeightDq, {1})});
  ExpectOrder({Shape(kTokenX, {1, 1, 2, 1024}), Shape(kWeightDq, {1}), Shape(kWeightUqQr, {1, 2, 3}),
               Shape(kWeightUk, {1, 1}), Shape(kWeightDkvKr, {7}), Shape(kGammaCq, {1, 1536}),
               Shape(kGammaCkv, {1, 512}), Shape(kRopeSin, {64}), Shape(kRopeCos, {64}), Shape(kCacheIndex, {1, 1, 2}),
               Shape(kKvCache, {32, 1, 512}), Shape(kKrCache, {32, 64}), Mode("PA_BLK_BSND"),
               // Sizes: He, N, BlockSize, Hcq, D.
               Shape(kTokenX, {2, 1000})});
  ExpectOrder({Nhwc(kTokenX), Nhwc(kWeightUk), Nhwc(kGammaCq), Nhwc(kGammaCkv), Nhwc(kRopeSin), Nhwc(kRopeCos),
               Nhwc(kCacheIndex), Nhwc(kKvCache), Nhwc(kKrCache), Mode("")});
  ExpectOrder({Mode("PA_BLK_NZ"), Shape(kTokenX, {2, 1000})});
  ExpectOrder({Mode("PA_BLK_NZ"), Shape(kKvCache, {2, 24, 1, 512})});
  ExpectOrder({Mode("PA_BLK_NZ"), Shape(kQueryOut, {2, 1, 511})});
}

TEST_F(CheckOrder, SizesInTheirOrder) {
  Config config;
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
  const Fault nope = Shape(kWeightUk, {1, 192, 512});
  const Fault table = Shape(kGammaCq, {1535});
  ExpectOrder({batch, heads, kv_rank, kv_heads, q_rank, table}, config);
  ExpectOrder({hidden, heads, kv_rank, block_size, q_rank, table}, config);
  ExpectOrder({hidden, heads, rope, kv_heads, q_rank, table}, config);
  ExpectOrder({kv_rank, kv_heads, nope, table}, config);
  ExpectOrder({rope, block_size, q_rank, nope, table}, config);

  // Both in the last dimension of tokenX: the batch is the one the text is about.
  PrologCall call(config);
  call[kTokenX].Reshape({65537, 1, 1000});
  const Phase1Result result = call.Phase1();
  EXPECT_EQ(result.status, kTiling);
  EXPECT_NE(result.text.find("65537"), std::string::npos) << result.text;
}

}  // namespace
}  // namespace mlap::prolog_v1_test
