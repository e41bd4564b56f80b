// Which ISA is usable, from recorded CPUID words, and what limits and unknown names do.
#include "cpu/dispatch.h"

#include <cstdlib>
#include <cstring>
#include <string>

#include "cpu/cpu_features.h"
#include "cpu/isa.h"
#include "gtest/gtest.h"
#include "support/usable_isas.h"

namespace mlap {
namespace {

// Words of real processors; XCR0 0xe7 saves AVX-512 state, 0x7 only AVX.
constexpr uint32_t kIntel = 0x756e6547, kAmd = 0x68747541;
constexpr CpuidWords kSapphireRapids = {0x7ffafbff, 0xf1bf07ab, 0x1b415f6e, 0xffc94412,
                                        0x00001c30, 0x600e7,    true,       kIntel};
constexpr CpuidWords kZen4 = {0x7ed8320b, 0xf1bf97a9, 0x00405fce, 0x10000010, 0x00000020, 0xe7, false, kAmd};
constexpr CpuidWords kSkylakeServer = {0x7ffefbff, 0xd39ffffb, 0x00000018, 0xbc000400, 0x00000000, 0xe7, false, kIntel};
constexpr CpuidWords kCascadeLake = {0x7ffefbff, 0xd39ffffb, 0x00000818, 0xbc000400, 0x00000000, 0xe7, false, kIntel};
constexpr CpuidWords kHaswell = {0x7ffafbff, 0x000027ab, 0x00000000, 0x9c000400, 0x00000000, 0x7, false, kIntel};

TEST(CpuFeatures, AnIsaNeedsEveryPartAndTheOperatingSystem) {
  struct Case {
    const char* name;
    CpuidWords words;
    // The usable ISAs besides the scalar one, in the table's order.
    std::string usable;
  };
  CpuidWords without_os = kSapphireRapids;
  without_os.xcr0 = 0x7;
  CpuidWords without_osxsave = kSapphireRapids;
  without_osxsave.leaf1_ecx &= ~(1u << 27);
  CpuidWords without_tiles = kSapphireRapids;
  without_tiles.xcr0 = 0xe7;
  CpuidWords not_permitted = kSapphireRapids;
  not_permitted.amx_permitted = false;
  CpuidWords without_vbmi = kSapphireRapids;
  without_vbmi.leaf7_ecx &= ~(1u << 1);
  CpuidWords alder_lake = kHaswell;
  alder_lake.leaf7_1_eax = 0x00400810;
  for (const Case& c :
       {Case{"Sapphire Rapids", kSapphireRapids, "avx2 avxvnni avx512 avx512vnni avx512bf16 amx"},
        Case{"Zen 4", kZen4, "avx2 avx512 avx512vnni avx512bf16"},
        Case{"Skylake server", kSkylakeServer, "avx2 avx512"}, Case{"Haswell", kHaswell, "avx2"},
        Case{"Alder Lake", alder_lake, "avx2 avxvnni"},
        Case{"operating system without AVX-512", without_os, "avx2 avxvnni"},
        Case{"operating system without tiles", without_tiles, "avx2 avxvnni avx512 avx512vnni avx512bf16"},
        Case{"tiles not permitted", not_permitted, "avx2 avxvnni avx512 avx512vnni avx512bf16"},
        Case{"no OSXSAVE", without_osxsave, ""}, Case{"no VBMI", without_vbmi, "avx2 avxvnni avx512 avx512vnni"},
        Case{"Cascade Lake", kCascadeLake, "avx2 avx512 avx512vnni"}, Case{"not x86", CpuidWords{}, ""}}) {
    std::string usable;
    for (const Isa& isa : Isas()) {
      if (std::strcmp(isa.name, "scalar") == 0) {
        EXPECT_TRUE(isa.cpu_has(FeaturesFrom(c.words))) << c.name;
      } else if (isa.cpu_has(FeaturesFrom(c.words))) {
        usable += (usable.empty() ? "" : " ") + std::string(isa.name);
      }
    }
    EXPECT_EQ(usable, c.usable) << c.name;
  }
}

// A CPU's best set may be slower than the one before.
TEST(CpuFeatures, TheBestIsaIsTheFastest) {
  CpuidWords without_tiles = kSapphireRapids;
  without_tiles.amx_permitted = false;
  struct Case {
    CpuidWords words;
    const char* best;
  };
  for (const Case& c : {Case{kSapphireRapids, "amx"}, Case{without_tiles, "avx512vnni"}, Case{kZen4, "avx512bf16"},
                        Case{kCascadeLake, "avx512vnni"}, Case{kSkylakeServer, "avx512"}, Case{kHaswell, "avx2"},
                        Case{CpuidWords{}, "scalar"}}) {
    const CpuFeatures features = FeaturesFrom(c.words);
    int best = 0;  // what of it is built
    for (int i = 0; i < kNumIsas; ++i) {
      if (WhyUnusable(Isas()[i], features).empty()) best = i;
      if (std::strcmp(Isas()[i].name, c.best) == 0) break;
    }
    EXPECT_STREQ(Isas()[BestIsa(features)].name, Isas()[best].name) << c.best;
  }
}

TEST(Dispatch, ScalarTableIsComplete) {
  KernelChoice choice;
  ASSERT_TRUE(ChooseKernels("scalar", &choice).ok());
  EXPECT_STREQ(choice.isa, "scalar");
#define MLAP_EXPECT_KERNEL(member, Fn)         \
  EXPECT_NE(choice.table.member.run, nullptr); \
  EXPECT_NE(std::strstr(choice.table.member.name, "scalar"), nullptr) << choice.table.member.name;
  MLAP_KERNEL_LIST(MLAP_EXPECT_KERNEL)
#undef MLAP_EXPECT_KERNEL
}

TEST(Dispatch, EveryUsableIsaFillsTheWholeTable) {
  for (const KernelChoice& choice : test::UsableIsas()) {
#define MLAP_EXPECT_KERNEL(member, Fn) EXPECT_NE(choice.table.member.run, nullptr) << choice.isa;
    MLAP_KERNEL_LIST(MLAP_EXPECT_KERNEL)
#undef MLAP_EXPECT_KERNEL
  }
}

// With the structure tests of the objects: no instruction beyond the limit can be reached.
TEST(Dispatch, ALimitedTableHasNoKernelBeyondTheLimit) {
  for (const KernelChoice& choice : test::UsableIsas()) {
    const auto is_within = [&](const std::string& kernel) {
      const std::string suffix = kernel.substr(kernel.rfind('_') + 1);
      for (const Isa& isa : Isas()) {
        if (suffix == isa.name) return true;
        if (std::strcmp(isa.name, choice.isa) == 0) break;
      }
      return suffix == choice.isa;
    };
#define MLAP_EXPECT_KERNEL(member, Fn) EXPECT_TRUE(is_within(choice.table.member.name)) << choice.isa;
    MLAP_KERNEL_LIST(MLAP_EXPECT_KERNEL)
#undef MLAP_EXPECT_KERNEL
  }
}

TEST(Dispatch, UnknownAndUnusableNamesAreErrors) {
  KernelChoice choice;
  for (const char* name : {"avx1024", "Scalar", "scalar ", "avx5", "%s"}) {
    const Status status = ChooseKernels(name, &choice);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << name;
    EXPECT_NE(status.text().find(name), std::string::npos) << status.text();
    EXPECT_NE(status.text().find("scalar"), std::string::npos) << status.text();
  }
  for (const Isa& isa : Isas()) {
    const bool usable = WhyUnusable(isa, FeaturesFrom(ReadCpuid())).empty();
    EXPECT_EQ(ChooseKernels(isa.name, &choice).code(), usable ? StatusCode::kOk : StatusCode::kUnsupported) << isa.name;
  }
  EXPECT_TRUE(ChooseKernels(nullptr, &choice).ok());
  EXPECT_TRUE(ChooseKernels("", &choice).ok());
}

TEST(Dispatch, ThreadCountIsAWholeNumber) {
  int threads = 0;
  unsetenv("MLAP_NUM_THREADS");
  ASSERT_TRUE(ConfiguredThreads(&threads).ok());
  EXPECT_EQ(threads, UsableCpus());
  for (const char* good : {"1", "3", "1024"}) {
    setenv("MLAP_NUM_THREADS", good, 1);
    ASSERT_TRUE(ConfiguredThreads(&threads).ok()) << good;
    EXPECT_EQ(threads, std::atoi(good));
  }
  for (const char* bad : {"0", "-1", "1025", "two", "2x", "2.5", " ", "99999999999999999999"}) {
    setenv("MLAP_NUM_THREADS", bad, 1);
    const Status status = ConfiguredThreads(&threads);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << bad;
    EXPECT_NE(status.text().find("MLAP_NUM_THREADS"), std::string::npos);
  }
  unsetenv("MLAP_NUM_THREADS");
}

}  // namespace
}  // namespace mlap
