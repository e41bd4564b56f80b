// The reference, and the operator on every usable ISA, against the independent model's golden files.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
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
using test::ToNumbers;

// The accepted error of docs/numerics.md: relF over the tensor, the largest difference over its row's root mean square,
// and for 8-bit types the share of elements that are not equal but neighbours.
struct Tolerance {
  double rel_f;
  double row_max;
  double eight_bit_share;
};
constexpr Tolerance kQuery = {2e-3, 1.0 / 32, 0.005};
constexpr Tolerance kCache = {1e-3, 1.0 / 32, 0.005};
// The reference rounds where the model does and sums in binary64 as the model does.
constexpr Tolerance kReference = {1e-4, 1.0 / 64, 0.001};

// VDPBF16PS takes a denormal operand for zero. What it leaves out is at most 96 products of 2^-126 and a weight below
// 10, magnified by 1 / sqrt(1e-6) in the norm: less than 2e-32.
constexpr double kFlushed = 2e-32;

bool IsEightBit(ElementType type) { return ElementBytes(type) == 1; }

// The values of all codes of an 8-bit type, ascending.
std::vector<float> AllValues(ElementType type) {
  std::vector<uint8_t> codes(256);
  std::iota(codes.begin(), codes.end(), uint8_t{0});
  std::vector<float> values = ToNumbers(codes, type);
  std::erase_if(values, [](float value) { return std::isnan(value); });
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

// Values of an 8-bit type: neighbours at most, and few that are not equal.
void CompareEightBit(const std::vector<float>& actual, const std::vector<float>& expected, ElementType type,
                     double share) {
  const std::vector<float> values = AllValues(type);
  const auto place = [&](float value) { return std::lower_bound(values.begin(), values.end(), value); };
  size_t different = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(std::isnan(actual[i]), std::isnan(expected[i])) << i;
    if (std::isnan(actual[i]) || actual[i] == expected[i]) continue;
    ASSERT_LE(std::abs(place(actual[i]) - place(expected[i])), 1) << i;
    ++different;
  }
  EXPECT_LE(static_cast<double>(different), share * static_cast<double>(actual.size()));
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
                   ElementType type, const Tolerance& tolerance) {
  SCOPED_TRACE(name);
  const std::vector<uint8_t> expected = golden.Bytes(std::string("expected.") + name);
  ASSERT_EQ(actual.size(), expected.size());
  if (IsEightBit(type)) {
    CompareEightBit(ToNumbers(actual, type), ToNumbers(expected, type), type, tolerance.eight_bit_share);
  } else {
    CompareFloats(ToNumbers(actual, type), ToNumbers(expected, type), row_width, tolerance);
  }
}

// Elements that keep their initial bytes in the expected cache keep them here, and no others do.
void CompareUntouched(const GoldenCase& golden, const char* name, const std::vector<uint8_t>& actual,
                      ElementType type) {
  const auto element_bytes = static_cast<size_t>(ElementBytes(type));
  const std::vector<uint8_t> before = golden.Bytes(name);
  const std::vector<uint8_t> expected = golden.Bytes(std::string("expected.") + name);
  for (size_t i = 0; i < before.size(); i += element_bytes) {
    if (std::memcmp(&expected[i], &before[i], element_bytes) != 0) continue;
    // An 8-bit result may by chance equal the sentinel; then it may also differ from it by one.
    if (element_bytes == 1 && std::abs(actual[i] - before[i]) <= 1) continue;
    ASSERT_EQ(std::memcmp(&actual[i], &before[i], element_bytes), 0) << name << " element " << i / element_bytes;
  }
}

void CompareScales(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(std::isnan(actual[i]), std::isnan(expected[i])) << i;
    if (!std::isnan(expected[i]) && actual[i] != expected[i]) {
      ASSERT_NEAR(actual[i], expected[i], 1e-4f * expected[i]) << i;
    }
  }
}

