#include "cpu_support.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#endif

namespace mlap::bench {
namespace {

#if defined(__x86_64__)

bool Bit(uint32_t word, int bit) { return ((word >> bit) & 1u) != 0; }

uint64_t SavedStates() {
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<uint64_t>(high) << 32) | low;
}

bool TilesArePermitted() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

CpuSupport Ask() {
  CpuSupport support;
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t c = 0;
  uint32_t d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || !Bit(c, 27) || !Bit(c, 28)) return support;  // OSXSAVE, AVX
  const bool has_fma = Bit(c, 12);
  const uint64_t saved = SavedStates();
  const bool saves_256 = (saved & 0x6) == 0x6;
  const bool saves_512 = (saved & 0xe6) == 0xe6;
  const bool saves_tiles = (saved & 0x60000) == 0x60000;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return support;
  const uint32_t max_subleaf = a;
  support.fma_256 = saves_256 && has_fma && Bit(b, 5);
  support.fma_512 = support.fma_256 && saves_512 && Bit(b, 16) && Bit(b, 30);
  support.vnni_512 = support.fma_512 && Bit(c, 11);
  const bool has_tiles = saves_tiles && Bit(d, 22) && Bit(d, 24) && Bit(d, 25);
  if (max_subleaf >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0) {
    support.vnni_256 = support.fma_256 && Bit(a, 4);
    support.bf16_512 = support.fma_512 && Bit(a, 5);
  }
  support.amx = has_tiles && TilesArePermitted();
  return support;
}

#else

CpuSupport Ask() { return {}; }

#endif

}  // namespace

const CpuSupport& Support() {
  static const CpuSupport support = Ask();
  return support;
}

}  // namespace mlap::bench
