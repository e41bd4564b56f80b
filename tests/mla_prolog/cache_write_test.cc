// What a call writes into the caches, and what it leaves alone.
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "cache_rows.h"
#include "prolog_fixture.h"

namespace mlap::prolog_test {
namespace {

constexpr uint8_t kSentinel = 0xA5;
constexpr uint8_t kHole = 0x3C;

std::vector<Config> AllTiny() {
  std::vector<Config> configs;
  for (const Scenario scenario : kScenarios) {
    for (const char* mode : IndexModesOf(scenario)) {
      configs.push_back(TinyConfig(scenario, mode).SetFused(5));
      configs.push_back(TinyConfig(scenario, mode).SetBatchSeq(2, 3));
    }
  }
  // Rows of 8-bit floats.
  configs.push_back(TinyConfig({Version::kV3, 3, 1}).SetFused(5));
  configs.push_back(TinyConfig({Version::kV3, 4, 3}).SetFused(5));
  return configs;
}

bool IsSentinel(const std::vector<uint8_t>& bytes) {
  for (const uint8_t byte : bytes) {
    if (byte != kSentinel) return false;
  }
  return true;
}

class CacheWrite : public PrologTest {
 protected:
  ScopedSoc soc_{"none"};
};

TEST_F(CacheWrite, OnlyTheAddressedRowsChange) {
  for (const Config& config : AllTiny()) {
    SCOPED_TRACE(config.Name());
    PrologCall call(config);
    call.Allocate();
    const RunResult result = call.Run(stream_);
    ASSERT_TRUE(result.Ok()) << result;
    for (const Param param : CachesOf(config)) {
      const auto rows = Rows(call, param);
      std::vector<bool> addressed(rows.size(), false);
      for (int64_t t = 0; t < config.Tokens(); ++t) addressed[static_cast<size_t>(call.slots()[t])] = true;
      for (size_t slot = 0; slot < rows.size(); ++slot) {
        EXPECT_EQ(IsSentinel(rows[slot]), !addressed[slot]) << ParamName(param) << " slot " << slot;
      }
    }
  }
}

// Whatever the row, it has the same content: a token's row does not depend on where it goes.
TEST_F(CacheWrite, RowsGoWhereTheIndexSays) {
  for (const Config& config : AllTiny()) {
    SCOPED_TRACE(config.Name());
    PrologCall first(config);
    first.Allocate();
    ASSERT_TRUE(first.Run(stream_).Ok());
    PrologCall second(config);
    second.Allocate();
    const int64_t last = config.Capacity() - 1;
    for (int64_t t = 0; t < config.Tokens(); ++t) second.slots()[t] = last - t;
    ASSERT_TRUE(second.Run(stream_).Ok());
    for (const Param param : CachesOf(config)) {
      const auto a = Rows(first, param);
      const auto b = Rows(second, param);
      for (int64_t t = 0; t < config.Tokens(); ++t) {
        EXPECT_EQ(a[static_cast<size_t>(first.slots()[t])], b[static_cast<size_t>(last - t)])
            << ParamName(param) << " token " << t;
      }
    }
    for (const Param param : {kQueryOut, kQueryRopeOut, kScaleQNope, kQueryNorm, kScaleQNorm}) {
      ExpectSameBytes(first.buffer(param).Bytes(), second.buffer(param).Bytes(), ParamName(param));
    }
  }
}

TEST_F(CacheWrite, NegativeIndicesWriteNoRowButTheQueries) {
  for (const Config& config : AllTiny()) {
    SCOPED_TRACE(config.Name());
    PrologCall all(config);
    all.Allocate();
    ASSERT_TRUE(all.Run(stream_).Ok());
    for (const int64_t negative :
         {int64_t{-1}, int64_t{-2}, -config.Capacity(), -config.Capacity() - 1,
          int64_t{std::numeric_limits<int32_t>::min()}, int64_t{-1} << 40, std::numeric_limits<int64_t>::min()}) {
      SCOPED_TRACE(negative);
      PrologCall call(config);
      call.Allocate();
      call.slots()[1] = negative;
      const RunResult result = call.Run(stream_);
      ASSERT_TRUE(result.Ok()) << result;
      for (const Param param : CachesOf(config)) {
        auto expected = Rows(all, param);
        std::fill(expected[static_cast<size_t>(all.slots()[1])].begin(),
                  expected[static_cast<size_t>(all.slots()[1])].end(), kSentinel);
        EXPECT_EQ(Rows(call, param), expected) << ParamName(param);
      }
      for (const Param param : {kQueryOut, kQueryRopeOut, kScaleQNope, kQueryNorm, kScaleQNorm}) {
        ExpectSameBytes(all.buffer(param).Bytes(), call.buffer(param).Bytes(), ParamName(param));
      }
    }
    PrologCall none(config);
    none.Allocate();
    for (int64_t t = 0; t < config.Tokens(); ++t) none.slots()[t] = -1 - t;
    ASSERT_TRUE(none.Run(stream_).Ok());
    EXPECT_TRUE(IsSentinel(none.buffer(kKvCache).Bytes()));
    EXPECT_TRUE(IsSentinel(none.buffer(kKrCache).Bytes()));
    ExpectSameBytes(all.buffer(kQueryOut).Bytes(), none.buffer(kQueryOut).Bytes(), "queryOut");
  }
}

TEST_F(CacheWrite, TheLastOfSeveralTokensForOneSlotWins) {
  for (const Scenario scenario : kScenarios) {
    for (const char* mode : IndexModesOf(scenario)) {
      // Many tokens, so that threads would have to race for the slots.
      Config config = TinyConfig(scenario, mode).SetFused(200);
      SCOPED_TRACE(config.Name());
      config.block_num = 13;
      PrologCall apart(config);
      apart.Allocate();
      ASSERT_TRUE(apart.Run(stream_).Ok());
      PrologCall shared(config);
      shared.Allocate();
      std::vector<int64_t> winner(static_cast<size_t>(config.Capacity()), -1);
      for (int64_t t = 0; t < config.tokens; ++t) {
        shared.slots()[t] = t * t % 11 + 30;
        winner[static_cast<size_t>(shared.slots()[t])] = t;
      }
      for (int repetition = 0; repetition < 3; ++repetition) {
        shared.ResetWritten();
        ASSERT_TRUE(shared.Run(stream_).Ok());
        for (const Param param : CachesOf(config)) {
          const auto from = Rows(apart, param);
          const auto to = Rows(shared, param);
          for (size_t slot = 0; slot < to.size(); ++slot) {
            if (winner[slot] < 0) {
              EXPECT_TRUE(IsSentinel(to[slot])) << ParamName(param) << " slot " << slot;
            } else {
              EXPECT_EQ(to[slot], from[static_cast<size_t>(apart.slots()[winner[slot]])])
                  << ParamName(param) << " slot " << slot;
            }
          }
        }
      }
    }
  }
}

TEST_F(CacheWrite, AnIndexOutOfRangeFailsTheStreamAndWritesNothing) {
  for (const Config& config : AllTiny()) {
    SCOPED_TRACE(config.Name());
    const int64_t capacity = config.Capacity();
    for (const int64_t bad :
         {capacity, capacity + 1, int64_t{1} << 32, int64_t{1} << 62, std::numeric_limits<int64_t>::max()}) {
      SCOPED_TRACE(bad);
      for (const int64_t token : {int64_t{0}, int64_t{3}, config.Tokens() - 1}) {
        PrologCall call(config);
        call.Allocate();
        call.slots()[token] = bad;
        const auto before = call.Written();
        const RunResult result = call.Run(stream_);
        EXPECT_EQ(result.phase1, 0) << result;
        EXPECT_EQ(result.phase2, 0) << result;
        EXPECT_EQ(result.sync, 507015) << result;
        for (const std::string& word : {std::to_string(token), std::to_string(bad), std::to_string(capacity)}) {
          EXPECT_NE(result.text.find(word), std::string::npos) << word << " in: " << result.text;
        }
        EXPECT_NE(result.text.find("cacheIndex"), std::string::npos) << result.text;
        EXPECT_EQ(call.Written(), before);
        // The stream has reported the failure and works again.
        EXPECT_EQ(aclrtSynchronizeStream(stream_), 0);
        call.slots()[token] = -1;
        EXPECT_TRUE(call.Run(stream_).Ok());
      }
    }
  }
}

// A legal call queued behind a failed one runs.
TEST_F(CacheWrite, ACallBehindAFailedOneRuns) {
  const Config config = TinyConfig(Scenario::kPerChannel);
  PrologCall bad(config);
  bad.Allocate();
  bad.slots()[0] = config.Capacity();
  PrologCall good(config);
  good.Allocate();
  PrologCall serial(config);
  serial.Allocate();
  ASSERT_TRUE(serial.Run(stream_).Ok());
  const Phase1Result first = bad.Phase1();
  const Phase1Result second = good.Phase1();
  ASSERT_EQ(first.status, 0);
  ASSERT_EQ(second.status, 0);
  GuardedBuffer workspace(std::max(first.workspace_bytes, second.workspace_bytes));
  EXPECT_EQ(bad.Phase2(workspace.data(), workspace.size(), first.executor, stream_), 0);
  EXPECT_EQ(bad.Phase2(workspace.data(), workspace.size(), second.executor, stream_), 0);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), 507015);
  EXPECT_EQ(good.Written(), serial.Written());
}

