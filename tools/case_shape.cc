#include "case_shape.h"

#include <fmt/format.h>

#include "text_format.h"

namespace mlap::tools {
namespace {

int64_t CeilDiv(int64_t value, int64_t divisor) { return value / divisor + (value % divisor != 0 ? 1 : 0); }

std::vector<int64_t> WithLead(const CaseShape& shape, std::initializer_list<int64_t> rest) {
  std::vector<int64_t> dims = shape.lead;
  dims.insert(dims.end(), rest);
  return dims;
}

}  // namespace

std::string_view ScenarioName(Scenario scenario) {
  switch (scenario) {
    case Scenario::kNonQuant:
      return "non_quant";
    case Scenario::kPartial:
      return "partial";
    case Scenario::kPartialKvInt8:
      return "partial_kv_per_channel";
  }
  return "";
}

std::string_view ScenarioLabel(Scenario scenario) {
  switch (scenario) {
    case Scenario::kNonQuant:
      return "non-quant";
    case Scenario::kPartial:
      return "partial";
    case Scenario::kPartialKvInt8:
      return "partial-kv-int8";
  }
  return "";
}

std::string_view CacheModeName(CacheMode mode) { return mode == CacheMode::kPaBsnd ? "PA_BSND" : "PA_NZ"; }

int64_t CaseShape::Tokens() const {
  int64_t tokens = 1;
  for (const int64_t dim : lead) tokens *= dim;
  return tokens;
}

std::string DescribeShape(const CaseShape& shape) {
  const LayerDims& d = shape.dims;
  const std::string lead = shape.lead.size() == 2 ? fmt::format("B = {}, S = {}", shape.lead[0], shape.lead[1])
                                                  : fmt::format("T = {}", shape.Tokens());
  return fmt::format("{}{}, {}, {}, He {}, Hcq {}, N {}, D {}, Dr {}, Hckv {}, {} of {}", ScenarioLabel(shape.scenario),
                     shape.has_smooth_scales ? " with smooth scales" : "", CacheModeName(shape.cache_mode), lead,
                     d.hidden, d.q_rank, d.heads, d.nope, d.rope, d.kv_rank, Counted(shape.block_num, "page"),
                     shape.block_size);
}

std::vector<TensorSpec> InputSpecs(const CaseShape& shape) {
  const LayerDims& d = shape.dims;
  const Dtype uq_qr = shape.HasInt8Weight() ? Dtype::kI8 : Dtype::kBF16;
  std::vector<TensorSpec> specs = {
      {"token_x", Dtype::kBF16, WithLead(shape, {d.hidden})},
      {"weight_dq", Dtype::kBF16, {d.hidden, d.q_rank}, TensorRole::kNzWeight},
      {"weight_uq_qr", uq_qr, {d.q_rank, d.QueryColumns()}, TensorRole::kNzWeight},
      {"weight_uk", Dtype::kBF16, {d.heads, d.nope, d.kv_rank}},
      {"weight_dkv_kr", Dtype::kBF16, {d.hidden, d.KvColumns()}, TensorRole::kNzWeight},
      {"rmsnorm_gamma_cq", Dtype::kBF16, {d.q_rank}},
      {"rmsnorm_gamma_ckv", Dtype::kBF16, {d.kv_rank}},
      {"rope_sin", Dtype::kBF16, WithLead(shape, {d.rope})},
      {"rope_cos", Dtype::kBF16, WithLead(shape, {d.rope})},
      {"cache_index", Dtype::kI64, shape.lead},
      {"kv_cache", shape.CacheDtype(), {shape.block_num, shape.block_size, 1, d.kv_rank}},
      {"kr_cache", shape.CacheDtype(), {shape.block_num, shape.block_size, 1, d.rope}},
  };
  if (shape.HasInt8Weight()) specs.push_back({"dequant_scale_w_uq_qr", Dtype::kF32, {1, d.QueryColumns()}});
  if (shape.HasInt8Cache()) {
    specs.push_back({"quant_scale_ckv", Dtype::kF32, {1, d.kv_rank}});
    specs.push_back({"quant_scale_ckr", Dtype::kF32, {1, d.rope}});
  }
  if (shape.has_smooth_scales) specs.push_back({"smooth_scales_cq", Dtype::kF32, {1, d.q_rank}});
  return specs;
}

std::vector<TensorSpec> OutputSpecs(const CaseShape& shape) {
  const LayerDims& d = shape.dims;
  return {{"query", Dtype::kBF16, WithLead(shape, {d.heads, d.kv_rank})},
          {"query_rope", Dtype::kBF16, WithLead(shape, {d.heads, d.rope})}};
}

int64_t FractalColumns(Dtype dtype) { return 32 / static_cast<int64_t>(DtypeBytes(dtype)); }

std::vector<int64_t> NzShape(int64_t k, int64_t n, Dtype dtype) {
  const int64_t c0 = FractalColumns(dtype);
  return {CeilDiv(n, c0), CeilDiv(k, 16), 16, c0};
}

int64_t CacheOffset(const CaseShape& shape, int64_t width, int64_t slot, int64_t d) {
  if (shape.cache_mode == CacheMode::kPaBsnd) return slot * width + d;
  const int64_t c0 = FractalColumns(shape.CacheDtype());
  const int64_t page = slot / shape.block_size;
  const int64_t row = slot % shape.block_size;
  return page * shape.block_size * width + (d / c0) * shape.block_size * c0 + row * c0 + d % c0;
}

double ApproximateBytes(Dtype dtype, const std::vector<int64_t>& shape) {
  double bytes = static_cast<double>(DtypeBytes(dtype));
  for (const int64_t dim : shape) bytes *= static_cast<double>(dim);
  return bytes;
}

}  // namespace mlap::tools
