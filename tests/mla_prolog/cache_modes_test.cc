// The six cache modes are ways to name rows: each gives what PA_BSND gives with the same rows listed one by one. And
// what is wrong about the lists fails the stream, and nothing is written.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "cache_rows.h"
#include "prolog_fixture.h"

namespace mlap::prolog_test {
namespace {

std::vector<Scenario> ScenariosOfV3() {
  std::vector<Scenario> scenarios;
  for (const Scenario& scenario : AllScenarios()) {
    if (scenario.version == Version::kV3) scenarios.push_back(scenario);
  }
  return scenarios;
}

class CacheModes : public PrologTest {
 protected:
  // Runs the call, and its like in PA_BSND whose cacheIndex lists the rows that the call's tokens have.
  void ExpectSameAsListed(PrologCall& call) {
    const Config& config = call.config;
    Config listed = config;
    listed.cache_mode = "PA_BSND";
    if (config.IsTokens()) {
      listed.block_num = 1;
      listed.block_size = config.Tokens();
    }
    PrologCall plain(listed);
    plain.Allocate();
    for (int64_t t = 0; t < config.Tokens(); ++t) plain.slots()[t] = call.SlotOf(t);
    RunResult result = plain.Run(stream_);
    ASSERT_TRUE(result.Ok()) << result;
    result = call.Run(stream_);
    ASSERT_TRUE(result.Ok()) << result;
    for (const Param param : CachesOf(config)) {
      EXPECT_EQ(Rows(call, param), Rows(plain, param)) << ParamName(param);
    }
    for (const Param param : {kQueryOut, kQueryRopeOut, kScaleQNope, kQueryNorm, kScaleQNorm}) {
      ExpectSameBytes(plain.buffer(param).Bytes(), call.buffer(param).Bytes(), ParamName(param));
    }
  }

