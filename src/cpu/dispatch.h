// Which kernels run: the only place that decides.
#ifndef MLAP_CPU_DISPATCH_H_
#define MLAP_CPU_DISPATCH_H_

#include <string>

#include "base/status.h"
#include "kernels/kernel_table.h"

namespace mlap {

struct KernelChoice {
  const char* isa = nullptr;  // the best ISA that contributed
  KernelTable table;
};

// The complete table of the best usable ISA up to and including `max_isa` (null or empty: BestIsa). An unknown or
// unusable name is an error whose text names the names that can be used; `setting` is who gave it, for that text.
Status ChooseKernels(const char* max_isa, KernelChoice* choice, const char* setting = "MLAP_MAX_ISA");

// ChooseKernels under the limit of the environment's MLAP_MAX_ISA, decided once for the process: a change of the
// variable after the first call has no effect.
Status ProcessKernels(const KernelChoice** choice);

// The number of threads an operator may use: MLAP_NUM_THREADS, or the CPUs the process may run on. A value that is not
// a whole number from 1 to 1024 is an error.
Status ConfiguredThreads(int* num_threads);

// ConfiguredThreads, decided once for the process by the first call that succeeds: the pool that all calls share, and
// the workspaces that calls ask for, have to agree on it.
Status ProcessThreads(int* num_threads);

}  // namespace mlap

#endif  // MLAP_CPU_DISPATCH_H_
