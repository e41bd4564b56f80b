// A random call of the operator with its memory.
#ifndef MLAP_TESTS_ENGINE_RANDOM_CALL_H_
#define MLAP_TESTS_ENGINE_RANDOM_CALL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/prolog_args.h"

namespace mlap::test {

struct CallOptions {
  PrologShape shape;
  WeightQuant weight_quant = WeightQuant::kNone;
  KvQuant kv_quant = KvQuant::kNone;
  bool smooth = false;
  CacheOrder cache_order = CacheOrder::kRows;
  int64_t block_num = 4;
  int64_t block_size = 64;
  uint32_t seed = 1;
};

std::string Describe(const CallOptions& options);

// Every scenario with and without smoothing, in both cache orders.
std::vector<CallOptions> AllScenarios(const PrologShape& shape);

class RandomCall {
 public:
  explicit RandomCall(const CallOptions& options);
  RandomCall(const RandomCall&) = delete;
  RandomCall& operator=(const RandomCall&) = delete;

  // The outputs of the whole call.
  struct Outputs {
    std::vector<uint8_t> query, kv_cache, kr_cache;
    std::vector<Bf16> query_rope;
    std::vector<float> dequant_scale_q_nope;
    bool operator==(const Outputs& other) const;
  };
  Outputs FreshOutputs() const;
  // The arguments of tokens [begin, end) of the call, which write their part of `out`.
  PrologArgs Args(int64_t begin, int64_t end, Outputs* out) const;

 private:
  CallOptions options_;
  std::vector<uint8_t> token_x_, weight_dq_, weight_uq_qr_, weight_dkv_kr_;  // bf16 or int8
  std::vector<Bf16> weight_uk_, gamma_cq_, gamma_ckv_, sin_, cos_;
  std::vector<int64_t> cache_index_;
  std::vector<float> scale_x_, scale_w_dq_, scale_w_uq_qr_, scale_w_dkv_kr_, scale_ckv_, scale_ckr_, smooth_;
};

}  // namespace mlap::test

#endif  // MLAP_TESTS_ENGINE_RANDOM_CALL_H_
