// mlap_run against the reference, and the reference against the exact formula.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "api/native_call.h"
#include "base/bf16.h"

namespace mlap::test {
namespace {

mlap_context* Context() {
  static mlap_context* const kContext = [] {
    mlap_context* context = nullptr;
    EXPECT_EQ(mlap_context_create(nullptr, &context), MLAP_OK) << mlap_last_error();
    return context;
  }();
  return kContext;
}

mlap_comparison Compare(const mlap_tensor& actual, const mlap_tensor& golden, mlap_standard standard) {
  mlap_comparison comparison = {};
  comparison.struct_size = sizeof(comparison);
  EXPECT_EQ(mlap_compare(&actual, &golden, nullptr, standard, &comparison), MLAP_OK) << mlap_last_error();
  return comparison;
}

class OperatorRun : public testing::TestWithParam<CallOptions> {};
INSTANTIATE_TEST_SUITE_P(Calls, OperatorRun, testing::ValuesIn(AllCalls()), CallName);

mlap_standard StandardOf(const std::string& name, mlap_dtype dtype) {
  if (name.rfind("dequant_scale_", 0) == 0 || name == "scales") return MLAP_STANDARD_SCALES;
  if (dtype == MLAP_INT8) return MLAP_STANDARD_INT_WITHIN_1;
  return MLAP_STANDARD_STAGED;
}

void ExpectAgreement(const std::string& name, const mlap_tensor& actual, const mlap_tensor& golden) {
  const mlap_comparison comparison = Compare(actual, golden, StandardOf(name, actual.dtype));
  EXPECT_TRUE(comparison.is_passed) << name << ": " << comparison.verdict;
}

// The slots of a cache of per-group rows that the calls here write.
struct SplitRows {
  static constexpr int64_t kFirst = 1, kCount = 3, kGroups = 2;
  std::vector<uint8_t> values = std::vector<uint8_t>(kCount * NativeCall::kKvRank);
  std::vector<uint16_t> rope = std::vector<uint16_t>(kCount * NativeCall::kRope);
  std::vector<float> scales = std::vector<float>(kCount * kGroups);
  mlap_tensor values_tensor, rope_tensor, scales_tensor;

