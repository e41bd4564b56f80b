#include "soc_choice.h"

#include <fmt/format.h>

#include <cstdlib>

#include "cann_session.h"
#include "case_scenario.h"
#include "safetensors_error.h"

namespace mlap::tools {

CLI::Option* AddSocOption(CLI::App* verb, std::string* soc, const char* text) {
  const auto check = [](const std::string& given) -> std::string {
    return IsSocName(given) ? "" : fmt::format("expected {}, found '{}'", kSocChoices, OneLine(given));
  };
  return verb->add_option("--soc", *soc, text)->check(CLI::Validator(check, ""))->type_name("NAME");
}

std::string SocVariable() {
  const char* const variable = std::getenv("MLAP_SOC");
  return variable != nullptr ? variable : "";
}

void ChooseSoc(const std::string& option, const std::string& otherwise) {
  const std::string& chosen = !option.empty() || !SocVariable().empty() ? option : otherwise;
  if (!chosen.empty()) setenv("MLAP_SOC", chosen.c_str(), 1);
}

mlap_numeric_rules ChosenRules() {
  return CannSession::SocName().starts_with("Ascend950") ? MLAP_RULES_950 : MLAP_RULES_A2;
}

mlap_numeric_rules RulesOf(std::string_view soc) { return soc == "ascend950" ? MLAP_RULES_950 : MLAP_RULES_A2; }

}  // namespace mlap::tools
