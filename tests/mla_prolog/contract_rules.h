// What the tests of the first step's rules share. No call in them may touch data: all addresses are inaccessible.
#ifndef MLAP_TESTS_MLA_PROLOG_CONTRACT_RULES_H_
#define MLAP_TESTS_MLA_PROLOG_CONTRACT_RULES_H_

#include <functional>
#include <string>
#include <vector>

#include "prolog_fixture.h"

namespace mlap::prolog_test {

inline constexpr aclnnStatus kNull = ACLNN_ERR_PARAM_NULLPTR;
inline constexpr aclnnStatus kInvalid = ACLNN_ERR_PARAM_INVALID;
inline constexpr aclnnStatus kTiling = ACLNN_ERR_INNER_TILING_ERROR;
inline constexpr aclnnStatus kNoKernel = ACLNN_ERR_INNER_FIND_KERNEL_ERROR;

using Mutation = std::function<void(PrologCall&)>;
using Names = std::vector<std::string>;

inline std::string Shape(const std::vector<int64_t>& dims) {
  std::string text = "(";
  for (const int64_t dim : dims) text += std::to_string(dim) + ",";
  return text + ")";
}

inline Config With(const Scenario& scenario) {
  Config config;
  config.scenario = scenario;
  return config;
}

// Both forms of the tokens and every cache mode of one scenario.
inline std::vector<Config> FormsOf(const Scenario& scenario) {
  std::vector<Config> configs;
  for (const char* mode : ModesOf(scenario)) {
    Config config = With(scenario);
    config.cache_mode = mode;
    config.heads = 2;
    if (config.cache_mode != "BSND") configs.push_back(Config(config).SetFused(3));
    if (config.cache_mode != "TND") configs.push_back(Config(config).SetBatchSeq(2, 2));
  }
  return configs;
}

// Every version, scenario, form and cache mode, on the devices that have them.
inline std::vector<Config> AllConfigs() {
  std::vector<Config> configs;
  for (const Scenario& scenario : kScenarios) {
    for (const Config& config : FormsOf(scenario)) configs.push_back(config);
  }
  for (const Scenario& scenario : kScenarios950) {
    for (const Config& config : FormsOf(scenario)) {
      configs.push_back(config);
      configs.back().soc = "ascend950";
    }
  }
  return configs;
}

// One call for each scenario, with every tensor that it may have where there is a choice.
inline std::vector<Config> RichConfigs() {
  std::vector<Config> configs;
  const auto add = [&](Scenario scenario, const char* soc) {
    scenario.smooth = RowOf(scenario).may_smooth;
    scenario.query_norm = scenario.version == Version::kV3;
    Config config = With(scenario);
    config.soc = soc;
    for (const Config& other : configs) {
      if (other.scenario == scenario && other.soc == soc) return;
    }
    configs.push_back(config);
  };
  for (const Scenario& scenario : kScenarios) add(scenario, "");
  for (const Scenario& scenario : kScenarios950) add(scenario, "ascend950");
  return configs;
}

// One changed call at a time, and what the first step says to it.
class ContractRules : public PrologTest {
 protected:
  static void Refuse(const Config& config, const std::string& what, const Mutation& mutate, aclnnStatus status,
                     const Names& culprits) {
    SCOPED_TRACE(config.Name() + ": " + what);
    PrologCall call(config);
    mutate(call);
    ExpectRefused(call, status, culprits);
  }
  static void RefuseWithEither(const Config& config, const std::string& what, const Mutation& mutate,
                               const std::vector<aclnnStatus>& statuses, const Names& culprits) {
    SCOPED_TRACE(config.Name() + ": " + what);
    PrologCall call(config);
    mutate(call);
    ExpectRefused(call, statuses, culprits);
  }
  static void Accept(const Config& config, const std::string& what, const Mutation& mutate) {
    SCOPED_TRACE(config.Name() + ": " + what);
    PrologCall call(config);
    mutate(call);
    ExpectAccepted(call);
  }
  static void RefuseShape(const Config& config, Param param, const std::vector<int64_t>& dims, const Names& culprits) {
    Refuse(
        config, std::string(ParamName(param)) + " " + Shape(dims), [&](PrologCall& call) { call[param].Reshape(dims); },
        kTiling, culprits);
  }
  static void AcceptShape(const Config& config, Param param, const std::vector<int64_t>& dims) {
    Accept(config, std::string(ParamName(param)) + " " + Shape(dims),
           [&](PrologCall& call) { call[param].Reshape(dims); });
  }
};

}  // namespace mlap::prolog_test

#endif  // MLAP_TESTS_MLA_PROLOG_CONTRACT_RULES_H_
