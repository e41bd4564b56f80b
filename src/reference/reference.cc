#include "reference/reference.h"

#include <algorithm>

#include "base/float_environment.h"
#include "reference/reference_rows.h"

namespace mlap {
namespace {

using Rows = std::vector<Row>;

// What a product multiplies: rows of x or cQ, decoded.
using Values = std::vector<std::vector<double>>;

// The power of two that element `i` of row `row`, along the reduction of length k, is multiplied by.
double MxScaleAt(const uint8_t* mx_scales, int64_t row, int64_t i, int64_t k) {
  return mx_scales == nullptr ? 1.0 : ToFloat(E8m0{mx_scales[row * CeilDiv(k, kMxGroup) + i / kMxGroup]});
}

Values DecodeRows(const void* data, ElementType type, const uint8_t* mx_scales, int64_t num_rows, int64_t width) {
  Values values;
  for (int64_t t = 0; t < num_rows; ++t) {
    values.emplace_back();
    for (int64_t j = 0; j < width; ++j) {
      values.back().push_back(ValueAt(data, type, t * width + j) * MxScaleAt(mx_scales, t, j, width));
    }
  }
  return values;
}

// x [T, k] times columns [begin, end) of W [k, n]: each sum in binary64, over ascending k, then rounded to binary32.
// (An int8 product's sum is an integer below 2^53 and thus exact.)
Rows MatMul(const Values& x, const WeightView& w, const uint8_t* mx_scales, int64_t begin, int64_t end) {
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
      const double weight = ValueAt(w.data, w.type, w.Offset(i, j)) * MxScaleAt(mx_scales, j, i, w.k);
      for (size_t t = 0; t < num_tokens; ++t) sum[t] += x_i[t] * weight;
    }
    for (size_t t = 0; t < num_tokens; ++t) out[t][static_cast<size_t>(j - begin)] = static_cast<float>(sum[t]);
  }
  return out;
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
  const PrologMode& mode = args.mode;
  const auto tokens = static_cast<size_t>(shape.tokens);
  const int64_t D = shape.nope;
  const int64_t Dr = shape.rope;
  Intermediates unused;
  Intermediates& seen = options.intermediates != nullptr ? *options.intermediates : unused;
  seen = Intermediates();
  if (tokens == 0) return;
  const DefaultFloatEnvironment environment;
  const bool has_low_rank = shape.q_rank != 0;
  const double token_work = static_cast<double>(shape.hidden) * static_cast<double>(shape.q_rank + shape.KvColumns());
  const int64_t up_rows = has_low_rank ? shape.q_rank : shape.hidden;
  const double head_work = static_cast<double>(up_rows * shape.HeadColumns() + D * shape.kv_rank);
  Progress progress(options, token_work + head_work * static_cast<double>(shape.heads));

  const NumericRules rules = mode.QuantType() == ElementType::kInt8 ? mode.rules : NumericRules::k950;
  // What comes out of a product: dequantised to binary32, or rounded to bf16. E8M0 scales are part of the product.
  const auto finish = [&](Row* sums, ElementType type, const float* token_scale, size_t t, const float* channel_scale) {
    if (type == ElementType::kBf16) {
      RoundEachToBf16(sums);
    } else if (!mode.HasMxScales()) {
      Dequantize(sums, token_scale[t], channel_scale, rules);
    }
  };
  const auto offset = [](const float* scales, int64_t n) { return scales == nullptr ? nullptr : scales + n; };
  const ElementType x_type = mode.TokenType();
  const auto finish_down = [&](Row* sums, size_t t, const float* channel_scale) {
    finish(sums, x_type, args.dequant_scale_x, t, channel_scale);
  };
  const Values x = DecodeRows(args.token_x, x_type, args.mx_scale_x, shape.tokens, shape.hidden);

  // cQ = RmsNorm(x W_DQ), then bf16, or smoothed and quantised per token. Without low rank x takes its place.
  const ElementType c_q_type = mode.CqType();
  Values c_q_values = x;
  const float* c_q_scale = args.dequant_scale_x;
  if (has_low_rank) {
    Rows c_q = MatMul(x, args.weight_dq, args.mx_scale_w_dq, 0, shape.q_rank);
    const auto row_bytes = static_cast<size_t>(shape.q_rank * ElementBytes(c_q_type));
    const auto num_groups = static_cast<size_t>(CeilDiv(shape.q_rank, kMxGroup));
    std::vector<uint8_t> bytes(tokens * row_bytes);
    std::vector<uint8_t> mx_scales(mode.HasMxScales() ? tokens * num_groups : 0);
    for (size_t t = 0; t < tokens; ++t) {
      uint8_t* row = bytes.data() + t * row_bytes;
      finish_down(&c_q[t], t, args.dequant_scale_w_dq);
      RmsNorm(&c_q[t], args.gamma_cq, mode.epsilon_cq, mode.cq_factor);
      if (!mode.QuantizesCq()) {
        RoundEachToBf16(&c_q[t]);
        for (int64_t j = 0; j < shape.q_rank; ++j) Store(c_q[t][static_cast<size_t>(j)], c_q_type, row, j);
      }
      Append(&seen.c_q, c_q[t]);
      if (!mode.QuantizesCq()) continue;
      if (mode.HasMxScales()) {
        QuantizeMx(c_q[t], row, mx_scales.data() + t * num_groups);
        continue;
      }
      if (args.smooth_scales_cq != nullptr) {
        for (size_t j = 0; j < c_q[t].size(); ++j) c_q[t][j] *= args.smooth_scales_cq[j];
      }
      seen.c_q_scale.push_back(QuantizeRow(c_q[t], c_q_type, rules, row));
    }
    c_q_values =
        DecodeRows(bytes.data(), c_q_type, mode.HasMxScales() ? mx_scales.data() : nullptr, shape.tokens, shape.q_rank);
    c_q_scale = seen.c_q_scale.data();
    if (args.query_norm != nullptr) {
      std::copy(bytes.begin(), bytes.end(), static_cast<uint8_t*>(args.query_norm));
      if (args.dequant_scale_q_norm != nullptr) {
        std::copy(seen.c_q_scale.begin(), seen.c_q_scale.end(), args.dequant_scale_q_norm);
      }
      if (args.mx_scale_q_norm != nullptr) std::copy(mx_scales.begin(), mx_scales.end(), args.mx_scale_q_norm);
    }
    if (mode.QuantizesCq()) seen.c_q_quantized = bytes;
  }

