#include "cpu/cpu_features.h"

#include <sched.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <thread>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#endif

namespace mlap {
namespace {

constexpr bool Bit(uint64_t word, int bit) { return ((word >> bit) & 1u) != 0; }

// XCR0: SSE and AVX; with the three AVX-512 state components.
constexpr uint64_t kAvxState = 0x6;
constexpr uint64_t kAvx512State = 0xe6;
constexpr uint32_t kGenu = 0x756e6547;  // of GenuineIntel
// The tiles' configuration and data.
constexpr uint64_t kAmxState = 0x60000;

#if defined(__x86_64__)
uint64_t ReadXcr0() {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<uint64_t>(high) << 32) | low;
}

bool RequestAmx() {
  constexpr long kArchReqXcompPerm = 0x1023;
  constexpr long kXfeatureXtileData = 18;
  return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureXtileData) == 0;
}
#endif

}  // namespace

CpuFeatures FeaturesFrom(const CpuidWords& words) {
  CpuFeatures features;
  const auto os_saves = [&](uint64_t state) { return Bit(words.leaf1_ecx, 27) && (words.xcr0 & state) == state; };
  if (!os_saves(kAvxState)) return features;
  features.avx2 = Bit(words.leaf7_ebx, 5);
  features.fma = Bit(words.leaf1_ecx, 12);
  features.avxvnni = Bit(words.leaf7_1_eax, 4);
  if (!os_saves(kAvx512State)) return features;
  features.avx512f = Bit(words.leaf7_ebx, 16);
  features.avx512dq = Bit(words.leaf7_ebx, 17);
  features.avx512bw = Bit(words.leaf7_ebx, 30);
  features.avx512vl = Bit(words.leaf7_ebx, 31);
  features.avx512vbmi = Bit(words.leaf7_ecx, 1);
  features.avx512vnni = Bit(words.leaf7_ecx, 11);
  features.avx512bf16 = Bit(words.leaf7_1_eax, 5);
  features.has_slow_bf16_dot = features.avx512bf16 && words.leaf0_ebx == kGenu;
  features.amx = Bit(words.leaf7_edx, 22) && Bit(words.leaf7_edx, 24) && Bit(words.leaf7_edx, 25) &&
                 os_saves(kAmxState) && words.amx_permitted;
  return features;
}

CpuidWords ReadCpuid() {
  CpuidWords words;
#if defined(__x86_64__)
  uint32_t eax, ebx, ecx, edx;
  if (__get_cpuid(0, &eax, &ebx, &ecx, &edx) == 0) return words;
  words.leaf0_ebx = ebx;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return words;
  words.leaf1_ecx = ecx;
  if (Bit(ecx, 27)) words.xcr0 = ReadXcr0();
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return words;
  words.leaf7_ebx = ebx;
  words.leaf7_ecx = ecx;
  words.leaf7_edx = edx;
  words.amx_permitted = Bit(edx, 24) && RequestAmx();
  if (eax >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0) words.leaf7_1_eax = eax;
#endif
  return words;
}

std::string CpuName() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string line;
  while (std::getline(cpuinfo, line)) {
    if (line.rfind("model name", 0) == 0) {
      const size_t colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  }
#if defined(__aarch64__)
  return "64-bit Arm";
#elif defined(__x86_64__)
  return "x86-64";
#else
  return "unknown CPU";
#endif
}

int UsableCpus() {
  cpu_set_t allowed;
  // Of the main thread: a thread that pins itself does not narrow the process.
  if (sched_getaffinity(getpid(), sizeof(allowed), &allowed) == 0) {
    const int count = CPU_COUNT(&allowed);
    if (count > 0) return count;
  }
  const unsigned hardware = std::thread::hardware_concurrency();
  return hardware > 0 ? static_cast<int>(hardware) : 1;
}

}  // namespace mlap
