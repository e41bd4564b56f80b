// The benchmark's account of bytes and operations.
#include "work_model.h"

#include <gtest/gtest.h>

namespace mlap::bench {
namespace {

// DeepSeek-V3 with N heads: elements of W_DQ and W_DKV|KR, of W_UQ|QR, of W_UK.
constexpr double kDown = 7168.0 * (1536 + 512 + 64);
double Up(double heads) { return 1536.0 * heads * (128 + 64); }
double Absorb(double heads) { return heads * 128 * 512; }

struct Expected {
  const tools::Scenario* scenario;
  double down_bytes;  // per element
  double up_bytes;
  double kv_row_bytes;
  double kr_row_bytes;
};

TEST(WorkModelTest, WeightsOperationsAndRows) {
  for (const Expected& expected : {Expected{kNonQuant, 2, 2, 1024, 128}, Expected{kPartial, 2, 1, 1024, 128},
                                   Expected{kPartialKvInt8, 2, 1, 512, 64}, Expected{kFullInt8, 1, 1, 1024, 128},
                                   Expected{kFullInt8KvInt8, 1, 1, 512, 128}}) {
    for (const int64_t heads : {16, 128}) {
      for (const int64_t tokens : {1, 256}) {
        SCOPED_TRACE(std::string(expected.scenario->label));
        const auto n = static_cast<double>(heads);
        const auto t = static_cast<double>(tokens);
        const Work work = WorkOf({expected.scenario, heads, tokens});
        EXPECT_EQ(work.weight_bytes, kDown * expected.down_bytes + Up(n) * expected.up_bytes + Absorb(n) * 2);
        EXPECT_EQ(work.Ops(), 2 * t * (kDown + Up(n) + Absorb(n)));
        EXPECT_EQ(work.bf16_flops,
                  2 * t * (Absorb(n) + (expected.down_bytes == 2 ? kDown : 0) + (expected.up_bytes == 2 ? Up(n) : 0)));
        // A call of one more token reads and writes so much more.
        const double per_token = WorkOf({expected.scenario, heads, tokens + 1}).other_bytes - work.other_bytes;
        const double x = 7168 * expected.down_bytes + (expected.down_bytes == 1 ? 4 : 0);
        const bool is_per_tensor = expected.scenario == kFullInt8KvInt8;
        const double query = n * (512 * (is_per_tensor ? 1 : 2) + 64 * 2 + (is_per_tensor ? 4 : 0));
        const double rope_and_slot = 2 * 64 * 2 + 8;
        EXPECT_EQ(per_token, x + query + rope_and_slot + expected.kv_row_bytes + expected.kr_row_bytes);
      }
    }
  }
}

TEST(WorkModelTest, TheSlowerOfMemoryAndArithmeticBounds) {
  const Work work = WorkOf({kFullInt8, 128, 16});
  const Rates slow_memory = {.read = 1e9, .bf16 = 1e15, .int8 = 1e15};
  const Rates slow_int8 = {.read = 1e15, .bf16 = 1e15, .int8 = 1e9};
  EXPECT_TRUE(BoundOf(work, slow_memory).IsMemory());
  EXPECT_DOUBLE_EQ(BoundOf(work, slow_memory).Seconds(), work.Bytes() / 1e9);
  EXPECT_FALSE(BoundOf(work, slow_int8).IsMemory());
  EXPECT_DOUBLE_EQ(BoundOf(work, slow_int8).Seconds(), work.int8_ops / 1e9 + work.bf16_flops / 1e15);
}

}  // namespace
}  // namespace mlap::bench