TEST_F(CacheWrite, BothByteOrdersHoldTheSameRows) {
  for (const Scenario& scenario : kScenarios) {
    if (scenario.kv_mode == 3) continue;
    const Config config = TinyConfig(scenario, "PA_BSND");
    PrologCall rows(config);
    PrologCall nz(TinyConfig(scenario, "PA_NZ"));
    SCOPED_TRACE(config.Name());
    rows.Allocate();
    nz.Allocate();
    ASSERT_TRUE(rows.Run(stream_).Ok());
    ASSERT_TRUE(nz.Run(stream_).Ok());
    for (const Param param : CachesOf(config)) {
      EXPECT_EQ(Rows(rows, param), Rows(nz, param)) << ParamName(param);
      EXPECT_NE(rows.buffer(param).Bytes(), nz.buffer(param).Bytes()) << ParamName(param);
    }
    for (const Param param : {kQueryOut, kQueryRopeOut, kScaleQNope, kQueryNorm, kScaleQNorm}) {
      ExpectSameBytes(rows.buffer(param).Bytes(), nz.buffer(param).Bytes(), ParamName(param));
    }
  }
}

// The same with the device's own sizes, where kr's C0 differs from its row's.
TEST_F(CacheWrite, BothByteOrdersHoldTheSameRowsAtTheDevicesSizes) {
  const ScopedSoc soc("ascend910b");
  for (const Scenario& scenario : {Scenario::kNonQuant, Scenario::kPerChannelSmooth, Scenario{Version::kV3, 2, 1}}) {
    Config config;
    config.scenario = scenario;
    config.block_num = 3;
    PrologCall rows(config);
    config.cache_mode = "PA_NZ";
    PrologCall nz(config);
    rows.Allocate();
    nz.Allocate();
    ASSERT_TRUE(rows.Run(stream_).Ok());
    ASSERT_TRUE(nz.Run(stream_).Ok());
    for (const Param param : {kKvCache, kKrCache}) EXPECT_EQ(Rows(rows, param), Rows(nz, param)) << ParamName(param);
  }
}

