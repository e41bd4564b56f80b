#include "reference/reference.h"

#include <algorithm>
#include <cmath>

#include "base/bf16.h"
#include "base/float_environment.h"
#include "base/int8_rounding.h"

namespace mlap {
namespace {

using Row = std::vector<float>;
using Rows = std::vector<Row>;

float Bf(float x) { return ToFloat(RoundToBf16(x)); }

void RoundEach(Row* row) {
  for (float& x : *row) x = Bf(x);
}

double WeightValue(const WeightView& w, int64_t i, int64_t j) {
  const int64_t offset = w.Offset(i, j);
  if (w.type == ElementType::kInt8) return static_cast<const int8_t*>(w.data)[offset];
  return ToFloat(static_cast<const Bf16*>(w.data)[offset]);
}

// x [T, k] times columns [begin, end) of W [k, n]: each sum in binary64, over ascending k, then rounded to binary32.
// (An int8 product's sum is an integer below 2^53 and thus exact.)
Rows MatMul(const Rows& x, const WeightView& w, int64_t begin, int64_t end) {
  const size_t num_tokens = x.size();
  Rows out(num_tokens, Row(static_cast<size_t>(end - begin)));
  // Transposed, so that the innermost loop runs over the tokens of one weight element.
  std::vector<double> x_by_k(static_cast<size_t>(w.k) * num_tokens);
  for (size_t t = 0; t < num_tokens; ++t) {
    for (int64_t i = 0; i < w.k; ++i) x_by_k[static_cast<size_t>(i) * num_tokens + t] = x[t][static_cast<size_t>(i)];
  }
  std::vector<double> sum(num_tokens);
  for (int64_t j = begin; j < end; ++j) {
    sum.assign(num_tokens, 0.0);
    const double* x_i = x_by_k.data();
    for (int64_t i = 0; i < w.k; ++i, x_i += num_tokens) {
      const double weight = WeightValue(w, i, j);
      for (size_t t = 0; t < num_tokens; ++t) sum[t] += x_i[t] * weight;
    }
    for (size_t t = 0; t < num_tokens; ++t) out[t][static_cast<size_t>(j - begin)] = static_cast<float>(sum[t]);
  }
  return out;
}

// y_j = (x_j / sqrt(sum(x^2) * (1 / n) + epsilon)) * gamma_j
void RmsNorm(Row* x, const Bf16* gamma, float epsilon) {
  double sum = 0.0;
  for (float v : *x) sum += static_cast<double>(v * v);
  const float reciprocal = 1.0f / static_cast<float>(x->size());
  const float mean = static_cast<float>(sum) * reciprocal;
  const float root = std::sqrt(mean + epsilon);
  for (size_t j = 0; j < x->size(); ++j) {
    const float normalized = (*x)[j] / root;
    (*x)[j] = normalized * ToFloat(gamma[j]);
  }
}

// Interleaved pairs in, halves out. `cos` and `sin` [Dr] hold one angle per output.
Row Rope(const Row& x, const Bf16* cos, const Bf16* sin) {
  const size_t half = x.size() / 2;
  Row out(x.size());
  for (size_t i = 0; i < half; ++i) {
    const float real = x[2 * i];
    const float imaginary = x[2 * i + 1];
    const float real_cos = real * ToFloat(cos[i]);
    const float imaginary_sin = imaginary * -ToFloat(sin[i]);
    const float imaginary_cos = imaginary * ToFloat(cos[half + i]);
    const float real_sin = real * ToFloat(sin[half + i]);
    out[i] = Bf(real_cos + imaginary_sin);
    out[half + i] = Bf(imaginary_cos + real_sin);
  }
  return out;
}

// Token t of x, widened.
Row TokenRow(const PrologArgs& args, int64_t t) {
  const int64_t He = args.shape.hidden;
  Row row(static_cast<size_t>(He));
  for (int64_t j = 0; j < He; ++j) {
    row[static_cast<size_t>(j)] = args.mode.QuantizesX() ? static_cast<const int8_t*>(args.token_x)[t * He + j]
                                                         : ToFloat(static_cast<const Bf16*>(args.token_x)[t * He + j]);
  }
  return row;
}

// (sum * token scale) * channel scale, two roundings.
void Dequantize(Row* sums, float token_scale, const float* channel_scale) {
  for (size_t j = 0; j < sums->size(); ++j) {
    const float scaled = (*sums)[j] * token_scale;
    (*sums)[j] = scaled * channel_scale[j];
  }
}

// max |x|; a NaN anywhere makes it a NaN.
float LargestMagnitude(const Row& x) {
  float amax = 0.0f;
  for (float v : x) {
    if (std::isnan(v)) return std::fabs(v);
    amax = std::max(amax, std::fabs(v));
  }
  return amax;
}

// A = max |z|; the stored scale is A / 127, the values int8(z * (127 / A)).
float QuantizePerToken(const Row& z, int8_t* out) {
  const float amax = LargestMagnitude(z);
  const float factor = 127.0f / amax;
  for (size_t j = 0; j < z.size(); ++j) out[j] = RoundToInt8(z[j] * factor);
  return amax / 127.0f;
}

// The same for a head's query, but for the rounding, which goes through binary16.
float QuantizeQuery(const Row& q, int8_t* out) {
  const float amax = LargestMagnitude(q);
  const float factor = 127.0f / amax;
  for (size_t j = 0; j < q.size(); ++j) out[j] = RoundToInt8ThroughHalf(q[j] * factor);
  return amax / 127.0f;
}

// Writes one cache row, in bf16 or as int8(row_j * scale_j), scale_j being scale[0] for all j if there is one.
void WriteCacheRow(const CacheView& cache, int64_t slot, const Row& row, const float* scale, bool one_scale) {
  for (size_t d = 0; d < row.size(); ++d) {
    const int64_t offset = cache.Offset(slot, static_cast<int64_t>(d));
    if (cache.type == ElementType::kInt8) {
      static_cast<int8_t*>(cache.data)[offset] = RoundToInt8(row[d] * scale[one_scale ? 0 : d]);
    } else {
      static_cast<Bf16*>(cache.data)[offset] = RoundToBf16(row[d]);
    }
  }
}

void Append(std::vector<float>* out, const Row& row) { out->insert(out->end(), row.begin(), row.end()); }

// Hands the share of finished work to the caller. The weight elements of a product are its work.
class Progress {
 public:
  Progress(const ReferenceOptions& options, double total) : options_(options), total_(total) {}
  void Add(double work) {
    done_ += work;
    if (options_.progress) options_.progress(done_ / total_);
  }

