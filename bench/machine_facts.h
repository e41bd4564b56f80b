// What the results depend on and a reader wants to know of the machine.
#ifndef MLAP_BENCH_MACHINE_FACTS_H_
#define MLAP_BENCH_MACHINE_FACTS_H_

#include <cstddef>
#include <string>

namespace mlap::bench {

struct MachineFacts {
  std::string cpu;
  std::string isa;         // the operator's, under MLAP_MAX_ISA
  std::string flags;       // instruction sets of the CPU that matter here
  int num_threads = 0;     // of the operator, the peer and the probes
  int num_cpus = 0;        // the process may run on
  size_t cache_bytes = 0;  // last level, as the system reports it
  std::string cache_source;
  double memory_bytes = 0.0;
  std::string huge_pages;  // the kernel's setting
  std::string kernel;
  std::string compiler;
  std::string date;
  double load = 0.0;  // of the last minute, at the start
};

// Throws ToolError if MLAP_MAX_ISA or MLAP_NUM_THREADS is wrong.
MachineFacts AskMachine();

struct MemoryUse {
  double resident = 0.0;  // bytes
  double peak = 0.0;
  double huge = 0.0;  // of the resident ones on huge pages
};

MemoryUse ReadMemoryUse();

// Lets the peak begin anew at what is resident; false where the system does not.
bool ResetPeakMemory();

}  // namespace mlap::bench

#endif  // MLAP_BENCH_MACHINE_FACTS_H_