// Bytes past Hckv in a wider row are not the operator's.
TEST_F(CacheWrite, WiderRowsKeepTheirTails) {
  for (const Config& config : AllTiny()) {
    if (config.IsV3()) continue;  // which takes no wider ones
    SCOPED_TRACE(config.Name());
    PrologCall narrow(config);
    narrow.Allocate();
    ASSERT_TRUE(narrow.Run(stream_).Ok());
    PrologCall wide(config);
    wide[kKvCache].Reshape({config.block_num, config.block_size, 1, config.kv_rank + 64});
    wide.Allocate();
    const RunResult result = wide.Run(stream_);
    ASSERT_TRUE(result.Ok()) << result;
    const auto expected = Rows(narrow, kKvCache);
    const auto actual = Rows(wide, kKvCache);
    for (size_t slot = 0; slot < expected.size(); ++slot) {
      const auto middle = actual[slot].begin() + static_cast<std::ptrdiff_t>(expected[slot].size());
      EXPECT_EQ(std::vector<uint8_t>(actual[slot].begin(), middle), expected[slot]) << slot;
      EXPECT_TRUE(IsSentinel(std::vector<uint8_t>(middle, actual[slot].end()))) << slot;
    }
    ExpectSameBytes(narrow.buffer(kKrCache).Bytes(), wide.buffer(kKrCache).Bytes(), "krCache");
  }
}

