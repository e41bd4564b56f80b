#include "option_parsing.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>
#include <vector>

#include "safetensors_error.h"

namespace mlap::tools {
namespace {

// An option's type as --help shows it: "NUMBER".
std::string TypeName(const CLI::App& app, const std::string& option) {
  for (const CLI::App* verb : app.get_subcommands()) {
    if (const CLI::Option* found = verb->get_option_no_throw(option)) return found->get_type_name();
  }
  return "value";
}

// What none of the options and arguments takes: the program's, then the verb's.
std::string DescribeUnknown(const CLI::App& app, const std::string& first) {
  if (first.size() > 1 && first.front() == '-') {
    return fmt::format("{}: no such option", OneLine(first.substr(0, first.find('='))));
  }
  if (!app.remaining(false).empty()) return fmt::format("{}: expected {}", OneLine(first), kVerbs);
  return fmt::format("{}: expected no further argument", OneLine(first));
}

}  // namespace

CLI::Validator WholeNumber(int64_t min, int64_t max) {
  const auto check = [min, max](const std::string& given) -> std::string {
    // Not CLI11's conversion, which takes what is too large for the largest number.
    int64_t number = 0;
    const char* end = given.data() + given.size();
    const auto [parsed, error] = std::from_chars(given.data(), end, number);
    if (error == std::errc() && parsed == end && number >= min && number <= max) return "";
    const std::string expected =
        min == max ? fmt::format("{}", min) : fmt::format("a whole number from {} to {}", min, max);
    return fmt::format("expected {}, found '{}'", expected, OneLine(given));
  };
  return CLI::Validator(check, "");
}

CLI::Validator RealNumber(double min, double max) {
  // CLI::Range takes a NaN for a number in range.
  const auto check = [min, max](const std::string& given) -> std::string {
    double number = 0.0;
    if (CLI::detail::lexical_cast(given, number) && number >= min && number <= max) return "";
    return fmt::format("expected a number from {:g} to {:g}, found '{}'", min, max, OneLine(given));
  };
  return CLI::Validator(check, "");
}

CLI::Option* AddNumber(CLI::App* verb, const char* flag, double* value, double min, double max, const char* text) {
  return verb->add_option(flag, *value, text)->check(RealNumber(min, max))->type_name("NUMBER");
}

CLI::Option* AddFlag(CLI::App* verb, const char* flag, bool* value, const char* text) {
  return verb->add_flag(flag, *value, text)->disable_flag_override();
}

std::string DescribeParseError(const CLI::App& app, const CLI::ParseError& error) {
  const auto code = static_cast<CLI::ExitCodes>(error.get_exit_code());
  std::string text = error.what();
  if (code == CLI::ExitCodes::RequiredError || code == CLI::ExitCodes::ExtrasError) {
    const std::vector<std::string> unknown = app.remaining(true);
    if (!unknown.empty()) return DescribeUnknown(app, unknown.front());
    if (app.get_subcommands().empty()) return fmt::format("expected a verb: {}", kVerbs);
  }
  // The library's texts begin with the option's name.
  const std::string option = text.substr(0, text.find_first_of(": "));
  if (code == CLI::ExitCodes::RequiredError) {
    return fmt::format("{}: expected a {}, found none", option, TypeName(app, option));
  }
  if (code == CLI::ExitCodes::ArgumentMismatch) {
    if (text.ends_with(" missing")) return fmt::format("{}: expected a {}, found none", option, TypeName(app, option));
    if (text.ends_with(" flag override")) return fmt::format("--{}: expected no value, found one", option);
    const size_t count = text.rfind(' ');
    return fmt::format("{}: expected once, found {} times", option, text.substr(count + 1));
  }
  return text;
}

}  // namespace mlap::tools
