#include "cann/ops/prolog_limits.h"

#include <algorithm>
#include <initializer_list>

#include "cann/ops/size_arithmetic.h"

namespace mlap::cann {
namespace {

// The legal values of one size: a list, or a range in steps.
struct SizeRule {
  const char* symbol;
  Param parameter;
  int64_t PrologDims::*size;
  std::vector<int64_t> values;
  int64_t least = 0;
  int64_t most = 0;
  int64_t step = 1;
  bool (*applies)(const CallKind&) = nullptr;                 // null: always
  const std::vector<int64_t> PrologVersion::*list = nullptr;  // the version's values, if they differ
};

bool IsPaged(const CallKind& kind) { return kind.cache_mode->IsPaged(); }
bool IsMx(const CallKind& kind) { return kind.scenario->HasMxScales(); }

// In the order in which the device looks at them.
const std::vector<SizeRule>& DeviceRules() {
  // Never destroyed, like every static of the library: a call may come while the program ends.
  static const std::vector<SizeRule>& kRules = *new std::vector<SizeRule>{
      {"B", kTokenX, &PrologDims::B, {}, 0, 65536},
      {"He", kTokenX, &PrologDims::He, {1024, 2048, 3072, 4096, 5120, 6144, 7168, 7680, 8192}},
      {"N", kWeightUk, &PrologDims::N, {1, 2, 4, 8, 16, 32, 64, 128}},
      {"Hckv", kWeightDkvKr, &PrologDims::Hckv, {512}},
      {"Dr", kRopeCos, &PrologDims::Dr, {64}},
      {"Nkv", kKvCache, &PrologDims::Nkv, {1}},
      {"BlockSize", kKvCache, &PrologDims::BlockSize, {}, 16, 1024, 16, IsPaged},
      {"Hcq", kWeightDq, &PrologDims::Hcq, {}, 0, 0, 1, nullptr, &PrologVersion::q_ranks},
      {"D", kWeightUk, &PrologDims::D, {}, 0, 0, 1, nullptr, &PrologVersion::nopes},
  };
  return kRules;
}

constexpr int64_t kAny = INT64_MAX;

const std::vector<SizeRule>& CpuRules() {
  static const std::vector<SizeRule>& kRules = *new std::vector<SizeRule>{
      {"He", kTokenX, &PrologDims::He, {}, 1, kAny},
      {"He", kTokenX, &PrologDims::He, {}, kMxGroup, kAny, kMxGroup, IsMx},
      {"N", kWeightUk, &PrologDims::N, {}, 1, kAny},
      {"Hckv", kWeightDkvKr, &PrologDims::Hckv, {}, 1, kAny},
      {"Dr", kRopeCos, &PrologDims::Dr, {}, 2, kAny, 2},
      {"Nkv", kKvCache, &PrologDims::Nkv, {1}},
      {"BlockSize", kKvCache, &PrologDims::BlockSize, {}, 1, kAny, 1, IsPaged},
      {"Hcq", kWeightDq, &PrologDims::Hcq, {}, 1, kAny},
      {"Hcq", kWeightDq, &PrologDims::Hcq, {}, kMxGroup, kAny, kMxGroup, IsMx},
      {"D", kWeightUk, &PrologDims::D, {}, 1, kAny},
  };
  return kRules;
}

bool Accepts(const SizeRule& rule, const std::vector<int64_t>& values, int64_t size) {
  if (!values.empty()) return std::find(values.begin(), values.end(), size) != values.end();
  return size >= rule.least && size <= rule.most && size % rule.step == 0;
}

std::string LegalText(const SizeRule& rule, const std::vector<int64_t>& values) {
  if (values.size() == 1) return std::to_string(values[0]);
  if (!values.empty()) {
    std::string text = "one of";
    for (size_t i = 0; i < values.size(); ++i) text += (i == 0 ? " " : ", ") + std::to_string(values[i]);
    return text;
  }
  std::string text = rule.step > 1 ? "a multiple of " + std::to_string(rule.step) + " " : "a size ";
  if (rule.most == kAny) return text + "of at least " + std::to_string(rule.least);
  return text + "from " + std::to_string(rule.least) + " to " + std::to_string(rule.most);
}

// Calls `visit` with each rule that applies and its legal values, until that returns false.
template <class Visit>
void VisitRules(const CallKind& kind, Visit&& visit) {
  for (const SizeRule& rule : kind.device == kCpu ? CpuRules() : DeviceRules()) {
    if (rule.applies != nullptr && !rule.applies(kind)) continue;
    if (!visit(rule, rule.list != nullptr ? kind.version->*rule.list : rule.values)) return;
  }
}

}  // namespace

int64_t KvRowWidth(const Scenario& scenario, const PrologDims& dims) {
  if (!scenario.MergesCaches()) return dims.Hckv;
  // GroupRow's bytes, for sizes that may be anything.
  const int64_t num_groups = dims.Hckv / kKvGroup + (dims.Hckv % kKvGroup != 0 ? 1 : 0);
  const int64_t tail = SaturatingAdd(SaturatingMul(2, dims.Dr), SaturatingMul(4, num_groups));
  return SaturatingAdd(dims.Hckv, tail);
}

std::vector<SizeLimit> SizeLimits(const CallKind& kind) {
  std::vector<SizeLimit> limits;
  VisitRules(kind, [&](const SizeRule& rule, const std::vector<int64_t>& values) {
    limits.push_back({rule.symbol, LegalText(rule, values)});
    return true;
  });
  return limits;
}

bool FirstRefusedSize(const PrologDims& dims, const CallKind& kind, SizeRefusal* refusal) {
  bool is_refused = false;
  VisitRules(kind, [&](const SizeRule& rule, const std::vector<int64_t>& values) {
    const int64_t size = dims.*rule.size;
    is_refused = !Accepts(rule, values, size);
    if (is_refused) *refusal = {rule.symbol, rule.parameter, LegalText(rule, values), size};
    // The batches of (T, He) tokens are those that actualSeqLen lists.
    if (is_refused && rule.size == &PrologDims::B && dims.is_fused) refusal->parameter = kActualSeqLen;
    return !is_refused;
  });
  if (is_refused) return true;
  const int64_t row_width = KvRowWidth(*kind.scenario, dims);
  if (kind.version->checks_row_width && dims.Dtile != row_width) {
    const char* parts =
        kind.scenario->MergesCaches() ? " (Hckv bytes, Dr bf16 values and a float for every 128 columns)" : " (Hckv)";
    *refusal = {"Dtile", kKvCache, std::to_string(row_width) + parts, dims.Dtile};
    return true;
  }
  return false;
}

}  // namespace mlap::cann
