// mlap_check_limits.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "api/api_function.h"
#include "api/tensor_checks.h"
#include "limits/size_limits.h"
#include "limits/version_limits.h"
#include "mlaprolog/mlaprolog.h"

namespace mlap {
namespace {

struct SocRow {
  const char* name;
  Devices device;
};
constexpr SocRow kSocs[] = {{"ascend910b", kA2A3}, {"ascend910_93", kA2A3}, {"ascend950", kAscend950}};

constexpr const char* kWeightNames[] = {"bf16", "partial int8", "int8", "MXFP8", "FP8", "HiFloat8"};
constexpr const char* kKvNames[] = {"bf16", "per-tensor", "per-channel", "per-group"};

// Refuses what is no question; *device and *version are what is asked about.
Status CheckQuestion(const mlap_limits_args& args, Devices* device, const VersionLimits** version) {
  TensorChecks checks;
  *device = 0;
  for (const SocRow& row : kSocs) {
    if (args.soc != nullptr && std::strcmp(args.soc, row.name) == 0) *device = row.device;
  }
  if (*device == 0) {
    checks.Refuse("soc", "ascend910b, ascend910_93 or ascend950",
                  args.soc != nullptr ? "'" + std::string(args.soc) + "'" : "null");
  }
  const auto check_enum = [&](const char* name, int value, int first, int last) {
    if (value >= first && value <= last) return;
    checks.Refuse(name, std::to_string(first) + " to " + std::to_string(last), std::to_string(value));
  };
  check_enum("version", args.version, 1, 3);
  check_enum("cache_mode", args.cache_mode, 0, MLAP_TND);
  check_enum("weight_quant", args.weight_quant, 0, MLAP_WEIGHTS_HIFLOAT8);
  check_enum("kv_quant", args.kv_quant, 0, MLAP_KV_PER_GROUP);
  check_enum("rope_style", args.rope_style, 0, MLAP_ROPE_NONE);
  const std::pair<const char*, int64_t> sizes[] = {{"dims.hidden", args.dims.hidden},
                                                   {"dims.q_rank", args.dims.q_rank},
                                                   {"dims.heads", args.dims.heads},
                                                   {"dims.nope", args.dims.nope},
                                                   {"dims.rope", args.dims.rope},
                                                   {"dims.kv_rank", args.dims.kv_rank},
                                                   {"batch", args.batch},
                                                   {"sequence", args.sequence},
                                                   {"block_size", args.block_size}};
  for (const auto& [name, size] : sizes) {
    if (size < 0) checks.Refuse(name, "0 or more", std::to_string(size));
  }
  if (checks.ok()) *version = args.version == 1 ? &LimitsOfV1() : args.version == 2 ? &LimitsOfV2() : &LimitsOfV3();
  return checks.status();
}

std::vector<std::string> Reasons(const mlap_limits_args& args, Devices device, const VersionLimits& version) {
  std::vector<std::string> reasons;
  const std::string op = "version " + std::to_string(args.version);
  if ((version.devices & device) == 0) reasons.push_back(op + ": " + args.soc + " does not have it; use version 3");

  const auto weight_quant = static_cast<WeightQuant>(args.weight_quant);
  const auto kv_quant = static_cast<KvQuant>(args.kv_quant);
  const auto& pairs = QuantPairs();
  const bool is_pair = std::find(pairs.begin(), pairs.end(), std::pair(weight_quant, kv_quant)) != pairs.end();
  const std::string scenario =
      std::string(kWeightNames[args.weight_quant]) + " weights with a " + kKvNames[args.kv_quant] + " key";
  if (!is_pair) {
    reasons.push_back("weight_quant, kv_quant: " + scenario + " do not go together");
  } else if ((version.devices & device) != 0 && !version.Offers(weight_quant, kv_quant, device)) {
    reasons.push_back("weight_quant, kv_quant: " + op + " on " + args.soc + " has no " + scenario);
  }

  const CacheMode& mode = kCacheModes[static_cast<size_t>(args.cache_mode)];
  if (static_cast<size_t>(args.cache_mode) >= version.num_cache_modes) {
    reasons.push_back(std::string("cache_mode: ") + op + " does not know " + mode.name);
  }
  if (kv_quant == KvQuant::kPerGroup && !mode.takes_per_group) {
    reasons.push_back(std::string("cache_mode: a per-group key is not stored in ") + mode.name);
  }
  const bool has_batches = args.batch != 0;
  if (mode.token_rank == 3 && !has_batches) reasons.push_back("batch: BSND takes x [B, S, He]");
  if (mode.token_rank == 2 && has_batches) reasons.push_back("batch: TND takes x [T, He]");
  if (args.rope_style != MLAP_ROPE_INTERLEAVED_TO_HALF) {
    reasons.push_back(
        "rope_style: the device takes interleaved pairs and returns halves; reorder the weights' rope "
        "columns (mlap_rope_reorder)");
  }

  PrologDims dims;
  dims.is_fused = !has_batches;
  dims.B = args.batch;
  dims.S = args.sequence;
  dims.He = args.dims.hidden;
  dims.Hcq = args.dims.q_rank;
  dims.N = args.dims.heads;
  dims.D = args.dims.nope;
  dims.Hckv = args.dims.kv_rank;
  dims.Dr = args.dims.rope;
  dims.Nkv = 1;
  dims.BlockSize = args.block_size;
  for (const SizeLimit& limit : SizeLimits({&version, device, weight_quant, &mode}, &dims)) {
    if (limit.is_kept) continue;
    const bool lacks_low_rank = limit.size == &PrologDims::Hcq && dims.Hcq == 0;
    reasons.push_back(std::string(limit.symbol) + ": expected " + limit.legal + ", found " +
                      (lacks_low_rank ? "a query without low rank" : std::to_string(dims.*limit.size)));
  }
  return reasons;
}

mlap_status Answer(const mlap_limits_args& args, int* is_accepted, char* text, size_t text_bytes) {
  Devices device = 0;
  const VersionLimits* version = nullptr;
  const Status status = CheckQuestion(args, &device, &version);
  if (!status.ok()) return FailFunction("mlap_check_limits", status);
  std::string all;
  for (const std::string& reason : Reasons(args, device, *version)) all += (all.empty() ? "" : "\n") + reason;
  *is_accepted = all.empty() ? 1 : 0;
  if (text_bytes != 0) {
    const size_t length = std::min(all.size(), text_bytes - 1);
    std::memcpy(text, all.data(), length);
    text[length] = '\0';
  }
  return MLAP_OK;
}

}  // namespace
}  // namespace mlap

mlap_status mlap_check_limits(const mlap_limits_args* args, int* is_accepted, char* reasons, size_t reasons_bytes) {
  constexpr const char* kFunction = "mlap_check_limits";
  return mlap::Guarded(kFunction, [&] {
    mlap_status status = mlap::CheckStructSize(kFunction, "args", args);
    if (status == MLAP_OK) status = mlap::CheckPlace(kFunction, "is_accepted", is_accepted);
    if (status == MLAP_OK && reasons_bytes != 0) status = mlap::CheckPlace(kFunction, "reasons", reasons);
    return status == MLAP_OK ? mlap::Answer(*args, is_accepted, reasons, reasons_bytes) : status;
  });
}
