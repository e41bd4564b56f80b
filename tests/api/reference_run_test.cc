// mlap_reference_run, called rightly: what it writes, and how its results and intermediates belong together.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "api/native_call.h"

namespace mlap::test {
namespace {

using Call = NativeCall;

class ReferenceRun : public testing::TestWithParam<CallOptions> {};
INSTANTIATE_TEST_SUITE_P(Calls, ReferenceRun, testing::ValuesIn(AllCalls()), CallName);

// Those whose cache_index holds slots.
std::vector<CallOptions> SlotCalls() {
  std::vector<CallOptions> calls;
  for (const CallOptions& call : AllCalls()) {
    if (call.mode == MLAP_PA_BSND) calls.push_back(call);
  }
  return calls;
}
class ReferenceRunSlots : public testing::TestWithParam<CallOptions> {};
INSTANTIATE_TEST_SUITE_P(Calls, ReferenceRunSlots, testing::ValuesIn(SlotCalls()), CallName);

// Columns [begin, begin + count) of row `row`.
std::vector<float> Slice(const std::vector<float>& values, int64_t row, int64_t columns, int64_t begin, int64_t count) {
  const auto first = values.begin() + row * columns + begin;
  return {first, first + count};
}

double MeanSquare(const std::vector<float>& row) {
  double sum = 0.0;
  for (const float v : row) sum += static_cast<double>(v) * v;
  return sum / static_cast<double>(row.size());
}

// Pairs (x0, x1) rotated, real parts first.
std::vector<float> Rotated(const std::vector<float>& x, const std::vector<float>& cos, const std::vector<float>& sin) {
  const size_t half = x.size() / 2;
  std::vector<float> out(x.size());
  for (size_t i = 0; i < half; ++i) {
    out[i] = x[2 * i] * cos[i] - x[2 * i + 1] * sin[i];
    out[half + i] = x[2 * i + 1] * cos[half + i] + x[2 * i] * sin[half + i];
  }
  return out;
}

void ExpectNear(const std::vector<float>& expected, const std::vector<float>& actual, double relative,
                const std::string& what) {
  ASSERT_EQ(expected.size(), actual.size()) << what;
  double largest = 0.0;
  for (const float v : expected) largest = std::fmax(largest, std::fabs(v));
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(expected[i], actual[i], relative * largest + 1e-30) << what << ", element " << i;
  }
}

constexpr double kBf16 = 1.0 / 256;  // the largest relative error of rounding to bf16

// Each result is computed here from the intermediates.
class ReferenceRunByHand : public testing::TestWithParam<CallOptions> {};
INSTANTIATE_TEST_SUITE_P(Calls, ReferenceRunByHand,
                         testing::Values(CallOptions{MLAP_WEIGHTS_BF16, MLAP_KV_BF16},
                                         CallOptions{MLAP_WEIGHTS_UQ_QR_INT8, MLAP_KV_BF16},
                                         CallOptions{MLAP_WEIGHTS_UQ_QR_INT8, MLAP_KV_PER_CHANNEL, MLAP_PA_BSND, true}),
                         CallName);

TEST_P(ReferenceRunByHand, ResultsFollowFromTheIntermediates) {
  Call call(GetParam());
  ASSERT_EQ(call.RunReference(), MLAP_OK) << mlap_last_error();
  const bool int8_weight = GetParam().weights != MLAP_WEIGHTS_BF16;
  const bool int8_caches = GetParam().kv == MLAP_KV_PER_CHANNEL;
  const std::vector<float> weight_uk = call.Values("weight_uk");
  for (int64_t t = 0; t < GetParam().tokens; ++t) {
    SCOPED_TRACE(t);
    const std::vector<float> c_q = Slice(call.Values("intermediates.c_q"), t, Call::kQRank, 0, Call::kQRank);
    const std::vector<float> c_kv = Slice(call.Values("intermediates.c_kv"), t, Call::kKvRank, 0, Call::kKvRank);
    EXPECT_NEAR(MeanSquare(c_q), 1.0, 2 * kBf16);
    EXPECT_NEAR(MeanSquare(c_kv), 1.0, 1e-4);

    if (int8_weight) {
      const float scale = call.Values("intermediates.c_q_scale")[static_cast<size_t>(t)];
      const std::vector<float> smooth = call.Values("smooth_scales_cq");
      std::vector<float> expected = c_q;
      for (size_t j = 0; j < expected.size(); ++j) expected[j] *= smooth[j];
      std::vector<float> actual = Slice(call.Values("intermediates.c_q_quantized"), t, Call::kQRank, 0, Call::kQRank);
      for (float& v : actual) v *= scale;
      ExpectNear(expected, actual, 0.6 / 127, "c_q_quantized");
    }

    const std::vector<float> cos = Slice(call.Values("rope_cos"), t, Call::kRope, 0, Call::kRope);
    const std::vector<float> sin = Slice(call.Values("rope_sin"), t, Call::kRope, 0, Call::kRope);
    for (int64_t n = 0; n < Call::kHeads; ++n) {
      const int64_t row = t * Call::kHeads + n;
      const std::vector<float> q_c = Slice(call.Values("intermediates.q_c"), row, Call::kNope, 0, Call::kNope);
      std::vector<float> query(static_cast<size_t>(Call::kKvRank));
      for (int64_t j = 0; j < Call::kKvRank; ++j) {
        double sum = 0.0;
        for (int64_t d = 0; d < Call::kNope; ++d) {
          sum += static_cast<double>(q_c[static_cast<size_t>(d)]) *
                 weight_uk[static_cast<size_t>((n * Call::kNope + d) * Call::kKvRank + j)];
        }
        query[static_cast<size_t>(j)] = static_cast<float>(sum);
      }
      ExpectNear(query, Slice(call.Values("query"), row, Call::kKvRank, 0, Call::kKvRank), kBf16, "query");
      const std::vector<float> q_r = Slice(call.Values("intermediates.q_r"), row, Call::kRope, 0, Call::kRope);
      ExpectNear(Rotated(q_r, cos, sin), Slice(call.Values("query_rope"), row, Call::kRope, 0, Call::kRope), kBf16,
                 "query_rope");
    }

    const int64_t slot = call.Data<int64_t>("cache_index")[t];
    const std::vector<float> k_r = Slice(call.Values("intermediates.k_r"), t, Call::kRope, 0, Call::kRope);
    std::vector<float> kv_row = Slice(call.Values("kv_cache"), slot, Call::kKvRank, 0, Call::kKvRank);
    std::vector<float> kr_row = Slice(call.Values("kr_cache"), slot, Call::kRope, 0, Call::kRope);
    if (!int8_caches) {
      ExpectNear(c_kv, kv_row, kBf16, "kv_cache");
      ExpectNear(Rotated(k_r, cos, sin), kr_row, kBf16, "kr_cache");
      continue;
    }
    const std::vector<float> ckv_scale = call.Values("quant_scale_ckv");
    for (size_t j = 0; j < kv_row.size(); ++j) {
      EXPECT_NEAR(kv_row[j], c_kv[j] * ckv_scale[j], 0.51) << "kv_cache, element " << j;
    }
    const std::vector<float> ckr_scale = call.Values("quant_scale_ckr");
    const std::vector<float> rotated = Rotated(k_r, cos, sin);
    for (size_t j = 0; j < kr_row.size(); ++j) {
      EXPECT_NEAR(kr_row[j], rotated[j] * ckr_scale[j], 0.55) << "kr_cache, element " << j;
    }
  }
}

TEST_P(ReferenceRunSlots, OnlyTheAddressedRowsAreWritten) {
  Call call(GetParam());
  call.Data<int64_t>("cache_index")[1] = -1;
  ASSERT_EQ(call.RunReference(), MLAP_OK) << mlap_last_error();
  const auto bytes = call.WritableBytes();
  for (const char* name : {"kv_cache", "kr_cache"}) {
    if (!call.Has(name)) continue;
    const std::vector<uint8_t>& cache = bytes.at(name);
    const size_t row_bytes = cache.size() / static_cast<size_t>(GetParam().pages * Call::kPageSlots);
    for (size_t slot = 0; slot * row_bytes < cache.size(); ++slot) {
      const std::vector<uint8_t> row(cache.begin() + static_cast<int64_t>(slot * row_bytes),
                                     cache.begin() + static_cast<int64_t>((slot + 1) * row_bytes));
      const bool is_kept = row == std::vector<uint8_t>(row_bytes, Call::kPattern);
      EXPECT_EQ(is_kept, slot != 1 && slot != 3) << name << ", slot " << slot;
    }
  }
}

// What is written apart from the intermediates.
std::map<std::string, std::vector<uint8_t>> Results(const Call& call) {
  std::map<std::string, std::vector<uint8_t>> results;
  for (const auto& [name, bytes] : call.WritableBytes()) {
    if (name.rfind("intermediates.", 0) != 0) results[name] = bytes;
  }
  return results;
}

TEST_P(ReferenceRun, ResultsDoNotDependOnWantingIntermediates) {
  Call wanting(GetParam());
  Call plain(GetParam());
  plain.reference.intermediates = nullptr;
  ASSERT_EQ(wanting.RunReference(), MLAP_OK) << mlap_last_error();
  ASSERT_EQ(plain.RunReference(), MLAP_OK) << mlap_last_error();
  EXPECT_EQ(Results(wanting), Results(plain));
  Call partly(GetParam());
  for (const NamedTensor& unwanted : partly.Optional()) {
    if (unwanted.name.rfind("intermediates.", 0) == 0 && unwanted.name != "intermediates.k_r") *unwanted.tensor = {};
  }
  ASSERT_EQ(partly.RunReference(), MLAP_OK) << mlap_last_error();
  EXPECT_EQ(Results(partly), Results(wanting));
  EXPECT_EQ(partly.WritableBytes().at("intermediates.k_r"), wanting.WritableBytes().at("intermediates.k_r"));
}

TEST_P(ReferenceRunSlots, AnIndexBeyondTheCacheWritesNothing) {
  for (const int64_t index : {int64_t{8}, int64_t{9}, std::numeric_limits<int64_t>::max()}) {
    Call call(GetParam());
    call.Data<int64_t>("cache_index")[2] = index;
    const auto before = call.WritableBytes();
    EXPECT_EQ(call.RunReference(), MLAP_INDEX_OUT_OF_RANGE);
    const std::string text = mlap_last_error();
    EXPECT_NE(text.find("token 2"), std::string::npos) << text;
    EXPECT_NE(text.find(std::to_string(index)), std::string::npos) << text;
    EXPECT_NE(text.find("8 slots"), std::string::npos) << text;
    EXPECT_EQ(call.WritableBytes(), before);
  }
}

TEST_P(ReferenceRun, ProgressRisesToOne) {
  Call call(GetParam());
  std::vector<double> seen;
  call.reference.progress = [](void* context, double done) {
    static_cast<std::vector<double>*>(context)->push_back(done);
  };
  call.reference.progress_context = &seen;
  ASSERT_EQ(call.RunReference(), MLAP_OK) << mlap_last_error();
  ASSERT_FALSE(seen.empty());
  double before = 0.0;
  for (const double done : seen) {
    EXPECT_GE(done, before);
    before = done;
  }
  EXPECT_EQ(seen.back(), 1.0);
}

TEST_P(ReferenceRunSlots, NoTokens) {
  CallOptions options = GetParam();
  options.tokens = 0;
  Call call(options);
  const auto before = call.WritableBytes();
  EXPECT_EQ(call.RunReference(), MLAP_OK) << mlap_last_error();
  EXPECT_EQ(call.WritableBytes(), before);
}

TEST_P(ReferenceRunSlots, NoPagesMakeEveryIndexLegal) {
  CallOptions options = GetParam();
  options.pages = 0;
  Call call(options);
  call.Data<int64_t>("cache_index")[0] = 1000;
  EXPECT_EQ(call.RunReference(), MLAP_OK) << mlap_last_error();
  Call with_pages(GetParam());
  ASSERT_EQ(with_pages.RunReference(), MLAP_OK) << mlap_last_error();
  EXPECT_EQ(call.WritableBytes().at("query"), with_pages.WritableBytes().at("query"));
}

TEST_P(ReferenceRunSlots, TheLastOfEqualSlotsWins) {
  Call call(GetParam());
  Call last_only(GetParam());
  for (int t = 0; t < 3; ++t) {
    call.Data<int64_t>("cache_index")[t] = 5;
    last_only.Data<int64_t>("cache_index")[t] = t == 2 ? 5 : -1;
  }
  ASSERT_EQ(call.RunReference(), MLAP_OK) << mlap_last_error();
  ASSERT_EQ(last_only.RunReference(), MLAP_OK) << mlap_last_error();
  EXPECT_EQ(call.WritableBytes(), last_only.WritableBytes());
}

}  // namespace
}  // namespace mlap::test
