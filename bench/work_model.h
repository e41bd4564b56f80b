// What is measured, and how much work it is.
#ifndef MLAP_BENCH_WORK_MODEL_H_
#define MLAP_BENCH_WORK_MODEL_H_

#include <cstdint>
#include <span>

#include "case_shape.h"

namespace mlap::bench {

// In the order of tools::Scenarios().
extern const tools::Scenario* const kNonQuant;
extern const tools::Scenario* const kPartial;
extern const tools::Scenario* const kPartialKvInt8;
extern const tools::Scenario* const kFullInt8;
extern const tools::Scenario* const kFullInt8KvInt8;

// All of them.
std::span<const tools::Scenario* const> MeasuredScenarios();

struct Point {
  const tools::Scenario* scenario = nullptr;
  int64_t heads = 0;   // N
  int64_t tokens = 0;  // T
};

// DeepSeek-V3's layer with N heads.
tools::LayerDims DimsWithHeads(int64_t heads);

tools::CaseShape ShapeOf(const Point& point, int64_t block_num, int64_t block_size);

struct Work {
  double bf16_flops = 0.0;
  double int8_ops = 0.0;
  double weight_bytes = 0.0;  // each weight once
  double other_bytes = 0.0;   // inputs read and outputs written, each once

  double Ops() const { return bf16_flops + int8_ops; }
  double Bytes() const { return weight_bytes + other_bytes; }
};

Work WorkOf(const Point& point);

// No implementation can be faster on a machine with these rates.
struct Bound {
  double memory_seconds = 0.0;
  double compute_seconds = 0.0;

  bool IsMemory() const { return memory_seconds >= compute_seconds; }
  double Seconds() const { return IsMemory() ? memory_seconds : compute_seconds; }
};

struct Rates {
  double read = 0.0;  // bytes per second
  double bf16 = 0.0;  // operations per second
  double int8 = 0.0;
};

Bound BoundOf(const Work& work, const Rates& rates);

}  // namespace mlap::bench

#endif  // MLAP_BENCH_WORK_MODEL_H_
