// The values of all 256 codes of an 8-bit float, as bf16, which holds every one of them exactly.
#ifndef MLAP_KERNELS_GEMM_FLOAT8_TABLE_H_
#define MLAP_KERNELS_GEMM_FLOAT8_TABLE_H_

#include <cstdint>

#include "base/bf16.h"
#include "base/e4m3.h"
#include "base/hif8.h"

namespace mlap {
namespace {

// Of Format E4m3 or HiF8. Made at compile time: declare it constexpr.
template <class Format>
struct Float8Table {
  alignas(64) uint16_t bf16[256 + 2];  // two more, so that 32 bits can be read at every code
  constexpr Float8Table() : bf16() {
    for (int code = 0; code < 256; ++code) bf16[code] = ToBf16(Format{static_cast<uint8_t>(code)}).bits;
  }
};

}  // namespace
}  // namespace mlap

#endif  // MLAP_KERNELS_GEMM_FLOAT8_TABLE_H_
