// What the CPU offers and the operating system saves, asked directly: the limits must not depend on the library.
#ifndef MLAP_BENCH_CPU_SUPPORT_H_
#define MLAP_BENCH_CPU_SUPPORT_H_

namespace mlap::bench {

struct CpuSupport {
  bool fma_256 = false;   // AVX2 and FMA
  bool vnni_256 = false;  // AVX-VNNI
  bool fma_512 = false;   // AVX-512 F and BW
  bool vnni_512 = false;
  bool bf16_512 = false;
  bool amx = false;  // tiles with BF16 and INT8, permitted to this process
};

// Asks once, and for AMX requests the permission.
const CpuSupport& Support();

}  // namespace mlap::bench

#endif  // MLAP_BENCH_CPU_SUPPORT_H_
