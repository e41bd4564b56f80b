// The command line.
#ifndef MLAP_BENCH_BENCH_OPTIONS_H_
#define MLAP_BENCH_BENCH_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "case_shape.h"

namespace mlap::bench {

struct BenchOptions {
  bool is_full = false;
  bool has_peer = true;
  std::vector<int64_t> heads;
  std::vector<int64_t> tokens;
  std::vector<const tools::Scenario*> scenarios;  // in the order of tools::Scenarios()
  double seconds_per_point = 0.0;
  std::string json;     // file to write; empty: none
  std::string command;  // as it was given
};

// False if the program is to end with *exit_code now.
bool ParseOptions(int argc, char** argv, BenchOptions* options, int* exit_code);

}  // namespace mlap::bench

#endif  // MLAP_BENCH_BENCH_OPTIONS_H_
