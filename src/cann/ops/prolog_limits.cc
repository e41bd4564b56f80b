#include "cann/ops/prolog_limits.h"

#include <algorithm>
#include <initializer_list>

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
};

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
      {"BlockSize", kKvCache, &PrologDims::BlockSize, {}, 16, 1024, 16},
      {"Hcq", kWeightDq, &PrologDims::Hcq, {1536}},
      {"D", kWeightUk, &PrologDims::D, {128}},
  };
  return kRules;
}

constexpr int64_t kAny = INT64_MAX;

const std::vector<SizeRule>& CpuRules() {
  static const std::vector<SizeRule>& kRules = *new std::vector<SizeRule>{
      {"He", kTokenX, &PrologDims::He, {}, 1, kAny},
      {"N", kWeightUk, &PrologDims::N, {}, 1, kAny},
      {"Hckv", kWeightDkvKr, &PrologDims::Hckv, {}, 1, kAny},
      {"Dr", kRopeCos, &PrologDims::Dr, {}, 2, kAny, 2},
      {"Nkv", kKvCache, &PrologDims::Nkv, {1}},
      {"BlockSize", kKvCache, &PrologDims::BlockSize, {}, 1, kAny},
      {"Hcq", kWeightDq, &PrologDims::Hcq, {}, 1, kAny},
      {"D", kWeightUk, &PrologDims::D, {}, 1, kAny},
  };
  return kRules;
}

bool Accepts(const SizeRule& rule, int64_t size) {
  if (!rule.values.empty()) return std::find(rule.values.begin(), rule.values.end(), size) != rule.values.end();
  return size >= rule.least && size <= rule.most && size % rule.step == 0;
}

std::string LegalText(const SizeRule& rule) {
  if (rule.values.size() == 1) return std::to_string(rule.values[0]);
  if (!rule.values.empty()) {
    std::string text = "one of";
    for (size_t i = 0; i < rule.values.size(); ++i) text += (i == 0 ? " " : ", ") + std::to_string(rule.values[i]);
    return text;
  }
  std::string text = rule.step > 1 ? "a multiple of " + std::to_string(rule.step) + " " : "a size ";
  if (rule.most == kAny) return text + "of at least " + std::to_string(rule.least);
  return text + "from " + std::to_string(rule.least) + " to " + std::to_string(rule.most);
}

}  // namespace

bool FirstRefusedSize(const PrologDims& dims, Soc soc, SizeRefusal* refusal) {
  for (const SizeRule& rule : soc == Soc::kNone ? CpuRules() : DeviceRules()) {
    const int64_t size = dims.*rule.size;
    if (Accepts(rule, size)) continue;
    *refusal = {rule.symbol, rule.parameter, LegalText(rule), size};
    return true;
  }
  return false;
}

}  // namespace mlap::cann
