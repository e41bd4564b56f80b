// A random call of the operator with its memory.
#ifndef MLAP_TESTS_ENGINE_RANDOM_CALL_H_
#define MLAP_TESTS_ENGINE_RANDOM_CALL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/prolog_args.h"

namespace mlap::test {

enum class CacheMode { kPaBsnd, kPaNz, kPaBlkBsnd, kPaBlkNz, kBsnd, kTnd };

struct CallOptions {
  PrologShape shape;
  PrologMode mode;
  CacheMode cache_mode = CacheMode::kPaBsnd;
  bool lists_sequences = false;  // PA_BLK: sequences of several lengths, among them 0
  bool smooth = false;
  bool query_norm = false;
  int64_t block_num = 4;  // PA_BSND, PA_NZ
  int64_t block_size = 64;
  uint32_t seed = 1;
};

std::string Describe(const CallOptions& options);

// Every scenario in every cache mode it may have. Smoothing, the two generations' rules, the factors, RoPE styles,
// query_norm and queries without low rank alternate over them. Scenarios with per-group rows have one group more.
std::vector<CallOptions> AllScenarios(const PrologShape& shape);

class RandomCall {
 public:
  explicit RandomCall(const CallOptions& options);
  RandomCall(const RandomCall&) = delete;
  RandomCall& operator=(const RandomCall&) = delete;

  // The outputs of the whole call.
  struct Outputs {
    std::vector<uint8_t> query, kv_cache, kr_cache, query_norm, mx_scale_q_norm;
    std::vector<Bf16> query_rope;
    std::vector<float> dequant_scale_q_nope, dequant_scale_q_norm;
    bool operator==(const Outputs& other) const;
  };
  Outputs FreshOutputs() const;
  // The arguments of tokens [begin, end) of the call, which write their part of `out`. The whole call finds its slots
  // by the rule of its cache mode; a part of one in PA_BLK has the same slots in a list.
  PrologArgs Args(int64_t begin, int64_t end, Outputs* out) const;

 private:
  void MakeSlots();
  CacheView Cache(std::vector<uint8_t>* memory, ElementType type, int64_t width) const;

  CallOptions options_;
  std::vector<uint8_t> token_x_, weight_dq_, weight_uq_qr_, weight_dkv_kr_;  // of the types of the mode
  std::vector<Bf16> weight_uk_, gamma_cq_, gamma_ckv_, sin_, cos_;
  std::vector<float> scale_x_, scale_w_dq_, scale_w_uq_qr_, scale_w_dkv_kr_, scale_ckv_, scale_ckr_, smooth_,
      clip_alpha_;
  std::vector<uint8_t> mx_x_, mx_w_dq_, mx_w_uq_qr_, mx_w_dkv_kr_;
  std::vector<int64_t> slot_of_token_, pages_;
  std::vector<int32_t> sequence_ends_;
  int64_t block_num_, block_size_;  // of the caches, as the cache mode has them
};

}  // namespace mlap::test

#endif  // MLAP_TESTS_ENGINE_RANDOM_CALL_H_