 private:
  const ReferenceOptions& options_;
  double total_;
  double done_ = 0.0;
};

}  // namespace

void RunReference(const PrologArgs& args, const ReferenceOptions& options) {
  const PrologShape& shape = args.shape;
  const bool quantize_cq = args.mode.QuantizesCq();
  const bool quantize_x = args.mode.QuantizesX();
  const auto tokens = static_cast<size_t>(shape.tokens);
  const int64_t D = shape.nope;
  const int64_t Dr = shape.rope;
  Intermediates unused;
  Intermediates& seen = options.intermediates != nullptr ? *options.intermediates : unused;
  seen = Intermediates();
  if (tokens == 0) return;
  const DefaultFloatEnvironment environment;
  const double token_work = static_cast<double>(shape.hidden) * static_cast<double>(shape.q_rank + shape.KvColumns());
  const double head_work = static_cast<double>(shape.q_rank * shape.HeadColumns() + D * shape.kv_rank);
  Progress progress(options, token_work + head_work * static_cast<double>(shape.heads));

  Rows x;
  for (size_t t = 0; t < tokens; ++t) x.push_back(TokenRow(args, static_cast<int64_t>(t)));

  // What comes out of a product with x: dequantised to binary32, or rounded to bf16.
  const auto finish = [&](Row* sums, size_t t, const float* channel_scale) {
    if (quantize_x) {
      Dequantize(sums, args.dequant_scale_x[t], channel_scale);
    } else {
      RoundEach(sums);
    }
  };

  // cQ = RmsNorm(x W_DQ), then bf16, or smoothed and quantised per token.
  Rows c_q = MatMul(x, args.weight_dq, 0, shape.q_rank);
  Rows c_kv = MatMul(x, args.weight_dkv_kr, 0, shape.kv_rank);
  Rows k_r = MatMul(x, args.weight_dkv_kr, shape.kv_rank, shape.KvColumns());
  progress.Add(token_work);
  seen.c_q_int8.resize(quantize_cq ? tokens * static_cast<size_t>(shape.q_rank) : 0);
  for (size_t t = 0; t < tokens; ++t) {
    finish(&c_q[t], t, args.dequant_scale_w_dq);
    RmsNorm(&c_q[t], args.gamma_cq, args.mode.epsilon_cq);
    if (!quantize_cq) RoundEach(&c_q[t]);
    Append(&seen.c_q, c_q[t]);
    if (quantize_cq) {
      if (args.smooth_scales_cq != nullptr) {
        for (size_t j = 0; j < c_q[t].size(); ++j) c_q[t][j] *= args.smooth_scales_cq[j];
      }
      int8_t* quantized = seen.c_q_int8.data() + t * c_q[t].size();
      seen.c_q_scale.push_back(QuantizePerToken(c_q[t], quantized));
      for (size_t j = 0; j < c_q[t].size(); ++j) c_q[t][j] = quantized[j];
    }
  }

  // The key: cKV = RmsNorm(x W_DKV), kR = RoPE(x W_KR), into the token's slot.
  for (size_t t = 0; t < tokens; ++t) {
    const int64_t row = static_cast<int64_t>(t);
    finish(&c_kv[t], t, args.dequant_scale_w_dkv_kr);
    RmsNorm(&c_kv[t], args.gamma_ckv, args.mode.epsilon_ckv);
    finish(&k_r[t], t, quantize_x ? args.dequant_scale_w_dkv_kr + shape.kv_rank : nullptr);
    Append(&seen.c_kv, c_kv[t]);
    Append(&seen.k_r, k_r[t]);
    if (args.kv_cache.block_num == 0 || args.slots.cache_index[t] < 0) continue;
    WriteCacheRow(args.kv_cache, args.slots.cache_index[t], c_kv[t], args.quant_scale_ckv,
                  args.mode.kv_quant == KvQuant::kPerTensor);
    WriteCacheRow(args.kr_cache, args.slots.cache_index[t], Rope(k_r[t], args.rope_cos + row * Dr, args.rope_sin + row * Dr),
                  args.quant_scale_ckr, false);
  }

  // The query, head by head: qC | qR = cQ W_UQ|QR, query = bf(bf(qC) W_UK), query_rope = RoPE(qR).
  seen.q_c.resize(tokens * static_cast<size_t>(shape.heads * D));
  seen.q_r.resize(tokens * static_cast<size_t>(shape.heads * Dr));
  for (int64_t n = 0; n < shape.heads; ++n) {
    const int64_t column = n * shape.HeadColumns();
    const Rows qc_qr = MatMul(c_q, args.weight_uq_qr, column, column + shape.HeadColumns());
    Rows q_c, q_r;
    for (size_t t = 0; t < tokens; ++t) {
      Row row = qc_qr[t];
      if (quantize_cq) {
        Dequantize(&row, seen.c_q_scale[t], args.dequant_scale_w_uq_qr + column);
      } else {
        RoundEach(&row);
      }
      q_c.emplace_back(row.begin(), row.begin() + D);
      q_r.emplace_back(row.begin() + D, row.end());
      RoundEach(&q_c[t]);
      const size_t token_head = t * static_cast<size_t>(shape.heads) + static_cast<size_t>(n);
      std::copy(q_c[t].begin(), q_c[t].end(), seen.q_c.begin() + static_cast<int64_t>(token_head) * D);
      std::copy(q_r[t].begin(), q_r[t].end(), seen.q_r.begin() + static_cast<int64_t>(token_head) * Dr);
    }
    const WeightView w_uk =
        RowMajorWeight(args.weight_uk + n * D * shape.kv_rank, ElementType::kBf16, D, shape.kv_rank);
    Rows q_n = MatMul(q_c, w_uk, 0, shape.kv_rank);
    for (size_t t = 0; t < tokens; ++t) {
      const int64_t row = static_cast<int64_t>(t);
      const int64_t token_head = row * shape.heads + n;
      Row roped = Rope(q_r[t], args.rope_cos + row * Dr, args.rope_sin + row * Dr);
      RoundEach(&q_n[t]);
      if (args.mode.QuantizesQuery()) {
        int8_t* query = static_cast<int8_t*>(args.query) + token_head * shape.kv_rank;
        const float scale = QuantizeQuery(q_n[t], query);
        args.dequant_scale_q_nope[token_head] = scale;
        // One factor for both parts of a logit: the ratio is rounded first.
        const float ratio = args.quant_scale_ckv[0] / scale;
        for (float& v : roped) v *= ratio;
      } else {
        for (int64_t j = 0; j < shape.kv_rank; ++j) {
          static_cast<Bf16*>(args.query)[token_head * shape.kv_rank + j] = RoundToBf16(q_n[t][static_cast<size_t>(j)]);
        }
      }
      for (int64_t d = 0; d < Dr; ++d)
        args.query_rope[token_head * Dr + d] = RoundToBf16(roped[static_cast<size_t>(d)]);
    }
    progress.Add(head_work);
  }
}

}  // namespace mlap
