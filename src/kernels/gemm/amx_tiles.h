// The AMX instructions. The compilers' own macros do not tell that a tile is loaded from memory, so that stores to that
// memory may move past the load or vanish; these do.
#ifndef MLAP_KERNELS_GEMM_AMX_TILES_H_
#define MLAP_KERNELS_GEMM_AMX_TILES_H_

#include <cstdint>

namespace mlap {
namespace {

inline constexpr int64_t kTileRows = 16;
inline constexpr int64_t kTileRowBytes = 64;

struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

static inline void ConfigureTiles(const TileConfig& config) { __asm__ volatile("ldtilecfg %0" : : "m"(config)); }

static inline void ReleaseTiles() { __asm__ volatile("tilerelease" : : : "memory"); }

template <int kTile>
static inline void ZeroTile() {
  __asm__ volatile("tilezero %%tmm%c0" : : "i"(kTile));
}

// kPasses: the rows are not wanted again soon, and leave what else is in the first-level cache there.
template <int kTile, bool kPasses = false>
static inline void LoadTile(const void* rows, int64_t stride_bytes) {
  if (kPasses) {
    __asm__ volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" : : "r"(rows), "r"(stride_bytes), "i"(kTile) : "memory");
  } else {
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(rows), "r"(stride_bytes), "i"(kTile) : "memory");
  }
}

template <int kTile>
static inline void StoreTile(void* rows, int64_t stride_bytes) {
  __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(rows), "r"(stride_bytes), "i"(kTile) : "memory");
}

// Tile kSum += rows of A in tile kA times columns in tile kB.
template <int kSum, int kA, int kB>
static inline void MultiplyBf16Tiles() {
  __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kA), "i"(kB));
}

template <int kSum, int kA, int kB>
static inline void MultiplyS8Tiles() {
  __asm__ volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kA), "i"(kB));
}

}  // namespace
}  // namespace mlap

#endif  // MLAP_KERNELS_GEMM_AMX_TILES_H_
