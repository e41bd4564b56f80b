// The operator on every usable ISA against the reference, on random calls of every scenario and cache mode.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "base/e4m3.h"
#include "base/hif8.h"
#include "core/prolog_plan.h"
#include "core/prolog_run.h"
#include "engine/random_call.h"
#include "gtest/gtest.h"
#include "parallel/thread_pool.h"
#include "reference/reference.h"
#include "support/usable_isas.h"

namespace mlap {
namespace {

using test::RandomCall;

constexpr PrologShape kShape = {18, 384, 256, 3, 48, 32, 96};

float NumberAt(const std::vector<uint8_t>& bytes, ElementType type, size_t i) {
  switch (type) {
    case ElementType::kInt8:
      return static_cast<int8_t>(bytes[i]);
    case ElementType::kE4m3:
      return ToFloat(E4m3{bytes[i]});
    case ElementType::kHiF8:
      return ToFloat(HiF8{bytes[i]});
    default: {
      Bf16 value;
      std::memcpy(&value, &bytes[2 * i], sizeof(value));
      return ToFloat(value);
    }
  }
}

// The Frobenius norm of the difference over that of the reference.
void ExpectClose(const std::vector<uint8_t>& actual, const std::vector<uint8_t>& expected, ElementType type,
                 double rel_f, const char* name) {
  ASSERT_EQ(actual.size(), expected.size());
  double difference = 0.0, magnitude = 0.0;
  for (size_t i = 0; i < actual.size() / static_cast<size_t>(ElementBytes(type)); ++i) {
    const double wanted = NumberAt(expected, type, i);
    const double found = NumberAt(actual, type, i);
    ASSERT_EQ(std::isfinite(found), std::isfinite(wanted)) << name << " " << i;
    if (!std::isfinite(wanted)) continue;
    difference += (found - wanted) * (found - wanted);
    magnitude += wanted * wanted;
  }
  EXPECT_LE(std::sqrt(difference), rel_f * std::sqrt(magnitude)) << name;
}

void ExpectFewDifferentBytes(const std::vector<uint8_t>& actual, const std::vector<uint8_t>& expected,
                             const char* name) {
  ASSERT_EQ(actual.size(), expected.size());
  size_t different = 0;
  for (size_t i = 0; i < actual.size(); ++i) different += actual[i] != expected[i] ? 1 : 0;
  EXPECT_LE(static_cast<double>(different), 0.005 * static_cast<double>(actual.size())) << name;
}

void ExpectSimilarScales(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-4f * std::fabs(expected[i])) << i;
}

std::vector<uint8_t> BytesOf(const std::vector<Bf16>& values) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
  return {bytes, bytes + values.size() * sizeof(Bf16)};
}

class ReferenceTest : public testing::TestWithParam<KernelChoice> {};

TEST_P(ReferenceTest, EveryScenario) {
  for (const test::CallOptions& options : test::AllScenarios(kShape)) {
    SCOPED_TRACE(Describe(options));
    const RandomCall call(options);
    RandomCall::Outputs expected = call.FreshOutputs(), out = call.FreshOutputs();
    RunReference(call.Args(0, kShape.tokens, &expected), {});
    const PrologArgs args = call.Args(0, kShape.tokens, &out);
    ThreadPool pool(2);
    PrologPlan plan;
    ASSERT_TRUE(PlanProlog(args.shape, args.mode, pool.num_workers(), &plan).ok());
    std::vector<char> workspace(plan.workspace_bytes);
    ASSERT_TRUE(RunProlog(args, plan, GetParam().table, &pool, workspace.data(), nullptr).ok());

    const ElementType query = options.mode.QuantizesQuery() ? options.mode.QuantType() : ElementType::kBf16;
    ExpectClose(out.query, expected.query, query, 2e-3, "query");
    ExpectClose(BytesOf(out.query_rope), BytesOf(expected.query_rope), ElementType::kBf16, 2e-3, "query_rope");
    if (args.mode.kv_quant == KvQuant::kPerGroup) {
      // Values, rope and scales differ by last bits only.
      ExpectFewDifferentBytes(out.kv_cache, expected.kv_cache, "kv_cache");
    } else {
      ExpectClose(out.kv_cache, expected.kv_cache, args.kv_cache.type, 1e-3, "kv_cache");
      ExpectClose(out.kr_cache, expected.kr_cache, args.kr_cache.type, 1e-3, "kr_cache");
    }
    ExpectSimilarScales(out.dequant_scale_q_nope, expected.dequant_scale_q_nope);
    ExpectFewDifferentBytes(out.query_norm, expected.query_norm, "query_norm");
    ExpectSimilarScales(out.dequant_scale_q_norm, expected.dequant_scale_q_norm);
    EXPECT_EQ(out.mx_scale_q_norm, expected.mx_scale_q_norm);
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, ReferenceTest, testing::ValuesIn(test::UsableIsas()),
                         [](const auto& instance) { return test::IsaName(instance.param); });

// x W_UQ|QR written out: without low rank nothing else comes before qC and qR.
TEST(ReferenceWithoutLowRank, MultipliesX) {
  test::CallOptions options;
  options.shape = {3, 20, 0, 2, 6, 4, 16};
  options.mode.rope_style = RopeStyle::kNone;
  const RandomCall call(options);
  RandomCall::Outputs out = call.FreshOutputs();
  const PrologArgs args = call.Args(0, 3, &out);
  RunReference(args, {});
  const auto* x = static_cast<const Bf16*>(args.token_x);
  const auto* w = static_cast<const Bf16*>(args.weight_uq_qr.data);
  for (int64_t t = 0; t < 3; ++t) {
    for (int64_t n = 0; n < 2; ++n) {
      float product[10];
      for (int64_t j = 0; j < 10; ++j) {
        double sum = 0.0;
        for (int64_t i = 0; i < 20; ++i) {
          sum += static_cast<double>(ToFloat(x[t * 20 + i])) * ToFloat(w[args.weight_uq_qr.Offset(i, n * 10 + j)]);
        }
        product[j] = ToFloat(RoundToBf16(static_cast<float>(sum)));
      }
      for (int64_t j = 0; j < 4; ++j) EXPECT_EQ(ToFloat(args.query_rope[(t * 2 + n) * 4 + j]), product[6 + j]);
      for (int64_t j = 0; j < 16; ++j) {
        double sum = 0.0;
        for (int64_t d = 0; d < 6; ++d) {
          sum += static_cast<double>(product[d]) * ToFloat(args.weight_uk[(n * 6 + d) * 16 + j]);
        }
        EXPECT_EQ(ToFloat(static_cast<const Bf16*>(args.query)[(t * 2 + n) * 16 + j]),
                  ToFloat(RoundToBf16(static_cast<float>(sum))));
      }
    }
  }
}

}  // namespace
}  // namespace mlap
