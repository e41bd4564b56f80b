// The machine's own limits with the benchmark's threads and pages: what it reads, what it multiplies.
#ifndef MLAP_BENCH_MACHINE_LIMITS_H_
#define MLAP_BENCH_MACHINE_LIMITS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "contender.h"
#include "huge_buffer.h"
#include "peak_loops.h"
#include "read_loops.h"
#include "thread_timing.h"
#include "tile_flow.h"

namespace mlap::bench {

// A run reads the next part of a buffer that the last-level cache cannot hold.
class ReadProbe : public Contender {
 public:
  // Picks the fastest pattern.
  ReadProbe(size_t buffer_bytes, int num_threads);

  double RunOnce() override;
  int RunsPerPass() const override { return static_cast<int>(buffer_.num_bytes() / run_bytes_); }
  void EndTurn() override { EndOpenMpThreads(); }

  double bytes_per_run() const { return static_cast<double>(run_bytes_); }
  size_t buffer_bytes() const { return buffer_.num_bytes(); }
  const HugeBuffer& buffer() const { return buffer_; }
  std::string PatternText() const;

 private:
  HugeBuffer buffer_;
  int num_threads_;
  size_t run_bytes_;
  size_t next_ = 0;
  ReadPattern pattern_ = {1, 0};
};

// A run takes about 2 ms on each thread.
class PeakProbe : public Contender {
 public:
  PeakProbe(const PeakLoop& loop, int num_threads);

  double RunOnce() override;
  void EndTurn() override { EndOpenMpThreads(); }

  const PeakLoop& loop() const { return loop_; }
  double ops_per_run() const;

 private:
  const PeakLoop& loop_;
  int num_threads_;
  int64_t iterations_ = 1000;
  HugeBuffer data_;
};

// All probes this machine can run.
class MachineLimits {
 public:
  // `isa` is the instruction set the operator uses.
  MachineLimits(size_t buffer_bytes, int num_threads, std::string_view isa);

  ReadProbe* read() { return read_.get(); }
  PeakProbe* bf16() { return Find(isa_peaks_->bf16_key); }
  PeakProbe* int8() { return Find(isa_peaks_->int8_key); }

  struct Rate {
    std::string key;
    std::string what;
    double per_second = 0.0;  // bytes or operations
    double best = 0.0;        // of the fastest run
  };
  // Reading first. Measured now, interleaved.
  std::vector<Rate> MeasureAll(double seconds);

 private:
  PeakProbe* Find(std::string_view key);

  const IsaPeaks* isa_peaks_;
  std::unique_ptr<ReadProbe> read_;
  std::vector<std::unique_ptr<PeakProbe>> peaks_;
  std::unique_ptr<TileFlowProbe> tile_flow_;  // null without AMX
};

}  // namespace mlap::bench

#endif  // MLAP_BENCH_MACHINE_LIMITS_H_
