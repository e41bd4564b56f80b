// mlap_compare: its numbers by hand, and each standard on both sides of its limits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/bf16.h"
#include "mlaprolog/mlaprolog.h"

namespace mlap::test {
namespace {

mlap_tensor Floats(const std::vector<float>& values, int64_t width) {
  return {const_cast<float*>(values.data()),
          MLAP_FLOAT32,
          MLAP_ROW_MAJOR,
          2,
          {static_cast<int64_t>(values.size()) / width, width},
          {}};
}

mlap_comparison Compared(const mlap_tensor& a, const mlap_tensor& g, mlap_standard standard,
                         const mlap_tensor* b = nullptr) {
  mlap_comparison comparison = {};
  comparison.struct_size = sizeof(comparison);
  EXPECT_EQ(mlap_compare(&a, &g, b, standard, &comparison), MLAP_OK) << mlap_last_error();
  return comparison;
}

TEST(Comparison, NumbersByHand) {
  // Rows (3, 4) of RMS sqrt(12.5), and (6, 8) of RMS sqrt(50).
  const std::vector<float> golden = {3, 4, 6, 8};
  const std::vector<float> actual = {3, 4.5, 6, 7};
  const mlap_comparison c = Compared(Floats(actual, 2), Floats(golden, 2), MLAP_STANDARD_STAGED);
  EXPECT_EQ(c.num_elements, 4);
  EXPECT_EQ(c.num_different, 2);
  EXPECT_NEAR(c.relative_norm, std::sqrt(1.25 / 125.0), 1e-12);
  EXPECT_NEAR(c.max_row_rms, std::max(0.5 / std::sqrt(12.5), 1.0 / std::sqrt(50.0)), 1e-12);
  EXPECT_NEAR(c.cosine, (9 + 18 + 36 + 56) / (std::sqrt(9 + 20.25 + 36 + 49) * std::sqrt(125.0)), 1e-12);
  EXPECT_EQ(c.max_abs, 1.0);
  EXPECT_NEAR(c.mere, (0.5 / 4.0000001 + 1.0 / 8.0000001) / 4, 1e-12);
  EXPECT_NEAR(c.mare, 1.0 / 8.0000001, 1e-12);
  EXPECT_NEAR(c.rmse, std::sqrt(1.25 / 4), 1e-12);
  EXPECT_EQ(c.share_beyond, 0.5);
  EXPECT_FALSE(c.is_passed);
  EXPECT_NE(std::string(c.verdict).find("relative norm"), std::string::npos) << c.verdict;
}

TEST(Comparison, EqualTensorsPassEveryStandard) {
  const std::vector<float> values = {1, -2, 0, 1e-30f, 5e8f, std::numeric_limits<float>::infinity(), NAN, -0.0f};
  const std::vector<int8_t> bytes = {-128, 0, 127, 5};
  const mlap_tensor floats = Floats(values, 4);
  const mlap_tensor ints = {const_cast<int8_t*>(bytes.data()), MLAP_INT8, MLAP_ROW_MAJOR, 1, {4}, {}};
  size_t count = 0;
  mlap_standard standard;
  const char* name = nullptr;
  for (; mlap_standard_at(count, &standard, &name) == MLAP_OK; ++count) {
    const bool is_dual = standard >= MLAP_STANDARD_DUAL_L0;
    const mlap_tensor& tensor = standard == MLAP_STANDARD_INT_WITHIN_1 ? ints : floats;
    const mlap_comparison c = Compared(tensor, tensor, standard, is_dual ? &tensor : nullptr);
    EXPECT_TRUE(c.is_passed) << name << ": " << c.verdict;
    EXPECT_STREQ(c.verdict, "passed");
    EXPECT_EQ(c.num_different, 0);
  }
  EXPECT_EQ(count, 12u);
  EXPECT_NE(std::string(mlap_last_error()).find("index"), std::string::npos);
}

// A thousand ones, of which some are changed.
struct Ones {
  std::vector<float> golden = std::vector<float>(1000, 1.0f);
  std::vector<float> actual = golden;

