// mlaprolog: cases for the MLA prolog operator, and the operator on them.
#include <mlaprolog/mlaprolog.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "commands.h"
#include "option_parsing.h"
#include "safetensors_error.h"

namespace mlap::tools {
namespace {

constexpr const char* kDescription =
    "mlaprolog: the pre-processing of Multi-head Latent Attention (aclnnMlaProlog) on CPUs.";

constexpr const char* kFooter = R"(Examples:
  mlaprolog demo
  mlaprolog info
  mlaprolog new-case v3.safetensors --model deepseek-v3 --tokens 8 --scenario partial
  mlaprolog run v3.safetensors --check -o results.safetensors

Exit codes: 0 done, 1 a result beyond the accepted error or a device that would not accept it, 2 bad input or refused by
the operator.
'mlaprolog VERB --help' explains a verb; 'mlaprolog info' lists the environment variables.)";

int Complain(std::string_view text) {
  std::fflush(stdout);
  std::fprintf(stderr, "mlaprolog: %s\n", OneLine(text, 8192).c_str());
  return kExitRefused;
}

int Main(int argc, char** argv) {
  CLI::App app(kDescription, "mlaprolog");
  app.footer(kFooter);
  app.set_version_flag("--version", std::string("mlaprolog ") + mlap_version_string(), "Show the version and exit");
  app.require_subcommand(1);
  app.set_help_flag("-h,--help", "Show this text and exit");
  CommandAction action;
  AddDemoCommand(&app, &action);
  AddRunCommand(&app, &action);
  AddNewCaseCommand(&app, &action);
  AddGoldenCommand(&app, &action);
  AddCompareCommand(&app, &action);
  AddConvertCacheCommand(&app, &action);
  AddCheckLimitsCommand(&app, &action);
  AddInfoCommand(&app, &action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& request) {
    return app.exit(request);  // --help, --version
  } catch (const CLI::ParseError& error) {
    return Complain(DescribeParseError(app, error) + " (see --help)");
  }
  const int code = action();
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    return Complain("expected to write to the output, found an error");
  return code;
}

}  // namespace
}  // namespace mlap::tools

int main(int argc, char** argv) {
  using mlap::tools::Complain;
  try {
    return mlap::tools::Main(argc, argv);
  } catch (const std::bad_alloc&) {
    return Complain("there is not enough memory for this: choose smaller sizes");
  } catch (const std::exception& error) {
    return Complain(error.what());
  }
}
