// A token's results do not depend on the batch around it, on its position there, or on the number of threads: bit for
// bit, in every scenario, on every usable ISA.
#include <algorithm>
#include <cfenv>
#include <cstdint>
#include <cstring>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "core/prolog_plan.h"
#include "core/prolog_run.h"
#include "engine/random_call.h"
#include "gtest/gtest.h"
#include "parallel/thread_pool.h"
#include "support/guarded_buffer.h"
#include "support/usable_isas.h"

namespace mlap {
namespace {

using test::RandomCall;

// Tails everywhere: no size is a multiple of a kernel's step, except for what PA_NZ asks of cache rows.
constexpr PrologShape kShape = {70, 70, 52, 3, 20, 32, 64};

void RunCall(const PrologArgs& args, const KernelTable& kernels, Executor* executor) {
  PrologPlan plan;
  ASSERT_TRUE(PlanProlog(args.shape, args.mode, executor->num_workers(), &plan).ok());
  // A workspace of exactly the promised size, at an odd address where that is free to choose, full of NaN patterns.
  static thread_local std::vector<test::GuardedBuffer> workspaces;
  for (test::GuardedBuffer& workspace : workspaces) {
    if (workspace.size() != plan.workspace_bytes) continue;
    ASSERT_TRUE(RunProlog(args, plan, kernels, executor, workspace.data(), nullptr).ok());
    return;
  }
  workspaces.emplace_back(plan.workspace_bytes);
  workspaces.back().Fill(0xff);
  ASSERT_TRUE(RunProlog(args, plan, kernels, executor, workspaces.back().data(), nullptr).ok());
}

class InvarianceTest : public testing::TestWithParam<KernelChoice> {};

TEST_P(InvarianceTest, BatchPositionAndThreads) {
  size_t turn = 0;
  for (const test::CallOptions& options : test::AllScenarios(kShape)) {
    SCOPED_TRACE(Describe(options));
    const RandomCall call(options);
    // Every token in a call of its own, all into one pair of caches.
    RandomCall::Outputs alone = call.FreshOutputs();
    SerialExecutor serial;
    for (int64_t t = 0; t < kShape.tokens; ++t) {
      PrologArgs args = call.Args(t, t + 1, &alone);
      RunCall(args, GetParam().table, &serial);
    }
    // The numbers of threads take turns.
    static constexpr int kThreads[] = {7, 1, 2, 3};
    const int threads = kThreads[turn++ % 4];
    ThreadPool pool(threads);
    for (const int64_t tokens : {1, 2, 5, 17, 63, 70}) {
      if (tokens == 1 && threads != 7) continue;  // one token at a time is what they are compared with
      SCOPED_TRACE(std::to_string(threads) + " threads, " + std::to_string(tokens) + " tokens");
      RandomCall::Outputs batched = call.FreshOutputs();
      for (int64_t begin = 0; begin < kShape.tokens; begin += tokens) {
        PrologArgs args = call.Args(begin, std::min(begin + tokens, kShape.tokens), &batched);
        RunCall(args, GetParam().table, &pool);
      }
      ASSERT_TRUE(batched == alone);
    }
  }
}

// More tokens than one block holds: the blocks' borders do not show.
TEST_P(InvarianceTest, TokenBlocks) {
  for (test::CallOptions& options : test::AllScenarios({2100, 48, 32, 2, 16, 32, 32})) {
    options.block_num = 40;
    SCOPED_TRACE(Describe(options));
    const RandomCall call(options);
    RandomCall::Outputs whole = call.FreshOutputs(), parts = call.FreshOutputs();
    ThreadPool pool(2);
    RunCall(call.Args(0, 2100, &whole), GetParam().table, &pool);
    for (int64_t begin = 0; begin < 2100; begin += 525) {
      PrologArgs args = call.Args(begin, begin + 525, &parts);
      RunCall(args, GetParam().table, &pool);
    }
    ASSERT_TRUE(whole == parts);
  }
}

// The query of the whole call is stored past the caches, those of its parts are not.
TEST_P(InvarianceTest, StreamedQuery) {
  constexpr PrologShape kLarge = {70, 48, 32, 64, 16, 32, 256};
  for (const test::CallOptions& options : test::AllScenarios(kLarge)) {
    if (options.mode.QuantizesQuery() || options.cache_mode != test::CacheMode::kPaBsnd) continue;
    SCOPED_TRACE(Describe(options));
    const RandomCall call(options);
    RandomCall::Outputs whole = call.FreshOutputs(), parts = call.FreshOutputs();
    ThreadPool pool(2);
    // Streamed stores need lines of their own.
    test::GuardedBuffer query(whole.query.size());
    ASSERT_EQ(reinterpret_cast<uintptr_t>(query.data()) % 64, 0u);
    PrologArgs args = call.Args(0, kLarge.tokens, &whole);
    args.query = query.data();
    PrologPlan plan;
    ASSERT_TRUE(PlanProlog(args.shape, args.mode, pool.num_workers(), &plan).ok());
    ASSERT_TRUE(plan.streams_query);
    RunCall(args, GetParam().table, &pool);
    std::memcpy(whole.query.data(), query.data(), query.size());
    for (int64_t begin = 0; begin < kLarge.tokens; begin += 35) {
      RunCall(call.Args(begin, begin + 35, &parts), GetParam().table, &pool);
    }
    ASSERT_TRUE(whole == parts);
  }
}

// Neither the caller's rounding mode nor its flushing of denormals matters, also not where threads inherit them.
TEST_P(InvarianceTest, TheCallersFloatEnvironment) {
  for (const test::CallOptions& options : test::AllScenarios({9, 70, 52, 3, 20, 32, 64})) {
    const RandomCall call(options);
    RandomCall::Outputs expected = call.FreshOutputs();
    SerialExecutor serial;
    RunCall(call.Args(0, 9, &expected), GetParam().table, &serial);
    std::fenv_t saved;
    std::fegetenv(&saved);
    std::fesetround(FE_UPWARD);
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
    RandomCall::Outputs out = call.FreshOutputs();
    {
      ThreadPool pool(3);
      RunCall(call.Args(0, 9, &out), GetParam().table, &pool);
    }
    EXPECT_EQ(std::fegetround(), FE_UPWARD);
    std::fesetenv(&saved);
    EXPECT_TRUE(out == expected) << Describe(options);
  }
}

TEST_P(InvarianceTest, TheLastOfEqualSlotsWins) {
  for (const test::CallOptions& options : test::AllScenarios({16, 64, 48, 2, 16, 32, 64})) {
    const RandomCall call(options);
    RandomCall::Outputs together = call.FreshOutputs(), last_only = call.FreshOutputs();
    ThreadPool pool(3);
    PrologArgs args = call.Args(0, 16, &together);
    const std::vector<int64_t> same(16, args.kv_cache.Capacity() / 2);
    args.slots = {SlotRule::kIndex, same.data()};
    RunCall(args, GetParam().table, &pool);
    PrologArgs last_args = call.Args(0, 16, &last_only);
    std::vector<int64_t> only_last(16, -1);
    only_last[15] = same[15];
    last_args.slots = {SlotRule::kIndex, only_last.data()};
    RunCall(last_args, GetParam().table, &pool);
    EXPECT_EQ(together.kv_cache, last_only.kv_cache) << Describe(options);
    EXPECT_EQ(together.kr_cache, last_only.kr_cache) << Describe(options);
  }
}

// Runs serially, and changes an index after the check has passed.
class MeddlingExecutor final : public Executor {
 public:
  MeddlingExecutor(int64_t* index, int64_t value, int workers) : index_(index), value_(value), workers_(workers) {}
  int num_workers() const override { return workers_; }
  void ParallelFor(int64_t num_tasks, TaskBody body) override {
    *index_ = value_;
    for (int64_t task = 0; task < num_tasks; ++task) body(task, workers_ - 1);
  }