  // The key: cKV = RmsNorm(x W_DKV), kR = RoPE(x W_KR), into the token's slot.
  const auto angles = [&](const Bf16* table, size_t t) {
    return mode.rope_style == RopeStyle::kNone ? nullptr : table + static_cast<int64_t>(t) * Dr;
  };
  const auto rope = [&](const Row& row, size_t t) {
    return Rope(row, angles(args.rope_cos, t), angles(args.rope_sin, t), mode.rope_style);
  };
  Rows c_kv = MatMul(x, args.weight_dkv_kr, args.mx_scale_w_dkv_kr, 0, shape.kv_rank);
  Rows k_r = MatMul(x, args.weight_dkv_kr, args.mx_scale_w_dkv_kr, shape.kv_rank, shape.KvColumns());
  progress.Add(token_work);
  SlotCursor slots(args.slots, args.kv_cache, 0);
  for (size_t t = 0; t < tokens; ++t) {
    finish_down(&c_kv[t], t, args.dequant_scale_w_dkv_kr);
    RmsNorm(&c_kv[t], args.gamma_ckv, mode.epsilon_ckv, mode.ckv_factor);
    finish_down(&k_r[t], t, offset(args.dequant_scale_w_dkv_kr, shape.kv_rank));
    Append(&seen.c_kv, c_kv[t]);
    Append(&seen.k_r, k_r[t]);
    if (args.kv_cache.block_num == 0) continue;
    const int64_t slot = slots.Next();
    if (slot != SlotCursor::kNoSlot) WriteKey(args, slot, c_kv[t], rope(k_r[t], t));
  }

  // The query, head by head: qC | qR = cQ W_UQ|QR, query = bf(bf(qC) W_UK), query_rope = RoPE(qR).
  seen.q_c.resize(tokens * static_cast<size_t>(shape.heads * D));
  seen.q_r.resize(tokens * static_cast<size_t>(shape.heads * Dr));
  for (int64_t n = 0; n < shape.heads; ++n) {
    const int64_t column = n * shape.HeadColumns();
    Rows qc_qr = MatMul(c_q_values, args.weight_uq_qr, args.mx_scale_w_uq_qr, column, column + shape.HeadColumns());
    Rows q_r;
    Values q_c;
    for (size_t t = 0; t < tokens; ++t) {
      finish(&qc_qr[t], c_q_type, c_q_scale, t, offset(args.dequant_scale_w_uq_qr, column));
      Row nope(qc_qr[t].begin(), qc_qr[t].begin() + D);
      RoundEachToBf16(&nope);
      q_r.emplace_back(qc_qr[t].begin() + D, qc_qr[t].end());
      q_c.emplace_back(nope.begin(), nope.end());
      const size_t token_head = t * static_cast<size_t>(shape.heads) + static_cast<size_t>(n);
      std::copy(nope.begin(), nope.end(), seen.q_c.begin() + static_cast<int64_t>(token_head) * D);
      std::copy(q_r[t].begin(), q_r[t].end(), seen.q_r.begin() + static_cast<int64_t>(token_head) * Dr);
    }
    const WeightView w_uk =
        RowMajorWeight(args.weight_uk + n * D * shape.kv_rank, ElementType::kBf16, D, shape.kv_rank);
    Rows q_n = MatMul(q_c, w_uk, nullptr, 0, shape.kv_rank);
    for (size_t t = 0; t < tokens; ++t) {
      const int64_t token_head = static_cast<int64_t>(t) * shape.heads + n;
      Row roped = rope(q_r[t], t);
      RoundEachToBf16(&q_n[t]);
      if (mode.QuantizesQuery()) {
        uint8_t* query = static_cast<uint8_t*>(args.query) + token_head * shape.kv_rank;
        const float scale = QuantizeQuery(q_n[t], mode.QuantType(), rules, query);
        args.dequant_scale_q_nope[token_head] = scale;
        // One factor for both parts of a logit: the ratio is rounded first.
        const float ratio = args.quant_scale_ckv[0] / scale;
        for (float& v : roped) v *= ratio;
      } else {
        for (int64_t j = 0; j < shape.kv_rank; ++j) {
          Store(q_n[t][static_cast<size_t>(j)], ElementType::kBf16, args.query, token_head * shape.kv_rank + j);
        }
      }
      for (int64_t d = 0; d < Dr; ++d) {
        args.query_rope[token_head * Dr + d] = RoundToBf16(roped[static_cast<size_t>(d)]);
      }
    }
    progress.Add(head_work);
  }
}

}  // namespace mlap
