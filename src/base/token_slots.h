// How a token finds its slot, in every cache mode, and a cursor that goes through the slots of consecutive tokens.
#ifndef MLAP_BASE_TOKEN_SLOTS_H_
#define MLAP_BASE_TOKEN_SLOTS_H_

#include <cstdint>

#include "base/cache_view.h"

namespace mlap {

enum class SlotRule {
  kIndex,   // PA_BSND, PA_NZ: cache_index[t] is the slot
  kBlocks,  // PA_BLK_*: cache_index lists the pages of each sequence, ceil(length / BlockSize) each; always from row 0
  kTokens,  // BSND, TND: the token's number is the slot; no cache_index
};

struct TokenSlots {
  SlotRule rule = SlotRule::kIndex;
  const int64_t* cache_index = nullptr;  // a negative slot or page writes no row; not read if the caches are empty
  int64_t num_indices = 0;               // of cache_index, kBlocks
  // kBlocks: the sequences that the tokens are made of. Either all have one length, or their ends are listed.
  int64_t num_sequences = 0;               // B
  int64_t sequence_length = 0;             // S; when sequence_ends is null
  const int32_t* sequence_ends = nullptr;  // [B] actualSeqLen: T of the sequences up to and with each, ascending

  constexpr int64_t SequenceEnd(int64_t sequence) const {
    return sequence_ends != nullptr ? sequence_ends[sequence] : (sequence + 1) * sequence_length;
  }
};

// The slots of consecutive tokens. The lists are the caller's memory and may have changed since they were checked: what
// would lie outside them or outside the cache is no slot.
class SlotCursor {
 public:
  static constexpr int64_t kNoSlot = -1;

  SlotCursor(const TokenSlots& slots, const CacheView& cache, int64_t first_token)
      : slots_(slots),
        block_num_(cache.block_num),
        block_size_(cache.block_size),
        capacity_(cache.Capacity()),
        token_(first_token) {}

  // The slot of the next token, or kNoSlot if the token writes no row.
  int64_t Next() {
    const int64_t token = token_++;
    int64_t slot = kNoSlot;
    switch (slots_.rule) {
      case SlotRule::kIndex:
        slot = slots_.cache_index[token];
        break;
      case SlotRule::kBlocks:
        slot = SlotInBlocks(token);
        break;
      case SlotRule::kTokens:
        slot = token;
        break;
    }
    return slot >= 0 && slot < capacity_ ? slot : kNoSlot;
  }

 private:
  int64_t SlotInBlocks(int64_t token) {
    while (token >= end_) {
      if (sequence_ == slots_.num_sequences) return kNoSlot;
      first_page_ += CeilDiv(end_ - begin_, block_size_);
      begin_ = end_;
      end_ = slots_.SequenceEnd(sequence_++);
    }
    const int64_t position = token - begin_;
    const int64_t entry = first_page_ + position / block_size_;
    if (position < 0 || entry < 0 || entry >= slots_.num_indices) return kNoSlot;
    const int64_t page = slots_.cache_index[entry];
    return page >= 0 && page < block_num_ ? page * block_size_ + position % block_size_ : kNoSlot;
  }

  TokenSlots slots_;
  int64_t block_num_;
  int64_t block_size_;
  int64_t capacity_;
  int64_t token_;
  // kBlocks: the current sequence's tokens [begin_, end_), its first entry in the list, and the number of the next one.
  int64_t begin_ = 0;
  int64_t end_ = 0;
  int64_t first_page_ = 0;
  int64_t sequence_ = 0;
};

}  // namespace mlap

#endif  // MLAP_BASE_TOKEN_SLOTS_H_
