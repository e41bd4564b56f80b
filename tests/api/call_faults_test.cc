// Calls of the native interface, made wrongly: every tensor damaged in every way. Each is refused with
// MLAP_INVALID_ARGUMENT and a text that names the field, by the reference and by the operator, and nothing is written.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/native_call.h"

namespace mlap::test {
namespace {

constexpr int64_t kHuge = int64_t{1} << 62;

// Dimensions that other tensors are compared with: a wrong one is found in those.
const std::set<std::pair<std::string, int>> kDefining = {
    {"token_x", 0},   {"token_x", 1},  {"rmsnorm_gamma_cq", 0}, {"weight_uk", 0},     {"weight_uk", 1},
    {"weight_uk", 2}, {"kv_cache", 0}, {"kv_cache", 1},         {"weight_dkv_kr", 0}, {"weight_dkv_kr", 1},
};

bool IsMatrix(const std::string& name) {
  return name == "weight_dq" || name == "weight_uq_qr" || name == "weight_dkv_kr";
}

bool IsIntermediate(const std::string& name) { return name.rfind("intermediates.", 0) == 0; }

using Damage = std::function<void(NativeCall*)>;

mlap_context* TestContext() {
  static mlap_context* const kContext = [] {
    mlap_context_args args = {sizeof(mlap_context_args), 1, nullptr};
    mlap_context* context = nullptr;
    EXPECT_EQ(mlap_context_create(&args, &context), MLAP_OK) << mlap_last_error();
    return context;
  }();
  return kContext;
}

// What was expected, what was found, what to do.
void ExpectAdvice(const std::string& text) {
  const size_t found = text.find("found ");
  EXPECT_NE(found, std::string::npos) << text;
  const size_t advice = text.find("; ", found == std::string::npos ? 0 : found);
  EXPECT_TRUE(advice != std::string::npos && advice + 2 < text.size()) << "nothing to do in: " << text;
}

void ExpectRefusal(mlap_status status, const std::string& name, const NativeCall& call,
                   const std::map<std::string, std::vector<uint8_t>>& before) {
  EXPECT_EQ(status, MLAP_INVALID_ARGUMENT);
  const std::string text = mlap_last_error();
  const std::string function = text.substr(0, text.find(": "));
  EXPECT_TRUE(function == "mlap_weights_create" || function == "mlap_reference_run" || function == "mlap_run") << text;
  EXPECT_NE(text.find(name), std::string::npos) << "'" << name << "' is not named in: " << text;
  ExpectAdvice(text);
  for (const auto& [written, bytes] : call.WritableBytes()) {
    EXPECT_TRUE(bytes == before.at(written)) << written << " was written";
  }
}

// Damages a fresh call and expects the refusal; `name` must occur in the text.
void ExpectRefused(const CallOptions& options, const std::string& what, const std::string& name, const Damage& damage,
                   bool only_reference = false) {
  SCOPED_TRACE(what);
  NativeCall call(options);
  damage(&call);
  const auto before = call.WritableBytes();
  ExpectRefusal(call.RunReference(), name, call, before);
  if (!only_reference) ExpectRefusal(call.Run(TestContext()), name, call, before);
}

class CallFaults : public testing::TestWithParam<CallOptions> {
 protected:
  void ExpectRefusedOn(const std::string& name, const std::string& what, const std::string& expected_name,
                       const std::function<void(mlap_tensor*)>& change) {
    ExpectRefused(
        GetParam(), name + ": " + what, expected_name, [&](NativeCall* call) { change(call->Tensor(name)); },
        IsIntermediate(name));
  }

  // Runs `body` for each tensor of the call.
  void ForEachTensor(const std::function<void(const std::string& name, const mlap_tensor& tensor)>& body) {
    NativeCall call(GetParam());
    for (const NamedTensor& tensor : call.Given()) body(tensor.name, *tensor.tensor);
  }

