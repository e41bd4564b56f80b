#include "core/slot_check.h"

#include <string>

namespace mlap {
namespace {

std::string Text(int64_t number) { return std::to_string(number); }

Status Refuse(const std::string& text, const char* advice) {
  return Status(StatusCode::kIndexOutOfRange, text + "; nothing was written. " + advice);
}

std::string CapacityText(const CacheView& cache) {
  return "the cache holds " + Text(cache.Capacity()) + " slots (BlockNum " + Text(cache.block_num) + " x BlockSize " +
         Text(cache.block_size) + ")";
}

Status CheckIndices(const PrologArgs& args) {
  for (int64_t t = 0; t < args.shape.tokens; ++t) {
    const int64_t slot = args.slots.cache_index[t];
    if (slot >= args.kv_cache.Capacity()) {
      return Refuse(
          "cacheIndex: token " + Text(t) + " has index " + Text(slot) + ", but " + CapacityText(args.kv_cache),
          "Pass an index below that, or a negative one to write no row");
    }
  }
  return Status();
}

// The ends of the sequences: ascending from 0 to T.
Status CheckSequences(const PrologArgs& args) {
  const TokenSlots& slots = args.slots;
  int64_t previous = 0;
  for (int64_t b = 0; b < slots.num_sequences; ++b) {
    const int64_t end = slots.SequenceEnd(b);
    if (end < previous) {
      return Refuse("actualSeqLen: entry " + Text(b) + " is " + Text(end) + ", expected " + Text(previous) +
                        " or more" + (b == 0 ? "" : ", the entry before it"),
                    "Pass the number of tokens of all sequences up to and with each");
    }
    previous = end;
  }
  if (previous != args.shape.tokens) {
    return Refuse("actualSeqLen: the sequences end at token " + Text(previous) +
                      ", expected the T = " + Text(args.shape.tokens) + " tokens of tokenX",
                  "The last entry counts all tokens");
  }
  return Status();
}

Status CheckPages(const PrologArgs& args) {
  const TokenSlots& slots = args.slots;
  const CacheView& cache = args.kv_cache;
  int64_t entry = 0;
  int64_t begin = 0;
  for (int64_t b = 0; b < slots.num_sequences; ++b) {
    const int64_t end = slots.SequenceEnd(b);
    const int64_t num_pages = CeilDiv(end - begin, cache.block_size);
    if (num_pages > slots.num_indices - entry) {
      return Refuse("cacheIndex: sequence " + Text(b) + " of " + Text(end - begin) + " tokens needs entries " +
                        Text(entry) + " to " + Text(entry + num_pages - 1) + " for its pages of BlockSize " +
                        Text(cache.block_size) + ", but the list has " + Text(slots.num_indices),
                    "List ceil(length / BlockSize) pages for each sequence");
    }
    for (const int64_t last = entry + num_pages; entry < last; ++entry) {
      const int64_t page = slots.cache_index[entry];
      if (page >= cache.block_num) {
        return Refuse("cacheIndex: entry " + Text(entry) + ", of sequence " + Text(b) + ", is page " + Text(page) +
                          ", but the cache has " + Text(cache.block_num) + " pages",
                      "Pass a page below that, or a negative one to write none of its rows");
      }
    }
    begin = end;
  }
  return Status();
}

}  // namespace

Status CheckSlots(const PrologArgs& args) {
  if (args.kv_cache.block_num == 0 || args.shape.tokens == 0) return Status();
  switch (args.slots.rule) {
    case SlotRule::kIndex:
      return CheckIndices(args);
    case SlotRule::kBlocks: {
      const Status status = CheckSequences(args);
      return status.ok() ? CheckPages(args) : status;
    }
    case SlotRule::kTokens:
      if (args.kv_cache.Capacity() >= args.shape.tokens) return Status();
      return Refuse("kvCache: the call has " + Text(args.shape.tokens) + " tokens, but " + CapacityText(args.kv_cache),
                    "Pass a cache with a row for every token");
  }
  return Status();
}

}  // namespace mlap
