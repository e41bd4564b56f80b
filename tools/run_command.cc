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

namespace mlap::tools {
namespace {

constexpr const char* kFooter =
    R"(The case comes from 'mlaprolog new-case', or from any program: a safetensors file with the
operator's arguments under their torch_npu names (token_x, weight_dq, ...) and the metadata cache_mode (PA_BSND or PA_NZ),
rmsnorm_epsilon_cq and rmsnorm_epsilon_ckv. Weights of 4 dimensions are FRACTAL_NZ, of 2 dimensions row-major. Tensors
expected.query, expected.query_rope, expected.kv_cache and expected.kr_cache, where the file has them, are compared with.

The operator accepts what the device named by MLAP_SOC accepts; MLAP_SOC=none lifts the limits.

Accepted errors, as relative Frobenius norm and max, the largest difference over the root mean square (rms) of its row:
  query, query_rope    2e-3, 2^-5
  bf16 caches          1e-3, 2^-5
  int8 caches          1 in at most 0.5 % of the elements
  slots of no token    none

Examples:
  mlaprolog run v3.safetensors --check
  MLAP_SOC=none mlaprolog run tests/golden/cases/nq_tiny.safetensors --check
  mlaprolog run v3.safetensors --repeat 20)";

struct RunOptions {
  std::string case_path;
  std::string output_path;
  bool check = false;
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
  CannSession session(options.device_id);
  CannCase device_case(&session, prolog_case);
  const RunSummary summary = RunRepeatedly(&device_case, options.num_runs, std::numeric_limits<double>::infinity());
  const CaseOutputs outputs = device_case.Outputs();
  fmt::print("{}", FormatSummary(summary));
  if (!options.output_path.empty()) SaveTensors(options.output_path, outputs, prolog_case.metadata);

  bool is_accepted = true;
  if (!prolog_case.expected.empty()) {
    is_accepted = PrintChecks(prolog_case, outputs, prolog_case.expected, "the file's expected tensors");
  }
  if (options.check) {
    is_accepted = PrintChecks(prolog_case, outputs, RunReferenceOnCase(prolog_case), "the reference") && is_accepted;
  }
  if (options.check || !prolog_case.expected.empty()) {
    fmt::print("{}\n", is_accepted ? "within the accepted error" : "BEYOND THE ACCEPTED ERROR");
  }
  return is_accepted ? kExitDone : kExitBeyondAcceptedError;
}

}  // namespace

void AddRunCommand(CLI::App* app, CommandAction* action) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* verb = app->add_subcommand("run", "Run a case through aclnnMlaProlog");
  verb->footer(kFooter);
  verb->add_option("CASE", options->case_path, "The case, a .safetensors file")->type_name("FILE")->required();
  verb->add_option("-o,--output", options->output_path, "Write query, query_rope, kv_cache and kr_cache to this file")
      ->type_name("FILE");
  AddFlag(verb, "--check", &options->check, "Compare the results with the reference; exit 1 beyond the accepted error");
  AddWholeNumber(verb, "--device-id", &options->device_id, 0, 0, "The device; there is one, number 0")
      ->capture_default_str();
  AddWholeNumber(verb, "--repeat", &options->num_runs, 1, 1000000,
                 "Run so many times, report the median; the first run also touches memory and starts threads")
      ->capture_default_str();
  verb->callback([options, action] { *action = [options] { return Run(*options); }; });
}

}  // namespace mlap::tools
