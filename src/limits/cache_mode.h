// The cache modes: what "PA_BSND" and its siblings say about the caches and the way to a token's row.
#ifndef MLAP_LIMITS_CACHE_MODE_H_
#define MLAP_LIMITS_CACHE_MODE_H_

#include <array>
#include <cstddef>

#include "base/cache_view.h"
#include "base/prolog_args.h"

namespace mlap {

struct CacheMode {
  const char* name;
  CacheOrder order;
  SlotRule slots;
  size_t token_rank;     // of tokenX: 2 or 3; 0 for either
  size_t cache_rank;     // of kvCacheRef and krCacheRef
  bool takes_per_group;  // whether a per-group cache can be stored so

  bool IsPaged() const { return slots != SlotRule::kTokens; }
  // (T, He) tokens of several sequences, whose ends actualSeqLen lists.
  bool ListsSequences(bool is_fused) const { return slots == SlotRule::kBlocks && is_fused; }
};

// In the order in which versions came to know them: a version knows the first few.
inline constexpr std::array<CacheMode, 6> kCacheModes = {{
    {"PA_BSND", CacheOrder::kRows, SlotRule::kIndex, 0, 4, true},
    {"PA_NZ", CacheOrder::kNz, SlotRule::kIndex, 0, 4, false},
    {"PA_BLK_BSND", CacheOrder::kRows, SlotRule::kBlocks, 0, 4, false},
    {"PA_BLK_NZ", CacheOrder::kNz, SlotRule::kBlocks, 0, 4, false},
    {"BSND", CacheOrder::kRows, SlotRule::kTokens, 3, 4, true},
    {"TND", CacheOrder::kRows, SlotRule::kTokens, 2, 3, true},
}};

}  // namespace mlap

#endif  // MLAP_LIMITS_CACHE_MODE_H_
