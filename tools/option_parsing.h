// Options whose refusals read like all others: "<option>: expected ..., found ...".
#ifndef MLAP_TOOLS_OPTION_PARSING_H_
#define MLAP_TOOLS_OPTION_PARSING_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

namespace mlap::tools {

inline constexpr const char* kVerbs = "demo, run, new-case, golden, compare, convert-cache, check-limits or info";

// Refuses what is not a whole number, or a number, from `min` to `max`.
CLI::Validator WholeNumber(int64_t min, int64_t max);
CLI::Validator RealNumber(double min, double max);

template <typename Integer>
CLI::Option* AddWholeNumber(CLI::App* verb, const char* flag, Integer* value, int64_t min, int64_t max,
                            const char* text) {
  return verb->add_option(flag, *value, text)->check(WholeNumber(min, max))->type_name("NUMBER");
}

CLI::Option* AddNumber(CLI::App* verb, const char* flag, double* value, double min, double max, const char* text);

// A flag, which takes no value.
CLI::Option* AddFlag(CLI::App* verb, const char* flag, bool* value, const char* text);

// The text for what app.parse() threw. Unknown verbs and options come before missing ones.
std::string DescribeParseError(const CLI::App& app, const CLI::ParseError& error);

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_OPTION_PARSING_H_
