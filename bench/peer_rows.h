// What the peer does between its matrix products, in plain loops that the compiler vectorises. bf16 in and out,
// binary32 between, on all threads of OpenMP.
//
// Compiled for AVX-512, as oneDNN's bf16 products need it too: its source includes nothing with inline functions.
#ifndef MLAP_BENCH_PEER_ROWS_H_
#define MLAP_BENCH_PEER_ROWS_H_

#include <stdint.h>

namespace mlap::bench {

// Row t of `out` [.., n], or row slots[t] if slots are given and not negative, becomes RmsNorm of in + t * in_stride.
void PeerRmsNorm(const uint16_t* in, int64_t in_stride, const uint16_t* gamma, int64_t rows, int64_t n, float epsilon,
                 uint16_t* out, const int64_t* slots);

// Rotates `heads` parts of `rope` elements in each of `rows` rows, the first of row t at in + t * in_stride, each
// head_stride behind the one before. `out` [.., heads, rope], by row or by slot as above.
void PeerRope(const uint16_t* in, int64_t in_stride, int64_t head_stride, const uint16_t* sin, const uint16_t* cos,
              int64_t rows, int64_t heads, int64_t rope, uint16_t* out, const int64_t* slots);

// out [heads][rows][n] from the first n elements of each head's part of each row, and out [rows][heads][n] back.
void PeerGatherHeads(const uint16_t* in, int64_t in_stride, int64_t head_stride, int64_t rows, int64_t heads, int64_t n,
                     uint16_t* out);
void PeerSpreadHeads(const uint16_t* in, int64_t rows, int64_t heads, int64_t n, uint16_t* out);

}  // namespace mlap::bench

#endif  // MLAP_BENCH_PEER_ROWS_H_
