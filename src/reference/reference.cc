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
  return mx_scales == nullptr ? 1.0 : ToFloat(E8m0{mx_scales[row * MxGroups(k) + i / kMxGroup]});
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

template <class T>
void CopyIfGiven(const std::vector<T>& values, T* out) {
  if (out != nullptr) std::copy(values.begin(), values.end(), out);
}

const float* Offset(const float* scales, int64_t n) { return scales == nullptr ? nullptr : scales + n; }

// The steps of one call.
class Run {
 public:
  Run(const PrologArgs& args, Intermediates* seen)
      : args_(args),
        shape_(args.shape),
        mode_(args.mode),
        rules_(mode_.QuantType() == ElementType::kInt8 ? mode_.rules : NumericRules::k950),
        seen_(*seen),
        x_(DecodeRows(args.token_x, mode_.TokenType(), args.mx_scale_x, shape_.tokens, shape_.hidden)) {}

  // cQ = RmsNorm(x W_DQ), then bf16, or smoothed and quantised. Without low rank x takes its place.
  void MakeCq() {
    if (shape_.q_rank == 0) {
      c_q_ = x_;
      c_q_scale_ = args_.dequant_scale_x;
      return;
    }
    Rows rows = MatMul(x_, args_.weight_dq, args_.mx_scale_w_dq, 0, shape_.q_rank);
    const auto row_bytes = static_cast<size_t>(shape_.q_rank * ElementBytes(mode_.CqType()));
    const auto row_groups = static_cast<size_t>(MxGroups(shape_.q_rank));
    std::vector<uint8_t> stored(rows.size() * row_bytes);  // as query_norm has it
    std::vector<uint8_t> mx_scales(mode_.HasMxScales() ? rows.size() * row_groups : 0);
    for (size_t t = 0; t < rows.size(); ++t) {
      Row& row = rows[t];
      FinishDown(&row, t, args_.dequant_scale_w_dq);
      RmsNorm(&row, args_.gamma_cq, mode_.epsilon_cq, mode_.cq_factor);
      if (!mode_.QuantizesCq()) RoundEachToBf16(&row);
      Append(&seen_.c_q, row);
      StoreCq(row, stored.data() + t * row_bytes, mx_scales.data() + t * row_groups);
    }
    c_q_ = DecodeRows(stored.data(), mode_.CqType(), mode_.HasMxScales() ? mx_scales.data() : nullptr, shape_.tokens,
                      shape_.q_rank);
    if (!seen_.c_q_scale.empty()) c_q_scale_ = seen_.c_q_scale.data();
    if (mode_.QuantizesCq()) seen_.c_q_quantized = stored;
    if (args_.query_norm == nullptr) return;
    CopyIfGiven(stored, static_cast<uint8_t*>(args_.query_norm));
    CopyIfGiven(mx_scales, args_.mx_scale_q_norm);
    CopyIfGiven(seen_.c_q_scale, args_.dequant_scale_q_norm);
  }

  // The key: cKV = RmsNorm(x W_DKV), kR = RoPE(x W_KR), into the token's slot.
  void WriteKeys() {
    Rows c_kv = MatMul(x_, args_.weight_dkv_kr, args_.mx_scale_w_dkv_kr, 0, shape_.kv_rank);
    Rows k_r = MatMul(x_, args_.weight_dkv_kr, args_.mx_scale_w_dkv_kr, shape_.kv_rank, shape_.KvColumns());
    SlotCursor slots(args_.slots, args_.kv_cache, 0);
    for (size_t t = 0; t < c_kv.size(); ++t) {
      FinishDown(&c_kv[t], t, args_.dequant_scale_w_dkv_kr);
      RmsNorm(&c_kv[t], args_.gamma_ckv, mode_.epsilon_ckv, mode_.ckv_factor);
      FinishDown(&k_r[t], t, Offset(args_.dequant_scale_w_dkv_kr, shape_.kv_rank));
      Append(&seen_.c_kv, c_kv[t]);
      Append(&seen_.k_r, k_r[t]);
      if (args_.kv_cache.block_num == 0) continue;
      const int64_t slot = slots.Next();
      if (slot != SlotCursor::kNoSlot) WriteKey(args_, slot, c_kv[t], RopeOf(k_r[t], t));
    }
  }

  // One head: qC | qR = cQ W_UQ|QR, query = bf(bf(qC) W_UK), query_rope = RoPE(qR).
  void WriteHead(int64_t head) {
    const int64_t column = head * shape_.HeadColumns();
    Rows qc_qr = MatMul(c_q_, args_.weight_uq_qr, args_.mx_scale_w_uq_qr, column, column + shape_.HeadColumns());
    Rows q_r;
    Values q_c;
    seen_.q_c.resize(qc_qr.size() * static_cast<size_t>(shape_.heads * shape_.nope));
    seen_.q_r.resize(qc_qr.size() * static_cast<size_t>(shape_.heads * shape_.rope));
    for (size_t t = 0; t < qc_qr.size(); ++t) {
      const float token_scale = c_q_scale_ == nullptr ? 1.0f : c_q_scale_[t];
      Finish(&qc_qr[t], mode_.CqType(), token_scale, Offset(args_.dequant_scale_w_uq_qr, column));
      Row nope(qc_qr[t].begin(), qc_qr[t].begin() + shape_.nope);
      RoundEachToBf16(&nope);
      q_c.emplace_back(nope.begin(), nope.end());
      q_r.emplace_back(qc_qr[t].begin() + shape_.nope, qc_qr[t].end());
      std::copy(nope.begin(), nope.end(), seen_.q_c.begin() + TokenHead(t, head) * shape_.nope);
      std::copy(q_r[t].begin(), q_r[t].end(), seen_.q_r.begin() + TokenHead(t, head) * shape_.rope);
    }
    const WeightView w_uk = RowMajorWeight(args_.weight_uk + head * shape_.nope * shape_.kv_rank, ElementType::kBf16,
                                           shape_.nope, shape_.kv_rank);
    Rows query = MatMul(q_c, w_uk, nullptr, 0, shape_.kv_rank);
    for (size_t t = 0; t < query.size(); ++t) {
      RoundEachToBf16(&query[t]);
      WriteQuery(TokenHead(t, head), query[t], RopeOf(q_r[t], t));
    }
  }

