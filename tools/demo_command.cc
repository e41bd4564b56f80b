// `mlaprolog demo`
#include <fmt/format.h>
#include <mlaprolog/mlaprolog.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cann_case.h"
#include "case_generator.h"
#include "case_options.h"
#include "commands.h"
#include "memory_budget.h"
#include "native_case.h"
#include "option_parsing.h"
#include "output_check.h"
#include "run_summary.h"
#include "soc_choice.h"
#include "text_format.h"

namespace mlap::tools {
namespace {

constexpr const char* kDemoFooter =
    R"(One layer of a model, one new token for each of several sequences, the latent caches in pages: in each of the
scenarios that A2 and A3 devices have through the operator's two steps, timed, and compared with the reference.

Examples:
  mlaprolog demo
  mlaprolog demo --heads 16 --sequences 32
  MLAP_MAX_ISA=scalar mlaprolog demo)";

constexpr int kNumRuns = 15;
constexpr double kMaxSecondsOfRuns = 3.0;

struct DemoOptions {
  std::string model = "deepseek-v3";
  int64_t heads = 0;
  int64_t sequences = 8;
};

struct DemoScenario {
  const char* title;
  const char* scenario;
  const char* cache_mode;
  bool smooth;
};

constexpr DemoScenario kScenarios[] = {
    {"bf16 weights and caches", "non-quant", "PA_BSND", false},
    {"int8 up-projection, query latent quantised per token", "partial", "PA_NZ", true},
    {"int8 up-projection and int8 caches", "partial-kv-int8", "PA_BSND", true},
    {"int8 up-projection, cache rows quantised in groups of 128", "partial-kv-per-group", "TND", false},
    {"int8 tokens and projections", "full-int8", "PA_BSND", false},
    {"int8 tokens, projections, key cache and query", "full-int8-kv-int8", "PA_NZ", true},
    {"int8 tokens and projections, cache rows quantised in groups of 128", "full-int8-kv-per-group", "PA_BSND", false},
};

struct DemoResult {
  std::string_view scenario;
  RunSummary summary;
  bool is_accepted = false;
};

// Runs, times and checks one scenario.
DemoResult ShowScenario(CannSession* session, CaseOptions options, const DemoScenario& shown) {
  options.scenario = shown.scenario;
  options.cache_mode = shown.cache_mode;
  options.smooth = shown.smooth;
  const CaseRecipe recipe = MakeRecipe(options);
  RequireMemory(3.0 * InputBytes(recipe.shape), "the demo");
  fmt::print("\n{}\n  case     {}\n", shown.title, DescribeShape(recipe.shape));
  std::fflush(stdout);
  const PrologCase prolog_case = GenerateCase(recipe);
  CannCase device_case(session, prolog_case);
  device_case.Run();  // touches the memory and starts the threads
  DemoResult result;
  result.scenario = recipe.shape.scenario->label;
  result.summary = RunRepeatedly(&device_case, kNumRuns, kMaxSecondsOfRuns);
  fmt::print("{}", FormatSummary(result.summary));
  std::fflush(stdout);
  const std::vector<OutputCheck> checks =
      CheckOutputs(prolog_case, device_case.Outputs(), RunReferenceOnCase(prolog_case, ChosenRules()));
  fmt::print("{}", FormatChecks(checks));
  std::fflush(stdout);
  result.is_accepted = AllAccepted(checks);
  return result;
}

void PrintResults(const std::vector<DemoResult>& results) {
  fmt::print("\n{:<24}{:<26}{:>10}{:>9}  {}\n", "scenario", "operator", "time", "GB/s", "against the reference");
  for (const DemoResult& result : results) {
    const RunSummary& summary = result.summary;
    fmt::print("{:<24}{:<26}{:>10}{:>9.1f}  {}\n", result.scenario, summary.report.op,
               FormatSeconds(summary.second_step), summary.report.weight_bytes / summary.second_step * 1e-9,
               result.is_accepted ? "ok" : "BEYOND THE ACCEPTED ERROR");
  }
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
  std::vector<DemoResult> results;
  for (const DemoScenario& shown : kScenarios) results.push_back(ShowScenario(&session, recipe, shown));
  PrintResults(results);
  const bool is_accepted =
      std::all_of(results.begin(), results.end(), [](const DemoResult& result) { return result.is_accepted; });
  fmt::print("\n{}\n", is_accepted ? "All results are within the accepted error of the reference."
                                   : "RESULTS ARE BEYOND THE ACCEPTED ERROR.");
  return is_accepted ? kExitDone : kExitBeyondAcceptedError;
}

}  // namespace

void AddDemoCommand(CLI::App* app, CommandAction* action) {
  auto options = std::make_shared<DemoOptions>();
  CLI::App* verb = app->add_subcommand("demo", "Run one layer of a model in every scenario, timed and checked");
  verb->footer(kDemoFooter);
  verb->add_option("--model", options->model, "One of those 'mlaprolog new-case --model list' shows")
      ->capture_default_str();
  AddWholeNumber(verb, "--heads", &options->heads, 1, int64_t{1} << 20, "Heads, instead of the model's (128)");
  AddWholeNumber(verb, "--sequences", &options->sequences, 1, int64_t{1} << 24, "Sequences that decode one token each")
      ->capture_default_str();
  verb->callback([options, action] { *action = [options] { return Demo(*options); }; });
}

}  // namespace mlap::tools
