#include "cpu/isa.h"

#include "kernels/registration.h"

namespace mlap {
namespace {

void UseScalar(KernelTable* table) {
  UseGemmScalar(table);
  UseRowKernelsScalar(table);
}

// What an ISA that was not built registers: nothing.
using Registration = void (*)(KernelTable*);

#if MLAP_HAVE_avx2
void UseAvx2(KernelTable* table) {
  UseGemmAvx2(table);
  UseRowKernelsAvx2(table);
}
#else
constexpr Registration UseAvx2 = nullptr;
#endif

#if MLAP_HAVE_avxvnni
constexpr Registration UseAvxVnni = UseGemmAvxVnni;
#else
constexpr Registration UseAvxVnni = nullptr;
#endif

#if MLAP_HAVE_avx512
void UseAvx512(KernelTable* table) {
  UseGemmAvx512(table);
  UseRowKernelsAvx512(table);
}
#else
constexpr Registration UseAvx512 = nullptr;
#endif

#if MLAP_HAVE_avx512vnni
constexpr Registration UseAvx512Vnni = UseGemmAvx512Vnni;
#else
constexpr Registration UseAvx512Vnni = nullptr;
#endif

#if MLAP_HAVE_avx512bf16
constexpr Registration UseAvx512Bf16 = UseGemmAvx512Bf16;
#else
constexpr Registration UseAvx512Bf16 = nullptr;
#endif

#if MLAP_HAVE_amx
constexpr Registration UseAmx = UseGemmAmx;
#else
constexpr Registration UseAmx = nullptr;
#endif

bool HasAvx2(const CpuFeatures& cpu) { return cpu.avx2 && cpu.fma; }
bool HasAvx512(const CpuFeatures& cpu) {
  return HasAvx2(cpu) && cpu.avx512f && cpu.avx512bw && cpu.avx512vl && cpu.avx512dq;
}
bool HasAvx512Vnni(const CpuFeatures& cpu) { return HasAvx512(cpu) && cpu.avx512vnni; }
bool HasAvx512Bf16(const CpuFeatures& cpu) { return HasAvx512Vnni(cpu) && cpu.avx512vbmi && cpu.avx512bf16; }

}  // namespace

const std::array<Isa, kNumIsas>& Isas() {
  static constexpr std::array<Isa, kNumIsas> kIsas = {{
      {"scalar", [](const CpuFeatures&) { return true; }, "nothing", UseScalar},
      {"avx2", HasAvx2, "AVX2 and FMA", UseAvx2},
      {"avxvnni", [](const CpuFeatures& cpu) { return HasAvx2(cpu) && cpu.avxvnni; }, "AVX-VNNI, AVX2 and FMA",
       UseAvxVnni},
      {"avx512", HasAvx512, "AVX-512 F, BW, VL and DQ", UseAvx512},
      {"avx512vnni", HasAvx512Vnni, "AVX-512 VNNI, and what avx512 needs", UseAvx512Vnni},
      {"avx512bf16", HasAvx512Bf16, "AVX-512 BF16 and VBMI, and what avx512vnni needs", UseAvx512Bf16,
       [](const CpuFeatures& cpu) { return cpu.has_slow_bf16_dot; }},
      {"amx", [](const CpuFeatures& cpu) { return HasAvx512Bf16(cpu) && cpu.amx; },
       "AMX with BF16 and INT8, permitted to this process, and what avx512bf16 needs", UseAmx},
  }};
  return kIsas;
}

int BestIsa(const CpuFeatures& features) {
  int best = 0;
  for (int i = 1; i < kNumIsas; ++i) {
    const Isa& isa = Isas()[i];
    const bool is_slower = isa.is_slower != nullptr && isa.is_slower(features);
    if (!is_slower && WhyUnusable(isa, features).empty()) best = i;
  }
  return best;
}

std::string WhyUnusable(const Isa& isa, const CpuFeatures& features) {
  if (isa.use == nullptr) return "not built into this library";
  if (!isa.cpu_has(features)) {
    return std::string("this CPU, or its operating system, does not offer ") + isa.needs;
  }
  return std::string();
}

}  // namespace mlap
