#include "case_scenario.h"

#include <algorithm>
#include <vector>

namespace mlap::tools {
namespace {

constexpr Scenario kScenarios[] = {
    {"non_quant", "non-quant", MLAP_WEIGHTS_BF16, MLAP_KV_BF16},
    {"partial", "partial", MLAP_WEIGHTS_UQ_QR_INT8, MLAP_KV_BF16},
    {"partial_kv_per_channel", "partial-kv-int8", MLAP_WEIGHTS_UQ_QR_INT8, MLAP_KV_PER_CHANNEL},
    {"partial_kv_per_group", "partial-kv-per-group", MLAP_WEIGHTS_UQ_QR_INT8, MLAP_KV_PER_GROUP},
    {"full_int8", "full-int8", MLAP_WEIGHTS_INT8, MLAP_KV_BF16},
    {"full_int8_kv_per_tensor", "full-int8-kv-int8", MLAP_WEIGHTS_INT8, MLAP_KV_PER_TENSOR},
    {"full_int8_kv_per_group", "full-int8-kv-per-group", MLAP_WEIGHTS_INT8, MLAP_KV_PER_GROUP},
    {"full_mxfp8", "full-mxfp8", MLAP_WEIGHTS_MXFP8, MLAP_KV_BF16},
    {"full_mxfp8_kv_per_tensor", "full-mxfp8-kv-fp8", MLAP_WEIGHTS_MXFP8, MLAP_KV_PER_TENSOR},
    {"full_mxfp8_kv_per_group", "full-mxfp8-kv-per-group", MLAP_WEIGHTS_MXFP8, MLAP_KV_PER_GROUP},
    {"full_fp8", "full-fp8", MLAP_WEIGHTS_FP8, MLAP_KV_BF16},
    {"full_fp8_kv_per_tensor", "full-fp8-kv-fp8", MLAP_WEIGHTS_FP8, MLAP_KV_PER_TENSOR},
    {"full_fp8_kv_per_group", "full-fp8-kv-per-group", MLAP_WEIGHTS_FP8, MLAP_KV_PER_GROUP},
    {"full_hif8", "full-hif8", MLAP_WEIGHTS_HIFLOAT8, MLAP_KV_BF16},
    {"full_hif8_kv_per_tensor", "full-hif8-kv-hif8", MLAP_WEIGHTS_HIFLOAT8, MLAP_KV_PER_TENSOR},
    {"full_hif8_kv_per_group", "full-hif8-kv-per-group", MLAP_WEIGHTS_HIFLOAT8, MLAP_KV_PER_GROUP},
};

// The place is the value of the enumeration.
constexpr std::string_view kCacheModes[] = {"PA_BSND", "PA_NZ", "PA_BLK_BSND", "PA_BLK_NZ", "BSND", "TND"};

std::string Choices(const std::vector<std::string_view>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

bool IsSameWord(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    const auto dash = [](char c) { return c == '_' ? '-' : c; };
    return dash(x) == dash(y);
  });
}

}  // namespace

std::span<const Scenario> Scenarios() { return kScenarios; }

const Scenario* FindScenario(mlap_weight_quant weight_quant, mlap_kv_quant kv_quant) {
  for (const Scenario& scenario : kScenarios) {
    if (scenario.weight_quant == weight_quant && scenario.kv_quant == kv_quant) return &scenario;
  }
  return nullptr;
}

const Scenario* FindScenario(std::string_view name) {
  for (const Scenario& scenario : kScenarios) {
    if (IsSameWord(name, scenario.name) || IsSameWord(name, scenario.label)) return &scenario;
  }
  return nullptr;
}

std::string ScenarioChoices() {
  std::vector<std::string_view> labels;
  for (const Scenario& scenario : kScenarios) labels.push_back(scenario.label);
  return Choices(labels);
}

std::string_view CacheModeName(mlap_cache_mode mode) { return kCacheModes[mode]; }

bool FindCacheMode(std::string_view name, mlap_cache_mode* mode) {
  const auto found = std::find(std::begin(kCacheModes), std::end(kCacheModes), name);
  if (found == std::end(kCacheModes)) return false;
  *mode = static_cast<mlap_cache_mode>(found - std::begin(kCacheModes));
  return true;
}

bool IsSocName(std::string_view name) {
  return name == "ascend910b" || name == "ascend910_93" || name == "ascend950" || name == "none";
}

std::string CacheModeChoices() { return Choices({std::begin(kCacheModes), std::end(kCacheModes)}); }

}  // namespace mlap::tools
