// The operator's arguments, as the reference and the core take them: already validated, inputs dense, sizes positive.
//
//   cQ  = RmsNorm(x W_DQ)      qC | qR = cQ W_UQ|QR      query = qC W_UK      query_rope = RoPE(qR)
//   cKV | kR = x W_DKV|KR      kv_cache[slot] = RmsNorm(cKV)                  kr_cache[slot] = RoPE(kR)
#ifndef MLAP_BASE_PROLOG_ARGS_H_
#define MLAP_BASE_PROLOG_ARGS_H_

#include <cstdint>

#include "base/bf16.h"
#include "base/cache_view.h"
#include "base/e8m0.h"
#include "base/numeric_rules.h"
#include "base/token_slots.h"
#include "base/weight_view.h"

namespace mlap {

struct PrologShape {
  int64_t tokens = 0;   // T
  int64_t hidden = 0;   // He
  int64_t q_rank = 0;   // Hcq; 0: the query has no low rank, x takes cQ's place (W_UQ|QR is [He, N * (D + Dr)])
  int64_t heads = 0;    // N
  int64_t nope = 0;     // D
  int64_t rope = 0;     // Dr, even
  int64_t kv_rank = 0;  // Hckv

  constexpr int64_t HeadColumns() const { return nope + rope; }   // of W_UQ|QR, per head
  constexpr int64_t KvColumns() const { return kv_rank + rope; }  // of W_DKV|KR
};

// What of the operator is quantised. The order is weightQuantMode's.
enum class WeightQuant {
  kNone,   // every matrix product in bf16
  kUqQr,   // W_UQ|QR int8 per output channel, cQ quantised per token ("partial")
  kFull,   // x, W_DQ, W_UQ|QR and W_DKV|KR int8, with scales per token and per output channel; cQ as in kUqQr
  kMxFp8,  // the same in E4M3, with an E8M0 scale for every 32 values along the reduction
  kFp8,    // as kFull in E4M3
  kHiF8,   // as kFull in HiFloat8
};

// How the key is stored. The order is kvCacheQuantMode's. "8-bit" is x's type in the full modes, else int8.
enum class KvQuant {
  kNone,        // both caches bf16
  kPerTensor,   // kv_cache and query 8-bit, kr_cache bf16; with the full modes
  kPerChannel,  // both caches int8, one scale per column; with kUqQr
  kPerGroup,    // kv_cache rows hold Hckv 8-bit values, Dr bf16 rope values and a binary32 scale per kKvGroup values;
                // kr_cache is empty; with kUqQr and the full modes
};

inline constexpr int64_t kKvGroup = 128;  // tileSize

// E8M0 scales of a row that is `width` long.
constexpr int64_t MxGroups(int64_t width) { return CeilDiv(width, kMxGroup); }

// The row of a kPerGroup cache: values, rope values, scales, without padding.
struct GroupRow {
  int64_t kv_rank;
  int64_t rope;

  constexpr int64_t NumGroups() const { return CeilDiv(kv_rank, kKvGroup); }
  constexpr int64_t RopeOffset() const { return kv_rank; }
  constexpr int64_t ScaleOffset() const { return kv_rank + rope * static_cast<int64_t>(sizeof(Bf16)); }
  constexpr int64_t Bytes() const { return ScaleOffset() + NumGroups() * static_cast<int64_t>(sizeof(float)); }
};

struct PrologMode {
  WeightQuant weight_quant = WeightQuant::kNone;
  KvQuant kv_quant = KvQuant::kNone;
  float epsilon_cq = 1e-5f;
  float epsilon_ckv = 1e-5f;
  float cq_factor = 1.0f;   // qcQrScale: cQ after RMSNorm; applied if it differs from 1 by FLT_EPSILON or more
  float ckv_factor = 1.0f;  // kcScale: cKV after RMSNorm, likewise
  NumericRules rules = NumericRules::kA2;  // of the int8 modes; the 8-bit floats follow k950 always
  RopeStyle rope_style = RopeStyle::kInterleavedToHalf;

