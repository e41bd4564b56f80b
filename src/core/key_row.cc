#include "core/key_row.h"

#include <algorithm>
#include <cstring>

#include "core/cache_writer.h"
#include "core/row_quantizer.h"

namespace mlap {
namespace {

// RoPE(kR) begins the scratch; the row of kv_cache follows, aligned for any element.
int64_t RopeBytes(const PrologShape& shape) { return CeilDiv(shape.rope * 2, 64) * 64; }

// A kPerGroup row: every group of cKV quantised by its own scale, then the rope values, then the scales. What follows
// the values may lie at any address.
void PackGroups(const PrologArgs& args, const KernelTable& kernels, const float* c_kv, const Bf16* roped, char* row) {
  const GroupRow layout = {args.shape.kv_rank, args.shape.rope};
  for (int64_t group = 0; group < layout.NumGroups(); ++group) {
    const int64_t begin = group * kKvGroup;
    const int64_t count = std::min(kKvGroup, layout.kv_rank - begin);
    float scale;
    QuantizeGroup(kernels, args.mode.QuantType(), c_kv + begin, args.k_nope_clip_alpha, count, row + begin, &scale);
    std::memcpy(row + layout.ScaleOffset() + group * static_cast<int64_t>(sizeof(scale)), &scale, sizeof(scale));
  }
  std::memcpy(row + layout.RopeOffset(), roped, static_cast<size_t>(layout.rope) * sizeof(Bf16));
}

}  // namespace

int64_t KeyRowScratchBytes(const PrologShape& shape) {
  const GroupRow group = {shape.kv_rank, shape.rope};
  return RopeBytes(shape) + std::max(shape.kv_rank * 2, group.Bytes());
}

void WriteKeyRow(const PrologArgs& args, const KernelTable& kernels, int64_t slot, float* c_kv_k_r, const Bf16* cos,
                 const Bf16* sin, void* scratch) {
  const PrologShape& shape = args.shape;
  float* c_kv = c_kv_k_r;
  float* k_r = c_kv_k_r + shape.kv_rank;
  auto* roped = static_cast<Bf16*>(scratch);
  char* row = static_cast<char*>(scratch) + RopeBytes(shape);
  auto* bytes = reinterpret_cast<int8_t*>(row);
  kernels.rope.run(k_r, cos, sin, shape.rope, args.mode.rope_style, roped);
  switch (args.mode.kv_quant) {
    case KvQuant::kNone:
      kernels.narrow_to_bf16.run(c_kv, shape.kv_rank, reinterpret_cast<Bf16*>(row));
      break;
    case KvQuant::kPerTensor:
      kernels.scale.run(c_kv, args.quant_scale_ckv[0], shape.kv_rank, c_kv);
      NarrowRow(kernels, args.mode.QuantType(), c_kv, shape.kv_rank, row);
      break;
    case KvQuant::kPerChannel:
      kernels.quantize_per_channel.run(c_kv, args.quant_scale_ckv, shape.kv_rank, bytes);
      break;
    case KvQuant::kPerGroup:
      PackGroups(args, kernels, c_kv, roped, row);
      return WriteCacheRow(args.kv_cache, slot, row, GroupRow{shape.kv_rank, shape.rope}.Bytes());
  }
  WriteCacheRow(args.kv_cache, slot, row, shape.kv_rank);
  if (args.mode.kv_quant == KvQuant::kPerChannel) {
    kernels.widen_bf16.run(roped, shape.rope, k_r);
    kernels.quantize_per_channel.run(k_r, args.quant_scale_ckr, shape.rope, bytes);
    return WriteCacheRow(args.kr_cache, slot, bytes, shape.rope);
  }
  WriteCacheRow(args.kr_cache, slot, roped, shape.rope);
}

}  // namespace mlap
