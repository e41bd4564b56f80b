// Plans: refused sizes, and workspaces that stay bounded.
#include "core/prolog_plan.h"

#include <cstdint>
#include <string>

#include "gtest/gtest.h"

namespace mlap {
namespace {

constexpr PrologShape kDeepSeek = {8, 7168, 1536, 128, 128, 64, 512};

TEST(PrologPlan, RefusesSizesThatMakeNoSense) {
  struct Case {
    const char* name;
    int64_t PrologShape::*size;
    int64_t value;
  };
  for (const Case& c :
       {Case{"T", &PrologShape::tokens, -1}, Case{"He", &PrologShape::hidden, 0}, Case{"Hcq", &PrologShape::q_rank, -1},
        Case{"N", &PrologShape::heads, 0}, Case{"D", &PrologShape::nope, -5}, Case{"Dr", &PrologShape::rope, 0},
        Case{"Dr", &PrologShape::rope, 7}, Case{"Hckv", &PrologShape::kv_rank, 0},
        Case{"N", &PrologShape::heads, INT64_MAX}, Case{"He", &PrologShape::hidden, int64_t{1} << 62}}) {
    PrologShape shape = kDeepSeek;
    shape.*c.size = c.value;
    PrologPlan plan;
    const Status status = PlanProlog(shape, {}, 2, &plan);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << c.name << " " << c.value;
    EXPECT_NE(status.text().find(c.name), std::string::npos) << status.text();
  }
}

TEST(PrologPlan, AQueryWithoutLowRankHasNoCqToQuantise) {
  PrologShape shape = kDeepSeek;
  shape.q_rank = 0;
  PrologPlan plan;
  for (const WeightQuant quant : {WeightQuant::kNone, WeightQuant::kUqQr, WeightQuant::kFull, WeightQuant::kMxFp8,
                                  WeightQuant::kFp8, WeightQuant::kHiF8}) {
    PrologMode mode;
    mode.weight_quant = quant;
    const Status status = PlanProlog(shape, mode, 2, &plan);
    EXPECT_EQ(status.ok(), quant != WeightQuant::kUqQr);
    if (!status.ok()) {
      EXPECT_NE(status.text().find("low rank"), std::string::npos) << status.text();
    }
  }
}

TEST(PrologPlan, RefusesProductsThatOverflow) {
  const int64_t large = int64_t{1} << 40;
  PrologPlan plan;
  for (const PrologShape& shape :
       {PrologShape{large, large, 16, 1, 16, 16, 16}, PrologShape{1, large, large, 1, 16, 16, 16},
        PrologShape{1, 16, large, large, 16, 16, 16}, PrologShape{large, 16, 16, large, 16, 16, 16},
        PrologShape{1, 16, 16, 16, large, 16, large}}) {
    EXPECT_EQ(PlanProlog(shape, {}, 2, &plan).code(), StatusCode::kInvalidArgument);
  }
}

// Many tokens go in tasks as wide as the kernels like them, few in narrow ones; workers never wait for one wide task.
TEST(PrologPlan, TasksAreAsWideAsTheKernelsLike) {
  for (const int64_t tokens : {1, 64, 191, 192, 1024, 8192}) {
    for (const int workers : {1, 2, 64}) {
      for (const int64_t task_columns : {kTaskColumns, int64_t{256}}) {
        PrologShape shape = kDeepSeek;
        shape.tokens = tokens;
        PrologPlan plan;
        ASSERT_TRUE(PlanProlog(shape, {}, workers, &plan, task_columns).ok());
        const int64_t wanted = workers == 64 ? 32 : tokens < 192 ? kTaskColumns : task_columns;
        EXPECT_EQ(plan.column_group, wanted) << tokens << " tokens, " << workers << " workers";
      }
    }
  }
}

TEST(PrologPlan, WorkspaceIsBounded) {
  for (const WeightQuant quant : {WeightQuant::kNone, WeightQuant::kUqQr, WeightQuant::kFull, WeightQuant::kMxFp8,
                                  WeightQuant::kFp8, WeightQuant::kHiF8}) {
    for (const KvQuant kv_quant : {KvQuant::kNone, KvQuant::kPerTensor, KvQuant::kPerGroup}) {
      for (const int64_t q_rank : {int64_t{0}, kDeepSeek.q_rank}) {
        for (const int64_t tokens : {1, 16, 512, 8192, 1 << 20}) {
          PrologShape shape = kDeepSeek;
          shape.tokens = tokens;
          shape.q_rank = q_rank;
          PrologMode mode;
          mode.weight_quant = quant;
          mode.kv_quant = kv_quant;
          if (q_rank == 0 && quant == WeightQuant::kUqQr) continue;
          PrologPlan plan;
          ASSERT_TRUE(PlanProlog(shape, mode, 64, &plan).ok());
          EXPECT_LE(plan.workspace_bytes, (uint64_t{64} << 20) + 8192 * static_cast<uint64_t>(tokens)) << tokens;
          EXPECT_GT(plan.workspace_bytes, 0u);
        }
      }
    }
  }
  PrologShape empty = kDeepSeek;
  empty.tokens = 0;
  PrologPlan plan;
  ASSERT_TRUE(PlanProlog(empty, {}, 2, &plan).ok());
  EXPECT_EQ(plan.workspace_bytes, 0u);
}

}  // namespace
}  // namespace mlap