  explicit SplitRows(const mlap_tensor& cache) {
    const int64_t width = cache.dims[3];
    char* const first = static_cast<char*>(cache.data) + kFirst * width;
    const mlap_tensor rows = {first, cache.dtype, MLAP_ROW_MAJOR, 2, {kCount, width}, {}};
    values_tensor = {values.data(), cache.dtype, MLAP_ROW_MAJOR, 2, {kCount, NativeCall::kKvRank}, {}};
    rope_tensor = {rope.data(), MLAP_BF16, MLAP_ROW_MAJOR, 2, {kCount, NativeCall::kRope}, {}};
    scales_tensor = {scales.data(), MLAP_FLOAT32, MLAP_ROW_MAJOR, 2, {kCount, kGroups}, {}};
    EXPECT_EQ(mlap_cache_rows_split(&rows, MLAP_ROW_CANN, &values_tensor, &rope_tensor, &scales_tensor), MLAP_OK)
        << mlap_last_error();
  }
};

TEST_P(OperatorRun, AgreesWithTheReference) {
  for (const mlap_rope_style style :
       {MLAP_ROPE_INTERLEAVED_TO_HALF, MLAP_ROPE_HALF, MLAP_ROPE_INTERLEAVED, MLAP_ROPE_NONE}) {
    for (const mlap_numeric_rules rules : {MLAP_RULES_A2, MLAP_RULES_950}) {
      SCOPED_TRACE("style " + std::to_string(style) + ", rules " + std::to_string(rules));
      NativeCall call(GetParam());
      NativeCall reference(GetParam());
      for (NativeCall* one : {&call, &reference}) {
        one->args.rope_style = style;
        one->args.rules = rules;
        one->args.qc_qr_scale = 1.5;
        one->args.kc_scale = 0.75;
        if (style == MLAP_ROPE_NONE) one->args.rope_sin = one->args.rope_cos = {};
      }
      ASSERT_EQ(call.Run(Context()), MLAP_OK) << mlap_last_error();
      ASSERT_EQ(reference.RunReference(), MLAP_OK) << mlap_last_error();
      for (const NamedTensor& tensor : call.Given()) {
        if (!call.IsWritten(tensor.name) || tensor.name.rfind("intermediates.", 0) == 0) continue;
        const mlap_tensor& golden = *reference.Tensor(tensor.name);
        if (tensor.name == "kv_cache" && GetParam().kv == MLAP_KV_PER_GROUP) {
          const SplitRows actual_rows(*tensor.tensor), golden_rows(golden);
          ExpectAgreement("values", actual_rows.values_tensor, golden_rows.values_tensor);
          ExpectAgreement("rope", actual_rows.rope_tensor, golden_rows.rope_tensor);
          ExpectAgreement("scales", actual_rows.scales_tensor, golden_rows.scales_tensor);
        } else {
          ExpectAgreement(tensor.name, *tensor.tensor, golden);
        }
        // Something was written at all.
        const std::vector<uint8_t> bytes = call.WritableBytes().at(tensor.name);
        EXPECT_NE(bytes, std::vector<uint8_t>(bytes.size(), NativeCall::kPattern)) << tensor.name;
      }
    }
  }
}

TEST_P(OperatorRun, TheNumberOfThreadsDoesNotMatter) {
  NativeCall expected(GetParam());
  ASSERT_EQ(expected.Run(Context()), MLAP_OK) << mlap_last_error();
  for (const int threads : {1, 2, 7}) {
    const mlap_context_args args = {sizeof(mlap_context_args), threads, nullptr};
    mlap_context* context = nullptr;
    ASSERT_EQ(mlap_context_create(&args, &context), MLAP_OK) << mlap_last_error();
    NativeCall call(GetParam());
    EXPECT_EQ(call.Run(context), MLAP_OK) << mlap_last_error();
    EXPECT_EQ(call.WritableBytes(), expected.WritableBytes()) << threads << " threads";
    EXPECT_EQ(mlap_context_destroy(context), MLAP_OK);
  }
}

// The results of the exact formula.
struct Exact {
  std::vector<double> query, query_rope, c_kv, k_r;
  mlap_exact_results results = {};

