// `mlaprolog run`
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>

#include "cann_case.h"
#include "commands.h"
#include "memory_budget.h"
#include "native_case.h"
#include "option_parsing.h"
#include "output_check.h"
#include "output_path.h"
#include "prolog_case.h"
#include "run_summary.h"
#include "soc_choice.h"

namespace mlap::tools {
namespace {

constexpr const char* kRunFooter =
    R"(The case comes from 'mlaprolog new-case', or from any program: a safetensors file with the
operator's arguments under their torch_npu names (token_x, weight_dq, ...) and the metadata cache_mode,
rmsnorm_epsilon_cq and rmsnorm_epsilon_ckv, and where they matter qc_qr_scale, kc_scale, query_norm_flag (true or false)
and soc. The tensors' types say which scenario it is; HiFloat8 and E8M0 are kept as U8. Weights of 4 dimensions are
FRACTAL_NZ, of 2 dimensions row-major. Tensors expected.query, expected.kv_cache, ..., where the file has them, are
compared with.

The case runs through the first of aclnnMlaProlog, aclnnMlaPrologV2WeightNz and aclnnMlaPrologV3WeightNz that has its
scenario, cache mode and outputs. The operator accepts what the device accepts: the one that --soc names, else MLAP_SOC,
else the case's own; none lifts the limits. The int8 scenarios follow the device's roundings, 8-bit floats those of
ascend950. --native takes the native interface instead, which has no limits and follows the roundings of --soc, else of
the case's device.

Accepted errors, as relative Frobenius norm and max, the largest difference over the root mean square (rms) of its row:
  query, query_rope, query_norm    2e-3, 2^-5
  bf16 caches                      1e-3, 2^-5
  8-bit outputs and caches         neighbouring values in at most 0.5 % of the elements
  scales                           1e-4 of each; powers of two none
  slots of no token                none

The file of --output is replaced if it exists.

Examples:
  mlaprolog new-case v3.safetensors --heads 8 --tokens 4
  mlaprolog run v3.safetensors --check -o results.safetensors
  mlaprolog run v3.safetensors --repeat 20 --version 3
  mlaprolog new-case tiny.safetensors --model tiny --scenario full-int8 --soc ascend950
  mlaprolog run tiny.safetensors --check --soc none
  mlaprolog run tiny.safetensors --check --native)";

struct RunOptions {
  std::string case_path;
  std::string output_path;
  std::string soc;
  bool check = false;
  int version = 0;
  bool is_native = false;
  int32_t device_id = 0;
  int num_runs = 1;
};

// The device's copies, the results, and the reference's binary64 copies of x and of the rows it computes.
double RunBytes(const CaseShape& shape, bool check) {
  const LayerDims& d = shape.dims;
  const auto tokens = static_cast<double>(shape.Tokens());
  double bytes = InputBytes(shape) + 3.0 * OutputBytes(shape);
  if (check) bytes += OutputBytes(shape) + 12.0 * tokens * static_cast<double>(d.hidden + d.q_rank + d.QueryColumns());
  return bytes;
}

struct RunResults {
  CaseOutputs outputs;
  mlap_numeric_rules rules;  // that the int8 scenarios followed
};

RunResults RunThroughCann(const RunOptions& options, const PrologCase& prolog_case) {
  ChooseSoc(options.soc, prolog_case.soc);
  CannSession session(options.device_id);
  CannCase device_case(&session, prolog_case, options.version);
  const RunSummary summary = RunRepeatedly(&device_case, options.num_runs, std::numeric_limits<double>::infinity());
  fmt::print("{}", FormatSummary(summary));
  return {device_case.Outputs(), ChosenRules()};
}

RunResults RunThroughNative(const RunOptions& options, const PrologCase& prolog_case) {
  const mlap_numeric_rules rules = RulesOf(options.soc.empty() ? prolog_case.soc : options.soc);
  const bool is_950 = rules == MLAP_RULES_950 || prolog_case.shape.scenario->HasFloat8();
  fmt::print("  ran      mlap_run, roundings of {}\n", is_950 ? "ascend950" : "ascend910b");
  return {NativeCase(prolog_case, rules).RunOperator(), rules};
}

// Whether the results differ from the expected ones because the devices' roundings do.
bool FollowOtherRules(const PrologCase& prolog_case, mlap_numeric_rules rules) {
  const Scenario& scenario = *prolog_case.shape.scenario;
  return scenario.QuantizesCq() && !scenario.HasFloat8() && RulesOf(prolog_case.soc) != rules;
}

bool PrintChecks(const PrologCase& prolog_case, const CaseOutputs& outputs, const CaseOutputs& reference,
                 std::string_view against) {
  const std::vector<OutputCheck> checks = CheckOutputs(prolog_case, outputs, reference);
  fmt::print("compared with {}\n{}", against, FormatChecks(checks));
  return AllAccepted(checks);
}

int Run(const RunOptions& options) {
  if (!options.output_path.empty()) {
    RequireOtherFile("--output", options.output_path, options.case_path);
    RequireWritable("--output", options.output_path);
  }
  const PrologCase prolog_case = LoadCase(options.case_path);
  RequireMemory(RunBytes(prolog_case.shape, options.check), prolog_case.name);
  fmt::print("{}\n  case     {}\n", prolog_case.name, DescribeShape(prolog_case.shape));
  const auto [outputs, rules] =
      options.is_native ? RunThroughNative(options, prolog_case) : RunThroughCann(options, prolog_case);
  if (!options.output_path.empty()) SaveTensors(options.output_path, outputs, prolog_case.metadata);

  bool is_accepted = true;
  bool is_compared = options.check;
  if (!prolog_case.expected.empty() && FollowOtherRules(prolog_case, rules)) {
    fmt::print("not compared with the file's expected tensors: they have the roundings of {}, this run has not\n",
               prolog_case.soc);
  } else if (!prolog_case.expected.empty()) {
    is_accepted = PrintChecks(prolog_case, outputs, prolog_case.expected, "the file's expected tensors");
    is_compared = true;
  }
  if (options.check) {
    is_accepted =
        PrintChecks(prolog_case, outputs, RunReferenceOnCase(prolog_case, rules), "the reference") && is_accepted;
  }
  if (is_compared) {
    fmt::print("{}\n", is_accepted ? "within the accepted error" : "BEYOND THE ACCEPTED ERROR");
  }
  return is_accepted ? kExitDone : kExitBeyondAcceptedError;
}

}  // namespace

