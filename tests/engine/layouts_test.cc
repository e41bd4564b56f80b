// Weight and cache addresses against offsets worked out by hand and against the properties every layout must have.
#include <cstdint>
#include <set>
#include <vector>

#include "base/cache_view.h"
#include "base/weight_view.h"
#include "core/cache_writer.h"
#include "gtest/gtest.h"

namespace mlap {
namespace {

TEST(WeightView, HandComputedFractalOffsets) {
  // bf16, k = 32, n = 48: three column blocks of 16, each 32 rows of 16.
  const WeightView bf16 = NzWeight(nullptr, ElementType::kBf16, 32, 48);
  EXPECT_EQ(bf16.Offset(0, 0), 0);
  EXPECT_EQ(bf16.Offset(0, 15), 15);
  EXPECT_EQ(bf16.Offset(1, 0), 16);
  EXPECT_EQ(bf16.Offset(0, 16), 512);
  EXPECT_EQ(bf16.Offset(17, 35), 2 * 512 + 17 * 16 + 3);
  // int8, k = 32, n = 64: two column blocks of 32.
  const WeightView int8 = NzWeight(nullptr, ElementType::kInt8, 32, 64);
  EXPECT_EQ(int8.Offset(0, 31), 31);
  EXPECT_EQ(int8.Offset(1, 0), 32);
  EXPECT_EQ(int8.Offset(5, 33), 1024 + 5 * 32 + 1);
  // k = 17 is padded to 32 rows.
  EXPECT_EQ(NzWeight(nullptr, ElementType::kBf16, 17, 32).Offset(0, 16), 512);
}

TEST(WeightView, EveryElementHasItsOwnPlace) {
  for (const ElementType type : {ElementType::kBf16, ElementType::kInt8}) {
    for (const auto& [k, n] : {std::pair<int64_t, int64_t>{1, 1}, {16, 32}, {37, 33}, {48, 100}}) {
      for (const WeightView& w : {NzWeight(nullptr, type, k, n), RowMajorWeight(nullptr, type, k, n)}) {
        std::set<int64_t> seen;
        for (int64_t i = 0; i < k; ++i) {
          for (int64_t j = 0; j < n; ++j) EXPECT_TRUE(seen.insert(w.Offset(i, j)).second);
        }
        EXPECT_GE(*seen.begin(), 0);
      }
      EXPECT_EQ(RowMajorWeight(nullptr, type, k, n).Offset(k - 1, n - 1), k * n - 1);
    }
  }
}

TEST(CacheView, HandComputedOffsets) {
  const CacheView rows = ContiguousCache(nullptr, ElementType::kBf16, CacheOrder::kRows, 4, 16, 512);
  EXPECT_EQ(rows.Offset(0, 0), 0);
  EXPECT_EQ(rows.Offset(17, 3), 17 * 512 + 3);
  // bf16 NZ, page of 16 slots of 64 elements: [4][16][16].
  const CacheView bf16 = ContiguousCache(nullptr, ElementType::kBf16, CacheOrder::kNz, 4, 16, 64);
  EXPECT_EQ(bf16.Offset(0, 15), 15);
  EXPECT_EQ(bf16.Offset(1, 0), 16);
  EXPECT_EQ(bf16.Offset(0, 16), 256);
  EXPECT_EQ(bf16.Offset(2 * 16 + 5, 37), 2 * 1024 + 2 * 256 + 5 * 16 + 5);
  // int8 NZ: C0 is 32.
  const CacheView int8 = ContiguousCache(nullptr, ElementType::kInt8, CacheOrder::kNz, 4, 16, 64);
  EXPECT_EQ(int8.Offset(1, 0), 32);
  EXPECT_EQ(int8.Offset(16 + 3, 40), 1024 + 512 + 3 * 32 + 8);
}

// Writing a row touches exactly the addresses of its elements, in every order and with every stride.
TEST(CacheWriter, WritesTheRowAndNothingElse) {
  for (const CacheOrder order : {CacheOrder::kRows, CacheOrder::kNz}) {
    for (const int64_t element_stride : {1, 3}) {
      for (const int64_t gap : {0, 5}) {
        CacheView cache = ContiguousCache(nullptr, ElementType::kBf16, order, 3, 16, 48);
        cache.element_stride = element_stride;
        cache.slot_stride = 48 * element_stride + gap;
        cache.block_stride = 16 * cache.slot_stride + 7 * gap;
        std::vector<uint16_t> memory(static_cast<size_t>(3 * cache.block_stride), 0x7fc1);
        cache.data = memory.data();
        // Wider caches than rows are legal: what lies behind the row stays.
        for (const int64_t row_width : {48, 32, 33}) {
          const int64_t slot = 16 + 9;
          std::vector<uint16_t> row(static_cast<size_t>(row_width));
          for (size_t d = 0; d < row.size(); ++d) row[d] = static_cast<uint16_t>(d + 1);
          std::vector<uint16_t> expected(memory.size(), 0x7fc1);
          for (int64_t d = 0; d < row_width; ++d) {
            expected[static_cast<size_t>(cache.Offset(slot, d))] = row[static_cast<size_t>(d)];
          }
          std::fill(memory.begin(), memory.end(), static_cast<uint16_t>(0x7fc1));
          WriteCacheRow(cache, slot, row.data(), row_width);
          EXPECT_EQ(memory, expected) << "stride " << element_stride << " gap " << gap << " width " << row_width;
        }
      }
    }
  }
}

// A strided NZ cache gets the elements where a contiguous copy, written and copied back, would put them.
TEST(CacheView, StridesOfAnNzCacheAddressTheLogicalShape) {
  CacheView strided = ContiguousCache(nullptr, ElementType::kInt8, CacheOrder::kNz, 2, 16, 64);
  const CacheView contiguous = strided;
  strided.slot_stride = 100;
  strided.block_stride = 2000;
  for (int64_t slot = 0; slot < 32; ++slot) {
    for (int64_t d = 0; d < 64; ++d) {
      const int64_t linear = contiguous.Offset(slot, d);
      EXPECT_EQ(strided.Offset(slot, d), linear / 1024 * 2000 + linear % 1024 / 64 * 100 + linear % 64);
    }
  }
}

}  // namespace
}  // namespace mlap
