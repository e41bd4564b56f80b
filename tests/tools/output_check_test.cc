// The comparison itself: what it must accept, and what it must not.
#include "output_check.h"

#include <gtest/gtest.h>

#include <cstring>

#include "bf16_convert.h"
#include "case_generator.h"
#include "native_case.h"

namespace mlap::tools {
namespace {

constexpr uint16_t kNan = 0x7fc0;
constexpr uint16_t kInfinity = 0x7f80;

class OutputCheckTest : public ::testing::TestWithParam<CacheMode> {
 protected:
  void SetUpCase(Scenario scenario) {
    CaseRecipe recipe;
    recipe.shape = {.dims = {.hidden = 96, .q_rank = 64, .heads = 4, .nope = 32, .rope = 32, .kv_rank = 64},
                    .scenario = scenario,
                    .cache_mode = GetParam(),
                    .lead = {40},
                    .block_num = 6,
                    .block_size = 16};
    case_ = GenerateCase(recipe);
    reference_ = RunReferenceOnCase(case_);
    for (const auto& [name, tensor] : reference_) outputs_[name] = CopyTensor(tensor, &bytes_[name]);
  }

  uint16_t* Bf16(const char* name) { return reinterpret_cast<uint16_t*>(bytes_[name]); }

  OutputCheck Check(std::string_view name) const {
    for (const OutputCheck& check : CheckOutputs(case_, outputs_, reference_)) {
      if (check.name == name) return check;
    }
    return {};
  }

  bool IsAccepted() const { return AllAccepted(CheckOutputs(case_, outputs_, reference_)); }

  // Where element 0 of the row of token 0 lies, and that of a slot no token has.
  int64_t WrittenOffset(int64_t width) const { return CacheOffset(case_.shape, width, Slot(0), 0); }
  int64_t UnwrittenOffset(int64_t width) const {
    for (int64_t slot = 0;; ++slot) {
      bool is_free = true;
      for (int64_t t = 0; t < case_.shape.Tokens(); ++t) is_free = is_free && Slot(t) != slot;
      if (is_free) return CacheOffset(case_.shape, width, slot, 1);
    }
  }

  int64_t Slot(int64_t token) const {
    int64_t slot;
    std::memcpy(&slot, case_.Input("cache_index").view.bytes + 8 * token, sizeof(slot));
    return slot;
  }

  PrologCase case_;
  CaseOutputs reference_;
  CaseOutputs outputs_;
  std::map<std::string, std::byte*, std::less<>> bytes_;
};

TEST_P(OutputCheckTest, EqualResultsAreAccepted) {
  for (const Scenario scenario : {Scenario::kNonQuant, Scenario::kPartial, Scenario::kPartialKvInt8}) {
    SetUpCase(scenario);
    EXPECT_TRUE(IsAccepted());
    EXPECT_EQ(CheckOutputs(case_, outputs_, reference_).size(), 4u);
    EXPECT_EQ(Check("kv_cache").num_elements, 40 * 64);
  }
}

TEST_P(OutputCheckTest, OneUnitOfBf16IsAcceptedOnceButNotEverywhere) {
  SetUpCase(Scenario::kNonQuant);
  Bf16("query")[5] ^= 1;
  EXPECT_TRUE(IsAccepted());
  EXPECT_GT(Check("query").relative_norm, 0.0);
  for (size_t i = 0; i < 40 * 4 * 64; ++i) Bf16("query")[i] ^= 1;
  EXPECT_FALSE(Check("query").is_accepted);
  EXPECT_GT(Check("query").relative_norm, 2e-3);
}

TEST_P(OutputCheckTest, OneLargeDifferenceIsNotAccepted) {
  SetUpCase(Scenario::kNonQuant);
  const float before = FloatFromBf16(Bf16("query_rope")[7]);
  Bf16("query_rope")[7] = Bf16FromFloat(before + 1.0f);
  EXPECT_FALSE(Check("query_rope").is_accepted);
  EXPECT_GT(Check("query_rope").worst, 0x1p-5);
  EXPECT_TRUE(Check("query").is_accepted);
}

TEST_P(OutputCheckTest, NonFiniteValuesMustAgree) {
  SetUpCase(Scenario::kNonQuant);
  std::byte* reference_query = nullptr;
  reference_["query"] = CopyTensor(reference_["query"], &reference_query);
  auto* reference_bits = reinterpret_cast<uint16_t*>(reference_query);
  Bf16("query")[3] = kNan;
  EXPECT_FALSE(Check("query").is_accepted);
  reference_bits[3] = kNan | 1u;
  EXPECT_TRUE(Check("query").is_accepted);
  reference_bits[4] = kInfinity;
  EXPECT_FALSE(Check("query").is_accepted);
  Bf16("query")[4] = kInfinity | 0x8000u;
  EXPECT_EQ(Check("query").num_other_nonfinite, 1);
  Bf16("query")[4] = kInfinity;
  EXPECT_TRUE(Check("query").is_accepted);
}

TEST_P(OutputCheckTest, OtherSlotsMustNotChange) {
  SetUpCase(Scenario::kNonQuant);
  Bf16("kv_cache")[UnwrittenOffset(64)] ^= 1;
  EXPECT_EQ(Check("kv_cache").num_touched, 1);
  EXPECT_FALSE(IsAccepted());
}

TEST_P(OutputCheckTest, MissingCacheRowIsNotAccepted) {
  SetUpCase(Scenario::kNonQuant);
  Bf16("kr_cache")[WrittenOffset(32)] = 0x4000;
  EXPECT_FALSE(Check("kr_cache").is_accepted);
}

TEST_P(OutputCheckTest, Int8MayDifferByOneInFewElements) {
  SetUpCase(Scenario::kPartialKvInt8);
  auto* kv = reinterpret_cast<int8_t*>(bytes_["kv_cache"]);
  const int64_t at = WrittenOffset(64);
  const int8_t step = kv[at] > 0 ? -1 : 1;
  kv[at] = static_cast<int8_t>(kv[at] + step);
  EXPECT_TRUE(IsAccepted());
  EXPECT_EQ(Check("kv_cache").num_different, 1);
  kv[at] = static_cast<int8_t>(kv[at] + step);
  EXPECT_FALSE(IsAccepted());
  kv[at] = static_cast<int8_t>(kv[at] - step);
  for (int64_t t = 0; t < 14; ++t) {
    int8_t& value = kv[CacheOffset(case_.shape, 64, Slot(t), 33)];
    value = static_cast<int8_t>(value + (value > 0 ? -1 : 1));
  }
  EXPECT_EQ(Check("kv_cache").num_different, 15);  // of 2560, more than 0.5 %
  EXPECT_FALSE(IsAccepted());
}

INSTANTIATE_TEST_SUITE_P(CacheModes, OutputCheckTest, ::testing::Values(CacheMode::kPaBsnd, CacheMode::kPaNz),
                         [](const auto& test) { return std::string(CacheModeName(test.param)); });

}  // namespace
}  // namespace mlap::tools
