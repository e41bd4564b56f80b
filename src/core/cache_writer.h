// Writes one row into a paged cache.
#ifndef MLAP_CORE_CACHE_WRITER_H_
#define MLAP_CORE_CACHE_WRITER_H_

#include <cstdint>

#include "base/cache_view.h"

namespace mlap {

// Copies `row` [row_width], elements of the cache's type, to slot `slot`; row_width is at most cache.width. The slot's
// other elements and everything else stay untouched.
void WriteCacheRow(const CacheView& cache, int64_t slot, const void* row, int64_t row_width);

}  // namespace mlap

#endif  // MLAP_CORE_CACHE_WRITER_H_
