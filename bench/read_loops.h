// Loops that do nothing but load memory: the fastest one core can read.
#ifndef MLAP_BENCH_READ_LOOPS_H_
#define MLAP_BENCH_READ_LOOPS_H_

#include <cstddef>
#include <span>

namespace mlap::bench {

// How a range is walked through.
struct ReadPattern {
  int streams;            // so many adjacent parts of the range are read side by side
  size_t prefetch_bytes;  // how far ahead lines are asked for; 0: not at all
};

std::span<const ReadPattern> ReadPatterns();

// Loads every byte of [begin, begin + num_bytes), with the widest loads of the CPU. num_bytes: a multiple of 4096.
void ReadRange(const std::byte* begin, size_t num_bytes, const ReadPattern& pattern);

}  // namespace mlap::bench

#endif  // MLAP_BENCH_READ_LOOPS_H_
