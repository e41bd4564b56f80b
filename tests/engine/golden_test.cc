// The reference, and the operator on every usable ISA, against the independent model's golden files.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "core/prolog_plan.h"
#include "core/prolog_run.h"
#include "engine/golden_case.h"
#include "gtest/gtest.h"
#include "parallel/thread_pool.h"
#include "reference/reference.h"
#include "support/usable_isas.h"

namespace mlap {
namespace {

using test::GoldenCase;

// The accepted error of docs/numerics.md: relF over the tensor, the largest difference over its row's root mean square,
// and for int8 the largest difference and the share of elements that differ.
struct Tolerance {
  double rel_f;
  double row_max;
  double int8_share;
};
constexpr Tolerance kQuery = {2e-3, 1.0 / 32, 0.005};
constexpr Tolerance kCache = {1e-3, 1.0 / 32, 0.005};
// The reference rounds where the model does and sums in binary64 as the model does.
constexpr Tolerance kReference = {1e-4, 1.0 / 64, 0.001};

// VDPBF16PS takes a denormal operand for zero. What it leaves out is at most 96 products of 2^-126 and a weight below
// 10, magnified by 1 / sqrt(1e-6) in the norm: less than 2e-32.
constexpr double kFlushed = 2e-32;

std::vector<float> ToNumbers(const std::vector<uint8_t>& bytes, bool is_int8) {
  std::vector<float> numbers(is_int8 ? bytes.size() : bytes.size() / 2);
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = is_int8 ? static_cast<float>(static_cast<int8_t>(bytes[i]))
                         : ToFloat(reinterpret_cast<const Bf16*>(bytes.data())[i]);
  }
  return numbers;
}

void CompareInt8(const std::vector<float>& actual, const std::vector<float>& expected, double share) {
  size_t different = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_LE(std::fabs(actual[i] - expected[i]), 1.0f) << i;
    different += actual[i] != expected[i] ? 1 : 0;
  }
  EXPECT_LE(static_cast<double>(different), std::max(share * static_cast<double>(actual.size()), 0.0));
}

void CompareFloats(const std::vector<float>& actual, const std::vector<float>& expected, size_t row_width,
                   const Tolerance& tolerance) {
  double difference = 0.0, magnitude = 0.0;
  for (size_t row = 0; row < actual.size(); row += row_width) {
    double row_square = 0.0, row_worst = 0.0;
    size_t row_finite = 0;
    for (size_t i = row; i < row + row_width; ++i) {
      if (!std::isfinite(expected[i])) {
        ASSERT_TRUE(std::isnan(expected[i]) ? std::isnan(actual[i]) : actual[i] == expected[i]) << i;
        continue;
      }
      ASSERT_TRUE(std::isfinite(actual[i])) << i;
      const double d = static_cast<double>(actual[i]) - expected[i];
      difference += d * d;
      row_square += static_cast<double>(expected[i]) * expected[i];
      row_worst = std::max(row_worst, std::fabs(d));
      ++row_finite;
    }
    magnitude += row_square;
    if (row_finite > 0) {
      EXPECT_LE(row_worst, tolerance.row_max * std::sqrt(row_square / static_cast<double>(row_finite)) + kFlushed)
          << row;
    }
  }
  EXPECT_LE(std::sqrt(difference), tolerance.rel_f * std::sqrt(magnitude) + kFlushed);
}

void CompareTensor(const GoldenCase& golden, const char* name, const std::vector<uint8_t>& actual, size_t row_width,
                   bool is_int8, const Tolerance& tolerance) {
  SCOPED_TRACE(name);
  const std::vector<uint8_t> expected = golden.Bytes(std::string("expected.") + name);
  ASSERT_EQ(actual.size(), expected.size());
  if (is_int8) {
    CompareInt8(ToNumbers(actual, true), ToNumbers(expected, true), tolerance.int8_share);
  } else {
    CompareFloats(ToNumbers(actual, false), ToNumbers(expected, false), row_width, tolerance);
  }
}

