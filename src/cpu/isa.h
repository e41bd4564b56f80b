// The ISA names, in ascending order, and what stands against using each here.
#ifndef MLAP_CPU_ISA_H_
#define MLAP_CPU_ISA_H_

#include <array>
#include <string>

#include "cpu/cpu_features.h"
#include "kernels/kernel_table.h"

namespace mlap {

// One row per ISA. Adding an ISA: a row in isa.cc, a flags line in cmake/kernels.cmake, its kernel files.
struct Isa {
  const char* name;
  bool (*cpu_has)(const CpuFeatures& features);              // CPU and operating system both
  const char* needs;                                         // what cpu_has asks for, for people
  void (*use)(KernelTable* table);                           // overrides the table's entries; null: not built
  bool (*is_slower)(const CpuFeatures& features) = nullptr;  // than the row before; null: never
};

inline constexpr int kNumIsas = 7;
const std::array<Isa, kNumIsas>& Isas();

// The index of the ISA to use on a CPU with `features` if nobody asks for another one: the last that can be used, or
// the one before if that is faster there.
int BestIsa(const CpuFeatures& features);

// Why `isa` cannot be used on a CPU with `features`; empty when it can.
std::string WhyUnusable(const Isa& isa, const CpuFeatures& features);

}  // namespace mlap

#endif  // MLAP_CPU_ISA_H_
