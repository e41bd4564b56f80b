#include "reference/exact.h"

#include <cmath>
#include <vector>

#include "reference/reference_rows.h"

namespace mlap {
namespace {

using Values = std::vector<double>;
using ValueRows = std::vector<Values>;

// A matrix with what undoes its quantisation.
struct ExactWeight {
  const WeightView& matrix;
  const float* channel_scale;  // [n] or null
  const uint8_t* mx_scale;     // [n, k / 32] or null

  double At(int64_t i, int64_t j) const {
    double value = ValueAt(matrix.data, matrix.type, matrix.Offset(i, j));
    if (channel_scale != nullptr) value *= channel_scale[j];
    if (mx_scale != nullptr) value *= ToFloat(E8m0{mx_scale[j * (matrix.k / kMxGroup) + i / kMxGroup]});
    return value;
  }
};

// x [T, k] times columns [begin, end) of W.
ValueRows MatMul(const ValueRows& x, const ExactWeight& w, int64_t begin, int64_t end) {
  ValueRows out(x.size(), Values(static_cast<size_t>(end - begin)));
  for (int64_t j = begin; j < end; ++j) {
    for (int64_t i = 0; i < w.matrix.k; ++i) {
      const double weight = w.At(i, j);
      for (size_t t = 0; t < x.size(); ++t)
        out[t][static_cast<size_t>(j - begin)] += x[t][static_cast<size_t>(i)] * weight;
    }
  }
  return out;
}

void RmsNorm(Values* x, const Bf16* gamma, float epsilon, float factor) {
  double sum = 0.0;
  for (const double v : *x) sum += v * v;
  const double root = std::sqrt(sum / static_cast<double>(x->size()) + static_cast<double>(epsilon));
  for (size_t j = 0; j < x->size(); ++j) (*x)[j] = (*x)[j] / root * ToFloat(gamma[j]) * factor;
}

// `style` is one with a rotation: it says which inputs make a pair, and where its parts go.
Values Rope(const Values& x, const Bf16* cos, const Bf16* sin, RopeStyle style) {
  const size_t half = x.size() / 2;
  Values out(x.size());
  for (size_t i = 0; i < half; ++i) {
    const bool pairs_in = style != RopeStyle::kHalf;
    const double real = x[pairs_in ? 2 * i : i];
    const double imaginary = x[pairs_in ? 2 * i + 1 : half + i];
    const bool pairs_out = style == RopeStyle::kInterleaved;
    const size_t to_real = pairs_out ? 2 * i : i;
    const size_t to_imaginary = pairs_out ? 2 * i + 1 : half + i;
    out[to_real] = real * ToFloat(cos[to_real]) - imaginary * ToFloat(sin[to_real]);
    out[to_imaginary] = imaginary * ToFloat(cos[to_imaginary]) + real * ToFloat(sin[to_imaginary]);
  }
  return out;
}

// Token t of x, dequantised.
Values TokenValues(const PrologArgs& args, int64_t t) {
  const int64_t He = args.shape.hidden;
  Values row(static_cast<size_t>(He));
  for (int64_t j = 0; j < He; ++j) {
    double value = ValueAt(args.token_x, args.mode.TokenType(), t * He + j);
    if (args.dequant_scale_x != nullptr) value *= args.dequant_scale_x[t];
    if (args.mx_scale_x != nullptr) value *= ToFloat(E8m0{args.mx_scale_x[(t * He + j) / kMxGroup]});
    row[static_cast<size_t>(j)] = value;
  }
  return row;
}

void CopyRow(const Values& row, double* out, int64_t index) {
  if (out == nullptr) return;
  for (size_t j = 0; j < row.size(); ++j) out[static_cast<size_t>(index) * row.size() + j] = row[j];
}

}  // namespace

void RunExact(const PrologArgs& args, const ExactResults& results) {
  const PrologShape& shape = args.shape;
  const PrologMode& mode = args.mode;
  const auto rope_of = [&](const Values& x, int64_t t) {
    if (mode.rope_style == RopeStyle::kNone) return x;
    return Rope(x, args.rope_cos + t * shape.rope, args.rope_sin + t * shape.rope, mode.rope_style);
  };
  ValueRows x;
  for (int64_t t = 0; t < shape.tokens; ++t) x.push_back(TokenValues(args, t));

  const ExactWeight dkv_kr = {args.weight_dkv_kr, args.dequant_scale_w_dkv_kr, args.mx_scale_w_dkv_kr};
  ValueRows c_kv = MatMul(x, dkv_kr, 0, shape.kv_rank);
  const ValueRows k_r = MatMul(x, dkv_kr, shape.kv_rank, shape.KvColumns());
  for (int64_t t = 0; t < shape.tokens; ++t) {
    RmsNorm(&c_kv[static_cast<size_t>(t)], args.gamma_ckv, mode.epsilon_ckv, mode.ckv_factor);
    CopyRow(c_kv[static_cast<size_t>(t)], results.c_kv, t);
    CopyRow(rope_of(k_r[static_cast<size_t>(t)], t), results.k_r, t);
  }

  ValueRows c_q = x;
  if (shape.q_rank != 0) {
    c_q = MatMul(x, {args.weight_dq, args.dequant_scale_w_dq, args.mx_scale_w_dq}, 0, shape.q_rank);
    for (Values& row : c_q) {
      RmsNorm(&row, args.gamma_cq, mode.epsilon_cq, mode.cq_factor);
      for (size_t j = 0; args.smooth_scales_cq != nullptr && j < row.size(); ++j) row[j] *= args.smooth_scales_cq[j];
    }
  }
  const ExactWeight uq_qr = {args.weight_uq_qr, args.dequant_scale_w_uq_qr, args.mx_scale_w_uq_qr};
  for (int64_t n = 0; n < shape.heads; ++n) {
    const int64_t column = n * shape.HeadColumns();
    const ValueRows q_c = MatMul(c_q, uq_qr, column, column + shape.nope);
    const ValueRows q_r = MatMul(c_q, uq_qr, column + shape.nope, column + shape.HeadColumns());
    const WeightView w_uk =
        RowMajorWeight(args.weight_uk + n * shape.nope * shape.kv_rank, ElementType::kBf16, shape.nope, shape.kv_rank);
    const ValueRows query = MatMul(q_c, {w_uk, nullptr, nullptr}, 0, shape.kv_rank);
    for (int64_t t = 0; t < shape.tokens; ++t) {
      CopyRow(query[static_cast<size_t>(t)], results.query, t * shape.heads + n);
      CopyRow(rope_of(q_r[static_cast<size_t>(t)], t), results.query_rope, t * shape.heads + n);
    }
  }
}

}  // namespace mlap
