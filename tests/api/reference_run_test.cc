// mlap_reference_run, called rightly: what it writes, and how its results and intermediates belong together.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "api/reference_call.h"

namespace mlap::test {
namespace {

using Call = ReferenceCall;

class ReferenceRun : public testing::TestWithParam<CallOptions> {};
INSTANTIATE_TEST_SUITE_P(Calls, ReferenceRun, testing::ValuesIn(AllCalls()), CallName);

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

// Pairs (x0, x1) rotated: the whole row here is one pair.
std::vector<float> Rotated(const std::vector<float>& x, const std::vector<float>& cos, const std::vector<float>& sin) {
  return {x[0] * cos[0] - x[1] * sin[0], x[1] * cos[1] + x[0] * sin[1]};
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

TEST_P(ReferenceRun, ResultsFollowFromTheIntermediates) {
  Call call(GetParam());
  ASSERT_EQ(call.Run(), MLAP_OK) << mlap_last_error();
  const bool int8_weight = GetParam().scenario != Scenario::kNonQuant;
  const bool int8_caches = GetParam().scenario == Scenario::kPartialInt8Caches;
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
      std::vector<float> actual = Slice(call.Values("intermediates.c_q_int8"), t, Call::kQRank, 0, Call::kQRank);
      for (float& v : actual) v *= scale;
      ExpectNear(expected, actual, 0.6 / 127, "c_q_int8");
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

TEST_P(ReferenceRun, OnlyTheAddressedRowsAreWritten) {
  Call call(GetParam());
  call.Data<int64_t>("cache_index")[1] = -1;
  ASSERT_EQ(call.Run(), MLAP_OK) << mlap_last_error();
  const auto bytes = call.WritableBytes();
  for (const char* name : {"kv_cache", "kr_cache"}) {
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

TEST_P(ReferenceRun, ResultsDoNotDependOnWantingIntermediates) {
  Call wanting(GetParam());
  Call plain(GetParam());
  plain.args.intermediates = nullptr;
  ASSERT_EQ(wanting.Run(), MLAP_OK) << mlap_last_error();
  ASSERT_EQ(plain.Run(), MLAP_OK) << mlap_last_error();
  for (const char* name : {"query", "query_rope", "kv_cache", "kr_cache"}) {
    EXPECT_EQ(wanting.WritableBytes().at(name), plain.WritableBytes().at(name)) << name;
  }
  Call partly(GetParam());
  for (const NamedTensor& unwanted : partly.WantedIntermediates()) {
    if (unwanted.name != "intermediates.k_r") *unwanted.tensor = {};
  }
  ASSERT_EQ(partly.Run(), MLAP_OK) << mlap_last_error();
  EXPECT_EQ(partly.WritableBytes().at("intermediates.k_r"), wanting.WritableBytes().at("intermediates.k_r"));
}

TEST_P(ReferenceRun, AnIndexBeyondTheCacheWritesNothing) {
  for (const int64_t index : {int64_t{8}, int64_t{9}, std::numeric_limits<int64_t>::max()}) {
    Call call(GetParam());
    call.Data<int64_t>("cache_index")[2] = index;
    const auto before = call.WritableBytes();
    EXPECT_EQ(call.Run(), MLAP_INDEX_OUT_OF_RANGE);
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
  call.args.progress = [](void* context, double done) { static_cast<std::vector<double>*>(context)->push_back(done); };
  call.args.progress_context = &seen;
  ASSERT_EQ(call.Run(), MLAP_OK) << mlap_last_error();
  ASSERT_FALSE(seen.empty());
  double before = 0.0;
  for (const double done : seen) {
    EXPECT_GE(done, before);
    before = done;
  }
  EXPECT_EQ(seen.back(), 1.0);
}

TEST_P(ReferenceRun, NoTokens) {
  CallOptions options = GetParam();
  options.tokens = 0;
  Call call(options);
  const auto before = call.WritableBytes();
  EXPECT_EQ(call.Run(), MLAP_OK) << mlap_last_error();
  EXPECT_EQ(call.WritableBytes(), before);
}

TEST_P(ReferenceRun, NoPagesMakeEveryIndexLegal) {
  CallOptions options = GetParam();
  options.pages = 0;
  Call call(options);
  call.Data<int64_t>("cache_index")[0] = 1000;
  EXPECT_EQ(call.Run(), MLAP_OK) << mlap_last_error();
  Call with_pages(GetParam());
  ASSERT_EQ(with_pages.Run(), MLAP_OK) << mlap_last_error();
  EXPECT_EQ(call.WritableBytes().at("query"), with_pages.WritableBytes().at("query"));
}

TEST_P(ReferenceRun, TheLastOfEqualSlotsWins) {
  Call call(GetParam());
  Call last_only(GetParam());
  for (int t = 0; t < 3; ++t) {
    call.Data<int64_t>("cache_index")[t] = 5;
    last_only.Data<int64_t>("cache_index")[t] = t == 2 ? 5 : -1;
  }
  ASSERT_EQ(call.Run(), MLAP_OK) << mlap_last_error();
  ASSERT_EQ(last_only.Run(), MLAP_OK) << mlap_last_error();
  EXPECT_EQ(call.WritableBytes(), last_only.WritableBytes());
}

TEST(ReferenceRunLayouts, StridedCachesKeepTheirHoles) {
  Call dense(CallOptions{});
  ASSERT_EQ(dense.Run(), MLAP_OK) << mlap_last_error();

  Call call(CallOptions{});
  constexpr int64_t kRowStride = Call::kKvRank + 3, kPageStride = Call::kPageSlots * kRowStride + 7;
  std::vector<uint16_t> memory(static_cast<size_t>(2 * kPageStride), 0x1234);
  call.args.kv_cache.data = memory.data();
  const int64_t strides[] = {kPageStride, kRowStride, 1, 1};
  std::copy(std::begin(strides), std::end(strides), call.args.kv_cache.strides);
  ASSERT_EQ(call.Run(), MLAP_OK) << mlap_last_error();

  std::vector<uint16_t> expected(memory.size(), 0x1234);
  for (const int64_t slot : {1, 2, 3}) {
    for (int64_t d = 0; d < Call::kKvRank; ++d) {
      expected[static_cast<size_t>(slot * kRowStride + d)] = dense.Data<uint16_t>("kv_cache")[slot * Call::kKvRank + d];
    }
  }
  EXPECT_EQ(memory, expected);
}

TEST(ReferenceRunLayouts, AFractalNzWeightGivesTheSameBits) {
  Call dense(CallOptions{});
  ASSERT_EQ(dense.Run(), MLAP_OK) << mlap_last_error();

  // (He, Hcq) = (8, 6) is one fractal of 16 rows of 16 columns; NaN where the matrix has no element.
  Call call(CallOptions{});
  std::vector<uint16_t> fractal(16 * 16, 0x7FC1);
  for (int64_t i = 0; i < Call::kHidden; ++i) {
    for (int64_t j = 0; j < Call::kQRank; ++j) {
      fractal[static_cast<size_t>(i * 16 + j)] = call.Data<uint16_t>("weight_dq")[i * Call::kQRank + j];
    }
  }
  call.args.weight_dq = {fractal.data(), MLAP_BF16, MLAP_FRACTAL_NZ, 4, {1, 1, 16, 16}, {}};
  ASSERT_EQ(call.Run(), MLAP_OK) << mlap_last_error();
  EXPECT_EQ(call.WritableBytes(), dense.WritableBytes());
}

}  // namespace
}  // namespace mlap::test
