#include "core/cache_writer.h"

#include <algorithm>
#include <cstring>

namespace mlap {

void WriteCacheRow(const CacheView& cache, int64_t slot, const void* row, int64_t row_width) {
  const int64_t element_bytes = ElementBytes(cache.type);
  const auto* source = static_cast<const char*>(row);
  auto* base = static_cast<char*>(cache.data);
  // A run is consecutive in logical order; it is consecutive in memory too unless the elements themselves are strided.
  const int64_t run = cache.element_stride == 1 ? std::min(cache.RunLength(), row_width) : 1;
  for (int64_t d = 0; d < row_width; d += run) {
    const int64_t count = std::min(run, row_width - d);
    std::memcpy(base + cache.Offset(slot, d) * element_bytes, source + d * element_bytes,
                static_cast<size_t>(count * element_bytes));
  }
}

}  // namespace mlap
