// The shape of AMX tiles.
#ifndef MLAP_BENCH_TILE_CONFIG_H_
#define MLAP_BENCH_TILE_CONFIG_H_

#include <cstdint>

namespace mlap::bench {

// As ldtilecfg reads it: 8 tiles of 16 rows of 64 bytes.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

}  // namespace mlap::bench

#endif  // MLAP_BENCH_TILE_CONFIG_H_
