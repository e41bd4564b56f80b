// Loops that do nothing but multiply and add, in registers: the most arithmetic one core can do; and, as it makes such
// a difference, tiles with their operands loaded.
#ifndef MLAP_BENCH_PEAK_LOOPS_H_
#define MLAP_BENCH_PEAK_LOOPS_H_

#include <cstdint>
#include <span>
#include <string_view>

namespace mlap::bench {

struct PeakLoop {
  const char* key;           // "bf16_512", ...
  const char* instruction;   // "vdpbf16ps zmm", ...
  double ops_per_iteration;  // a multiply-add is two
  bool is_usable;            // CPU and operating system
  // `data` is what is multiplied.
  void (*run)(int64_t iterations, const void* data);
  int64_t data_bytes = 1024;
};

std::span<const PeakLoop> PeakLoops();

// The loops that bound the kernels of an instruction set, by the names MLAP_MAX_ISA takes.
struct IsaPeaks {
  const char* isa;
  const char* bf16_key;  // the bf16 products
  const char* int8_key;  // the int8 product
};

// Null if the name is unknown to the benchmark.
const IsaPeaks* FindIsaPeaks(std::string_view isa);

}  // namespace mlap::bench

#endif  // MLAP_BENCH_PEAK_LOOPS_H_
