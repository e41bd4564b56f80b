#include "work_model.h"

#include <string_view>

#include "model_table.h"

namespace mlap::bench {

const tools::Scenario* const kNonQuant = tools::FindScenario(MLAP_WEIGHTS_BF16, MLAP_KV_BF16);
const tools::Scenario* const kPartial = tools::FindScenario(MLAP_WEIGHTS_UQ_QR_INT8, MLAP_KV_BF16);
const tools::Scenario* const kPartialKvInt8 = tools::FindScenario(MLAP_WEIGHTS_UQ_QR_INT8, MLAP_KV_PER_CHANNEL);
const tools::Scenario* const kFullInt8 = tools::FindScenario(MLAP_WEIGHTS_INT8, MLAP_KV_BF16);
const tools::Scenario* const kFullInt8KvInt8 = tools::FindScenario(MLAP_WEIGHTS_INT8, MLAP_KV_PER_TENSOR);

std::span<const tools::Scenario* const> MeasuredScenarios() {
  static const tools::Scenario* const kAll[] = {kNonQuant, kPartial, kPartialKvInt8, kFullInt8, kFullInt8KvInt8};
  return kAll;
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
  const auto tokens = static_cast<double>(point.tokens);
  Work work;
  for (const tools::TensorSpec& spec : tools::InputSpecs(shape)) {
    const double bytes = tools::ApproximateBytes(spec.dtype, spec.shape);
    // Of the caches, which have no pages here, only the rows below are touched.
    if (!std::string_view(spec.name).starts_with("weight_")) {
      work.other_bytes += bytes;
      continue;
    }
    work.weight_bytes += bytes;
    // Every weight multiplies once per token.
    const double operations = 2.0 * tokens * bytes / static_cast<double>(tools::ElementBytes(spec.dtype));
    (spec.dtype == MLAP_BF16 ? work.bf16_flops : work.int8_ops) += operations;
  }
  for (const tools::TensorSpec& spec : tools::OutputSpecs(shape)) {
    work.other_bytes += tools::ApproximateBytes(spec.dtype, spec.shape);
  }
  work.other_bytes += tokens * (tools::ApproximateBytes(shape.scenario->KvCacheType(), {shape.KvRowWidth()}) +
                                tools::ApproximateBytes(shape.scenario->KrCacheType(), {shape.dims.rope}));
  return work;
}

Bound BoundOf(const Work& work, const Rates& rates) {
  return {work.Bytes() / rates.read, work.bf16_flops / rates.bf16 + work.int8_ops / rates.int8};
}

}  // namespace mlap::bench