void AddRunCommand(CLI::App* app, CommandAction* action) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* verb = app->add_subcommand("run", "Run a case through the operator");
  verb->footer(kRunFooter);
  verb->add_option("CASE", options->case_path, "The case, a .safetensors file")->type_name("FILE")->required();
  verb->add_option("-o,--output", options->output_path, "Write all outputs and both caches to this file")
      ->type_name("FILE");
  AddFlag(verb, "--check", &options->check, "Compare the results with the reference; exit 1 beyond the accepted error");
  CLI::Option* version = AddWholeNumber(
      verb, "--version", &options->version, 1, 3,
      "Of the operator: 1 aclnnMlaProlog, 2 ...V2WeightNz, 3 ...V3WeightNz; else the first that has the case");
  CLI::Option* native = AddFlag(verb, "--native", &options->is_native,
                                "Through mlap_run: without limits, with the case's roundings, once");
  AddSocOption(verb, &options->soc,
               "The device whose limits and roundings apply, instead of MLAP_SOC and the case's own");
  AddWholeNumber(verb, "--device-id", &options->device_id, 0, 0, "The device; there is one, number 0")
      ->capture_default_str();
  CLI::Option* repeat =
      AddWholeNumber(verb, "--repeat", &options->num_runs, 1, 1000000,
                     "Run so many times, report the median; the first run also touches memory and starts threads");
  repeat->capture_default_str();
  native->excludes(version)->excludes(repeat);
  verb->callback([options, action] { *action = [options] { return Run(*options); }; });
}

}  // namespace mlap::tools
