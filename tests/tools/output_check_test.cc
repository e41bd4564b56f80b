// The comparison itself: what it must accept, and what it must not.
#include "output_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bf16_convert.h"
#include "case_generator.h"
#include "case_options.h"
#include "case_slots.h"
#include "eight_bit_codes.h"
#include "native_case.h"

namespace mlap::tools {
namespace {

constexpr uint16_t kNan = 0x7fc0;
constexpr uint16_t kInfinity = 0x7f80;

constexpr int64_t kTokens = 40;

class OutputCheckTest : public ::testing::TestWithParam<mlap_cache_mode> {
 protected:
  void SetUpCase(const char* scenario) {
    CaseOptions options;
    options.model = "tiny";
    options.scenario = scenario;
    options.cache_mode = CacheModeName(GetParam());
    options.query_norm = true;
    options.block_size = 16;
    if (GetParam() == MLAP_BSND) {
      options.batch = 8;
      options.seq = 5;
    } else {
      options.tokens = kTokens;
    }
    case_ = GenerateCase(MakeRecipe(options));
    reference_ = RunReferenceOnCase(case_, MLAP_RULES_A2);
    for (const auto& [name, tensor] : reference_) outputs_[name] = CopyTensor(tensor, &bytes_[name]);
  }

  static bool IsPaged() { return GetParam() != MLAP_BSND && GetParam() != MLAP_TND; }
  static bool MayBePerGroup() { return GetParam() == MLAP_PA_BSND || !IsPaged(); }

  uint16_t* Bf16(const char* name) { return reinterpret_cast<uint16_t*>(bytes_[name]); }

  OutputCheck Check(std::string_view name) const {
    for (const OutputCheck& check : CheckOutputs(case_, outputs_, reference_)) {
      if (check.name == name) return check;
    }
    return {};
  }

  bool IsAccepted() const { return AllAccepted(CheckOutputs(case_, outputs_, reference_)); }

  mlap_dtype CacheType(std::string_view name) const {
    return name == "kv_cache" ? case_.shape.scenario->KvCacheType() : case_.shape.scenario->KrCacheType();
  }

  // Where element `d` of the row of a token lies, and one of a slot no token has; in elements.
  int64_t WrittenOffset(const char* name, int64_t token, int64_t d) const {
    const int64_t width = case_.Input(name).view.shape.back();
    return CacheOffset(case_.shape, CacheType(name), width, Slot(token), d);
  }
  int64_t UnwrittenOffset(const char* name) const {
    const int64_t width = case_.Input(name).view.shape.back();
    const std::vector<int64_t> slots = SlotsOfTokens(case_);
    for (int64_t slot = 0;; ++slot) {
      if (std::find(slots.begin(), slots.end(), slot) == slots.end()) {
        return CacheOffset(case_.shape, CacheType(name), width, slot, 1);
      }
    }
  }

  int64_t Slot(int64_t token) const { return SlotsOfTokens(case_)[static_cast<size_t>(token)]; }

