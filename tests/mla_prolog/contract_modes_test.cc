// The modes of V3, the outputs and attributes that follow from them, and the cache modes of all versions.
#include <algorithm>
#include <string>
#include <vector>

#include "contract_rules.h"

namespace mlap::prolog_test {
namespace {

// A call whose tensors are those of one scenario and whose modes are those of another is refused, whatever the pair.
TEST_F(ContractRules, ModesAndTensorsMustAgree) {
  const auto check = [](const Config& tensors, const Config& modes) {
    if (tensors.scenario.weight_mode == modes.scenario.weight_mode &&
        tensors.scenario.kv_mode == modes.scenario.kv_mode) {
      return;
    }
    PrologCall call(tensors);
    call.modes = PrologCall(modes).modes;
    const Phase1Result result = call.Phase1();
    EXPECT_TRUE(result.status == kInvalid || result.status == kTiling)
        << tensors.Name() << " as " << modes.Name() << ": " << result.status;
    EXPECT_NE(FirstNamed(result.text), "") << result.text;
  };
  for (const Config& tensors : RichConfigs()) {
    for (const Config& modes : RichConfigs()) {
      if (tensors.IsV3() && modes.IsV3() && tensors.soc == modes.soc) check(tensors, modes);
    }
  }
}

// V3's three last outputs: what the modes want must be there, and nothing else.
TEST_F(ContractRules, OptionalOutputsOfV3) {
  for (const Config& config : AllConfigs()) {
    if (!config.IsV3()) continue;
    for (const bool query_norm : {false, true}) {
      for (const bool q_nope_scale : {false, true}) {
        for (const bool q_norm_scale : {false, true}) {
          SCOPED_TRACE(config.Name() + ", queryNorm " + std::to_string(query_norm) + ", its scale " +
                       std::to_string(q_norm_scale) + ", query scale " + std::to_string(q_nope_scale));
          PrologCall call(config);
          call[kQueryNorm].null = !query_norm;
          call[kScaleQNope].null = !q_nope_scale;
          call[kScaleQNorm].null = !q_norm_scale;
          if (q_nope_scale != config.PerTensor()) {
            ExpectRefused(call, kInvalid, {"dequantScaleQNopeOut"});
          } else if (q_norm_scale != (query_norm && config.QuantizesCq())) {
            ExpectRefused(call, kInvalid, {"dequantScaleQNormOut"});
          } else {
            ExpectAccepted(call);
          }
        }
      }
    }
  }
}

std::string Text(bool on) { return on ? "1" : "0"; }

// Every triple of modes, and the two attributes that follow from them.
TEST_F(ContractRules, ModesThatGoTogether) {
  struct Device {
    const char* name;
    int64_t last_weight_mode;
    size_t num_legal;
  };
  for (const Device& device :
       {Device{"ascend910b", 2, 7}, {"ascend910_93", 2, 7}, {"ascend950", 5, 16}, {"none", 5, 16}}) {
    const ScopedSoc soc(device.name);
    size_t num_accepted = 0;
    for (int64_t weight = -1; weight <= 6; ++weight) {
      for (int64_t kv = -1; kv <= 4; ++kv) {
        for (int64_t query = -1; query <= 2; ++query) {
          for (const bool repo : {false, true}) {
            for (const bool scale_repo : {false, true}) {
              SCOPED_TRACE(std::string(device.name) + ": " + std::to_string(weight) + ", " + std::to_string(kv) + ", " +
                           std::to_string(query) + ", " + Text(repo) + ", " + Text(scale_repo));
              const auto row = std::find_if(ScenarioTable().begin(), ScenarioTable().end(), [&](const ScenarioRow& r) {
                return r.weight_mode == weight && r.kv_mode == kv;
              });
              const bool known = row != ScenarioTable().end() && weight <= device.last_weight_mode;
              // The tensors are those of the modes, or of any.
              PrologCall call(With(known ? Scenario{Version::kV3, weight, kv} : Scenario{Version::kV3, 0, 0}));
              call.modes.weight_quant = weight;
              call.modes.kv_cache_quant = kv;
              call.modes.query_quant = query;
              call.modes.ckvkr_repo = repo;
              call.modes.quant_scale_repo = scale_repo;
              const bool weight_known = weight >= 0 && weight <= device.last_weight_mode;
              if (!weight_known) {
                ExpectRefused(call, kInvalid, {"weightQuantMode"});
              } else if (!known) {
                ExpectRefused(call, kInvalid, {"kvCacheQuantMode"});
              } else if (query != 0 && query != 1) {
                ExpectRefused(call, kInvalid, {"queryQuantMode"});
              } else if (repo != (kv == 3)) {
                ExpectRefused(call, kTiling, {"ckvkrRepoMode"});
              } else if (scale_repo != (kv == 3)) {
                ExpectRefused(call, kTiling, {"quantScaleRepoMode"});
              } else if (query != (kv == 1)) {
                ExpectRefused(call, kTiling, {"queryQuantMode"});
              } else {
                ExpectAccepted(call);
                ++num_accepted;
              }
            }
          }
        }
      }
    }
    EXPECT_EQ(num_accepted, device.num_legal);
  }
}

// Numbers that are another one's low half.
TEST_F(ContractRules, ModesAreWholeNumbers) {
  for (const Config& config : RichConfigs()) {
    if (!config.IsV3()) continue;
    struct Field {
      const char* name;
      int64_t Modes::*field;
      aclnnStatus status;
    };
    for (const Field& f : {Field{"weightQuantMode", &Modes::weight_quant, kInvalid},
                           {"kvCacheQuantMode", &Modes::kv_cache_quant, kInvalid},
                           {"queryQuantMode", &Modes::query_quant, kInvalid},
                           {"ckvkrRepoMode", &Modes::ckvkr_repo, kTiling},
                           {"quantScaleRepoMode", &Modes::quant_scale_repo, kTiling},
                           {"tileSize", &Modes::tile_size, kTiling}}) {
      for (const int64_t delta : {int64_t{1} << 32, int64_t{-1} << 32, INT64_MIN, int64_t{1000}}) {
        Refuse(config, f.name, [&](PrologCall& call) { call.modes.*f.field += delta; }, f.status, {f.name});
      }
    }
    for (const int64_t tile : {0, 1, 64, 127, 129, 256, -128}) {
      Refuse(config, "tileSize " + std::to_string(tile), [&](PrologCall& call) { call.modes.tile_size = tile; },
             kTiling, {"tileSize"});
    }
  }
}

TEST_F(ContractRules, CacheModes) {
  const std::vector<std::string> all = {"PA_BSND", "PA_NZ", "PA_BLK_BSND", "PA_BLK_NZ", "BSND", "TND"};
  for (const Config& config : AllConfigs()) {
    for (const char* mode : {"", "pa_bsnd", "Pa_BSND", "PA_BSND ", " PA_BSND", "PA_BSN", "PA_BSNDX", "PA", "pa_nz",
                             "NZ", "BNSD", "ND", "PA_NZ\n", "PA_BLK", "TNDX", "bsnd"}) {
      Refuse(config, std::string("mode '") + mode + "'", [&](PrologCall& call) { call.cache_mode = mode; }, kTiling,
             {"cacheMode"});
    }
    const std::vector<const char*> legal = ModesOf(config.scenario);
    for (const std::string& mode : all) {
      if (std::find(legal.begin(), legal.end(), mode) != legal.end()) continue;
      // A form that the mode does not take may be noticed first.
      Refuse(config, "mode '" + mode + "'", [&](PrologCall& call) { call.cache_mode = mode; }, kTiling,
             {"cacheMode", "tokenX", "kvCache"});
    }
    if (config.IsTokens() || config.IsBlocks() || config.PerGroup()) continue;
    for (const char* mode : {"PA_BSND", "PA_NZ"}) {
      Accept(config, mode, [&](PrologCall& call) { call.cache_mode = mode; });
    }
  }
}

// Each mode has its form of the tokens and its rank of the caches.
TEST_F(ContractRules, CacheModesChooseForms) {
  for (const Scenario& scenario : kScenarios) {
    if (scenario.version != Version::kV3) continue;
    for (const Config& config : FormsOf(scenario)) {
      if (config.cache_mode == "BSND") {
        Refuse(config, "TND of batches", [](PrologCall& call) { call.cache_mode = "TND"; }, kTiling, {"tokenX"});
        Refuse(config, "a 3-D cache",
               [](PrologCall& call) {
                 call[kKvCache].Reshape({4, 1, call[kKvCache].dims.back()});
               },
               kTiling, {"kvCache"});
      } else if (config.cache_mode == "TND") {
        Refuse(config, "BSND of fused tokens", [](PrologCall& call) { call.cache_mode = "BSND"; }, kTiling, {"tokenX"});
        Refuse(config, "a 4-D cache",
               [](PrologCall& call) {
                 call[kKvCache].Reshape({3, 1, 1, call[kKvCache].dims.back()});
               },
               kTiling, {"kvCache"});
      } else {
        Refuse(config, "a 3-D cache",
               [](PrologCall& call) {
                 call[kKvCache].Reshape({32, 1, call[kKvCache].dims.back()});
               },
               kTiling, {"kvCache"});
      }
    }
  }
}

TEST_F(ContractRules, AbsentCacheMode) {
  for (const Config& config : AllConfigs()) {
    SCOPED_TRACE(config.Name());
    PrologCall call(config);
    call.cache_mode.reset();
    if (config.IsV3()) {
      // It means PA_BSND.
      if (config.cache_mode == "PA_BSND") ExpectAccepted(call);
      continue;
    }
    ExpectRefused(call, kTiling, {"cacheMode"});
    const std::string text = call.Phase1().text;
    EXPECT_NE(text.find("PA_BSND"), std::string::npos) << text;
    EXPECT_NE(text.find("PA_NZ"), std::string::npos) << text;
  }
}

// Any number is a factor.
TEST_F(ContractRules, FactorsAreFree) {
  for (const Config& config : RichConfigs()) {
    if (!config.IsV3()) continue;
    for (const double factor : {0.0, -1.0, 0.5, 1e300, 1e-300}) {
      Accept(config, "factors", [&](PrologCall& call) { call.modes.qc_qr_scale = call.modes.kc_scale = factor; });
    }
  }
}

}  // namespace
}  // namespace mlap::prolog_test
