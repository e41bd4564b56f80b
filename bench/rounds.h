// Interleaved measurement: rounds in which every contender has a turn, so that what changes on the machine meets all.
#ifndef MLAP_BENCH_ROUNDS_H_
#define MLAP_BENCH_ROUNDS_H_

#include <span>
#include <string>
#include <vector>

#include "contender.h"

namespace mlap::bench {

struct RoundLimits {
  double seconds = 5.0;  // stop after this time, but not before `min_rounds`
  int min_rounds = 5;
  int max_rounds = 400;
};

// The calls of one contender. A call that took more than 3 times the median is rejected: a thread was preempted.
struct Timing {
  std::string name;
  double median = 0.0;  // seconds, of the calls that are kept
  double min = 0.0;
  int num_calls = 0;     // all of them
  int num_rejected = 0;  // of these
};

Timing Summarise(std::string name, std::vector<double> seconds);

// One timing per contender, in their order.
std::vector<Timing> RunRounds(std::span<Contender* const> contenders, const RoundLimits& limits);

}  // namespace mlap::bench

#endif  // MLAP_BENCH_ROUNDS_H_
