// Which device's limits and roundings a command follows.
#ifndef MLAP_TOOLS_SOC_CHOICE_H_
#define MLAP_TOOLS_SOC_CHOICE_H_

#include <mlaprolog/mlaprolog.h>

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace mlap::tools {

// --soc, which replaces MLAP_SOC.
CLI::Option* AddSocOption(CLI::App* verb, std::string* soc, const char* text);

// MLAP_SOC; empty if it is not set.
std::string SocVariable();

// Makes the operators follow `option` if it is not empty, else MLAP_SOC if it is set, else `otherwise` if it is not
// empty. To be called before the first use of the operators.
void ChooseSoc(const std::string& option, const std::string& otherwise);

// The roundings of the int8 scenarios on the device chosen, and on the one a case file names.
mlap_numeric_rules ChosenRules();
mlap_numeric_rules RulesOf(std::string_view soc);

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_SOC_CHOICE_H_