TEST_F(CacheWrite, SeveralCallsWriteWhatOneCallWrites) {
  for (const Scenario scenario : kScenarios) {
    for (const char* mode : IndexModesOf(scenario)) {
      const Config config = TinyConfig(scenario, mode).SetFused(7);
      SCOPED_TRACE(config.Name());
      PrologCall whole(config);
      whole.Allocate();
      ASSERT_TRUE(whole.Run(stream_).Ok());

      // The parts share the caches, which the views of the second part find as the first one left them.
      std::vector<uint8_t> kv = std::vector<uint8_t>(whole.buffer(kKvCache).size(), kSentinel);
      std::vector<uint8_t> kr = std::vector<uint8_t>(whole.buffer(kKrCache).size(), kSentinel);
      int64_t first_token = 0;
      for (const int64_t tokens : {3, 1, 3}) {
        Config part_config = config;
        PrologCall part(part_config.SetFused(tokens));
        part.Allocate();
        part.FillInput(kTokenX, 1, first_token * config.hidden);
        part.FillInput(kRopeSin, 1, first_token * config.rope);
        part.FillInput(kRopeCos, 1, first_token * config.rope);
        if (config.IsFull()) part.FillInput(kScaleX, 1, first_token * part[kScaleX].dims.back());
        part.FillInput(kCacheIndex, 1, first_token);
        std::copy(kv.begin(), kv.end(), part.buffer(kKvCache).data());
        std::copy(kr.begin(), kr.end(), part.buffer(kKrCache).data());
        ASSERT_TRUE(part.Run(stream_).Ok());
        kv = part.buffer(kKvCache).Bytes();
        kr = part.buffer(kKrCache).Bytes();
        first_token += tokens;
      }
      ExpectSameBytes(whole.buffer(kKvCache).Bytes(), kv, "kvCache");
      ExpectSameBytes(whole.buffer(kKrCache).Bytes(), kr, "krCache");
    }
  }
}

