// mlap_reference_run, called wrongly: every tensor damaged in every way. Each call is refused with
// MLAP_INVALID_ARGUMENT and a text that names the field, and nothing is written.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/reference_call.h"

namespace mlap::test {
namespace {

constexpr int64_t kHuge = int64_t{1} << 62;

// Dimensions that other tensors are compared with: a wrong one is found in those.
const std::set<std::pair<std::string, int>> kDefining = {
    {"token_x", 0},   {"token_x", 1},  {"token_x", 2},  {"rmsnorm_gamma_cq", 0}, {"weight_uk", 0}, {"weight_uk", 1},
    {"weight_uk", 2}, {"rope_cos", 1}, {"rope_cos", 2}, {"kv_cache", 0},         {"kv_cache", 1},
};

using Damage = std::function<void(ReferenceCall*)>;

// Damages a fresh call and expects the refusal; `name` must occur in the text.
void ExpectRefused(const CallOptions& options, const std::string& what, const std::string& name, const Damage& damage) {
  SCOPED_TRACE(what);
  ReferenceCall call(options);
  damage(&call);
  const auto before = call.WritableBytes();
  EXPECT_EQ(call.Run(), MLAP_INVALID_ARGUMENT);
  const std::string text = mlap_last_error();
  EXPECT_EQ(text.rfind("mlap_reference_run: ", 0), 0u) << text;
  EXPECT_NE(text.find(name), std::string::npos) << "'" << name << "' is not named in: " << text;
  for (const auto& [written, bytes] : call.WritableBytes()) {
    EXPECT_TRUE(bytes == before.at(written)) << written << " was written";
  }
}

// All tensors of a call that are given, by index, so that a fresh call's can be found.
std::vector<NamedTensor> Given(ReferenceCall* call) {
  std::vector<NamedTensor> tensors = call->Required();
  for (const NamedTensor& tensor : call->Optional()) tensors.push_back(tensor);
  for (const NamedTensor& tensor : call->WantedIntermediates()) tensors.push_back(tensor);
  return tensors;
}

// Applies `change` to the tensor of this name.
Damage On(const std::string& name, const std::function<void(mlap_tensor*)>& change) {
  return [name, change](ReferenceCall* call) {
    for (const NamedTensor& tensor : Given(call)) {
      if (tensor.name == name) return change(tensor.tensor);
    }
    FAIL() << "the call has no " << name;
  };
}

bool IsCache(const std::string& name) { return name == "kv_cache" || name == "kr_cache"; }

class ReferenceFaults : public testing::TestWithParam<CallOptions> {
 protected:
  void ExpectRefusedOn(const std::string& name, const std::string& what, const std::string& expected_name,
                       const std::function<void(mlap_tensor*)>& change) {
    ExpectRefused(GetParam(), name + ": " + what, expected_name, On(name, change));
  }