  ScopedSoc soc_{"none"};
};

TEST_F(CacheModes, NameTheSameRows) {
  for (const Scenario& scenario : ScenariosOfV3()) {
    for (const char* mode : ModesOf(scenario)) {
      for (const Config& config : FormsOf(TinyConfig(scenario, mode), 6)) {
        SCOPED_TRACE(config.Name());
        PrologCall call(config);
        call.Allocate();
        ExpectSameAsListed(call);
      }
    }
  }
}

// Sequences of several lengths: none, a part of a page, a whole one, and several.
TEST_F(CacheModes, SequencesOfAnyLength) {
  const std::vector<std::vector<int64_t>> lists = {{3, 0, 16, 1}, {17}, {0, 0, 5}, {1, 1, 1, 1, 1}, {33, 2}, {4, 0}};
  for (const Scenario& scenario : ScenariosOfV3()) {
    for (const char* mode : {"PA_BLK_BSND", "PA_BLK_NZ"}) {
      if (scenario.kv_mode == 3) continue;
      for (const std::vector<int64_t>& lengths : lists) {
        Config config = TinyConfig(scenario, mode);
        config.block_num = 7;
        config.sequences = lengths;
        config.tokens = 0;
        for (const int64_t length : lengths) config.tokens += length;
        SCOPED_TRACE(config.Name() + ", " + std::to_string(lengths.size()) + " sequences");
        PrologCall call(config);
        call.Allocate();
        ExpectSameAsListed(call);
      }
    }
  }
}

// A negative page writes none of its rows, of several sequences on one page the last token wins, and entries behind the
// last sequence's are not read.
TEST_F(CacheModes, PagesNegativeSharedAndSuperfluous) {
  for (const Scenario& scenario : ScenariosOfV3()) {
    for (const char* mode : {"PA_BLK_BSND", "PA_BLK_NZ"}) {
      if (scenario.kv_mode == 3) continue;
      for (const bool fused : {true, false}) {
        Config config = TinyConfig(scenario, mode);
        config.block_size = 4;
        config.sequences = {9, 2, 7};
        fused ? config.SetFused(18) : config.SetBatchSeq(3, 6);
        SCOPED_TRACE(config.Name());
        PrologCall call(config);
        if (fused) call[kCacheIndex].Reshape({config.NumPages() + 2});
        call.Allocate();
        const std::vector<int64_t> pages = {2, -1, 1, 2, std::numeric_limits<int64_t>::min(), 1, 99, 1 << 30};
        const int64_t num_entries = call[kCacheIndex].NumElements();
        std::copy_n(pages.begin(), num_entries, call.slots());
        ExpectSameAsListed(call);
      }
    }
  }
}

// Lists that are wrong.
struct Fault {
  const char* name;
  const char* named;  // in the text
  void (*inject)(PrologCall&);
};

constexpr Fault kPageFaults[] = {
    {"a page beyond the cache", "cacheIndex", [](PrologCall& call) { call.slots()[1] = call.config.block_num; }},
    {"a huge page", "cacheIndex", [](PrologCall& call) { call.slots()[0] = std::numeric_limits<int64_t>::max(); }},
    {"a page whose rows overflow", "cacheIndex", [](PrologCall& call) { call.slots()[1] = int64_t{1} << 60; }},
};

constexpr Fault kSequenceFaults[] = {
    {"descending ends", "actualSeqLen", [](PrologCall& call) { call.buffer(kActualSeqLen).as<int32_t>()[0] = 19; }},
    {"a negative end", "actualSeqLen", [](PrologCall& call) { call.buffer(kActualSeqLen).as<int32_t>()[0] = -1; }},
    {"the least end", "actualSeqLen",
     [](PrologCall& call) { call.buffer(kActualSeqLen).as<int32_t>()[1] = std::numeric_limits<int32_t>::min(); }},
    {"an end short of T", "actualSeqLen", [](PrologCall& call) { call.buffer(kActualSeqLen).as<int32_t>()[2] = 17; }},
    {"an end past T", "actualSeqLen", [](PrologCall& call) { call.buffer(kActualSeqLen).as<int32_t>()[2] = 19; }},
    {"a huge end", "actualSeqLen",
     [](PrologCall& call) { call.buffer(kActualSeqLen).as<int32_t>()[2] = std::numeric_limits<int32_t>::max(); }},
};

// Lists that are too short: in the shapes, of which the first step does not know what they have to be.
constexpr Fault kLengthFaults[] = {
    {"too few pages", "cacheIndex", [](PrologCall& call) { call[kCacheIndex].Reshape({call.config.NumPages() - 1}); }},
    {"no pages", "cacheIndex", [](PrologCall& call) { call[kCacheIndex].Reshape({0}); }},
    {"too few sequences", "actualSeqLen", [](PrologCall& call) { call[kActualSeqLen].Reshape({2}); }},
    {"no sequences", "actualSeqLen", [](PrologCall& call) { call[kActualSeqLen].Reshape({0}); }},
};

TEST_F(CacheModes, WrongListsFailTheStreamAndWriteNothing) {
  for (const Scenario& scenario : ScenariosOfV3()) {
    for (const char* mode : {"PA_BLK_BSND", "PA_BLK_NZ"}) {
      if (scenario.kv_mode == 3) continue;
      for (const bool fused : {true, false}) {
        Config config = TinyConfig(scenario, mode);
        config.sequences = {9, 2, 7};
        fused ? config.SetFused(18) : config.SetBatchSeq(3, 6);
        const auto expect = [&](const Fault& fault) {
          SCOPED_TRACE(config.Name() + ": " + fault.name);
          PrologCall call(config);
          const bool is_length = std::any_of(std::begin(kLengthFaults), std::end(kLengthFaults),
                                             [&](const Fault& other) { return other.name == fault.name; });
          if (is_length) fault.inject(call);
          call.Allocate();
          if (!is_length) fault.inject(call);
          const auto before = call.Written();
          const RunResult result = call.Run(stream_);
          EXPECT_EQ(result.phase1, 0) << result;
          EXPECT_EQ(result.phase2, 0) << result;
          EXPECT_EQ(result.sync, 507015) << result;
          EXPECT_EQ(FirstNamed(result.text), fault.named) << result.text;
          EXPECT_NE(result.text.find("nothing was written"), std::string::npos) << result.text;
          EXPECT_EQ(call.Written(), before);
          EXPECT_EQ(aclrtSynchronizeStream(stream_), 0);
        };
        for (const Fault& fault : kPageFaults) expect(fault);
        if (!fused) continue;
        for (const Fault& fault : kSequenceFaults) expect(fault);
        for (const Fault& fault : kLengthFaults) expect(fault);
        PrologCall good(config);
        good.Allocate();
        EXPECT_TRUE(good.Run(stream_).Ok());
      }
    }
  }
}

// Where there are no pages nothing of the lists is read.
TEST_F(CacheModes, EmptyCachesTakeAnyLists) {
  for (const Scenario& scenario : ScenariosOfV3()) {
    if (scenario.kv_mode == 3) continue;
    Config config = TinyConfig(scenario, "PA_BLK_BSND");
    config.sequences = {9, 2, 7};
    config.SetFused(18);
    config.block_num = 0;
    for (const Fault& fault : kSequenceFaults) {
      SCOPED_TRACE(config.Name() + ": " + fault.name);
      PrologCall call(config);
      call.Allocate();
      fault.inject(call);
      const RunResult result = call.Run(stream_);
      EXPECT_TRUE(result.Ok()) << result;
    }
  }
}

// Caches of tokens may be strided like paged ones.
TEST_F(CacheModes, StridedCachesOfTokens) {
  for (const Scenario& scenario : ScenariosOfV3()) {
    for (const char* mode : {"BSND", "TND"}) {
      for (const Config& config : FormsOf(TinyConfig(scenario, mode), 6)) {
        SCOPED_TRACE(config.Name());
        PrologCall dense(config);
        dense.Allocate();
        ASSERT_TRUE(dense.Run(stream_).Ok());
        PrologCall strided(config);
        strided.Allocate();
        for (const Param param : CachesOf(config)) {
          std::vector<int64_t> strides = strided[param].ContiguousStrides();
          for (int64_t& stride : strides) stride *= 4;
          strides.back() = 3;
          strided.Restride(param, strides, 7, 0x3C);
        }
        const auto kv_holes = strided.Holes(kKvCache);
        const RunResult result = strided.Run(stream_);
        ASSERT_TRUE(result.Ok()) << result;
        for (const Param param : kWritten) {
          ExpectSameBytes(dense.Elements(param), strided.Elements(param), ParamName(param));
        }
        ExpectSameBytes(kv_holes, strided.Holes(kKvCache), "kvCache's holes");
      }
    }
  }
}

}  // namespace
}  // namespace mlap::prolog_test
