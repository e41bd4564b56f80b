#include "case_shape.h"

#include <fmt/format.h>

#include "text_format.h"

namespace mlap::tools {
namespace {

struct ElementFacts {
  std::string_view name;
  Dtype file;
};

ElementFacts FactsOf(mlap_dtype dtype) {
  switch (dtype) {
    case MLAP_BF16:
      return {"BF16", Dtype::kBF16};
    case MLAP_INT8:
      return {"I8", Dtype::kI8};
    case MLAP_INT32:
      return {"I32", Dtype::kI32};
    case MLAP_INT64:
      return {"I64", Dtype::kI64};
    case MLAP_FLOAT8_E4M3:
      return {"F8_E4M3", Dtype::kF8E4M3};
    case MLAP_HIFLOAT8:
      return {"U8 (HiFloat8)", Dtype::kU8};
    case MLAP_FLOAT8_E8M0:
      return {"U8 (E8M0)", Dtype::kU8};
    case MLAP_FLOAT64:
      return {"F64", Dtype::kF64};
    case MLAP_FLOAT16:
      return {"F16", Dtype::kF16};
    default:
      return {"F32", Dtype::kF32};
  }
}

std::vector<int64_t> WithLead(const CaseShape& shape, std::initializer_list<int64_t> rest) {
  std::vector<int64_t> dims = shape.lead;
  dims.insert(dims.end(), rest);
  return dims;
}

// (BlockNum, BlockSize, 1, width), (B, S, 1, width) or (T, 1, width).
std::vector<int64_t> CacheShape(const CaseShape& shape, int64_t width) {
  if (!shape.IsPaged()) return WithLead(shape, {1, width});
  return {shape.block_num, shape.block_size, 1, width};
}

std::vector<int64_t> IndexShape(const CaseShape& shape) {
  if (!shape.HasBlocks()) return shape.lead;
  if (shape.IsFused()) return {shape.num_indices};
  return {shape.lead[0], CeilDiv(shape.lead[1], shape.block_size)};
}

// The scale of a row of x or cQ, `rows` of them, or of a weight's output columns.
TensorSpec RowScale(const CaseShape& shape, const char* name, int64_t rows, int64_t width) {
  if (shape.scenario->HasMxScales()) return {name, MLAP_FLOAT8_E8M0, {rows, CeilDiv(width, 32)}};
  return {name, MLAP_FLOAT32, {rows, 1}};
}

TensorSpec ColumnScale(const CaseShape& shape, const char* name, int64_t k, int64_t n) {
  if (shape.scenario->HasMxScales()) return {name, MLAP_FLOAT8_E8M0, {n, CeilDiv(k, 32)}};
  return {name, MLAP_FLOAT32, {1, n}};
}

}  // namespace

int64_t CeilDiv(int64_t value, int64_t divisor) { return value / divisor + (value % divisor != 0 ? 1 : 0); }

int64_t CaseShape::Tokens() const {
  int64_t tokens = 1;
  for (const int64_t dim : lead) tokens *= dim;
  return tokens;
}

int64_t CaseShape::KvRowWidth() const {
  return scenario->IsPerGroup() ? GroupRow{dims.kv_rank, dims.rope}.Bytes() : dims.kv_rank;
}

std::string DescribeShape(const CaseShape& shape) {
  const LayerDims& d = shape.dims;
  std::string lead = shape.IsFused() ? fmt::format("T = {}", shape.Tokens())
                                     : fmt::format("B = {}, S = {}", shape.lead[0], shape.lead[1]);
  if (shape.HasSequenceEnds()) lead += fmt::format(" in {}", Counted(shape.num_sequences, "sequence"));
  std::string text = fmt::format("{}{}, {}, {}, He {}, Hcq {}, N {}, D {}, Dr {}, Hckv {}", shape.scenario->label,
                                 shape.has_smooth_scales ? " with smooth scales" : "", CacheModeName(shape.cache_mode),
                                 lead, d.hidden, d.q_rank, d.heads, d.nope, d.rope, d.kv_rank);
  if (shape.IsPaged()) text += fmt::format(", {} of {}", Counted(shape.block_num, "page"), shape.block_size);
  if (shape.has_query_norm) text += ", query_norm";
  return text;
}

std::vector<TensorSpec> InputSpecs(const CaseShape& shape) {
  const LayerDims& d = shape.dims;
  const Scenario& scenario = *shape.scenario;
  const mlap_dtype x = scenario.TokenType();
  const int64_t tokens = shape.Tokens();
  std::vector<TensorSpec> specs = {
      {"token_x", x, WithLead(shape, {d.hidden})},
      {"weight_dq", x, {d.hidden, d.q_rank}, TensorRole::kNzWeight},
      {"weight_uq_qr", scenario.CqType(), {d.q_rank, d.QueryColumns()}, TensorRole::kNzWeight},
      {"weight_uk", MLAP_BF16, {d.heads, d.nope, d.kv_rank}},
      {"weight_dkv_kr", x, {d.hidden, d.KvColumns()}, TensorRole::kNzWeight},
      {"rmsnorm_gamma_cq", MLAP_BF16, {d.q_rank}},
      {"rmsnorm_gamma_ckv", MLAP_BF16, {d.kv_rank}},
      {"rope_sin", MLAP_BF16, WithLead(shape, {d.rope})},
      {"rope_cos", MLAP_BF16, WithLead(shape, {d.rope})},
  };
  const auto add = [&specs](bool is_there, TensorSpec spec) {
    if (is_there) specs.push_back(std::move(spec));
  };
  add(shape.IsPaged(), {"cache_index", MLAP_INT64, IndexShape(shape)});
  add(true, {"kv_cache", scenario.KvCacheType(), CacheShape(shape, shape.KvRowWidth())});
  add(true, {"kr_cache", scenario.KrCacheType(),
             scenario.IsPerGroup() ? std::vector<int64_t>{0} : CacheShape(shape, d.rope)});
  add(scenario.QuantizesX(), RowScale(shape, "dequant_scale_x", tokens, d.hidden));
  add(scenario.QuantizesX(), ColumnScale(shape, "dequant_scale_w_dq", d.hidden, d.q_rank));
  add(scenario.QuantizesCq(), ColumnScale(shape, "dequant_scale_w_uq_qr", d.q_rank, d.QueryColumns()));
  add(scenario.QuantizesX(), ColumnScale(shape, "dequant_scale_w_dkv_kr", d.hidden, d.KvColumns()));
  add(scenario.IsPerChannel(), {"quant_scale_ckv", MLAP_FLOAT32, {1, d.kv_rank}});
  add(scenario.IsPerTensor(),
      {"quant_scale_ckv", MLAP_FLOAT32,
       shape.num_ckv_scales == 1 ? std::vector<int64_t>{1} : std::vector<int64_t>{1, shape.num_ckv_scales}});
  add(scenario.IsPerChannel(), {"quant_scale_ckr", MLAP_FLOAT32, {1, d.rope}});
  add(shape.has_smooth_scales, {"smooth_scales_cq", MLAP_FLOAT32, {1, d.q_rank}});
  add(shape.HasSequenceEnds(), {"actual_seq_len", MLAP_INT32, {shape.num_sequences}});
  add(scenario.HasClipAlpha(), {"k_nope_clip_alpha", MLAP_FLOAT32, {1}});
  return specs;
}

std::vector<TensorSpec> OutputSpecs(const CaseShape& shape) {
  const LayerDims& d = shape.dims;
  const Scenario& scenario = *shape.scenario;
  std::vector<TensorSpec> specs = {{"query", scenario.QueryType(), WithLead(shape, {d.heads, d.kv_rank})},
                                   {"query_rope", MLAP_BF16, WithLead(shape, {d.heads, d.rope})}};
  const int64_t tokens = shape.Tokens();
  if (scenario.IsPerTensor()) specs.push_back({"dequant_scale_q_nope", MLAP_FLOAT32, {tokens, d.heads, 1}});
  if (!shape.has_query_norm) return specs;
  specs.push_back({"query_norm", scenario.CqType(), WithLead(shape, {d.q_rank})});
  if (scenario.QuantizesCq()) specs.push_back(RowScale(shape, "dequant_scale_q_norm", tokens, d.q_rank));
  return specs;
}

Dtype FileDtype(mlap_dtype dtype) { return FactsOf(dtype).file; }

std::string_view ElementTypeName(mlap_dtype dtype) { return FactsOf(dtype).name; }

int64_t ElementBytes(mlap_dtype dtype) { return static_cast<int64_t>(DtypeBytes(FileDtype(dtype))); }

int64_t FractalColumns(mlap_dtype dtype) { return 32 / ElementBytes(dtype); }

std::vector<int64_t> NzShape(int64_t k, int64_t n, mlap_dtype dtype) {
  const int64_t c0 = FractalColumns(dtype);
  return {CeilDiv(n, c0), CeilDiv(k, 16), 16, c0};
}

int64_t CacheOffset(const CaseShape& shape, mlap_dtype dtype, int64_t width, int64_t slot, int64_t d) {
  if (!shape.IsNz()) return slot * width + d;
  const int64_t c0 = FractalColumns(dtype);
  const int64_t page = slot / shape.block_size;
  const int64_t row = slot % shape.block_size;
  return page * shape.block_size * width + (d / c0) * shape.block_size * c0 + row * c0 + d % c0;
}

std::vector<NzWidth> NzWidths(const CaseShape& shape) {
  if (!shape.IsNz()) return {};
  return {{"kv_cache", shape.KvRowWidth(), FractalColumns(shape.scenario->KvCacheType())},
          {"kr_cache", shape.dims.rope, FractalColumns(shape.scenario->KrCacheType())}};
}

double ApproximateBytes(mlap_dtype dtype, const std::vector<int64_t>& shape) {
  double bytes = static_cast<double>(ElementBytes(dtype));
  for (const int64_t dim : shape) bytes *= static_cast<double>(dim);
  return bytes;
}

}  // namespace mlap::tools
