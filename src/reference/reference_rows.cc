#include "reference/reference_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/e4m3.h"
#include "base/e8m0.h"
#include "base/hif8.h"
#include "base/int8_rounding.h"

namespace mlap {
namespace {

// The largest magnitude that a quantised row is scaled to.
float Largest(ElementType type) {
  return type == ElementType::kE4m3 ? kE4m3Max : type == ElementType::kHiF8 ? kHiF8Max : 127.0f;
}

// max |x|; a NaN anywhere makes it a NaN.
float LargestMagnitude(const float* x, size_t n) {
  float amax = 0.0f;
  for (size_t j = 0; j < n; ++j) {
    if (std::isnan(x[j])) return std::fabs(x[j]);
    amax = std::max(amax, std::fabs(x[j]));
  }
  return amax;
}

// One group of a kPerGroup row; its scale is returned. Int8 values are clipped to alpha times the largest; the scale of
// 8-bit floats has a lower bound instead.
float QuantizeGroup(const PrologArgs& args, const float* x, size_t n, uint8_t* out) {
  const ElementType type = args.mode.QuantType();
  if (type != ElementType::kInt8) {
    const float amax = LargestMagnitude(x, n);
    const float scale = (amax < 1e-4f ? 1e-4f : amax) * (1.0f / Largest(type));
    for (size_t j = 0; j < n; ++j) Store(x[j] / scale, type, out, static_cast<int64_t>(j));
    return scale;
  }
  const float limit = LargestMagnitude(x, n) * args.k_nope_clip_alpha[0];
  const float scale = limit * (1.0f / 127.0f);
  const float factor = 1.0f / scale;
  for (size_t j = 0; j < n; ++j) {
    const float clipped = std::min(std::max(x[j], -limit), limit);
    Store(clipped * factor, ElementType::kInt8, out, static_cast<int64_t>(j));
  }
  return scale;
}

// A whole kPerGroup row in bytes.
std::vector<uint8_t> GroupRowBytes(const PrologArgs& args, const Row& c_kv, const Row& k_r) {
  std::vector<uint8_t> bytes(c_kv.size());
  std::vector<float> scales;
  for (size_t begin = 0; begin < c_kv.size(); begin += kKvGroup) {
    const size_t count = std::min<size_t>(kKvGroup, c_kv.size() - begin);
    scales.push_back(QuantizeGroup(args, c_kv.data() + begin, count, bytes.data() + begin));
  }
  const auto append = [&](const void* data, size_t size) {
    bytes.insert(bytes.end(), static_cast<const uint8_t*>(data), static_cast<const uint8_t*>(data) + size);
  };
  for (const float value : k_r) {
    const Bf16 rounded = RoundToBf16(value);
    append(&rounded, sizeof(rounded));
  }
  append(scales.data(), scales.size() * sizeof(float));
  return bytes;
}

}  // namespace

float Bf(float x) { return ToFloat(RoundToBf16(x)); }

void RoundEachToBf16(Row* row) {
  for (float& x : *row) x = Bf(x);
}

double ValueAt(const void* data, ElementType type, int64_t i) {
  switch (type) {
    case ElementType::kBf16:
      return ToFloat(static_cast<const Bf16*>(data)[i]);
    case ElementType::kE4m3:
      return ToFloat(static_cast<const E4m3*>(data)[i]);
    case ElementType::kHiF8:
      return ToFloat(static_cast<const HiF8*>(data)[i]);
    default:
      return static_cast<const int8_t*>(data)[i];
  }
}

void Store(float value, ElementType type, void* data, int64_t i) {
  switch (type) {
    case ElementType::kBf16:
      static_cast<Bf16*>(data)[i] = RoundToBf16(value);
      break;
    case ElementType::kE4m3:
      static_cast<E4m3*>(data)[i] = RoundToE4m3(value);
      break;
    case ElementType::kHiF8:
      static_cast<HiF8*>(data)[i] = RoundToHiF8(value);
      break;
    default:
      static_cast<int8_t*>(data)[i] = RoundToInt8(value);
  }
}

void Dequantize(Row* sums, float token_scale, const float* channel_scale, NumericRules rules) {
  for (size_t j = 0; j < sums->size(); ++j) {
    const bool token_first = rules == NumericRules::kA2;
    const float scaled = (*sums)[j] * (token_first ? token_scale : channel_scale[j]);
    (*sums)[j] = scaled * (token_first ? channel_scale[j] : token_scale);
  }
}

void RmsNorm(Row* x, const Bf16* gamma, float epsilon, float factor) {
  double sum = 0.0;
  for (float v : *x) sum += static_cast<double>(v * v);
  const float reciprocal = 1.0f / static_cast<float>(x->size());
  const float mean = static_cast<float>(sum) * reciprocal;
  const float root = std::sqrt(mean + epsilon);
  for (size_t j = 0; j < x->size(); ++j) {
    const float normalized = (*x)[j] / root;
    (*x)[j] = normalized * ToFloat(gamma[j]);
    if (IsAppliedFactor(factor)) (*x)[j] *= factor;
  }
}

Row Rope(const Row& x, const Bf16* cos, const Bf16* sin, RopeStyle style) {
  const size_t half = x.size() / 2;
  Row out(x.size());
  if (style == RopeStyle::kNone) {
    out = x;
    RoundEachToBf16(&out);
    return out;
  }
  for (size_t i = 0; i < half; ++i) {
    const bool halves_in = style == RopeStyle::kHalf;
    const bool halves_out = style != RopeStyle::kInterleaved;
    const float real = x[halves_in ? i : 2 * i];
    const float imaginary = x[halves_in ? half + i : 2 * i + 1];
    const size_t p = halves_out ? i : 2 * i;
    const size_t q = halves_out ? half + i : 2 * i + 1;
    const float real_cos = real * ToFloat(cos[p]);
    const float imaginary_sin = imaginary * -ToFloat(sin[p]);
    const float imaginary_cos = imaginary * ToFloat(cos[q]);
    const float real_sin = real * ToFloat(sin[q]);
    out[p] = Bf(real_cos + imaginary_sin);
    out[q] = Bf(imaginary_cos + real_sin);
  }
  return out;
}

float QuantizeRow(const Row& z, ElementType type, NumericRules rules, uint8_t* out) {
  const float largest = Largest(type);
  const float amax = LargestMagnitude(z.data(), z.size());
  const bool multiplies = rules == NumericRules::kA2;
  const float scale = multiplies ? amax / largest : amax * (1.0f / largest);
  const float factor = largest / amax;
  for (size_t j = 0; j < z.size(); ++j) {
    Store(multiplies ? z[j] * factor : z[j] / scale, type, out, static_cast<int64_t>(j));
  }
  return scale;
}

float QuantizeQuery(const Row& q, ElementType type, NumericRules rules, uint8_t* out) {
  const float scale = QuantizeRow(q, type, rules, out);
  if (rules == NumericRules::kA2) {  // int8 only
    const float factor = 127.0f / LargestMagnitude(q.data(), q.size());
    for (size_t j = 0; j < q.size(); ++j) out[j] = static_cast<uint8_t>(RoundToInt8ThroughHalf(q[j] * factor));
  }
  return scale;
}

void QuantizeMx(const Row& z, uint8_t* out, uint8_t* scales) {
  for (size_t begin = 0; begin < z.size(); begin += kMxGroup) {
    const size_t end = std::min<size_t>(begin + kMxGroup, z.size());
    int largest_exponent = 0;  // biased, of the values in bf16
    for (size_t j = begin; j < end; ++j) {
      largest_exponent = std::max(largest_exponent, RoundToBf16TiesAway(z[j]).bits >> 7 & 0xff);
    }
    const int byte = largest_exponent == 255 ? 255 : std::max(largest_exponent - 8, 0);
    for (size_t j = begin; j < end; ++j) {
      const float value = ToFloat(RoundToBf16TiesAway(z[j]));
      const float scaled = largest_exponent == 0 ? 0.0f : Bf(std::ldexp(value, 127 - byte));
      Store(scaled, ElementType::kE4m3, out, static_cast<int64_t>(j));
    }
    scales[begin / kMxGroup] = static_cast<uint8_t>(byte);
  }
}

void WriteKey(const PrologArgs& args, int64_t slot, const Row& c_kv, const Row& k_r) {
  if (args.mode.kv_quant == KvQuant::kPerGroup) {
    const std::vector<uint8_t> bytes = GroupRowBytes(args, c_kv, k_r);
    for (size_t d = 0; d < bytes.size(); ++d) {
      static_cast<uint8_t*>(args.kv_cache.data)[args.kv_cache.Offset(slot, static_cast<int64_t>(d))] = bytes[d];
    }
    return;
  }
  const bool per_channel = args.mode.kv_quant == KvQuant::kPerChannel;
  const bool per_tensor = args.mode.kv_quant == KvQuant::kPerTensor;
  for (size_t d = 0; d < c_kv.size(); ++d) {
    const float value = per_channel  ? c_kv[d] * args.quant_scale_ckv[d]
                        : per_tensor ? c_kv[d] * args.quant_scale_ckv[0]
                                     : c_kv[d];
    Store(value, args.kv_cache.type, args.kv_cache.data, args.kv_cache.Offset(slot, static_cast<int64_t>(d)));
  }
  for (size_t d = 0; d < k_r.size(); ++d) {
    const float value = per_channel ? k_r[d] * args.quant_scale_ckr[d] : k_r[d];
    Store(value, args.kr_cache.type, args.kr_cache.data, args.kr_cache.Offset(slot, static_cast<int64_t>(d)));
  }
}

}  // namespace mlap
