// `mlaprolog demo`
#include <fmt/format.h>
#include <mlaprolog/mlaprolog.h>

#include <cstdio>
#include <memory>
#include <string>

#include "cann_case.h"
#include "case_generator.h"
#include "case_options.h"
#include "commands.h"
#include "memory_budget.h"
#include "native_case.h"
#include "option_parsing.h"
#include "output_check.h"
#include "run_summary.h"
#include "text_format.h"

namespace mlap::tools {
namespace {

constexpr const char* kFooter =
    R"(One layer of a model, one new token for each of several sequences, the latent caches in pages: in each of
the operator's three scenarios through its two steps, timed, and compared with the reference.

Examples:
  mlaprolog demo
  mlaprolog demo --heads 16 --sequences 32
  MLAP_MAX_ISA=scalar mlaprolog demo)";

constexpr int kNumRuns = 15;
constexpr double kMaxSecondsOfRuns = 4.0;

struct DemoOptions {
  std::string model = "deepseek-v3";
  int64_t heads = 0;
  int64_t sequences = 8;
};

// Runs, times and checks one scenario; returns whether its results are accepted.
bool ShowScenario(CannSession* session, const CaseOptions& options, std::string_view title) {
  const CaseRecipe recipe = MakeRecipe(options);
  RequireMemory(3.0 * InputBytes(recipe.shape), "the demo");
  fmt::print("\n{}\n  case     {}\n", title, DescribeShape(recipe.shape));
  std::fflush(stdout);
  const PrologCase prolog_case = GenerateCase(recipe);
  CannCase device_case(session, prolog_case);
  device_case.Run();  // touches the memory and starts the threads
  const RunSummary summary = RunRepeatedly(&device_case, kNumRuns, kMaxSecondsOfRuns);
  fmt::print("{}", FormatSummary(summary));
  std::fflush(stdout);
  const std::vector<OutputCheck> checks =
      CheckOutputs(prolog_case, device_case.Outputs(), RunReferenceOnCase(prolog_case));
  fmt::print("{}", FormatChecks(checks));
  std::fflush(stdout);
  return AllAccepted(checks);
}

int Demo(const DemoOptions& options) {
  CaseOptions recipe;
  recipe.model = options.model;
  recipe.heads = options.heads;
  recipe.tokens = options.sequences;
  CannSession session(0);
  fmt::print("mlaprolog {} on {}\none layer of {}, decoding one token of {}{}\n", mlap_version_string(),
             mlap_cpu_name(), options.model, options.sequences == 1 ? "" : "each of ",
             Counted(options.sequences, "sequence"));
  bool is_accepted = ShowScenario(&session, recipe, "bf16 weights and caches");
  recipe.scenario = "partial";
  recipe.smooth = true;
  recipe.cache_mode = "PA_NZ";
  is_accepted = ShowScenario(&session, recipe, "int8 up-projection, query latent quantised per token") && is_accepted;
  recipe.scenario = "partial-kv-int8";
  recipe.cache_mode = "PA_BSND";
  is_accepted = ShowScenario(&session, recipe, "int8 up-projection and int8 caches") && is_accepted;
  fmt::print("\n{}\n", is_accepted ? "All results are within the accepted error of the reference."
                                   : "RESULTS ARE BEYOND THE ACCEPTED ERROR.");
  return is_accepted ? kExitDone : kExitBeyondAcceptedError;
}

}  // namespace

void AddDemoCommand(CLI::App* app, CommandAction* action) {
  auto options = std::make_shared<DemoOptions>();
  CLI::App* verb = app->add_subcommand("demo", "Run one layer of a model in every scenario, timed and checked");
  verb->footer(kFooter);
  verb->add_option("--model", options->model, "One of those 'mlaprolog new-case --model list' shows")
      ->capture_default_str();
  AddWholeNumber(verb, "--heads", &options->heads, 1, int64_t{1} << 20, "Heads, instead of the model's (128)");
  AddWholeNumber(verb, "--sequences", &options->sequences, 1, int64_t{1} << 24, "Sequences that decode one token each")
      ->capture_default_str();
  verb->callback([options, action] { *action = [options] { return Demo(*options); }; });
}

}  // namespace mlap::tools