  explicit Exact(int64_t T) {
    results.struct_size = sizeof(results);
    const auto place = [](std::vector<double>* values, mlap_tensor* tensor, std::vector<int64_t> dims) {
      size_t count = 1;
      for (const int64_t dim : dims) count *= static_cast<size_t>(dim);
      values->assign(count, -7.0);
      *tensor = {values->data(), MLAP_FLOAT64, MLAP_ROW_MAJOR, static_cast<int32_t>(dims.size()), {}, {}};
      std::copy(dims.begin(), dims.end(), tensor->dims);
    };
    place(&query, &results.query, {T, NativeCall::kHeads, NativeCall::kKvRank});
    place(&query_rope, &results.query_rope, {T, NativeCall::kHeads, NativeCall::kRope});
    place(&c_kv, &results.c_kv, {T, NativeCall::kKvRank});
    place(&k_r, &results.k_r, {T, NativeCall::kRope});
  }
  bool operator==(const Exact& other) const {
    return query == other.query && query_rope == other.query_rope && c_kv == other.c_kv && k_r == other.k_r;
  }
};

TEST(ExactRun, DiffersFromTheReferenceByRoundingsOnly) {
  for (const bool has_low_rank : {true, false}) {
    CallOptions options;
    options.has_low_rank = has_low_rank;
    NativeCall call(options);
    call.args.kc_scale = 2.5;
    ASSERT_EQ(call.RunReference(), MLAP_OK) << mlap_last_error();
    Exact exact(options.tokens);
    ASSERT_EQ(mlap_exact_run(call.Weights(), &call.args, &exact.results), MLAP_OK) << mlap_last_error();
    for (const auto& [actual, golden] : {std::pair{&call.args.query, &exact.results.query},
                                         std::pair{&call.args.query_rope, &exact.results.query_rope},
                                         std::pair{&call.intermediates.c_kv, &exact.results.c_kv}}) {
      const mlap_comparison comparison = Compare(*actual, *golden, MLAP_STANDARD_UNROUNDED);
      EXPECT_TRUE(comparison.is_passed) << comparison.verdict;
      EXPECT_GT(comparison.relative_norm, 0.0);
    }
  }
}

// Makes a tensor of 8-bit values and its power-of-two scales the bf16 tensor of their products, which are exact.
// `scale_of(i)` is element i's.
template <class ScaleOf>
void Widen(NativeCall* from, const std::string& name, NativeCall* to, const ScaleOf& scale_of) {
  const std::vector<float> values = from->Values(name);
  for (size_t i = 0; i < values.size(); ++i) to->Data<Bf16>(name)[i] = RoundToBf16(values[i] * scale_of(i));
}

TEST(ExactRun, DequantisesWhatIsGivenQuantised) {
  constexpr int64_t kHidden = NativeCall::kHidden, kQRank = NativeCall::kQRank;
  const std::pair<const char*, const char*> kScaled[] = {{"token_x", "dequant_scale_x"},
                                                         {"weight_dq", "dequant_scale_w_dq"},
                                                         {"weight_uq_qr", "dequant_scale_w_uq_qr"},
                                                         {"weight_dkv_kr", "dequant_scale_w_dkv_kr"}};
  for (const mlap_weight_quant quant :
       {MLAP_WEIGHTS_INT8, MLAP_WEIGHTS_MXFP8, MLAP_WEIGHTS_FP8, MLAP_WEIGHTS_HIFLOAT8}) {
    SCOPED_TRACE(static_cast<int>(quant));
    CallOptions options;
    options.weights = quant;
    NativeCall call(options);
    NativeCall widened(CallOptions{});
    const bool is_mx = quant == MLAP_WEIGHTS_MXFP8;
    for (const auto& [name, scale] : kScaled) {
      const std::string tensor = name;
      const int64_t k = tensor == "weight_uq_qr" ? kQRank : kHidden;
      const auto n = static_cast<int64_t>(call.Values(tensor).size()) / k;
      const auto channels = static_cast<size_t>(n);
      if (!is_mx) {
        for (size_t j = 0; j < channels; ++j)
          call.Data<float>(scale)[j] = std::ldexp(1.0f, static_cast<int>(j % 3) - 1);
      }
      Widen(&call, tensor, &widened, [&](size_t element) {
        // x is [T, k], the weights [k, n]; T stands for n.
        const auto e = static_cast<int64_t>(element);
        const int64_t i = tensor == "token_x" ? e % k : e / n;
        const int64_t j = tensor == "token_x" ? e / k : e % n;
        return is_mx ? std::ldexp(1.0f, call.Data<uint8_t>(scale)[j * (k / 32) + i / 32] - 127)
                     : call.Data<float>(scale)[j];
      });
    }
    for (const char* name : {"weight_uk", "rope_sin", "rope_cos"}) {
      const size_t bytes = call.Values(name).size() * sizeof(Bf16);
      std::memcpy(widened.Data<char>(name), call.Data<char>(name), bytes);
    }
    call.weights_args.smooth_scales_cq = {};
    Exact exact(options.tokens), expected(options.tokens);
    ASSERT_EQ(mlap_exact_run(call.Weights(), &call.args, &exact.results), MLAP_OK) << mlap_last_error();
    ASSERT_EQ(mlap_exact_run(widened.Weights(), &widened.args, &expected.results), MLAP_OK) << mlap_last_error();
    EXPECT_TRUE(exact == expected);
  }
}

TEST(ExactRun, RefusesWrongResultsAndTakesSome) {
  NativeCall call(CallOptions{});
  for (int which = 0; which < 4; ++which) {
    Exact exact(3);
    mlap_tensor* const all[] = {&exact.results.query, &exact.results.query_rope, &exact.results.c_kv,
                                &exact.results.k_r};
    const char* const names[] = {"results.query", "results.query_rope", "results.c_kv", "results.k_r"};
    all[which]->dtype = MLAP_FLOAT32;
    EXPECT_EQ(mlap_exact_run(call.Weights(), &call.args, &exact.results), MLAP_INVALID_ARGUMENT);
    EXPECT_NE(std::string(mlap_last_error()).find(names[which]), std::string::npos) << mlap_last_error();
    EXPECT_EQ(exact.query[0], -7.0);
    *all[which] = {};
    EXPECT_EQ(mlap_exact_run(call.Weights(), &call.args, &exact.results), MLAP_OK) << mlap_last_error();
    EXPECT_EQ(exact.query[0] == -7.0, which == 0);
  }
  EXPECT_EQ(mlap_exact_run(call.Weights(), &call.args, nullptr), MLAP_INVALID_ARGUMENT);
}

// ---- RoPE styles ----

void ReorderRope(NativeCall* call, const std::string& name, int64_t group, mlap_rope_order order) {
  const mlap_tensor* tensor = call->Tensor(name);
  ASSERT_EQ(mlap_rope_reorder(tensor, group, NativeCall::kRope, order, tensor), MLAP_OK) << mlap_last_error();
}

TEST(RopeStyles, HalfStyleWeightsAreTheReorderedOnes) {
  for (const mlap_weight_quant quant : {MLAP_WEIGHTS_BF16, MLAP_WEIGHTS_UQ_QR_INT8, MLAP_WEIGHTS_INT8}) {
    CallOptions options;
    options.weights = quant;
    NativeCall half(options);
    half.args.rope_style = MLAP_ROPE_HALF;
    NativeCall reordered(options);
    constexpr int64_t kHead = NativeCall::kNope + NativeCall::kRope;
    constexpr int64_t kKv = NativeCall::kKvRank + NativeCall::kRope;
    ReorderRope(&reordered, "weight_uq_qr", kHead, MLAP_HALF_TO_INTERLEAVED);
    ReorderRope(&reordered, "weight_dkv_kr", kKv, MLAP_HALF_TO_INTERLEAVED);
    if (quant != MLAP_WEIGHTS_BF16) ReorderRope(&reordered, "dequant_scale_w_uq_qr", kHead, MLAP_HALF_TO_INTERLEAVED);
    if (quant == MLAP_WEIGHTS_INT8) ReorderRope(&reordered, "dequant_scale_w_dkv_kr", kKv, MLAP_HALF_TO_INTERLEAVED);
    ASSERT_EQ(half.Run(Context()), MLAP_OK) << mlap_last_error();
    ASSERT_EQ(reordered.Run(Context()), MLAP_OK) << mlap_last_error();
    EXPECT_EQ(half.WritableBytes(), reordered.WritableBytes());
  }
}

TEST(RopeStyles, InterleavedResultsAreTheReorderedOnes) {
  NativeCall halves(CallOptions{});
  NativeCall interleaved(CallOptions{});
  interleaved.args.rope_style = MLAP_ROPE_INTERLEAVED;
  for (const char* table : {"rope_sin", "rope_cos"}) {
    ReorderRope(&interleaved, table, NativeCall::kRope, MLAP_HALF_TO_INTERLEAVED);
  }
  ASSERT_EQ(halves.Run(Context()), MLAP_OK) << mlap_last_error();
  ASSERT_EQ(interleaved.Run(Context()), MLAP_OK) << mlap_last_error();
  ReorderRope(&interleaved, "query_rope", NativeCall::kRope, MLAP_INTERLEAVED_TO_HALF);
  EXPECT_EQ(halves.WritableBytes().at("query_rope"), interleaved.WritableBytes().at("query_rope"));
}

}  // namespace
}  // namespace mlap::test
