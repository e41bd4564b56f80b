#include "limits/size_limits.h"

#include <algorithm>

namespace mlap {
namespace {

// The legal values of one size: a list, or a range in steps.
struct SizeRule {
  const char* symbol;
  int64_t PrologDims::*size;
  std::vector<int64_t> values;
  int64_t least = 0;
  int64_t most = 0;
  int64_t step = 1;
  bool (*applies)(const LimitsKind&) = nullptr;               // null: always
  const std::vector<int64_t> VersionLimits::*list = nullptr;  // the version's values, if they differ
};

bool IsPaged(const LimitsKind& kind) { return kind.cache_mode->IsPaged(); }
bool IsMx(const LimitsKind& kind) { return kind.weight_quant == WeightQuant::kMxFp8; }

// In the order in which the device looks at them.
const std::vector<SizeRule>& DeviceRules() {
  // Never destroyed, like every static of the library: a call may come while the program ends.
  static const std::vector<SizeRule>& kRules = *new std::vector<SizeRule>{
      {"B", &PrologDims::B, {}, 0, 65536},
      {"He", &PrologDims::He, {1024, 2048, 3072, 4096, 5120, 6144, 7168, 7680, 8192}},
      {"N", &PrologDims::N, {1, 2, 4, 8, 16, 32, 64, 128}},
      {"Hckv", &PrologDims::Hckv, {512}},
      {"Dr", &PrologDims::Dr, {64}},
      {"Nkv", &PrologDims::Nkv, {1}},
      {"BlockSize", &PrologDims::BlockSize, {}, 16, 1024, 16, IsPaged},
      {"Hcq", &PrologDims::Hcq, {}, 0, 0, 1, nullptr, &VersionLimits::q_ranks},
      {"D", &PrologDims::D, {}, 0, 0, 1, nullptr, &VersionLimits::nopes},
  };
  return kRules;
}

constexpr int64_t kAny = INT64_MAX;

const std::vector<SizeRule>& CpuRules() {
  static const std::vector<SizeRule>& kRules = *new std::vector<SizeRule>{
      {"He", &PrologDims::He, {}, 1, kAny},
      {"He", &PrologDims::He, {}, kMxGroup, kAny, kMxGroup, IsMx},
      {"N", &PrologDims::N, {}, 1, kAny},
      {"Hckv", &PrologDims::Hckv, {}, 1, kAny},
      {"Dr", &PrologDims::Dr, {}, 2, kAny, 2},
      {"Nkv", &PrologDims::Nkv, {1}},
      {"BlockSize", &PrologDims::BlockSize, {}, 1, kAny, 1, IsPaged},
      {"Hcq", &PrologDims::Hcq, {}, 1, kAny},
      {"Hcq", &PrologDims::Hcq, {}, kMxGroup, kAny, kMxGroup, IsMx},
      {"D", &PrologDims::D, {}, 1, kAny},
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

}  // namespace

std::vector<SizeLimit> SizeLimits(const LimitsKind& kind, const PrologDims* dims) {
  std::vector<SizeLimit> limits;
  for (const SizeRule& rule : kind.device == kCpu ? CpuRules() : DeviceRules()) {
    if (rule.applies != nullptr && !rule.applies(kind)) continue;
    const std::vector<int64_t>& values = rule.list != nullptr ? kind.version->*rule.list : rule.values;
    const int64_t only = values.size() == 1 ? values[0] : 0;
    limits.push_back({rule.symbol, rule.size, LegalText(rule, values), only,
                      dims == nullptr || Accepts(rule, values, dims->*rule.size)});
  }
  return limits;
}

}  // namespace mlap