  constexpr bool QuantizesCq() const { return weight_quant != WeightQuant::kNone; }
  constexpr bool QuantizesX() const { return weight_quant >= WeightQuant::kFull; }
  constexpr bool HasMxScales() const { return weight_quant == WeightQuant::kMxFp8; }
  constexpr bool QuantizesQuery() const { return kv_quant == KvQuant::kPerTensor; }

  // The 8-bit type of whatever is quantised.
  constexpr ElementType QuantType() const {
    return weight_quant == WeightQuant::kHiF8                                         ? ElementType::kHiF8
           : weight_quant == WeightQuant::kMxFp8 || weight_quant == WeightQuant::kFp8 ? ElementType::kE4m3
                                                                                      : ElementType::kInt8;
  }
  constexpr ElementType TokenType() const { return QuantizesX() ? QuantType() : ElementType::kBf16; }
  constexpr ElementType CqType() const { return QuantizesCq() ? QuantType() : ElementType::kBf16; }
};

struct PrologArgs {
  PrologShape shape;
  PrologMode mode;

  const void* token_x = nullptr;    // [T, He], TokenType, which W_DQ and W_DKV|KR have too; W_UQ|QR has CqType
  WeightView weight_dq;             // [He, Hcq]
  WeightView weight_uq_qr;          // [Hcq, N * (D + Dr)], per head D nope columns, then Dr rope columns
  const Bf16* weight_uk = nullptr;  // [N, D, Hckv]
  WeightView weight_dkv_kr;         // [He, Hckv + Dr]
  const Bf16* gamma_cq = nullptr;   // [Hcq]
  const Bf16* gamma_ckv = nullptr;  // [Hckv]
  const Bf16* rope_sin = nullptr;   // [T, Dr]
  const Bf16* rope_cos = nullptr;   // [T, Dr]
  TokenSlots slots;
  CacheView kv_cache;  // width Hckv at least; elements past Hckv stay untouched. kPerGroup: kRows,
                       // width GroupRow::Bytes at least, in 8-bit elements
  CacheView kr_cache;  // width Dr; kPerGroup: not read

  // The 8-bit modes but kMxFp8: kUqQr has that of W_UQ|QR, the full modes have all.
  const float* dequant_scale_x = nullptr;         // [T]
  const float* dequant_scale_w_dq = nullptr;      // [Hcq]
  const float* dequant_scale_w_uq_qr = nullptr;   // [N * (D + Dr)]
  const float* dequant_scale_w_dkv_kr = nullptr;  // [Hckv + Dr]
  const float* quant_scale_ckv = nullptr;         // [Hckv], kPerChannel; [1], kPerTensor; multiplied
  const float* quant_scale_ckr = nullptr;         // [Dr], kPerChannel; multiplied
  const float* smooth_scales_cq = nullptr;        // [Hcq] or null, every mode that quantises cQ but kMxFp8
  const float* k_nope_clip_alpha = nullptr;       // [1], kPerGroup with int8
  // kMxFp8: E8M0 in the place of the four dequant scales.
  const uint8_t* mx_scale_x = nullptr;         // [T, MxGroups(He)]
  const uint8_t* mx_scale_w_dq = nullptr;      // [Hcq, MxGroups(He)]
  const uint8_t* mx_scale_w_uq_qr = nullptr;   // [N * (D + Dr), MxGroups(Hcq)]
  const uint8_t* mx_scale_w_dkv_kr = nullptr;  // [Hckv + Dr, MxGroups(He)]

  void* query = nullptr;                  // [T, N, Hckv] bf16; QuantType in kPerTensor
  Bf16* query_rope = nullptr;             // [T, N, Dr]
  float* dequant_scale_q_nope = nullptr;  // [T, N], kPerTensor
  void* query_norm = nullptr;             // [T, Hcq] or null: cQ as it enters W_UQ|QR, CqType
  float* dequant_scale_q_norm = nullptr;  // [T], with query_norm in the quantised modes but kMxFp8
  uint8_t* mx_scale_q_norm = nullptr;     // [T, MxGroups(Hcq)], with query_norm in kMxFp8
};

}  // namespace mlap

#endif  // MLAP_BASE_PROLOG_ARGS_H_
