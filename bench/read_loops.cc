#include "read_loops.h"

#include "cpu_support.h"

namespace mlap::bench {
namespace {

constexpr ReadPattern kPatterns[] = {{1, 0},    {2, 0},    {3, 0},    {4, 0},    {1, 2048}, {2, 2048},
                                     {3, 2048}, {4, 2048}, {1, 4096}, {2, 4096}, {3, 4096}, {4, 4096}};
constexpr size_t kStep = 256;
constexpr size_t kPartBytes = size_t{128} << 10;  // of one stream, as long as a weight's column block

#if defined(__x86_64__)

struct LoadXmm {
  static void Load(const std::byte* p) {
    for (int i = 0; i < 4; ++i) {
      __asm__ volatile("movups (%0), %%xmm0\n movups 16(%0), %%xmm1\n movups 32(%0), %%xmm2\n movups 48(%0), %%xmm3\n"
                       :
                       : "r"(p + 64 * i)
                       : "xmm0", "xmm1", "xmm2", "xmm3");
    }
  }
  static void Finish() {}
};

struct LoadYmm {
  static void Load(const std::byte* p) {
    for (int i = 0; i < 2; ++i) {
      __asm__ volatile(
          "vmovups (%0), %%ymm0\n vmovups 32(%0), %%ymm1\n vmovups 64(%0), %%ymm2\n vmovups 96(%0), %%ymm3\n"
          :
          : "r"(p + 128 * i)
          : "xmm0", "xmm1", "xmm2", "xmm3");
    }
  }
  static void Finish() { __asm__ volatile("vzeroupper"); }
};

struct LoadZmm {
  static void Load(const std::byte* p) {
    __asm__ volatile(
        "vmovups (%0), %%zmm0\n vmovups 64(%0), %%zmm1\n vmovups 128(%0), %%zmm2\n vmovups 192(%0), %%zmm3\n"
        :
        : "r"(p)
        : "xmm0", "xmm1", "xmm2", "xmm3");
  }
  static void Finish() { __asm__ volatile("vzeroupper"); }
};

#else

struct LoadQ {
  static void Load(const std::byte* p) {
    for (int i = 0; i < 4; ++i) {
      __asm__ volatile("ldp q0, q1, [%0]\n ldp q2, q3, [%0, #32]\n" : : "r"(p + 64 * i) : "v0", "v1", "v2", "v3");
    }
  }
  static void Finish() {}
};

#endif

template <typename Loader, bool kPrefetches>
void ReadSteps(const std::byte* begin, size_t part_bytes, int streams, size_t ahead) {
  for (size_t at = 0; at < part_bytes; at += kStep) {
    for (int s = 0; s < streams; ++s) {
      const std::byte* p = begin + static_cast<size_t>(s) * part_bytes + at;
      if (kPrefetches) {
        for (size_t line = 0; line < kStep; line += 64) __builtin_prefetch(p + ahead + line, 0, 2);
      }
      Loader::Load(p);
    }
  }
}

template <typename Loader>
void Read(const std::byte* begin, size_t num_bytes, const ReadPattern& pattern) {
  const auto steps = pattern.prefetch_bytes != 0 ? ReadSteps<Loader, true> : ReadSteps<Loader, false>;
  const size_t unit_bytes = static_cast<size_t>(pattern.streams) * kPartBytes;
  for (; num_bytes >= unit_bytes; num_bytes -= unit_bytes, begin += unit_bytes) {
    steps(begin, kPartBytes, pattern.streams, pattern.prefetch_bytes);
  }
  steps(begin, num_bytes, 1, pattern.prefetch_bytes);
  Loader::Finish();
}

}  // namespace

std::span<const ReadPattern> ReadPatterns() { return kPatterns; }

void ReadRange(const std::byte* begin, size_t num_bytes, const ReadPattern& pattern) {
#if defined(__x86_64__)
  if (Support().fma_512) return Read<LoadZmm>(begin, num_bytes, pattern);
  if (Support().fma_256) return Read<LoadYmm>(begin, num_bytes, pattern);
  return Read<LoadXmm>(begin, num_bytes, pattern);
#else
  Read<LoadQ>(begin, num_bytes, pattern);
#endif
}

}  // namespace mlap::bench