 private:
  int64_t TokenHead(size_t t, int64_t head) const { return static_cast<int64_t>(t) * shape_.heads + head; }

  // What comes out of a product: rounded to bf16, or dequantised to binary32. E8M0 scales are part of the product.
  void Finish(Row* sums, ElementType type, float token_scale, const float* channel_scale) const {
    if (type == ElementType::kBf16) {
      RoundEachToBf16(sums);
    } else if (!mode_.HasMxScales()) {
      Dequantize(sums, token_scale, channel_scale, rules_);
    }
  }

  // The same for a product with x.
  void FinishDown(Row* sums, size_t t, const float* channel_scale) const {
    Finish(sums, mode_.TokenType(), args_.dequant_scale_x == nullptr ? 1.0f : args_.dequant_scale_x[t], channel_scale);
  }

  // cQ of a token as it enters W_UQ|QR.
  void StoreCq(Row row, uint8_t* out, uint8_t* mx_scales) {
    if (mode_.HasMxScales()) {
      QuantizeMx(row, out, mx_scales);
    } else if (mode_.QuantizesCq()) {
      for (size_t j = 0; args_.smooth_scales_cq != nullptr && j < row.size(); ++j) row[j] *= args_.smooth_scales_cq[j];
      seen_.c_q_scale.push_back(QuantizeRow(row, mode_.CqType(), rules_, out));
    } else {
      for (size_t j = 0; j < row.size(); ++j) Store(row[j], ElementType::kBf16, out, static_cast<int64_t>(j));
    }
  }

  Row RopeOf(const Row& row, size_t t) const {
    if (mode_.rope_style == RopeStyle::kNone) return Rope(row, nullptr, nullptr, RopeStyle::kNone);
    const int64_t first = static_cast<int64_t>(t) * shape_.rope;
    return Rope(row, args_.rope_cos + first, args_.rope_sin + first, mode_.rope_style);
  }

  // A token's head: both outputs, and the scale if there is one.
  void WriteQuery(int64_t token_head, const Row& query, Row roped) const {
    if (mode_.QuantizesQuery()) {
      uint8_t* out = static_cast<uint8_t*>(args_.query) + token_head * shape_.kv_rank;
      const float scale = QuantizeQuery(query, mode_.QuantType(), rules_, out);
      args_.dequant_scale_q_nope[token_head] = scale;
      // One factor for both parts of a logit: the ratio is rounded first.
      const float ratio = args_.quant_scale_ckv[0] / scale;
      for (float& value : roped) value *= ratio;
    } else {
      for (int64_t j = 0; j < shape_.kv_rank; ++j) {
        Store(query[static_cast<size_t>(j)], ElementType::kBf16, args_.query, token_head * shape_.kv_rank + j);
      }
    }
    for (int64_t d = 0; d < shape_.rope; ++d) {
      args_.query_rope[token_head * shape_.rope + d] = RoundToBf16(roped[static_cast<size_t>(d)]);
    }
  }

  const PrologArgs& args_;
  const PrologShape& shape_;
  const PrologMode& mode_;
  const NumericRules rules_;
  Intermediates& seen_;
  const Values x_;
  Values c_q_;                        // what W_UQ|QR multiplies
  const float* c_q_scale_ = nullptr;  // [T]
};

}  // namespace

void RunReference(const PrologArgs& args, const ReferenceOptions& options) {
  const PrologShape& shape = args.shape;
  Intermediates unused;
  Intermediates& seen = options.intermediates != nullptr ? *options.intermediates : unused;
  seen = Intermediates();
  if (shape.tokens == 0) return;
  const DefaultFloatEnvironment environment;
  const double token_work = static_cast<double>(shape.hidden) * static_cast<double>(shape.q_rank + shape.KvColumns());
  const int64_t up_rows = shape.q_rank == 0 ? shape.hidden : shape.q_rank;
  const double head_work = static_cast<double>(up_rows * shape.HeadColumns() + shape.nope * shape.kv_rank);
  Progress progress(options, token_work + head_work * static_cast<double>(shape.heads));

  Run run(args, &seen);
  run.MakeCq();
  run.WriteKeys();
  progress.Add(token_work);
  for (int64_t head = 0; head < shape.heads; ++head) {
    run.WriteHead(head);
    progress.Add(head_work);
  }
}

}  // namespace mlap