  PrologCase case_;
  CaseOutputs reference_;
  CaseOutputs outputs_;
  std::map<std::string, std::byte*, std::less<>> bytes_;
};

class MergedRowTest : public OutputCheckTest {};   // where caches may be per group
class PagedCacheTest : public OutputCheckTest {};  // where slots can be no token's

TEST_P(OutputCheckTest, EqualResultsAreAccepted) {
  for (const Scenario& scenario : Scenarios()) {
    if (scenario.IsPerGroup() && !MayBePerGroup()) continue;
    SCOPED_TRACE(scenario.label);
    SetUpCase(scenario.label.data());
    EXPECT_TRUE(IsAccepted());
    // query, query_rope and query_norm; two caches, or the three parts of one; the scales.
    const size_t num_scales = (scenario.QuantizesCq() ? 1 : 0) + (scenario.IsPerTensor() ? 1 : 0);
    EXPECT_EQ(CheckOutputs(case_, outputs_, reference_).size(), (scenario.IsPerGroup() ? 6 : 5) + num_scales);
    EXPECT_EQ(Check(scenario.IsPerGroup() ? "kv_cache values" : "kv_cache").num_elements, kTokens * 64);
  }
}

TEST_P(OutputCheckTest, EveryOutputIsCompared) {
  for (const Scenario& scenario : Scenarios()) {
    if (scenario.IsPerGroup() && !MayBePerGroup()) continue;
    SetUpCase(scenario.label.data());
    for (const TensorSpec& spec : ResultSpecs(case_.shape)) {
      if (spec.name == std::string_view("kr_cache") && scenario.IsPerGroup()) continue;
      SCOPED_TRACE(std::string(scenario.label) + " " + spec.name);
      std::byte* const bytes = bytes_[spec.name];
      const size_t size = reference_[spec.name].view.num_bytes;
      const std::vector<std::byte> before(bytes, bytes + size);
      for (size_t i = 0; i < size; ++i) bytes[i] ^= std::byte{0x55};
      EXPECT_FALSE(IsAccepted());
      std::copy(before.begin(), before.end(), bytes);
      EXPECT_TRUE(IsAccepted());
    }
  }
}

TEST_P(MergedRowTest, PartsOfAMergedRowAreComparedEachForItself) {
  SetUpCase("full-int8-kv-per-group");
  const GroupRow row = {64, 32};
  const auto at = [&](int64_t byte) { return bytes_["kv_cache"] + WrittenOffset("kv_cache", 3, byte); };
  struct Part {
    const char* name;
    int64_t byte;  // of the most significant byte of an element
  };
  for (const Part& part : {Part{"kv_cache values", 5},
                           {"kv_cache rope", row.RopeOffset() + 1},
                           {"kv_cache scales", row.ScaleOffset() + 3}}) {
    *at(part.byte) ^= std::byte{0x44};
    for (const OutputCheck& check : CheckOutputs(case_, outputs_, reference_)) {
      EXPECT_EQ(check.is_accepted, check.name != part.name) << part.name << ", " << check.name;
    }
    *at(part.byte) ^= std::byte{0x44};
  }
}

TEST_P(OutputCheckTest, ScalesMayDifferByTheirRounding) {
  SetUpCase("partial");
  auto* scales = reinterpret_cast<float*>(bytes_["dequant_scale_q_norm"]);
  scales[3] *= 1.00005f;
  EXPECT_TRUE(IsAccepted());
  scales[3] *= 1.0002f;
  EXPECT_FALSE(Check("dequant_scale_q_norm").is_accepted);
}

TEST_P(OutputCheckTest, OneUnitOfBf16IsAcceptedOnceButNotEverywhere) {
  SetUpCase("non-quant");
  Bf16("query")[5] ^= 1;
  EXPECT_TRUE(IsAccepted());
  EXPECT_GT(Check("query").relative_norm, 0.0);
  for (size_t i = 0; i < 40 * 4 * 64; ++i) Bf16("query")[i] ^= 1;
  EXPECT_FALSE(Check("query").is_accepted);
  EXPECT_GT(Check("query").relative_norm, 2e-3);
}

TEST_P(OutputCheckTest, OneLargeDifferenceIsNotAccepted) {
  SetUpCase("non-quant");
  const float before = FloatFromBf16(Bf16("query_rope")[7]);
  Bf16("query_rope")[7] = Bf16FromFloat(before + 1.0f);
  EXPECT_FALSE(Check("query_rope").is_accepted);
  EXPECT_GT(Check("query_rope").worst, 0x1p-5);
  EXPECT_TRUE(Check("query").is_accepted);
}

TEST_P(OutputCheckTest, NonFiniteValuesMustAgree) {
  SetUpCase("non-quant");
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

TEST_P(PagedCacheTest, OtherSlotsMustNotChange) {
  SetUpCase("non-quant");
  Bf16("kv_cache")[UnwrittenOffset("kv_cache")] ^= 1;
  EXPECT_EQ(Check("kv_cache").num_touched, 1);
  EXPECT_FALSE(IsAccepted());
}

TEST_P(OutputCheckTest, MissingCacheRowIsNotAccepted) {
  SetUpCase("non-quant");
  Bf16("kr_cache")[WrittenOffset("kr_cache", 0, 0)] = 0x4000;
  EXPECT_FALSE(Check("kr_cache").is_accepted);
}

TEST_P(OutputCheckTest, Int8MayDifferByOneInFewElements) {
  SetUpCase("partial-kv-int8");
  auto* kv = reinterpret_cast<int8_t*>(bytes_["kv_cache"]);
  const int64_t at = WrittenOffset("kv_cache", 0, 0);
  const int8_t step = kv[at] > 0 ? -1 : 1;
  kv[at] = static_cast<int8_t>(kv[at] + step);
  EXPECT_TRUE(IsAccepted());
  EXPECT_EQ(Check("kv_cache").num_different, 1);
  kv[at] = static_cast<int8_t>(kv[at] + step);
  EXPECT_FALSE(IsAccepted());
  kv[at] = static_cast<int8_t>(kv[at] - step);
  for (int64_t t = 0; t < 14; ++t) {
    int8_t& value = kv[WrittenOffset("kv_cache", t, 33)];
    value = static_cast<int8_t>(value + (value > 0 ? -1 : 1));
  }
  EXPECT_EQ(Check("kv_cache").num_different, 15);  // of 2560, more than 0.5 %
  EXPECT_FALSE(IsAccepted());
}

TEST_P(OutputCheckTest, EightBitFloatsMayBeNeighbours) {
  for (const char* scenario : {"full-fp8-kv-fp8", "full-hif8-kv-hif8"}) {
    SetUpCase(scenario);
    const EightBitCodes& codes = EightBitCodes::Of(CacheType("kv_cache"));
    std::byte& value = bytes_["kv_cache"][WrittenOffset("kv_cache", 7, 9)];
    const int place = codes.Place(value);
    for (const int distance : {1, 2}) {
      for (int code = 0; code < 256; ++code) {
        if (codes.Place(static_cast<std::byte>(code)) == place + (place > 100 ? -distance : distance)) {
          value = static_cast<std::byte>(code);
        }
      }
      EXPECT_EQ(Check("kv_cache").max_difference, distance);
      EXPECT_EQ(IsAccepted(), distance == 1);
    }
  }
}

std::string ModeOf(const ::testing::TestParamInfo<mlap_cache_mode>& test) {
  return std::string(CacheModeName(test.param));
}

INSTANTIATE_TEST_SUITE_P(CacheModes, OutputCheckTest,
                         ::testing::Values(MLAP_PA_BSND, MLAP_PA_NZ, MLAP_PA_BLK_BSND, MLAP_PA_BLK_NZ, MLAP_BSND,
                                           MLAP_TND),
                         ModeOf);
INSTANTIATE_TEST_SUITE_P(CacheModes, MergedRowTest, ::testing::Values(MLAP_PA_BSND, MLAP_BSND, MLAP_TND), ModeOf);
INSTANTIATE_TEST_SUITE_P(CacheModes, PagedCacheTest,
                         ::testing::Values(MLAP_PA_BSND, MLAP_PA_NZ, MLAP_PA_BLK_BSND, MLAP_PA_BLK_NZ), ModeOf);

}  // namespace
}  // namespace mlap::tools