  // Runs `body` for each tensor of the call.
  void ForEachTensor(const std::function<void(const std::string& name, const mlap_tensor& tensor)>& body) {
    ReferenceCall call(GetParam());
    for (const NamedTensor& tensor : Given(&call)) body(tensor.name, *tensor.tensor);
  }
};
INSTANTIATE_TEST_SUITE_P(Calls, ReferenceFaults, testing::ValuesIn(AllCalls()), CallName);

TEST_P(ReferenceFaults, TheUndamagedCallIsLegal) {
  ReferenceCall call(GetParam());
  EXPECT_EQ(call.Run(), MLAP_OK) << mlap_last_error();
}

TEST_P(ReferenceFaults, MissingTensors) {
  ReferenceCall call(GetParam());
  for (const NamedTensor& tensor : call.Required()) {
    ExpectRefusedOn(tensor.name, "absent", tensor.name, [](mlap_tensor* t) { *t = {}; });
  }
}

TEST_P(ReferenceFaults, MissingOptionalTensorsAreLegal) {
  ReferenceCall call(GetParam());
  for (const NamedTensor& tensor : call.Optional()) *tensor.tensor = {};
  EXPECT_EQ(call.Run(), MLAP_OK) << mlap_last_error();
}

TEST_P(ReferenceFaults, TensorsOfAnotherScenario) {
  const size_t num_forbidden = ReferenceCall(GetParam()).Forbidden().size();
  for (size_t i = 0; i < num_forbidden; ++i) {
    const std::string name = ReferenceCall(GetParam()).Forbidden()[i].name;
    float one = 1.0f;
    ExpectRefused(GetParam(), name, name, [&](ReferenceCall* call) {
      *call->Forbidden()[i].tensor = {&one, MLAP_FLOAT32, MLAP_ROW_MAJOR, 1, {1}, {}};
    });
  }
}

TEST_P(ReferenceFaults, NullPointers) {
  ForEachTensor([&](const std::string& name, const mlap_tensor&) {
    ExpectRefusedOn(name, "null", name, [](mlap_tensor* t) { t->data = nullptr; });
  });
}

TEST_P(ReferenceFaults, Types) {
  ForEachTensor([&](const std::string& name, const mlap_tensor& tensor) {
    for (const mlap_dtype dtype : {MLAP_BF16, MLAP_INT8, MLAP_FLOAT32, MLAP_INT64, MLAP_INT32, mlap_dtype(7)}) {
      // These two choose the scenario with their type, so that its other tensors are then wrong.
      const bool chooses = (name == "weight_uq_qr" || name == "kv_cache") && (dtype == MLAP_BF16 || dtype == MLAP_INT8);
      if (dtype == tensor.dtype) continue;
      ExpectRefusedOn(name, "type " + std::to_string(dtype), chooses ? "expected" : name,
                      [&](mlap_tensor* t) { t->dtype = dtype; });
    }
  });
}

TEST_P(ReferenceFaults, Ranks) {
  ForEachTensor([&](const std::string& name, const mlap_tensor& tensor) {
    for (const int32_t rank : {-1, 0, 5, 25, 1 << 30}) {
      ExpectRefusedOn(name, "rank " + std::to_string(rank), name, [&](mlap_tensor* t) { t->rank = rank; });
    }
    // One dimension less or more. The number of dimensions of token_x says how the others are written.
    const std::string expected = name == "token_x" ? "expected" : name;
    if (tensor.rank > 1) {
      ExpectRefusedOn(name, "a dimension less", expected, [](mlap_tensor* t) { --t->rank; });
    }
    if (tensor.rank < MLAP_MAX_RANK) {
      ExpectRefusedOn(name, "a dimension more", expected, [](mlap_tensor* t) { t->dims[t->rank++] = 1; });
    }
  });
}

TEST_P(ReferenceFaults, Dimensions) {
  ForEachTensor([&](const std::string& name, const mlap_tensor& tensor) {
    for (int i = 0; i < tensor.rank; ++i) {
      const std::string where = "dimension " + std::to_string(i);
      const bool is_defining = kDefining.count({name, i}) != 0;
      for (const int64_t change : {-1, +1}) {
        ExpectRefusedOn(name, where + (change < 0 ? " less" : " more"), is_defining ? "expected" : name,
                        [&](mlap_tensor* t) { t->dims[i] += change; });
      }
      for (const int64_t dim : {int64_t{-1}, -kHuge, INT64_MIN, kHuge, INT64_MAX}) {
        ExpectRefusedOn(name, where + " is " + std::to_string(dim), name, [&](mlap_tensor* t) { t->dims[i] = dim; });
      }
    }
    // A single dimension of 2^31 is large, not impossible; in the tensor that defines it, another one is then wrong.
    const bool is_possible = tensor.rank == 1 && kDefining.count({name, 0}) != 0;
    ExpectRefusedOn(name, "all dimensions 2^31", is_possible ? "expected" : name, [](mlap_tensor* t) {
      for (int i = 0; i < t->rank; ++i) t->dims[i] = int64_t{1} << 31;
    });
  });
}

TEST_P(ReferenceFaults, Strides) {
  ForEachTensor([&](const std::string& name, const mlap_tensor& tensor) {
    if (IsCache(name)) return;
    // Only strides of dimensions that are not 1 mean something.
    for (int i = 0; i < tensor.rank; ++i) {
      if (tensor.dims[i] == 1) continue;
      for (const int64_t change : {int64_t{1}, int64_t{-1}, kHuge}) {
        if (tensor.rank == 1 && change == -1) continue;  // all strides zero: contiguous
        ExpectRefusedOn(name, "stride " + std::to_string(i) + " changed by " + std::to_string(change), name,
                        [&](mlap_tensor* t) {
                          int64_t stride = 1;
                          for (int d = t->rank; d-- > 0;) {
                            t->strides[d] = stride;
                            stride *= t->dims[d];
                          }
                          t->strides[i] += change;
                        });
      }
    }
  });
}

TEST_P(ReferenceFaults, Layouts) {
  ForEachTensor([&](const std::string& name, const mlap_tensor&) {
    ExpectRefusedOn(name, "FRACTAL_NZ with this shape", name, [](mlap_tensor* t) { t->layout = MLAP_FRACTAL_NZ; });
  });
}

TEST_P(ReferenceFaults, LayoutsThatDoNotExist) {
  ForEachTensor([&](const std::string& name, const mlap_tensor&) {
    ExpectRefusedOn(name, "layout 2", name, [](mlap_tensor* t) {
      const int unknown = 2;
      std::memcpy(&t->layout, &unknown, sizeof(t->layout));
    });
  });
}

TEST_P(ReferenceFaults, CacheModes) {
  for (const int mode : {2, -1, 1 << 20}) {
    ExpectRefused(GetParam(), "cache mode " + std::to_string(mode), "cache_mode",
                  [&](ReferenceCall* call) { std::memcpy(&call->args.cache_mode, &mode, sizeof(mode)); });
  }
  // The rows of this call are no multiple of 32 bytes.
  ExpectRefused(GetParam(), "PA_NZ", "kv_cache", [](ReferenceCall* call) { call->args.cache_mode = MLAP_PA_NZ; });
}

TEST_P(ReferenceFaults, StructSizes) {
  for (const size_t size : {size_t{0}, sizeof(mlap_prolog_args) - 8, sizeof(mlap_prolog_args) + 8, ~size_t{0}}) {
    ExpectRefused(GetParam(), "args", "struct_size", [&](ReferenceCall* call) { call->args.struct_size = size; });
  }
  for (const size_t size : {size_t{0}, sizeof(mlap_intermediates) - 8, sizeof(mlap_intermediates) + 8, ~size_t{0}}) {
    ExpectRefused(GetParam(), "intermediates", "intermediates",
                  [&](ReferenceCall* call) { call->intermediates.struct_size = size; });
  }
}

TEST_P(ReferenceFaults, SizesThatOnlyTheirProductMakesTooLarge) {
  // Every tensor alone fits into memory, which is why no memory may be touched to find out.
  ExpectRefused(GetParam(), "T * He", "expected", [](ReferenceCall* call) {
    const int rank = call->args.token_x.rank;
    call->args.token_x.dims[0] = int64_t{1} << 40;
    call->args.rope_sin.dims[0] = int64_t{1} << 40;
    call->args.rope_cos.dims[0] = int64_t{1} << 40;
    call->args.cache_index.dims[0] = int64_t{1} << 40;
    call->args.query.dims[0] = int64_t{1} << 40;
    call->args.query_rope.dims[0] = int64_t{1} << 40;
    call->args.token_x.dims[rank - 1] = int64_t{1} << 27;
  });
}

TEST(ReferenceFaultsScenario, Int8CachesNeedAnInt8Weight) {
  ExpectRefused({Scenario::kNonQuant}, "int8 caches", "kv_cache", [](ReferenceCall* call) {
    static float scales[ReferenceCall::kKvRank] = {};
    call->args.kv_cache.dtype = MLAP_INT8;
    call->args.kr_cache.dtype = MLAP_INT8;
    call->args.quant_scale_ckv = {scales, MLAP_FLOAT32, MLAP_ROW_MAJOR, 2, {1, ReferenceCall::kKvRank}, {}};
    call->args.quant_scale_ckr = {scales, MLAP_FLOAT32, MLAP_ROW_MAJOR, 2, {1, ReferenceCall::kRope}, {}};
  });
}

TEST(ReferenceFaultsScenario, PagesWithoutSlots) {
  ExpectRefused({}, "BlockSize 0", "kv_cache", [](ReferenceCall* call) {
    call->args.kv_cache.dims[1] = 0;
    call->args.kr_cache.dims[1] = 0;
  });
}

TEST(ReferenceFaultsScenario, ANullCall) {
  EXPECT_EQ(mlap_reference_run(nullptr), MLAP_INVALID_ARGUMENT);
  EXPECT_NE(std::string(mlap_last_error()).find("args"), std::string::npos);
}

}  // namespace
}  // namespace mlap::test
