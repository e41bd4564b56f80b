// What the CPU offers and the operating system lets programs use.
#ifndef MLAP_CPU_CPU_FEATURES_H_
#define MLAP_CPU_CPU_FEATURES_H_

#include <cstdint>
#include <string>

namespace mlap {

// The raw answers of CPUID and XGETBV that the x86 features are derived from; all zero on other architectures.
struct CpuidWords {
  uint32_t leaf1_ecx = 0;
  uint32_t leaf7_ebx = 0;
  uint32_t leaf7_ecx = 0;
  uint32_t leaf7_edx = 0;
  uint32_t leaf7_1_eax = 0;
  uint64_t xcr0 = 0;
  bool amx_permitted = false;  // Linux hands out the tile registers on request only
  uint32_t leaf0_ebx = 0;      // the first four letters of the maker's name
};

struct CpuFeatures {
  bool avx2 = false;
  bool fma = false;
  bool avxvnni = false;
  bool avx512f = false;
  bool avx512bw = false;
  bool avx512vl = false;
  bool avx512dq = false;
  bool avx512vbmi = false;
  bool avx512vnni = false;
  bool avx512bf16 = false;
  bool amx = false;  // tiles with bf16 and int8 products
  // VDPBF16PS takes two cycles, in which two fused multiply-adds take as many products.
  bool has_slow_bf16_dot = false;
};

// A feature counts only if the operating system saves the registers it needs.
CpuFeatures FeaturesFrom(const CpuidWords& words);

// Asks the operating system for the tile registers, where there are any.
CpuidWords ReadCpuid();

// The processor's name, or the architecture's where there is none.
std::string CpuName();

// The number of CPUs this process may run on, at least 1.
int UsableCpus();

}  // namespace mlap

#endif  // MLAP_CPU_CPU_FEATURES_H_
