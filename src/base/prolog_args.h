// The operator's arguments, as the reference and the core take them: already validated, inputs dense, sizes positive.
//
//   cQ  = RmsNorm(x W_DQ)      qC | qR = cQ W_UQ|QR      query = qC W_UK      query_rope = RoPE(qR)
//   cKV | kR = x W_DKV|KR      kv_cache[slot] = RmsNorm(cKV)                  kr_cache[slot] = RoPE(kR)
#ifndef MLAP_BASE_PROLOG_ARGS_H_
#define MLAP_BASE_PROLOG_ARGS_H_

#include <cstdint>

#include "base/bf16.h"
#include "base/cache_view.h"
#include "base/weight_view.h"

namespace mlap {

struct PrologShape {
  int64_t tokens = 0;   // T
  int64_t hidden = 0;   // He
  int64_t q_rank = 0;   // Hcq
  int64_t heads = 0;    // N
  int64_t nope = 0;     // D
  int64_t rope = 0;     // Dr, even
  int64_t kv_rank = 0;  // Hckv

  constexpr int64_t HeadColumns() const { return nope + rope; }   // of W_UQ|QR, per head
  constexpr int64_t KvColumns() const { return kv_rank + rope; }  // of W_DKV|KR
};

enum class WeightQuant {
  kNone,  // every matrix product in bf16
  kUqQr,  // W_UQ|QR int8 per output channel, cQ quantised per token ("partial")
  kFull,  // x, W_DQ, W_UQ|QR and W_DKV|KR int8, with scales per token and per output channel; cQ as in kUqQr
};

enum class KvQuant {
  kNone,        // both caches bf16
  kPerTensor,   // kv_cache and query int8, kr_cache bf16; with kFull
  kPerChannel,  // both caches int8, one scale per column; with kUqQr
};

struct PrologMode {
  WeightQuant weight_quant = WeightQuant::kNone;
  KvQuant kv_quant = KvQuant::kNone;
  float epsilon_cq = 1e-5f;
  float epsilon_ckv = 1e-5f;

  constexpr bool QuantizesCq() const { return weight_quant != WeightQuant::kNone; }
  constexpr bool QuantizesX() const { return weight_quant == WeightQuant::kFull; }
  constexpr bool QuantizesQuery() const { return kv_quant == KvQuant::kPerTensor; }
};

struct PrologArgs {
  PrologShape shape;
  PrologMode mode;

  const void* token_x = nullptr;         // [T, He] bf16; int8 in kFull
  WeightView weight_dq;                  // [He, Hcq]
  WeightView weight_uq_qr;               // [Hcq, N * (D + Dr)], per head D nope columns, then Dr rope columns
  const Bf16* weight_uk = nullptr;       // [N, D, Hckv]
  WeightView weight_dkv_kr;              // [He, Hckv + Dr]
  const Bf16* gamma_cq = nullptr;        // [Hcq]
  const Bf16* gamma_ckv = nullptr;       // [Hckv]
  const Bf16* rope_sin = nullptr;        // [T, Dr]
  const Bf16* rope_cos = nullptr;        // [T, Dr]
  const int64_t* cache_index = nullptr;  // [T] slots; a negative one writes no row; not read if the caches are empty
  CacheView kv_cache;                    // width Hckv at least; elements past Hckv stay untouched
  CacheView kr_cache;                    // width Dr

  const float* dequant_scale_x = nullptr;         // [T], kFull
  const float* dequant_scale_w_dq = nullptr;      // [Hcq], kFull
  const float* dequant_scale_w_uq_qr = nullptr;   // [N * (D + Dr)], kUqQr and kFull
  const float* dequant_scale_w_dkv_kr = nullptr;  // [Hckv + Dr], kFull
  const float* quant_scale_ckv = nullptr;         // [Hckv], kPerChannel; [1], kPerTensor; multiplied
  const float* quant_scale_ckr = nullptr;         // [Dr], kPerChannel; multiplied
  const float* smooth_scales_cq = nullptr;        // [Hcq] or null, kUqQr and kFull

  void* query = nullptr;                  // [T, N, Hckv] bf16; int8 in kPerTensor
  Bf16* query_rope = nullptr;             // [T, N, Dr]
  float* dequant_scale_q_nope = nullptr;  // [T, N], kPerTensor
};

}  // namespace mlap

#endif  // MLAP_BASE_PROLOG_ARGS_H_