  // Whether this dimension is nobody else's in this scenario, so that another one may be legal.
  bool IsFree(const std::string& name, const mlap_tensor& tensor, int dim) const {
    const bool has_lists =
        name == "actual_seq_len" || (name == "cache_index" && tensor.rank == 1 && tensor.dims[0] == 1);
    return has_lists || (name == "kv_cache" && dim < 2 && GetParam().kv == MLAP_KV_PER_GROUP);
  }
};
INSTANTIATE_TEST_SUITE_P(Calls, CallFaults, testing::ValuesIn(AllCalls()), CallName);

TEST_P(CallFaults, TheUndamagedCallIsLegal) {
  NativeCall call(GetParam());
  EXPECT_EQ(call.RunReference(), MLAP_OK) << mlap_last_error();
  EXPECT_EQ(call.Run(TestContext()), MLAP_OK) << mlap_last_error();
}

TEST_P(CallFaults, MissingTensors) {
  NativeCall call(GetParam());
  for (const NamedTensor& tensor : call.Required()) {
    // Without weight_dq the query has no low rank, and its gamma is one too many.
    const std::string expected = tensor.name == "weight_dq" ? "rmsnorm_gamma_cq" : tensor.name;
    ExpectRefusedOn(tensor.name, "absent", expected, [](mlap_tensor* t) { *t = {}; });
  }
}

TEST_P(CallFaults, MissingOptionalTensorsAreLegal) {
  NativeCall call(GetParam());
  for (const NamedTensor& tensor : call.Optional()) *tensor.tensor = {};
  call.args.dequant_scale_q_norm = {};  // goes with query_norm
  EXPECT_EQ(call.RunReference(), MLAP_OK) << mlap_last_error();
  EXPECT_EQ(call.Run(TestContext()), MLAP_OK) << mlap_last_error();
}

TEST_P(CallFaults, TensorsOfAnotherScenario) {
  NativeCall legal(GetParam());
  for (const NamedTensor& tensor : legal.Forbidden()) {
    double memory[4] = {};
    ExpectRefused(
        GetParam(), tensor.name, tensor.name,
        [&](NativeCall* call) { *call->Tensor(tensor.name) = {memory, MLAP_FLOAT32, MLAP_ROW_MAJOR, 1, {1}, {}}; },
        IsIntermediate(tensor.name));
  }
}

// A checkpoint's tensors are (out, in). Any of them given as (in, out) is refused with the layout to use, and the
// other way round.
TEST_P(CallFaults, MatricesTheWrongWayRound) {
  const std::string matrices[] = {"weight_dq", "weight_uq_qr", "weight_dkv_kr"};
  for (const bool is_out_in : {false, true}) {
    for (unsigned turned = 1; turned < 8; ++turned) {
      if (!GetParam().has_low_rank && (turned & 1) != 0) continue;
      SCOPED_TRACE("turned " + std::to_string(turned) + (is_out_in ? " of MLAP_OUT_IN" : ""));
      NativeCall call(GetParam());
      for (int i = GetParam().has_low_rank ? 0 : 1; i < 3; ++i) {
        mlap_tensor* matrix = call.Tensor(matrices[i]);
        ASSERT_EQ(matrix->rank, 2);
        matrix->layout = is_out_in ? MLAP_OUT_IN : MLAP_ROW_MAJOR;
        if (is_out_in != ((turned >> i & 1) != 0)) std::swap(matrix->dims[0], matrix->dims[1]);
      }
      EXPECT_EQ(call.Weights(), nullptr);
      const std::string text = mlap_last_error();
      EXPECT_NE(text.find(is_out_in ? "need MLAP_ROW_MAJOR" : "need MLAP_OUT_IN"), std::string::npos) << text;
    }
  }
}

TEST_P(CallFaults, NullPointers) {
  ForEachTensor([&](const std::string& name, const mlap_tensor&) {
    ExpectRefusedOn(name, "null", name, [](mlap_tensor* t) { t->data = nullptr; });
  });
}

TEST_P(CallFaults, AddressesBetweenElements) {
  ForEachTensor([&](const std::string& name, const mlap_tensor& tensor) {
    if (DtypeBytes(tensor.dtype) == 1) return;
    ExpectRefusedOn(name, "an odd address", name, [](mlap_tensor* t) { t->data = static_cast<char*>(t->data) + 1; });
  });
}

TEST_P(CallFaults, Types) {
  ForEachTensor([&](const std::string& name, const mlap_tensor& tensor) {
    for (const int value : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, -1, 1 << 20}) {
      if (value == tensor.dtype) continue;
      // The matrices choose the scenario with their types, and a scale's type chooses between two, so that other
      // tensors are then wrong.
      const bool chooses = IsMatrix(name) || name.rfind("dequant_scale_w_", 0) == 0;
      ExpectRefusedOn(name, "type " + std::to_string(value), chooses ? "expected" : name,
                      [&](mlap_tensor* t) { std::memcpy(&t->dtype, &value, sizeof(value)); });
    }
  });
}

TEST_P(CallFaults, Ranks) {
  ForEachTensor([&](const std::string& name, const mlap_tensor& tensor) {
    for (const int32_t rank : {-1, 0, 5, 25, 1 << 30}) {
      ExpectRefusedOn(name, "rank " + std::to_string(rank), name, [&](mlap_tensor* t) { t->rank = rank; });
    }
    // One dimension less or more. The number of dimensions of token_x says how the others are written.
    const std::string expected = name == "token_x" ? "expected" : name;
    const bool may_end_with_one = name.rfind("dequant_scale_", 0) == 0 && tensor.dims[tensor.rank - 1] == 1;
    if (tensor.rank > 1 && !may_end_with_one) {
      ExpectRefusedOn(name, "a dimension less", expected, [](mlap_tensor* t) { --t->rank; });
    }
    if (tensor.rank < MLAP_MAX_RANK) {
      ExpectRefusedOn(name, "a dimension more", expected, [](mlap_tensor* t) { t->dims[t->rank++] = 1; });
    }
  });
}

TEST_P(CallFaults, Dimensions) {
  ForEachTensor([&](const std::string& name, const mlap_tensor& tensor) {
    for (int i = 0; i < tensor.rank; ++i) {
      const std::string where = "dimension " + std::to_string(i);
      const bool is_defining = kDefining.count({name, i}) != 0;
      for (const int64_t change : {-1, +1}) {
        if (IsFree(name, tensor, i)) continue;
        ExpectRefusedOn(name, where + (change < 0 ? " less" : " more"), is_defining ? "expected" : name,
                        [&](mlap_tensor* t) { t->dims[i] += change; });
      }
      for (const int64_t dim : {int64_t{-1}, -kHuge, INT64_MIN, kHuge, INT64_MAX}) {
        ExpectRefusedOn(name, where + " is " + std::to_string(dim), name, [&](mlap_tensor* t) { t->dims[i] = dim; });
      }
    }
    // A single dimension of 2^31 is large, not impossible; in the tensor that defines it, another one is then wrong.
    const bool is_possible = tensor.rank == 1 && kDefining.count({name, 0}) != 0;
    if (tensor.rank == 1 && IsFree(name, tensor, 0)) return;
    ExpectRefusedOn(name, "all dimensions 2^31", is_possible ? "expected" : name, [](mlap_tensor* t) {
      for (int i = 0; i < t->rank; ++i) t->dims[i] = int64_t{1} << 31;
    });
  });
}

void SetContiguousStrides(mlap_tensor* t) {
  int64_t stride = 1;
  for (int d = t->rank; d-- > 0;) {
    t->strides[d] = stride;
    stride *= t->dims[d];
  }
}

TEST_P(CallFaults, StridesBeyondMemory) {
  ForEachTensor([&](const std::string& name, const mlap_tensor& tensor) {
    for (int i = 0; i < tensor.rank; ++i) {
      for (const int64_t stride : {kHuge, -kHuge, INT64_MAX, INT64_MIN}) {
        ExpectRefusedOn(name, "stride " + std::to_string(stride), name, [&](mlap_tensor* t) {
          SetContiguousStrides(t);
          t->strides[i] = stride;
        });
      }
    }
  });
}

TEST_P(CallFaults, WhatIsWrittenMustNotOverlap) {
  NativeCall legal(GetParam());
  ForEachTensor([&](const std::string& name, const mlap_tensor& tensor) {
    if (!legal.IsWritten(name) || tensor.rank == 1) return;
    for (int i = 0; i + 1 < tensor.rank; ++i) {
      if (tensor.dims[i] == 1 || tensor.dims[tensor.rank - 1] == 1) continue;
      for (const int64_t stride : {int64_t{0}, int64_t{1}, int64_t{-1}, tensor.dims[tensor.rank - 1] - 1}) {
        ExpectRefusedOn(name, "stride " + std::to_string(stride), name, [&](mlap_tensor* t) {
          SetContiguousStrides(t);
          t->strides[i] = stride;
        });
      }
    }
  });
}

TEST_P(CallFaults, Layouts) {
  ForEachTensor([&](const std::string& name, const mlap_tensor&) {
    if (IsMatrix(name)) return;
    for (const mlap_layout layout : {MLAP_FRACTAL_NZ, MLAP_OUT_IN}) {
      ExpectRefusedOn(name, "a weight's layout", name, [&](mlap_tensor* t) { t->layout = layout; });
    }
  });
}

TEST_P(CallFaults, LayoutsThatDoNotExist) {
  ForEachTensor([&](const std::string& name, const mlap_tensor&) {
    for (const int unknown : {3, -1, 1 << 30}) {
      ExpectRefusedOn(name, "layout " + std::to_string(unknown), name,
                      [&](mlap_tensor* t) { std::memcpy(&t->layout, &unknown, sizeof(t->layout)); });
    }
  });
}

TEST_P(CallFaults, Attributes) {
  struct Attribute {
    const char* name;
    std::function<void*(NativeCall*)> place;
    int count;
  };
  const Attribute attributes[] = {
      {"cache_mode", [](NativeCall* call) -> void* { return &call->args.cache_mode; }, 6},
      {"kv_quant", [](NativeCall* call) -> void* { return &call->args.kv_quant; }, 4},
      {"rope_style", [](NativeCall* call) -> void* { return &call->args.rope_style; }, 4},
      {"rules", [](NativeCall* call) -> void* { return &call->args.rules; }, 2},
      {"ownership", [](NativeCall* call) -> void* { return &call->weights_args.ownership; }, 2},
  };
  for (const Attribute& attribute : attributes) {
    for (const int value : {attribute.count, -1, 1 << 20, INT_MIN}) {
      ExpectRefused(GetParam(), std::string(attribute.name) + " " + std::to_string(value), attribute.name,
                    [&](NativeCall* call) { std::memcpy(attribute.place(call), &value, sizeof(value)); });
    }
  }
  for (const double factor : {0.0, -0.0, std::nan(""), HUGE_VAL, -HUGE_VAL, 1e300, -1e300}) {
    ExpectRefused(GetParam(), "factor", "qc_qr_scale", [&](NativeCall* call) { call->args.qc_qr_scale = factor; });
    ExpectRefused(GetParam(), "factor", "kc_scale", [&](NativeCall* call) { call->args.kc_scale = factor; });
  }
  for (const double epsilon : {std::nan(""), HUGE_VAL, -HUGE_VAL, -1e-6, -1e-300, 1e300}) {
    ExpectRefused(GetParam(), "epsilon", "rmsnorm_epsilon_cq",
                  [&](NativeCall* call) { call->args.rmsnorm_epsilon_cq = epsilon; });
    ExpectRefused(GetParam(), "epsilon", "rmsnorm_epsilon_ckv",
                  [&](NativeCall* call) { call->args.rmsnorm_epsilon_ckv = epsilon; });
  }
}

TEST_P(CallFaults, KeysThatDoNotGoWithTheWeights) {
  constexpr bool kLegal[6][4] = {{true, false, false, false}, {true, false, true, true}, {true, true, false, true},
                                 {true, true, false, true},   {true, true, false, true}, {true, true, false, true}};
  for (int kv = 0; kv < 4; ++kv) {
    if (kLegal[GetParam().weights][kv]) continue;
    ExpectRefused(GetParam(), "kv_quant " + std::to_string(kv), "kv_quant",
                  [&](NativeCall* call) { call->args.kv_quant = static_cast<mlap_kv_quant>(kv); });
  }
  if (GetParam().kv != MLAP_KV_PER_GROUP) return;
  for (const mlap_cache_mode mode : {MLAP_PA_NZ, MLAP_PA_BLK_NZ}) {
    ExpectRefused(GetParam(), "NZ pages", "cache_mode", [&](NativeCall* call) { call->args.cache_mode = mode; });
  }
}

TEST_P(CallFaults, SizesThatTheTensorsDoNotHave) {
  struct Size {
    const char* name;
    int64_t mlap_dims::*member;
  };
  for (const Size& size :
       {Size{"hidden", &mlap_dims::hidden}, Size{"q_rank", &mlap_dims::q_rank}, Size{"heads", &mlap_dims::heads},
        Size{"nope", &mlap_dims::nope}, Size{"rope", &mlap_dims::rope}, Size{"kv_rank", &mlap_dims::kv_rank}}) {
    for (const int64_t value : {int64_t{-1}, int64_t{1}, int64_t{3}, int64_t{48}, kHuge, INT64_MIN}) {
      ExpectRefused(GetParam(), std::string(size.name) + " " + std::to_string(value), "expected",
                    [&](NativeCall* call) { call->weights_args.dims.*size.member = value; });
    }
  }
}

TEST_P(CallFaults, StructSizes) {
  for (const size_t size : {size_t{0}, sizeof(mlap_run_args) - 8, sizeof(mlap_run_args) + 8, SIZE_MAX}) {
    ExpectRefused(GetParam(), "args", "args", [&](NativeCall* call) { call->args.struct_size = size; });
    ExpectRefused(GetParam(), "weights args", "args", [&](NativeCall* call) { call->weights_args.struct_size = size; });
    ExpectRefused(
        GetParam(), "reference", "reference", [&](NativeCall* call) { call->reference.struct_size = size; }, true);
    ExpectRefused(
        GetParam(), "intermediates", "intermediates", [&](NativeCall* call) { call->intermediates.struct_size = size; },
        true);
  }
}

}  // namespace
}  // namespace mlap::test
