// The token -> slot rules: the cursor against a list made position by position, and refusals that write nothing.
#include "base/token_slots.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/prolog_plan.h"
#include "core/prolog_run.h"
#include "core/slot_check.h"
#include "cpu/dispatch.h"
#include "engine/random_call.h"
#include "gtest/gtest.h"
#include "reference/reference.h"
#include "support/random_values.h"

namespace mlap {
namespace {

using test::RandomCall;
using test::RandomValues;

CacheView CacheOf(int64_t block_num, int64_t block_size) {
  return ContiguousCache(nullptr, ElementType::kBf16, CacheOrder::kRows, block_num, block_size, 16);
}

std::vector<int64_t> SlotsFrom(const TokenSlots& slots, const CacheView& cache, int64_t begin, int64_t end) {
  std::vector<int64_t> found;
  SlotCursor cursor(slots, cache, begin);
  for (int64_t t = begin; t < end; ++t) found.push_back(cursor.Next());
  return found;
}

// Sequences of random lengths, among them 0 and whole pages; some pages are negative.
TEST(SlotCursor, FindsTheRowsOfSequencesFromAnyToken) {
  RandomValues random(5);
  for (int round = 0; round < 300; ++round) {
    const int64_t block_size = 1 + random.Below(9);
    const int64_t block_num = 1 + random.Below(40);
    const bool is_uniform = round % 3 == 0;
    const int64_t length = random.Below(4 * block_size);
    std::vector<int32_t> ends;
    std::vector<int64_t> pages, expected;
    for (int64_t b = random.Below(6); b >= 0; --b) {
      const int64_t tokens = is_uniform ? length : random.Below(3) == 0 ? 0 : random.Below(4 * block_size);
      for (int64_t position = 0; position < tokens; ++position) {
        if (position % block_size == 0) pages.push_back(random.Below(4) == 0 ? -5 : random.Below(block_num));
        expected.push_back(pages.back() < 0 ? -1 : pages.back() * block_size + position % block_size);
      }
      ends.push_back(static_cast<int32_t>(expected.size()));
    }
    const auto num_pages = static_cast<int64_t>(pages.size());
    const auto tokens = static_cast<int64_t>(expected.size());
    const CacheView cache = CacheOf(block_num, block_size);
    TokenSlots slots = {SlotRule::kBlocks,
                        pages.data(),
                        num_pages,
                        static_cast<int64_t>(ends.size()),
                        length,
                        is_uniform ? nullptr : ends.data()};
    for (int64_t begin = 0; begin < tokens; ++begin) {
      ASSERT_EQ(SlotsFrom(slots, cache, begin, tokens), std::vector<int64_t>(expected.begin() + begin, expected.end()));
    }

    // The check accepts exactly these lists, and longer ones.
    PrologArgs args;
    args.shape.tokens = tokens;
    args.kv_cache = cache;
    args.slots = slots;
    EXPECT_TRUE(CheckSlots(args).ok()) << CheckSlots(args).text();
    if (num_pages > 0) {
      args.slots.num_indices = num_pages - 1;
      EXPECT_EQ(CheckSlots(args).code(), StatusCode::kIndexOutOfRange);
    }
    pages.resize(pages.size() + 3, INT64_MAX);
    args.slots.cache_index = pages.data();
    args.slots.num_indices = num_pages + 3;
    EXPECT_TRUE(CheckSlots(args).ok()) << "entries behind the last sequence are not read";
  }
}

TEST(SlotCursor, IndicesAndTokens) {
  const int64_t index[] = {7, -1, 0, INT64_MIN, 11};
  const CacheView cache = CacheOf(3, 4);
  EXPECT_EQ(SlotsFrom({SlotRule::kIndex, index}, cache, 0, 5), (std::vector<int64_t>{7, -1, 0, -1, 11}));
  EXPECT_EQ(SlotsFrom({SlotRule::kIndex, index}, cache, 4, 5), (std::vector<int64_t>{11}));
  EXPECT_EQ(SlotsFrom({SlotRule::kTokens}, cache, 9, 13), (std::vector<int64_t>{9, 10, 11, -1}));
}

// Lists that changed after they were checked to anything: what comes out is no slot, or one of the cache.
TEST(SlotCursor, StaysInTheCacheWhateverTheListsHold) {
  RandomValues random(6);
  const auto anything = [&](auto small) -> int64_t {
    using T = decltype(small);
    switch (random.Below(5)) {
      case 0:
        return std::numeric_limits<T>::max() - random.Below(3);
      case 1:
        return std::numeric_limits<T>::min() + random.Below(3);
      default:
        return random.Below(40) - 10;
    }
  };
  for (int round = 0; round < 2000; ++round) {
    std::vector<int64_t> index(20);
    std::vector<int32_t> ends(5);
    for (int64_t& value : index) value = anything(int64_t{});
    for (int32_t& value : ends) value = static_cast<int32_t>(anything(int32_t{}));
    const CacheView cache = CacheOf(1 + random.Below(6), 1 + random.Below(6));
    for (const SlotRule rule : {SlotRule::kIndex, SlotRule::kBlocks}) {
      for (const int64_t slot :
           SlotsFrom({rule, index.data(), random.Below(21), 5, 0, ends.data()}, cache, random.Below(10), 20)) {
        ASSERT_TRUE(slot == SlotCursor::kNoSlot || (slot >= 0 && slot < cache.Capacity())) << slot;
      }
    }
  }
}

// Every refusal: the text names what is wrong, and neither outputs nor caches change.
struct Refusal {
  const char* name;
  SlotRule rule;
  std::vector<int64_t> index;  // of 5 tokens, or of pages of 2 rows
  std::vector<int32_t> ends;
  int64_t block_num;
  std::vector<std::string> parts;  // of the text
};

void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.name; }

class SlotRefusals : public testing::TestWithParam<Refusal> {
 protected:
  // Makes the arguments refusal's, in a cache of pages of two rows.
  static PrologArgs Apply(const Refusal& refusal, PrologArgs args) {
    args.slots = {refusal.rule,
                  refusal.index.data(),
                  static_cast<int64_t>(refusal.index.size()),
                  static_cast<int64_t>(refusal.ends.size()),
                  0,
                  refusal.ends.data()};
    for (CacheView* cache : {&args.kv_cache, &args.kr_cache}) {
      *cache = ContiguousCache(cache->data, cache->type, cache->order, refusal.block_num, 2, cache->width);
    }
    return args;
  }
};

TEST_P(SlotRefusals, WriteNothing) {
  KernelChoice choice;
  ASSERT_TRUE(ChooseKernels(nullptr, &choice).ok());
  for (const test::CallOptions& options : test::AllScenarios({5, 64, 48, 2, 16, 32, 64})) {
    const RandomCall call(options);
    RandomCall::Outputs out = call.FreshOutputs();
    const RandomCall::Outputs untouched = out;
    const PrologArgs args = Apply(GetParam(), call.Args(0, 5, &out));
    PrologPlan plan;
    ASSERT_TRUE(PlanProlog(args.shape, args.mode, 1, &plan).ok());
    std::vector<char> workspace(plan.workspace_bytes);
    SerialExecutor serial;
    const Status status = RunProlog(args, plan, choice.table, &serial, workspace.data(), nullptr);
    EXPECT_EQ(status.code(), StatusCode::kIndexOutOfRange);
    EXPECT_EQ(CheckSlots(args).text(), status.text());
    for (const std::string& part : GetParam().parts) {
      EXPECT_NE(status.text().find(part), std::string::npos) << part << " in: " << status.text();
    }
    EXPECT_NE(status.text().find("nothing was written"), std::string::npos) << status.text();
    EXPECT_TRUE(out == untouched) << Describe(options);
  }
}

// Nothing of the lists is read if the caches hold nothing.
TEST_P(SlotRefusals, EmptyCachesAcceptAnything) {
  PrologArgs args;
  args.shape.tokens = 5;
  args = Apply(GetParam(), args);
  args.kv_cache.block_num = args.kr_cache.block_num = 0;
  args.slots.cache_index = nullptr;
  args.slots.sequence_ends = nullptr;
  EXPECT_TRUE(CheckSlots(args).ok());
}

constexpr SlotRule kIndex = SlotRule::kIndex;
constexpr SlotRule kBlocks = SlotRule::kBlocks;

INSTANTIATE_TEST_SUITE_P(
    Each, SlotRefusals,
    testing::Values(
        Refusal{"IndexAtCapacity", kIndex, {0, 1, -1, 2, 6}, {}, 3, {"cacheIndex", "token 4", "index 6", "6 slots"}},
        Refusal{"HugeIndex", kIndex, {INT64_MAX, 0, 0, 0, 0}, {}, 3, {"token 0", "9223372036854775807"}},
        Refusal{"PageAtBlockNum", kBlocks, {0, -1, 3}, {3, 5}, 3, {"entry 2", "sequence 1", "page 3", "3 pages"}},
        Refusal{"HugePage", kBlocks, {INT64_MAX, 0, 0}, {3, 5}, 3, {"entry 0", "sequence 0", "9223372036854775807"}},
        Refusal{"ShortList", kBlocks, {0, 1}, {3, 5}, 3, {"sequence 1", "2 tokens", "entries 2 to 2", "has 2"}},
        Refusal{"EmptyList", kBlocks, {}, {5}, 3, {"sequence 0", "entries 0 to 2", "has 0"}},
        Refusal{
            "DecreasingLengths", kBlocks, {0, 1, 2}, {4, 3, 5}, 3, {"actualSeqLen", "entry 1", "is 3", "4 or more"}},
        Refusal{"NegativeLength", kBlocks, {0, 1, 2}, {-2, 5}, 3, {"actualSeqLen", "entry 0", "is -2", "0 or more"}},
        Refusal{"TooFewTokens", kBlocks, {0, 1, 2}, {2, 4}, 3, {"actualSeqLen", "token 4", "T = 5"}},
        Refusal{"TooManyTokens", kBlocks, {0, 1, 2}, {2, 6}, 3, {"actualSeqLen", "token 6", "T = 5"}},
        Refusal{"NoSequences", kBlocks, {0, 1, 2}, {}, 3, {"actualSeqLen", "token 0", "T = 5"}},
        Refusal{"CacheSmallerThanTheTokens", SlotRule::kTokens, {}, {}, 2, {"kvCache", "5 tokens", "4 slots"}}),
    [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace mlap
