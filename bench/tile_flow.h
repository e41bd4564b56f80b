// AMX tiles fed as a product of 256 tokens has to feed them: what is left of their peak once every line has come in.
#ifndef MLAP_BENCH_TILE_FLOW_H_
#define MLAP_BENCH_TILE_FLOW_H_

#include <cstddef>
#include <vector>

#include "contender.h"
#include "huge_buffer.h"

namespace mlap::bench {

// Four TDPBF16PS a step, on two tiles of rows from the second-level cache and two of columns from the first-level one.
// Beside them four lines of weight come from memory, are permuted and stored, as 256 tokens share a line among eight
// steps; and every eight steps the sums go to the second-level cache and others come. Nothing is computed with the
// result: no addresses, roundings or stores of an output are in the way.
class TileFlowProbe : public Contender {
 public:
  static constexpr const char* kKey = "bf16_amx_flow";
  static constexpr const char* kWhat = "the same, from L2 and memory";

  static bool IsUsable();

  // `weights` has to outlive the probe; no cache can hold it.
  TileFlowProbe(const HugeBuffer& weights, int num_threads);

  double RunOnce() override;
  void EndTurn() override;

  double ops_per_run() const;

 private:
  const HugeBuffer& weights_;
  int num_threads_;
  size_t next_ = 0;  // where the next run begins to read in each thread's part of the weights
  std::vector<HugeBuffer> thread_data_;
};

}  // namespace mlap::bench

#endif  // MLAP_BENCH_TILE_FLOW_H_
