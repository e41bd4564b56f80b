#include "cache_rows.h"

#include <cstring>

namespace mlap::prolog_test {
namespace {

// Where element `d` of slot `slot` lies in the logical shape, counted in elements.
int64_t LogicalOffset(const Config& config, const TensorDesc& cache, int64_t slot, int64_t d) {
  const int64_t width = cache.dims.back();
  if (!config.IsNzCache()) return slot * width + d;
  const int64_t c0 = 32 / static_cast<int64_t>(cache.ElementBytes());
  const int64_t bs = config.block_size;
  return (slot / bs) * bs * width + (d / c0) * bs * c0 + (slot % bs) * c0 + d % c0;
}

}  // namespace

std::vector<Param> CachesOf(const Config& config) {
  if (config.PerGroup()) return {kKvCache};
  return {kKvCache, kKrCache};
}

std::vector<std::vector<uint8_t>> Rows(const PrologCall& call, Param param) {
  const TensorDesc& cache = call[param];
  const std::vector<uint8_t> elements = call.Elements(param);
  const size_t bytes = cache.ElementBytes();
  std::vector<std::vector<uint8_t>> rows;
  for (int64_t slot = 0; slot < call.config.Capacity(); ++slot) {
    std::vector<uint8_t> row(static_cast<size_t>(cache.dims.back()) * bytes);
    for (int64_t d = 0; d < cache.dims.back(); ++d) {
      std::memcpy(row.data() + static_cast<size_t>(d) * bytes,
                  elements.data() + static_cast<size_t>(LogicalOffset(call.config, cache, slot, d)) * bytes, bytes);
    }
    rows.push_back(row);
  }
  return rows;
}

}  // namespace mlap::prolog_test