  Ones& Add(size_t count, double error) {
    for (size_t i = 0; i < count; ++i) actual[i] += static_cast<float>(error);
    return *this;
  }
};

TEST(Comparison, LimitsOfTheStandards) {
  struct Case {
    mlap_standard standard;
    std::function<void(Ones*)> change;
    bool passes;
  };
  const auto add = [](size_t count, double error) { return [=](Ones* ones) { ones->Add(count, error); }; };
  const Case cases[] = {
      {MLAP_STANDARD_STAGED, add(1000, 0.0019), true},
      {MLAP_STANDARD_STAGED, add(1000, 0.0021), false},
      {MLAP_STANDARD_STAGED, add(1, 0.031), true},
      {MLAP_STANDARD_STAGED, add(1, 0.032), false},
      {MLAP_STANDARD_STAGED_CACHE, add(1000, 0.0009), true},
      {MLAP_STANDARD_STAGED_CACHE, add(1000, 0.0011), false},
      {MLAP_STANDARD_UNROUNDED, add(1000, 0.009), true},
      {MLAP_STANDARD_UNROUNDED, add(1000, 0.011), false},
      {MLAP_STANDARD_UNROUNDED, add(1, 0.062), true},
      {MLAP_STANDARD_UNROUNDED, add(1, 0.063), false},
      {MLAP_STANDARD_SCALES, add(1000, 0.99e-4), true},
      {MLAP_STANDARD_SCALES, add(1, 1.02e-4), false},
      // FLOAT32: threshold 2^-13, at most 1 % beyond, and no error above 1e-2.
      {MLAP_STANDARD_MIXED_TOLERANCE, add(1000, 2.0 * 0x1p-13), true},
      {MLAP_STANDARD_MIXED_TOLERANCE, add(10, 0.009), true},
      {MLAP_STANDARD_MIXED_TOLERANCE, add(11, 0.009), false},
      {MLAP_STANDARD_MIXED_TOLERANCE, add(1, 0.011), false},
      {MLAP_STANDARD_MERE_MARE, add(1000, 0.9 * 0x1p-13), true},
      {MLAP_STANDARD_MERE_MARE, add(1000, 1.1 * 0x1p-13), false},
      {MLAP_STANDARD_MERE_MARE, add(1, 9.0 * 0x1p-13), true},
      {MLAP_STANDARD_MERE_MARE, add(1, 11.0 * 0x1p-13), false},
      {MLAP_STANDARD_HALF_PERCENT, add(5, 0.5), true},
      {MLAP_STANDARD_HALF_PERCENT, add(6, 0.5), false},
      {MLAP_STANDARD_HALF_PERCENT, add(1000, 0.005), true},
      {MLAP_STANDARD_HALF_PERCENT, add(1, 11.0), false},
      {MLAP_STANDARD_EXACT, add(1, 0.0), true},
      {MLAP_STANDARD_EXACT, add(1, 1e-7), false},
  };
  for (const Case& c : cases) {
    Ones ones;
    c.change(&ones);
    const mlap_comparison result = Compared(Floats(ones.actual, 1000), Floats(ones.golden, 1000), c.standard);
    EXPECT_EQ(result.is_passed != 0, c.passes)
        << "standard " << c.standard << ", case " << &c - cases << ": " << result.verdict;
  }
}

TEST(Comparison, Integers) {
  std::vector<int8_t> golden(1000, 5), actual = golden;
  const auto compare = [&] {
    const mlap_tensor a = {actual.data(), MLAP_INT8, MLAP_ROW_MAJOR, 1, {1000}, {}};
    const mlap_tensor g = {golden.data(), MLAP_INT8, MLAP_ROW_MAJOR, 1, {1000}, {}};
    return Compared(a, g, MLAP_STANDARD_INT_WITHIN_1);
  };
  for (size_t i = 0; i < 5; ++i) actual[i] = i % 2 == 0 ? 6 : 4;
  EXPECT_TRUE(compare().is_passed);
  EXPECT_EQ(compare().num_different, 5);
  actual[5] = 6;
  EXPECT_FALSE(compare().is_passed);
  actual = golden;
  actual[0] = 7;
  EXPECT_FALSE(compare().is_passed);
  EXPECT_EQ(compare().max_abs, 2.0);
}

TEST(Comparison, NotANumberCountsOnOneSideOnly) {
  Ones ones;
  ones.golden[3] = ones.actual[3] = NAN;
  EXPECT_TRUE(Compared(Floats(ones.actual, 1000), Floats(ones.golden, 1000), MLAP_STANDARD_STAGED).is_passed);
  ones.actual[4] = NAN;
  const mlap_comparison c = Compared(Floats(ones.actual, 1000), Floats(ones.golden, 1000), MLAP_STANDARD_STAGED);
  EXPECT_FALSE(c.is_passed);
  EXPECT_EQ(c.num_nonfinite_different, 1);
  ones.actual[4] = 1;
  ones.golden[4] = -HUGE_VALF;
  EXPECT_FALSE(Compared(Floats(ones.actual, 1000), Floats(ones.golden, 1000), MLAP_STANDARD_HALF_PERCENT).is_passed);
}

TEST(Comparison, RatiosToABenchmark) {
  // Every error of the candidate is `ratio` times the benchmark's, in the normal and in the small values.
  struct Case {
    mlap_standard standard;
    double passes, fails;
  };
  for (const Case& c : {Case{MLAP_STANDARD_DUAL_L0, 1.99, 2.01}, Case{MLAP_STANDARD_DUAL_L1, 1.49, 1.51},
                        Case{MLAP_STANDARD_DUAL_L2, 1.19, 1.21}}) {
    for (const double ratio : {c.passes, c.fails}) {
      std::vector<float> golden(1000, 1.0f), actual = golden, benchmark = golden;
      for (size_t i = 0; i < 1000; ++i) {
        actual[i] += static_cast<float>(ratio * 0x1p-8);
        benchmark[i] += 0x1p-8f;
      }
      const mlap_tensor b = Floats(benchmark, 1000);
      const mlap_comparison result = Compared(Floats(actual, 1000), Floats(golden, 1000), c.standard, &b);
      EXPECT_EQ(result.is_passed != 0, ratio == c.passes) << result.verdict;
      EXPECT_NEAR(result.rmse_ratio, ratio, 1e-4);
    }
  }
  // Small golden values are judged by the count of errors above 2^-30.
  std::vector<float> golden(100, 0x1p-20f), actual = golden, benchmark = golden;
  for (size_t i = 0; i < 10; ++i) benchmark[i] += 0x1p-29f;
  for (size_t i = 0; i < 21; ++i) actual[i] += 0x1p-29f;
  const mlap_tensor b = Floats(benchmark, 100);
  const mlap_comparison result = Compared(Floats(actual, 100), Floats(golden, 100), MLAP_STANDARD_DUAL_L0, &b);
  EXPECT_FALSE(result.is_passed);
  EXPECT_NEAR(result.small_value_ratio, 2.1, 1e-12);
  EXPECT_EQ(result.mare, 0.0);
}

TEST(Comparison, TypesAndStrides) {
  // The same values in every type that holds them, every second element of an array.
  const float values[] = {1.0f, -2.0f, 0.5f, 448.0f};
  const uint16_t bf16[] = {0x3F80, 0, 0xC000, 0, 0x3F00, 0, 0x43E0, 0};
  const uint16_t half[] = {0x3C00, 0, 0xC000, 0, 0x3800, 0, 0x5F00, 0};
  const double wide[] = {1.0, 9, -2.0, 9, 0.5, 9, 448.0, 9};
  const uint8_t e4m3[] = {0x38, 0, 0xC0, 0, 0x30, 0, 0x7E, 0};
  const mlap_tensor golden = {const_cast<float*>(values), MLAP_FLOAT32, MLAP_ROW_MAJOR, 1, {4}, {}};
  const std::pair<const void*, mlap_dtype> arrays[] = {
      {bf16, MLAP_BF16}, {half, MLAP_FLOAT16}, {wide, MLAP_FLOAT64}, {e4m3, MLAP_FLOAT8_E4M3}};
  for (const auto& [data, dtype] : arrays) {
    const mlap_tensor tensor = {const_cast<void*>(data), dtype, MLAP_ROW_MAJOR, 1, {4}, {2}};
    const mlap_comparison c = Compared(tensor, golden, MLAP_STANDARD_STAGED);
    EXPECT_EQ(c.num_different, 0) << dtype;
    EXPECT_EQ(c.cosine, 1.0);
  }
  // Half: subnormals, infinity, NaN.
  const uint16_t odd[] = {0x0001, 0x83FF, 0x7C00, 0xFC00, 0x7E00};
  const double expected[] = {0x1p-24, -1023 * 0x1p-24, HUGE_VAL, -HUGE_VAL, NAN};
  const mlap_tensor a = {const_cast<uint16_t*>(odd), MLAP_FLOAT16, MLAP_ROW_MAJOR, 1, {5}, {}};
  const mlap_tensor g = {const_cast<double*>(expected), MLAP_FLOAT64, MLAP_ROW_MAJOR, 1, {5}, {}};
  EXPECT_EQ(Compared(a, g, MLAP_STANDARD_STAGED).num_different, 0);
}

TEST(Comparison, Refusals) {
  const std::vector<float> values(8, 1.0f);
  const std::vector<int8_t> bytes(8, 1);
  const mlap_tensor floats = Floats(values, 4);
  const mlap_tensor ints = {const_cast<int8_t*>(bytes.data()), MLAP_INT8, MLAP_ROW_MAJOR, 2, {2, 4}, {}};
  mlap_tensor other = floats;
  other.dims[1] = 2;
  mlap_tensor no_memory = floats;
  no_memory.data = nullptr;
  struct Case {
    const char* name;
    mlap_tensor actual, golden;
    const mlap_tensor* benchmark;
    int standard;
  };
  const Case cases[] = {
      {"actual", {}, floats, nullptr, 2},        {"golden", floats, {}, nullptr, 2},
      {"golden", floats, other, nullptr, 2},     {"golden", floats, no_memory, nullptr, 2},
      {"actual", no_memory, floats, nullptr, 2}, {"standard", floats, floats, nullptr, 99},
      {"standard", floats, floats, nullptr, -1}, {"benchmark", floats, floats, nullptr, 20},
      {"benchmark", floats, floats, &floats, 2}, {"benchmark", floats, floats, &other, 20},
      {"actual", floats, floats, nullptr, 1},    {"actual", ints, ints, nullptr, 10},
      {"actual", ints, ints, nullptr, 5},        {"actual", ints, ints, nullptr, 12},
      {"golden", floats, ints, nullptr, 0},
  };
  for (const Case& c : cases) {
    mlap_comparison comparison = {};
    comparison.struct_size = sizeof(comparison);
    comparison.max_abs = 7;
    EXPECT_EQ(mlap_compare(&c.actual, &c.golden, c.benchmark, mlap_standard(c.standard), &comparison),
              MLAP_INVALID_ARGUMENT);
    EXPECT_NE(std::string(mlap_last_error()).find(c.name), std::string::npos) << c.name << ": " << mlap_last_error();
    EXPECT_EQ(comparison.max_abs, 7);
  }
  mlap_comparison unset = {};
  EXPECT_EQ(mlap_compare(&floats, &floats, nullptr, MLAP_STANDARD_EXACT, &unset), MLAP_INVALID_ARGUMENT);
  EXPECT_EQ(mlap_compare(nullptr, &floats, nullptr, MLAP_STANDARD_EXACT, &unset), MLAP_INVALID_ARGUMENT);
  EXPECT_EQ(mlap_standard_at(0, nullptr, nullptr), MLAP_INVALID_ARGUMENT);
}

TEST(Comparison, EmptyTensorsAreEqual) {
  const mlap_tensor empty = {nullptr, MLAP_BF16, MLAP_ROW_MAJOR, 2, {0, 4}, {}};
  const mlap_comparison c = Compared(empty, empty, MLAP_STANDARD_MIXED_TOLERANCE);
  EXPECT_TRUE(c.is_passed);
  EXPECT_EQ(c.num_elements, 0);
  // No row asks for memory of its width.
  const mlap_tensor wide = {nullptr, MLAP_BF16, MLAP_ROW_MAJOR, 2, {0, int64_t{1} << 56}, {}};
  EXPECT_TRUE(Compared(wide, wide, MLAP_STANDARD_STAGED).is_passed);
}

TEST(Comparison, WithoutMemoryNothingIsWritten) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers end the process at an allocation of this size";
#endif
  const float one = 1.0f;
  const mlap_tensor row = {const_cast<float*>(&one), MLAP_FLOAT32, MLAP_ROW_MAJOR, 2, {1, int64_t{1} << 56}, {1, 0}};
  mlap_comparison comparison = {};
  comparison.struct_size = sizeof(comparison);
  comparison.max_abs = 7;
  EXPECT_EQ(mlap_compare(&row, &row, nullptr, MLAP_STANDARD_STAGED, &comparison), MLAP_OUT_OF_MEMORY);
  EXPECT_EQ(comparison.max_abs, 7);
}

TEST(Comparison, WideIntegersAreComparedExactly) {
  constexpr int64_t kLarge = int64_t{1} << 60;
  struct Case {
    int64_t actual, golden;
    double difference;
  };
  for (const Case& c : {Case{kLarge, kLarge, 0}, Case{kLarge + 1, kLarge, 1}, Case{kLarge - 1, kLarge, 1},
                        Case{kLarge + 2, kLarge, 2}, Case{kLarge + 100, kLarge, 100}, Case{-kLarge - 100, -kLarge, 100},
                        Case{INT64_MIN, INT64_MIN + 1, 1}, Case{INT64_MIN, INT64_MAX, 0x1p64}}) {
    const mlap_tensor a = {const_cast<int64_t*>(&c.actual), MLAP_INT64, MLAP_ROW_MAJOR, 1, {1}, {}};
    const mlap_tensor g = {const_cast<int64_t*>(&c.golden), MLAP_INT64, MLAP_ROW_MAJOR, 1, {1}, {}};
    const mlap_comparison found = Compared(a, g, MLAP_STANDARD_INT_WITHIN_1);
    EXPECT_EQ(found.max_abs, c.difference) << c.actual;
    EXPECT_EQ(found.num_different, c.difference == 0 ? 0 : 1) << c.actual;
    EXPECT_EQ(found.is_passed != 0, c.difference <= 1) << c.actual;
  }
}

}  // namespace
}  // namespace mlap::test
