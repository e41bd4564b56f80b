#include "cann/ops/prolog_limits.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

#include "cann/ops/size_arithmetic.h"

namespace mlap::cann {
namespace {

// Which tensor each size is read from.
struct SizeSource {
  int64_t PrologDims::*size;
  Param parameter;
};
constexpr SizeSource kSources[] = {
    {&PrologDims::B, kTokenX},          {&PrologDims::He, kTokenX},    {&PrologDims::N, kWeightUk},
    {&PrologDims::Hckv, kWeightDkvKr},  {&PrologDims::Dr, kRopeCos},   {&PrologDims::Nkv, kKvCache},
    {&PrologDims::BlockSize, kKvCache}, {&PrologDims::Hcq, kWeightDq}, {&PrologDims::D, kWeightUk},
};

Param SourceOf(int64_t PrologDims::*size) {
  for (const SizeSource& source : kSources) {
    if (source.size == size) return source.parameter;
  }
  return kTokenX;
}

LimitsKind ToLimitsKind(const CallKind& kind) {
  return {kind.version, kind.device, kind.scenario->weight_quant, kind.cache_mode};
}

}  // namespace

int64_t KvRowWidth(const Scenario& scenario, const PrologDims& dims) {
  if (!scenario.MergesCaches()) return dims.Hckv;
  // GroupRow's bytes, for sizes that may be anything.
  const int64_t num_groups = dims.Hckv / kKvGroup + (dims.Hckv % kKvGroup != 0 ? 1 : 0);
  const int64_t tail = SaturatingAdd(SaturatingMul(2, dims.Dr), SaturatingMul(4, num_groups));
  return SaturatingAdd(dims.Hckv, tail);
}

std::vector<SizeLimit> SizeLimits(const CallKind& kind) { return mlap::SizeLimits(ToLimitsKind(kind), nullptr); }

bool FirstRefusedSize(const PrologDims& dims, const CallKind& kind, SizeRefusal* refusal) {
  for (const SizeLimit& limit : mlap::SizeLimits(ToLimitsKind(kind), &dims)) {
    if (limit.is_kept) continue;
    // The batches of (T, He) tokens are those that actualSeqLen lists.
    const bool is_listed = limit.size == &PrologDims::B && dims.is_fused;
    std::string expected = limit.legal;
    // No shape shows Hckv by itself.
    if (limit.size == &PrologDims::Hckv) {
      expected += ", so that n = Hckv + Dr";
      if (limit.only != 0) expected += " = " + std::to_string(SaturatingAdd(limit.only, dims.Dr));
      expected += " with the Dr = " + std::to_string(dims.Dr) + " of ropeCos";
    }
    *refusal = {limit.symbol, is_listed ? kActualSeqLen : SourceOf(limit.size), std::move(expected), dims.*limit.size};
    return true;
  }
  const int64_t row_width = KvRowWidth(*kind.scenario, dims);
  if (kind.version->checks_row_width && dims.Dtile != row_width) {
    const char* parts =
        kind.scenario->MergesCaches() ? " (Hckv bytes, Dr bf16 values and a float for every 128 columns)" : " (Hckv)";
    *refusal = {"rows of", kKvCache, std::to_string(row_width) + parts, dims.Dtile, true};
    return true;
  }
  return false;
}

}  // namespace mlap::cann