// kPerGroup rows part by part; rows that are not written stay as they are.
void CompareGroupRows(const GoldenCase& golden, const PrologArgs& args, const std::vector<uint8_t>& actual,
                      const Tolerance& tolerance) {
  SCOPED_TRACE("kv_cache");
  const GroupRow layout = {args.shape.kv_rank, args.shape.rope};
  const std::vector<uint8_t> before = golden.Bytes("kv_cache");
  const std::vector<uint8_t> expected = golden.Bytes("expected.kv_cache");
  ASSERT_EQ(actual.size(), expected.size());
  struct Parts {
    std::vector<uint8_t> values, rope, scales;
  };
  Parts found, wanted;
  for (int64_t row = 0; row < static_cast<int64_t>(actual.size()); row += layout.Bytes()) {
    const auto piece = [&](const std::vector<uint8_t>& bytes, int64_t begin, int64_t end) {
      return std::vector<uint8_t>(bytes.begin() + row + begin, bytes.begin() + row + end);
    };
    if (piece(expected, 0, layout.Bytes()) == piece(before, 0, layout.Bytes())) {
      ASSERT_EQ(piece(actual, 0, layout.Bytes()), piece(before, 0, layout.Bytes())) << row / layout.Bytes();
      continue;
    }
    const auto append = [&](const std::vector<uint8_t>& bytes, Parts* parts) {
      const auto add = [&](std::vector<uint8_t>* part, int64_t begin, int64_t end) {
        const std::vector<uint8_t> more = piece(bytes, begin, end);
        part->insert(part->end(), more.begin(), more.end());
      };
      add(&parts->values, 0, layout.RopeOffset());
      add(&parts->rope, layout.RopeOffset(), layout.ScaleOffset());
      add(&parts->scales, layout.ScaleOffset(), layout.Bytes());
    };
    append(actual, &found);
    append(expected, &wanted);
  }
  const ElementType type = args.mode.QuantType();
  CompareEightBit(ToNumbers(found.values, type), ToNumbers(wanted.values, type), type, tolerance.eight_bit_share);
  CompareFloats(ToNumbers(found.rope, ElementType::kBf16), ToNumbers(wanted.rope, ElementType::kBf16),
                static_cast<size_t>(layout.rope), tolerance);
  CompareScales(ToNumbers(found.scales, ElementType::kFloat32), ToNumbers(wanted.scales, ElementType::kFloat32));
}

void CompareCaches(const GoldenCase& golden, const PrologArgs& args, const GoldenCase::Outputs& out,
                   const Tolerance& tolerance) {
  if (args.mode.kv_quant == KvQuant::kPerGroup) return CompareGroupRows(golden, args, out.kv_cache, tolerance);
  CompareTensor(golden, "kv_cache", out.kv_cache, static_cast<size_t>(args.shape.kv_rank), args.kv_cache.type,
                tolerance);
  CompareTensor(golden, "kr_cache", out.kr_cache, static_cast<size_t>(args.shape.rope), args.kr_cache.type, tolerance);
  CompareUntouched(golden, "kv_cache", out.kv_cache, args.kv_cache.type);
  CompareUntouched(golden, "kr_cache", out.kr_cache, args.kr_cache.type);
}

void CompareOutputs(const GoldenCase& golden, const PrologArgs& args, const GoldenCase::Outputs& out,
                    const Tolerance& query, const Tolerance& cache) {
  const ElementType query_type = args.mode.QuantizesQuery() ? args.mode.QuantType() : ElementType::kBf16;
  CompareTensor(golden, "query", out.query, static_cast<size_t>(args.shape.kv_rank), query_type, query);
  CompareTensor(golden, "query_rope", out.query_rope, static_cast<size_t>(args.shape.rope), ElementType::kBf16, query);
  CompareCaches(golden, args, out, cache);
  CompareScales(out.dequant_scale_q_nope, golden.Numbers("expected.dequant_scale_q_nope"));
  if (args.query_norm == nullptr) return;
  CompareTensor(golden, "query_norm", out.query_norm, static_cast<size_t>(args.shape.q_rank), args.mode.CqType(),
                query);
  if (args.mode.weight_quant == WeightQuant::kMxFp8) {
    EXPECT_EQ(out.mx_scale_q_norm, golden.Bytes("expected.dequant_scale_q_norm"));
  } else {
    CompareScales(out.dequant_scale_q_norm, golden.Numbers("expected.dequant_scale_q_norm"));
  }
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
  if (golden.Bytes("expected.c_q_int8").empty()) return;
  compare("c_q_scale", seen.c_q_scale, 1);
  CompareEightBit(ToNumbers(seen.c_q_quantized, ElementType::kInt8), golden.Numbers("expected.c_q_int8"),
                  ElementType::kInt8, kReference.eight_bit_share);
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
