// The operator's quantisation scenarios by their names.
#ifndef MLAP_TOOLS_CASE_SCENARIO_H_
#define MLAP_TOOLS_CASE_SCENARIO_H_

#include <mlaprolog/mlaprolog.h>

#include <span>
#include <string>
#include <string_view>

namespace mlap::tools {

struct Scenario {
  std::string_view name;   // as the metadata of case files spells it
  std::string_view label;  // as options and messages do
  mlap_weight_quant weight_quant;
  mlap_kv_quant kv_quant;

  constexpr bool QuantizesCq() const { return weight_quant != MLAP_WEIGHTS_BF16; }
  constexpr bool QuantizesX() const { return weight_quant >= MLAP_WEIGHTS_INT8; }
  constexpr bool HasMxScales() const { return weight_quant == MLAP_WEIGHTS_MXFP8; }
  // Exist with the rules of ascend950 only.
  constexpr bool HasFloat8() const { return weight_quant >= MLAP_WEIGHTS_MXFP8; }
  constexpr bool IsPerTensor() const { return kv_quant == MLAP_KV_PER_TENSOR; }
  constexpr bool IsPerChannel() const { return kv_quant == MLAP_KV_PER_CHANNEL; }
  constexpr bool IsPerGroup() const { return kv_quant == MLAP_KV_PER_GROUP; }
  constexpr bool MayHaveSmoothScales() const { return QuantizesCq() && !HasMxScales(); }
  constexpr bool HasClipAlpha() const { return IsPerGroup() && !HasFloat8(); }

  // Of what is quantised.
  constexpr mlap_dtype QuantType() const {
    return weight_quant == MLAP_WEIGHTS_HIFLOAT8 ? MLAP_HIFLOAT8 : HasFloat8() ? MLAP_FLOAT8_E4M3 : MLAP_INT8;
  }
  constexpr mlap_dtype TokenType() const { return QuantizesX() ? QuantType() : MLAP_BF16; }
  constexpr mlap_dtype CqType() const { return QuantizesCq() ? QuantType() : MLAP_BF16; }
  constexpr mlap_dtype KvCacheType() const { return kv_quant == MLAP_KV_BF16 ? MLAP_BF16 : QuantType(); }
  constexpr mlap_dtype KrCacheType() const { return IsPerChannel() ? MLAP_INT8 : MLAP_BF16; }
  constexpr mlap_dtype QueryType() const { return IsPerTensor() ? QuantType() : MLAP_BF16; }
};

// All sixteen, by ascending weightQuantMode, then kvCacheQuantMode.
std::span<const Scenario> Scenarios();

// Null if the two do not go together.
const Scenario* FindScenario(mlap_weight_quant weight_quant, mlap_kv_quant kv_quant);

// By name or label, with '-' for '_' or the other way round; null if there is none.
const Scenario* FindScenario(std::string_view name);

// "non-quant, partial, ... or full-hif8-kv-per-group"
std::string ScenarioChoices();

// By the name of the operator's attribute: "PA_BSND", ...
std::string_view CacheModeName(mlap_cache_mode mode);
bool FindCacheMode(std::string_view name, mlap_cache_mode* mode);
std::string CacheModeChoices();

// The devices that MLAP_SOC names.
inline constexpr std::string_view kSocChoices = "ascend910b, ascend910_93, ascend950 or none";
bool IsSocName(std::string_view name);

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_CASE_SCENARIO_H_