 private:
  int64_t* index_;
  int64_t value_;
  int workers_;
};

// For pages likewise, whose number times BlockSize may overflow.
TEST_P(InvarianceTest, AnIndexThatChangesWhileTheCallRunsStaysInTheCache) {
  for (const test::CallOptions& options : test::AllScenarios({5, 64, 48, 2, 16, 32, 64})) {
    const RandomCall call(options);
    for (const SlotRule rule : {SlotRule::kIndex, SlotRule::kBlocks}) {
      for (const int64_t value : {int64_t{256}, INT64_MAX, INT64_MIN}) {
        RandomCall::Outputs out = call.FreshOutputs(), expected = call.FreshOutputs();
        std::vector<int64_t> index = {0, 1, 2, 3, 4};
        // Five sequences of one token, in pages of one row.
        const TokenSlots slots = {rule, index.data(), 5, 5, 1, nullptr};
        const auto args_to = [&](RandomCall::Outputs* outputs) {
          PrologArgs args = call.Args(0, 5, outputs);
          args.slots = slots;
          for (CacheView* cache : {&args.kv_cache, &args.kr_cache}) {
            const int64_t capacity = cache->Capacity();
            *cache = ContiguousCache(cache->data, cache->type, cache->order, capacity, 1, cache->width);
          }
          return args;
        };
        MeddlingExecutor meddling(&index[3], value, 1);
        RunCall(args_to(&out), GetParam().table, &meddling);
        index[3] = -1;
        SerialExecutor serial;
        RunCall(args_to(&expected), GetParam().table, &serial);
        EXPECT_TRUE(out == expected) << Describe(options) << " " << value;
      }
    }
  }
}

TEST_P(InvarianceTest, QueryNormIsRefusedWithoutLowRank) {
  test::CallOptions options;
  options.shape = {5, 64, 0, 2, 16, 32, 64};
  const RandomCall call(options);
  RandomCall::Outputs out = call.FreshOutputs();
  const RandomCall::Outputs untouched = out;
  PrologArgs args = call.Args(0, 5, &out);
  args.query_norm = out.query.data();
  PrologPlan plan;
  ASSERT_TRUE(PlanProlog(args.shape, args.mode, 1, &plan).ok());
  std::vector<char> workspace(plan.workspace_bytes);
  SerialExecutor serial;
  const Status status = RunProlog(args, plan, GetParam().table, &serial, workspace.data(), nullptr);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.text().find("queryNorm"), std::string::npos) << status.text();
  EXPECT_TRUE(out == untouched);
}

// A pool larger than the plan would find no scratch behind the plan's: the call runs serially instead.
TEST_P(InvarianceTest, APoolLargerThanThePlan) {
  const test::CallOptions options = test::AllScenarios({40, 64, 48, 8, 16, 32, 64}).front();
  const RandomCall call(options);
  RandomCall::Outputs out = call.FreshOutputs(), expected = call.FreshOutputs();
  SerialExecutor serial;
  RunCall(call.Args(0, 40, &expected), GetParam().table, &serial);
  PrologPlan plan;
  const PrologArgs args = call.Args(0, 40, &out);
  ASSERT_TRUE(PlanProlog(args.shape, args.mode, 1, &plan).ok());
  test::GuardedBuffer workspace(plan.workspace_bytes);
  ThreadPool pool(7);
  ASSERT_TRUE(RunProlog(args, plan, GetParam().table, &pool, workspace.data(), nullptr).ok());
  EXPECT_TRUE(out == expected);
}

INSTANTIATE_TEST_SUITE_P(Isa, InvarianceTest, testing::ValuesIn(test::UsableIsas()),
                         [](const auto& instance) { return test::IsaName(instance.param); });

}  // namespace
}  // namespace mlap
