#include "peer_rows.h"

#include <math.h>
#include <string.h>

namespace mlap::bench {
namespace {

// Below this, a parallel region costs more than it gains.
constexpr int64_t kMinElements = 16384;

inline float Widen(uint16_t bits) {
  const uint32_t word = static_cast<uint32_t>(bits) << 16;
  float value;
  __builtin_memcpy(&value, &word, sizeof(value));
  return value;
}

inline uint16_t Narrow(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

void NormRow(const uint16_t* in, const uint16_t* gamma, int64_t n, float epsilon, uint16_t* out) {
  float sum = 0.0f;
  for (int64_t j = 0; j < n; ++j) sum += Widen(in[j]) * Widen(in[j]);
  const float factor = 1.0f / sqrtf(sum / static_cast<float>(n) + epsilon);
  for (int64_t j = 0; j < n; ++j) out[j] = Narrow(Widen(in[j]) * factor * Widen(gamma[j]));
}

void RotateHead(const uint16_t* in, const uint16_t* sin, const uint16_t* cos, int64_t half, uint16_t* out) {
  for (int64_t i = 0; i < half; ++i) {
    const float even = Widen(in[2 * i]);
    const float odd = Widen(in[2 * i + 1]);
    out[i] = Narrow(even * Widen(cos[i]) - odd * Widen(sin[i]));
    out[half + i] = Narrow(odd * Widen(cos[half + i]) + even * Widen(sin[half + i]));
  }
}

}  // namespace

void PeerRmsNorm(const uint16_t* in, int64_t in_stride, const uint16_t* gamma, int64_t rows, int64_t n, float epsilon,
                 uint16_t* out, const int64_t* slots) {
#pragma omp parallel for if (rows * n >= kMinElements)
  for (int64_t t = 0; t < rows; ++t) {
    const int64_t row = slots != nullptr ? slots[t] : t;
    if (row >= 0) NormRow(in + t * in_stride, gamma, n, epsilon, out + row * n);
  }
}

void PeerRope(const uint16_t* in, int64_t in_stride, int64_t head_stride, const uint16_t* sin, const uint16_t* cos,
              int64_t rows, int64_t heads, int64_t rope, uint16_t* out, const int64_t* slots) {
#pragma omp parallel for if (rows * heads * rope >= kMinElements)
  for (int64_t task = 0; task < rows * heads; ++task) {
    const int64_t t = task / heads;
    const int64_t head = task % heads;
    const int64_t row = slots != nullptr ? slots[t] : t;
    if (row < 0) continue;
    RotateHead(in + t * in_stride + head * head_stride, sin + t * rope, cos + t * rope, rope / 2,
               out + (row * heads + head) * rope);
  }
}

void PeerGatherHeads(const uint16_t* in, int64_t in_stride, int64_t head_stride, int64_t rows, int64_t heads, int64_t n,
                     uint16_t* out) {
#pragma omp parallel for if (rows * heads * n >= kMinElements)
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t t = 0; t < rows; ++t) {
      memcpy(out + (head * rows + t) * n, in + t * in_stride + head * head_stride, static_cast<size_t>(n) * 2);
    }
  }
}

void PeerSpreadHeads(const uint16_t* in, int64_t rows, int64_t heads, int64_t n, uint16_t* out) {
#pragma omp parallel for if (rows * heads * n >= kMinElements)
  for (int64_t t = 0; t < rows; ++t) {
    for (int64_t head = 0; head < heads; ++head) {
      memcpy(out + (t * heads + head) * n, in + (head * rows + t) * n, static_cast<size_t>(n) * 2);
    }
  }
}

}  // namespace mlap::bench
