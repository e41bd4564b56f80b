#include "cpu/isa.h"

#include "kernels/registration.h"

namespace mlap {
namespace {

void UseScalar(KernelTable* table) {
  UseGemmScalar(table);
  UseRowKernelsScalar(table);
}

#if MLAP_HAVE_avx512bf16
constexpr bool kBuiltAvx512Bf16 = true;
void UseAvx512Bf16(KernelTable* table) {
  UseGemmAvx512Bf16(table);
  UseRowKernelsAvx512Bf16(table);
}
#else
constexpr bool kBuiltAvx512Bf16 = false;
constexpr void (*UseAvx512Bf16)(KernelTable*) = nullptr;
#endif

}  // namespace

const std::array<Isa, kNumIsas>& Isas() {
  static constexpr std::array<Isa, kNumIsas> kIsas = {{
      {"scalar", true, [](const CpuFeatures&) { return true; }, "nothing", UseScalar},
      {"avx512bf16", kBuiltAvx512Bf16,
       [](const CpuFeatures& cpu) {
         return cpu.avx512f && cpu.avx512bw && cpu.avx512vl && cpu.avx512dq && cpu.avx512vbmi && cpu.avx512vnni &&
                cpu.avx512bf16;
       },
       "AVX-512 F, BW, VL, DQ, VBMI, VNNI and BF16", UseAvx512Bf16},
  }};
  return kIsas;
}

std::string WhyUnusable(const Isa& isa, const CpuFeatures& features) {
  if (!isa.built) return "not built into this library";
  if (!isa.cpu_has(features)) {
    return std::string("this CPU, or its operating system, does not offer ") + isa.needs;
  }
  return std::string();
}

}  // namespace mlap
