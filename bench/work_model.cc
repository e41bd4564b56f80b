#include "work_model.h"

#include "model_table.h"

namespace mlap::bench {

std::string_view ScenarioOption(tools::Scenario scenario) {
  switch (scenario) {
    case tools::Scenario::kNonQuant:
      return "non-quant";
    case tools::Scenario::kPartial:
      return "partial";
    case tools::Scenario::kPartialKvInt8:
      return "partial-kv-int8";
  }
  return "";
}

tools::LayerDims DimsWithHeads(int64_t heads) {
  tools::LayerDims dims = tools::FindModel("deepseek-v3").dims;
  dims.heads = heads;
  return dims;
}

tools::CaseShape ShapeOf(const Point& point, int64_t block_num, int64_t block_size) {
  tools::CaseShape shape;
  shape.dims = DimsWithHeads(point.heads);
  shape.scenario = point.scenario;
  shape.lead = {point.tokens};
  shape.block_num = block_num;
  shape.block_size = block_size;
  return shape;
}

Work WorkOf(const Point& point) {
  const tools::CaseShape shape = ShapeOf(point, 0, 0);
  const tools::LayerDims& d = shape.dims;
  const auto t = static_cast<double>(point.tokens);
  const auto weights = [](int64_t k, int64_t n) { return static_cast<double>(k) * static_cast<double>(n); };
  const double down = weights(d.hidden, d.q_rank) + weights(d.hidden, d.KvColumns());
  const double up = weights(d.q_rank, d.QueryColumns());
  const double absorb = weights(d.heads * d.nope, d.kv_rank);
  Work work;
  work.bf16_flops = 2.0 * t * (down + absorb);
  (shape.HasInt8Weight() ? work.int8_ops : work.bf16_flops) += 2.0 * t * up;
  work.weight_bytes = 2.0 * (down + absorb) + (shape.HasInt8Weight() ? 1.0 : 2.0) * up;
  for (const tools::TensorSpec& spec : tools::InputSpecs(shape)) {
    // Of the caches, which have no pages here, only the rows below are touched.
    if (!std::string_view(spec.name).starts_with("weight_")) {
      work.other_bytes += tools::ApproximateBytes(spec.dtype, spec.shape);
    }
  }
  for (const tools::TensorSpec& spec : tools::OutputSpecs(shape)) {
    work.other_bytes += tools::ApproximateBytes(spec.dtype, spec.shape);
  }
  work.other_bytes +=
      t * static_cast<double>(d.KvColumns()) * static_cast<double>(tools::DtypeBytes(shape.CacheDtype()));
  return work;
}

Bound BoundOf(const Work& work, const Rates& rates) {
  return {work.Bytes() / rates.read, work.bf16_flops / rates.bf16 + work.int8_ops / rates.int8};
}

}  // namespace mlap::bench