// Elements that keep their initial bytes in the expected cache keep them here, and no others do.
void CompareUntouched(const GoldenCase& golden, const char* name, const std::vector<uint8_t>& actual,
                      size_t element_bytes) {
  const std::vector<uint8_t> before = golden.Bytes(name);
  const std::vector<uint8_t> expected = golden.Bytes(std::string("expected.") + name);
  for (size_t i = 0; i < before.size(); i += element_bytes) {
    if (std::memcmp(&expected[i], &before[i], element_bytes) != 0) continue;
    // An int8 result may by chance equal the sentinel; then it may also differ from it by one.
    if (element_bytes == 1 && std::abs(static_cast<int8_t>(actual[i]) - static_cast<int8_t>(before[i])) <= 1) continue;
    ASSERT_EQ(std::memcmp(&actual[i], &before[i], element_bytes), 0) << name << " element " << i / element_bytes;
  }
}

void CompareScales(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) ASSERT_NEAR(actual[i], expected[i], 1e-4f * expected[i]) << "scale " << i;
}

void CompareOutputs(const GoldenCase& golden, const PrologArgs& args, const GoldenCase::Outputs& out,
                    const Tolerance& query, const Tolerance& cache) {
  const bool int8_kv = args.kv_cache.type == ElementType::kInt8;
  const bool int8_kr = args.kr_cache.type == ElementType::kInt8;
  CompareTensor(golden, "query", out.query, static_cast<size_t>(args.shape.kv_rank), args.mode.QuantizesQuery(), query);
  CompareTensor(golden, "query_rope", out.query_rope, static_cast<size_t>(args.shape.rope), false, query);
  CompareTensor(golden, "kv_cache", out.kv_cache, static_cast<size_t>(args.shape.kv_rank), int8_kv, cache);
  CompareTensor(golden, "kr_cache", out.kr_cache, static_cast<size_t>(args.shape.rope), int8_kr, cache);
  CompareUntouched(golden, "kv_cache", out.kv_cache, int8_kv ? 1 : 2);
  CompareUntouched(golden, "kr_cache", out.kr_cache, int8_kr ? 1 : 2);
  CompareScales(out.dequant_scale_q_nope, golden.Numbers("expected.dequant_scale_q_nope"));
}

class GoldenTest : public testing::TestWithParam<std::string> {};

TEST_P(GoldenTest, Reference) {
  const GoldenCase golden(test::GoldenCasePath(GetParam()));
  GoldenCase::Outputs out = golden.FreshOutputs();
  const PrologArgs args = golden.Args(&out);
  Intermediates seen;
  RunReference(args, {.intermediates = &seen, .progress = nullptr});
  CompareOutputs(golden, args, out, kReference, kReference);

  const auto compare = [&](const char* name, const std::vector<float>& actual, int64_t row_width) {
    SCOPED_TRACE(name);
    const std::vector<float> expected = golden.Numbers(std::string("expected.") + name);
    ASSERT_EQ(actual.size(), expected.size());
    CompareFloats(actual, expected, static_cast<size_t>(row_width), kReference);
  };
  compare("c_q", seen.c_q, args.shape.q_rank);
  compare("q_c", seen.q_c, args.shape.nope);
  compare("q_r", seen.q_r, args.shape.rope);
  compare("c_kv", seen.c_kv, args.shape.kv_rank);
  compare("k_r", seen.k_r, args.shape.rope);
  if (args.mode.weight_quant != WeightQuant::kNone) {
    compare("c_q_scale", seen.c_q_scale, 1);
    CompareInt8(ToNumbers(seen.c_q_quantized, true), golden.Numbers("expected.c_q_int8"), kReference.int8_share);
  }
}

TEST_P(GoldenTest, OperatorOnEveryIsa) {
  const GoldenCase golden(test::GoldenCasePath(GetParam()));
  for (const KernelChoice& choice : test::UsableIsas()) {
    SCOPED_TRACE(choice.isa);
    GoldenCase::Outputs out = golden.FreshOutputs();
    const PrologArgs args = golden.Args(&out);
    ThreadPool pool(2);
    PrologPlan plan;
    ASSERT_TRUE(PlanProlog(args.shape, args.mode, pool.num_workers(), &plan).ok());
    std::vector<char> workspace(plan.workspace_bytes);
    ASSERT_TRUE(RunProlog(args, plan, choice.table, &pool, workspace.data(), nullptr).ok());
    CompareOutputs(golden, args, out, kQuery, kCache);
  }
}

INSTANTIATE_TEST_SUITE_P(Case, GoldenTest, testing::ValuesIn(test::GoldenCaseNames()),
                         [](const auto& instance) { return instance.param; });

TEST(GoldenFiles, AreThere) { EXPECT_GE(test::GoldenCaseNames().size(), 40u); }

}  // namespace
}  // namespace mlap