// A strided cache ends up as if it had been copied out, written and copied back, and its holes are never written.
TEST_F(CacheWrite, StridedCaches) {
  struct Layout {
    const char* name;
    // Of page, slot and element, from the block size, the row width.
    std::vector<int64_t> (*strides)(int64_t bs, int64_t width);
  };
  const std::vector<Layout> layouts = {
      {"gaps between pages",
       [](int64_t bs, int64_t w) {
         return std::vector<int64_t>{bs * w + 37, w, w, 1};
       }},
      {"gaps between slots",
       [](int64_t bs, int64_t w) {
         return std::vector<int64_t>{bs * (w + 5), w + 5, w + 5, 1};
       }},
      {"gaps between elements",
       [](int64_t bs, int64_t w) {
         return std::vector<int64_t>{bs * w * 3, w * 3, w * 3, 3};
       }},
      {"gaps everywhere",
       [](int64_t bs, int64_t w) {
         return std::vector<int64_t>{bs * (2 * w + 3) + 11, 2 * w + 3, 1, 2};
       }},
      {"slots outside pages",
       [](int64_t, int64_t w) {
         return std::vector<int64_t>{w, 3 * w, 3 * w, 1};
       }},
      {"elements outermost",
       [](int64_t bs, int64_t) {
         return std::vector<int64_t>{bs, 1, 1, 3 * bs};
       }},
  };
  for (const Config& config : AllTiny()) {
    PrologCall contiguous(config);
    contiguous.Allocate();
    ASSERT_TRUE(contiguous.Run(stream_).Ok());
    for (const Layout& layout : layouts) {
      for (const int64_t offset : {0, 13}) {
        for (const int which : {1, 2, 3}) {
          SCOPED_TRACE(config.Name() + ", " + layout.name + ", offset " + std::to_string(offset) + ", caches " +
                       std::to_string(which));
          PrologCall strided(config);
          strided.Allocate();
          for (const Param param : CachesOf(config)) {
            if ((which & (param == kKvCache ? 1 : 2)) == 0) continue;
            strided.Restride(param, layout.strides(config.block_size, strided[param].dims[3]), offset, kHole);
          }
          const auto kv_holes = strided.Holes(kKvCache);
          const auto kr_holes = strided.Holes(kKrCache);
          const RunResult result = strided.Run(stream_);
          ASSERT_TRUE(result.Ok()) << result;
          for (const Param param : kWritten) {
            ExpectSameBytes(contiguous.Elements(param), strided.Elements(param), ParamName(param));
          }
          ExpectSameBytes(kv_holes, strided.Holes(kKvCache), "kvCache's holes");
          ExpectSameBytes(kr_holes, strided.Holes(kKrCache), "krCache's holes");
        }
      }
    }
  }
}

// Other bytes of a strided cache's elements are only touched in the addressed rows: a writer on another page of the
// same memory must never see its bytes rewritten. Checked by making the whole of an unaddressed page inaccessible.
TEST_F(CacheWrite, UnaddressedPagesAreNotEvenRead) {
  for (const Scenario scenario : {Scenario::kNonQuant, Scenario::kPerChannel}) {
    for (const char* mode : IndexModesOf(scenario)) {
      Config config = TinyConfig(scenario, mode);
      config.block_num = 2;
      // One cache page is at least a page of memory, and all tokens go to the last one, which ends the buffer.
      config.block_size = 256;
      PrologCall plain(config);
      plain.Allocate();
      for (int64_t t = 0; t < config.tokens; ++t) plain.slots()[t] = 256 + t;
      ASSERT_TRUE(plain.Run(stream_).Ok());

      PrologCall call(config);
      call.Allocate();
      for (int64_t t = 0; t < config.tokens; ++t) call.slots()[t] = 256 + t;
      for (const Param param : CachesOf(config)) {
        // The buffer holds the last page only; the first one lies in the inaccessible memory in front of it.
        const size_t page_bytes = call.buffer(param).size() / 2;
        ASSERT_EQ(page_bytes % 4096, 0u);
        call.buffer(param) = GuardedBuffer(page_bytes);
        call.buffer(param).Fill(kSentinel);
        call[param].data = call.buffer(param).data() - page_bytes;
      }
      const RunResult result = call.Run(stream_);
      ASSERT_TRUE(result.Ok()) << result;
      for (const Param param : CachesOf(config)) {
        const std::vector<uint8_t> expected = plain.buffer(param).Bytes();
        ExpectSameBytes({expected.begin() + static_cast<std::ptrdiff_t>(expected.size() / 2), expected.end()},
                        call.buffer(param).Bytes(), ParamName(param));
      }
    }
  }
}

}  // namespace
}  // namespace mlap::prolog_test
