// Conversions of caches: pages of rows and NZ pages, per-group rows in both orders and apart.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "mlaprolog/mlaprolog.h"

namespace mlap::test {
namespace {

// The last refusal names the field and says what to do.
bool ErrorNames(const std::string& word) {
  const std::string text = mlap_last_error();
  return text.find(word) != std::string::npos && text.find("; ") != std::string::npos;
}

mlap_tensor Cache(void* data, mlap_dtype dtype, int64_t pages, int64_t page_slots, int64_t width) {
  return {data, dtype, MLAP_ROW_MAJOR, 4, {pages, page_slots, 1, width}, {}};
}

TEST(CacheConvert, NzPagesByTheirDefinition) {
  for (const mlap_dtype dtype : {MLAP_BF16, MLAP_INT8}) {
    const int64_t bytes = dtype == MLAP_BF16 ? 2 : 1, c0 = 32 / bytes, W = 64, BN = 3, BS = 16;
    std::vector<uint16_t> words(static_cast<size_t>(BN * BS * W));
    for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<uint16_t>(i * 7919);
    std::vector<char> rows(words.size() * static_cast<size_t>(bytes)), nz(rows.size()), back(rows.size());
    std::memcpy(rows.data(), words.data(), rows.size());
    const mlap_tensor from = Cache(rows.data(), dtype, BN, BS, W), to = Cache(nz.data(), dtype, BN, BS, W);
    ASSERT_EQ(mlap_cache_convert(&from, MLAP_PA_BSND, &to, MLAP_PA_NZ), MLAP_OK) << mlap_last_error();
    for (int64_t slot = 0; slot < BN * BS; ++slot) {
      for (int64_t d = 0; d < W; ++d) {
        const int64_t at = slot / BS * BS * W + d / c0 * BS * c0 + slot % BS * c0 + d % c0;
        EXPECT_EQ(std::memcmp(&nz[static_cast<size_t>(at * bytes)], &rows[static_cast<size_t>((slot * W + d) * bytes)],
                              static_cast<size_t>(bytes)),
                  0);
      }
    }
    const mlap_tensor again = Cache(back.data(), dtype, BN, BS, W);
    ASSERT_EQ(mlap_cache_convert(&to, MLAP_PA_NZ, &again, MLAP_PA_BSND), MLAP_OK) << mlap_last_error();
    EXPECT_EQ(back, rows);
    // One order to itself is a copy, and takes widths that are no multiple of C0.
    mlap_tensor odd_from = Cache(rows.data(), dtype, BN, BS, 13), odd_to = Cache(back.data(), dtype, BN, BS, 13);
    back.assign(back.size(), 0);
    ASSERT_EQ(mlap_cache_convert(&odd_from, MLAP_PA_BSND, &odd_to, MLAP_PA_BSND), MLAP_OK) << mlap_last_error();
    EXPECT_EQ(std::memcmp(back.data(), rows.data(), static_cast<size_t>(BN * BS * 13 * bytes)), 0);
  }
}

TEST(CacheConvert, HolesStay) {
  std::vector<uint16_t> rows(2 * 16 * 16), wide(2 * 16 * 40, 0x7FC1), back(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<uint16_t>(i);
  const mlap_tensor from = Cache(rows.data(), MLAP_BF16, 2, 16, 16);
  mlap_tensor to = Cache(wide.data(), MLAP_BF16, 2, 16, 16);
  const int64_t strides[] = {16 * 40, 40, 40, 2};
  std::memcpy(to.strides, strides, sizeof(strides));
  ASSERT_EQ(mlap_cache_convert(&from, MLAP_PA_BSND, &to, MLAP_PA_NZ), MLAP_OK) << mlap_last_error();
  for (size_t i = 0; i < wide.size(); ++i) {
    if (i % 40 >= 32 || i % 2 == 1) {
      EXPECT_EQ(wide[i], 0x7FC1);
    }
  }
  const mlap_tensor again = Cache(back.data(), MLAP_BF16, 2, 16, 16);
  ASSERT_EQ(mlap_cache_convert(&to, MLAP_PA_NZ, &again, MLAP_PA_BSND), MLAP_OK) << mlap_last_error();
  EXPECT_EQ(back, rows);
}

TEST(CacheConvert, Refusals) {
  using Change =
      std::function<void(mlap_tensor * from, mlap_cache_mode * from_mode, mlap_tensor * to, mlap_cache_mode*)>;
  const std::pair<const char*, Change> cases[] = {
      {"from", [](mlap_tensor* from, mlap_cache_mode*, mlap_tensor*, mlap_cache_mode*) { *from = {}; }},
      {"from", [](mlap_tensor* from, mlap_cache_mode*, mlap_tensor*, mlap_cache_mode*) { from->rank = 3; }},
      {"from", [](mlap_tensor* from, mlap_cache_mode*, mlap_tensor*, mlap_cache_mode*) { from->dtype = MLAP_FLOAT32; }},
      {"from", [](mlap_tensor* from, mlap_cache_mode*, mlap_tensor*, mlap_cache_mode*) { from->dims[2] = 2; }},
      {"from", [](mlap_tensor* from, mlap_cache_mode*, mlap_tensor*, mlap_cache_mode*) { from->dims[3] = 15; }},
      {"from_mode", [](mlap_tensor*, mlap_cache_mode* mode, mlap_tensor*, mlap_cache_mode*) { *mode = MLAP_TND; }},
      {"to_mode", [](mlap_tensor*, mlap_cache_mode*, mlap_tensor*, mlap_cache_mode* mode) { *mode = MLAP_BSND; }},
      {"to", [](mlap_tensor*, mlap_cache_mode*, mlap_tensor* to, mlap_cache_mode*) { to->dims[0] = 1; }},
      {"to", [](mlap_tensor*, mlap_cache_mode*, mlap_tensor* to, mlap_cache_mode*) { to->data = nullptr; }},
      {"to", [](mlap_tensor*, mlap_cache_mode*, mlap_tensor* to, mlap_cache_mode*) { to->dtype = MLAP_INT8; }},
      {"to", [](mlap_tensor* from, mlap_cache_mode*, mlap_tensor* to, mlap_cache_mode*) { to->data = from->data; }},
  };
  for (const auto& [name, change] : cases) {
    std::vector<uint16_t> a(2 * 16 * 16, 1), b(a.size(), 2);
    mlap_tensor from = Cache(a.data(), MLAP_BF16, 2, 16, 16), to = Cache(b.data(), MLAP_BF16, 2, 16, 16);
    mlap_cache_mode from_mode = MLAP_PA_BSND, to_mode = MLAP_PA_NZ;
    change(&from, &from_mode, &to, &to_mode);
    EXPECT_EQ(mlap_cache_convert(&from, from_mode, &to, to_mode), MLAP_INVALID_ARGUMENT);
    EXPECT_TRUE(ErrorNames(name)) << name << ": " << mlap_last_error();
    EXPECT_EQ(b, std::vector<uint16_t>(b.size(), 2));
  }
  EXPECT_EQ(mlap_cache_convert(nullptr, MLAP_PA_NZ, nullptr, MLAP_PA_NZ), MLAP_INVALID_ARGUMENT);
}

// Rows of one cache in parts. Sizes of the device, and sizes that make the parts lie at odd addresses.
struct Rows {
  int64_t count, kv_rank, rope;
  std::vector<int8_t> values;
  std::vector<uint16_t> rope_values;
  std::vector<float> scales;

  Rows(int64_t num_rows, int64_t kv_rank_columns, int64_t rope_columns)
      : count(num_rows), kv_rank(kv_rank_columns), rope(rope_columns) {
    for (int64_t i = 0; i < count * kv_rank; ++i) values.push_back(static_cast<int8_t>(i % 255 - 127));
    for (int64_t i = 0; i < count * rope; ++i) rope_values.push_back(static_cast<uint16_t>(i * 31 + 1));
    for (int64_t i = 0; i < count * Groups(); ++i) scales.push_back(static_cast<float>(i) + 0.25f);
  }
  int64_t Groups() const { return (kv_rank + 127) / 128; }
  int64_t Bytes() const { return kv_rank + 2 * rope + 4 * Groups(); }
  mlap_tensor Values() { return {values.data(), MLAP_INT8, MLAP_ROW_MAJOR, 3, {count, 1, kv_rank}, {}}; }
  mlap_tensor Rope() { return {rope_values.data(), MLAP_BF16, MLAP_ROW_MAJOR, 3, {count, 1, rope}, {}}; }
  mlap_tensor Scales() { return {scales.data(), MLAP_FLOAT32, MLAP_ROW_MAJOR, 3, {count, 1, Groups()}, {}}; }
  mlap_tensor Joined(std::vector<int8_t>* bytes) const {
    bytes->assign(static_cast<size_t>(count * Bytes()), 0x55);
    return {bytes->data(), MLAP_INT8, MLAP_ROW_MAJOR, 3, {count, 1, Bytes()}, {}};
  }
  void Clear() {
    values.assign(values.size(), 0);
    rope_values.assign(rope_values.size(), 0);
    scales.assign(scales.size(), 0);
  }
  bool operator==(const Rows& other) const {
    return values == other.values && rope_values == other.rope_values && scales == other.scales;
  }
};

TEST(CacheRows, JoinSplitAndReorder) {
  struct Sizes {
    int64_t kv_rank, rope;
  };
  for (const Sizes& sizes : {Sizes{512, 64}, Sizes{5, 2}, Sizes{131, 6}}) {
    for (const mlap_row_order order : {MLAP_ROW_CANN, MLAP_ROW_FLASHMLA}) {
      Rows rows(7, sizes.kv_rank, sizes.rope);
      EXPECT_EQ(rows.Bytes() == 656, sizes.kv_rank == 512);
      std::vector<int8_t> bytes;
      const mlap_tensor joined = rows.Joined(&bytes);
      const mlap_tensor values = rows.Values(), rope = rows.Rope(), scales = rows.Scales();
      ASSERT_EQ(mlap_cache_rows_join(&values, &rope, &scales, &joined, order), MLAP_OK) << mlap_last_error();
      const bool is_cann = order == MLAP_ROW_CANN;
      const int64_t rope_at = sizes.kv_rank + (is_cann ? 0 : 4 * rows.Groups());
      const int64_t scales_at = sizes.kv_rank + (is_cann ? 2 * sizes.rope : 0);
      for (int64_t row = 0; row < rows.count; ++row) {
        const int8_t* at = bytes.data() + row * rows.Bytes();
        EXPECT_EQ(
            std::memcmp(at, &rows.values[static_cast<size_t>(row * sizes.kv_rank)], static_cast<size_t>(sizes.kv_rank)),
            0);
        EXPECT_EQ(std::memcmp(at + rope_at, &rows.rope_values[static_cast<size_t>(row * sizes.rope)],
                              static_cast<size_t>(2 * sizes.rope)),
                  0);
        EXPECT_EQ(std::memcmp(at + scales_at, &rows.scales[static_cast<size_t>(row * rows.Groups())],
                              static_cast<size_t>(4 * rows.Groups())),
                  0);
      }
      Rows apart = rows;
      apart.Clear();
      const mlap_tensor v = apart.Values(), r = apart.Rope(), s = apart.Scales();
      ASSERT_EQ(mlap_cache_rows_split(&joined, order, &v, &r, &s), MLAP_OK) << mlap_last_error();
      EXPECT_TRUE(apart == rows);

      // To the other order, to another buffer and in place, is what joining in that order gives.
      const mlap_row_order other = is_cann ? MLAP_ROW_FLASHMLA : MLAP_ROW_CANN;
      std::vector<int8_t> expected_bytes, moved_bytes;
      const mlap_tensor expected = rows.Joined(&expected_bytes), moved = rows.Joined(&moved_bytes);
      ASSERT_EQ(mlap_cache_rows_join(&values, &rope, &scales, &expected, other), MLAP_OK);
      ASSERT_EQ(mlap_cache_rows_reorder(&joined, order, &moved, other, sizes.kv_rank, sizes.rope), MLAP_OK)
          << mlap_last_error();
      EXPECT_EQ(moved_bytes, expected_bytes);
      ASSERT_EQ(mlap_cache_rows_reorder(&joined, order, &joined, other, sizes.kv_rank, sizes.rope), MLAP_OK);
      EXPECT_EQ(bytes, expected_bytes);
      ASSERT_EQ(mlap_cache_rows_reorder(&joined, other, &joined, order, sizes.kv_rank, sizes.rope), MLAP_OK);
      EXPECT_NE(bytes, expected_bytes);
    }
  }
}

TEST(CacheRows, EmptyCachesNeedNoMemoryToReorder) {
  const auto peak_kilobytes = [] {
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  constexpr int64_t kSize = int64_t{1} << 28;
  constexpr int64_t kRowBytes = kSize + 2 * kSize + 4 * (kSize / 128);
  const mlap_tensor rows = Cache(nullptr, MLAP_INT8, 0, 16, kRowBytes);
  const auto before = peak_kilobytes();
  EXPECT_EQ(mlap_cache_rows_reorder(&rows, MLAP_ROW_CANN, &rows, MLAP_ROW_FLASHMLA, kSize, kSize), MLAP_OK)
      << mlap_last_error();
  EXPECT_LT(peak_kilobytes() - before, 100'000);
}

TEST(CacheRows, Refusals) {
  using Change =
      std::function<void(mlap_tensor * rows, mlap_tensor * values, mlap_tensor * rope, mlap_tensor * scales)>;
  const std::pair<const char*, Change> cases[] = {
      {"rows", [](mlap_tensor* rows, mlap_tensor*, mlap_tensor*, mlap_tensor*) { *rows = {}; }},
      {"rows", [](mlap_tensor* rows, mlap_tensor*, mlap_tensor*, mlap_tensor*) { rows->dtype = MLAP_BF16; }},
      {"rows", [](mlap_tensor* rows, mlap_tensor*, mlap_tensor*, mlap_tensor*) { rows->dims[2] = 655; }},
      {"rows",
       [](mlap_tensor* rows, mlap_tensor*, mlap_tensor*, mlap_tensor*) {
         const int64_t strides[] = {1312, 1312, 2};
         std::memcpy(rows->strides, strides, sizeof(strides));
         rows->dims[0] = 3;
       }},
      {"values", [](mlap_tensor*, mlap_tensor* values, mlap_tensor*, mlap_tensor*) { values->dims[0] = 6; }},
      {"values", [](mlap_tensor*, mlap_tensor* values, mlap_tensor*, mlap_tensor*) { values->rank = 2; }},
      {"values", [](mlap_tensor*, mlap_tensor* values, mlap_tensor*, mlap_tensor*) { values->dtype = MLAP_HIFLOAT8; }},
      {"values", [](mlap_tensor* rows, mlap_tensor* values, mlap_tensor*, mlap_tensor*) { values->data = rows->data; }},
      {"rope", [](mlap_tensor*, mlap_tensor*, mlap_tensor* rope, mlap_tensor*) { rope->dtype = MLAP_INT8; }},
      {"rope", [](mlap_tensor*, mlap_tensor*, mlap_tensor* rope, mlap_tensor*) { rope->data = nullptr; }},
      {"scales", [](mlap_tensor*, mlap_tensor*, mlap_tensor*, mlap_tensor* scales) { scales->dims[2] = 3; }},
      {"scales", [](mlap_tensor*, mlap_tensor*, mlap_tensor*, mlap_tensor* scales) { *scales = {}; }},
  };
  for (const auto& [name, change] : cases) {
    Rows rows(7, 512, 64);
    std::vector<int8_t> bytes;
    mlap_tensor joined = rows.Joined(&bytes), values = rows.Values(), rope = rows.Rope(), scales = rows.Scales();
    change(&joined, &values, &rope, &scales);
    const Rows before = rows;
    EXPECT_EQ(mlap_cache_rows_split(&joined, MLAP_ROW_CANN, &values, &rope, &scales), MLAP_INVALID_ARGUMENT);
    EXPECT_TRUE(ErrorNames(name)) << name << ": " << mlap_last_error();
    EXPECT_EQ(mlap_cache_rows_join(&values, &rope, &scales, &joined, MLAP_ROW_CANN), MLAP_INVALID_ARGUMENT);
    EXPECT_TRUE(ErrorNames(name)) << name << ": " << mlap_last_error();
    EXPECT_TRUE(rows == before);
    EXPECT_EQ(bytes, std::vector<int8_t>(bytes.size(), 0x55));
  }
  Rows rows(7, 512, 64);
  std::vector<int8_t> bytes, other_bytes;
  const mlap_tensor joined = rows.Joined(&bytes), other = rows.Joined(&other_bytes);
  struct Reorder {
    const char* name;
    int from_order, to_order;
    int64_t kv_rank, rope;
  };
  for (const Reorder& bad :
       {Reorder{"from_order", 2, 0, 512, 64}, Reorder{"to_order", 0, -1, 512, 64}, Reorder{"kv_rank", 0, 1, 0, 64},
        Reorder{"rope", 0, 1, 512, -2}, Reorder{"from", 0, 1, 511, 64}, Reorder{"kv_rank", 0, 1, INT64_MAX, 64}}) {
    EXPECT_EQ(mlap_cache_rows_reorder(&joined, mlap_row_order(bad.from_order), &other, mlap_row_order(bad.to_order),
                                      bad.kv_rank, bad.rope),
              MLAP_INVALID_ARGUMENT);
    EXPECT_TRUE(ErrorNames(bad.name)) << bad.name << ": " << mlap_last_error();
  }
  EXPECT_EQ(mlap_cache_rows_split(nullptr, MLAP_ROW_CANN, nullptr, nullptr, nullptr), MLAP_INVALID_ARGUMENT);
  EXPECT_EQ(mlap_cache_rows_join(nullptr, nullptr, nullptr, nullptr, MLAP_ROW_CANN), MLAP_INVALID_ARGUMENT);
  EXPECT_EQ(mlap_cache_rows_reorder(nullptr, MLAP_ROW_CANN, nullptr, MLAP_ROW_CANN, 512, 64), MLAP_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace mlap::test
