// `mlaprolog compare`
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands.h"
#include "option_parsing.h"
#include "safetensors_error.h"
#include "tensor_comparison.h"
#include "tool_error.h"

namespace mlap::tools {
namespace {

constexpr const char* kFooter =
    R"(Compares the tensors that B has, or those named by --tensor, with A's of the same names. A tensor expected.X of B is
compared with X of A, unless A has an expected.X, too.

Standards (docs/comparison.md):
  exact              the same bytes
  int-within-1       integers: differences of at most 1, in at most 0.5 % of the elements
  staged             against the reference: relative norm 2e-3, largest error 2^-5 of its row's RMS
  staged-cache       the same with 1e-3
  unrounded          against the exact formula: 1e-2 and 2^-4
  scales             relative error 1e-4
  mixed-tolerance    99 % of the elements within atol + rtol of their type
  mere-mare          mean and largest relative error
  half-percent       at most 0.5 % of the elements beyond the tolerance
  dual-l0, -l1, -l2  errors as ratios to those of --benchmark
  auto               int-within-1 for integers, mixed-tolerance for floats, exact for anything else

Exit codes: 0 all passed, 1 one did not pass or is missing, 2 bad input.

Examples:
  mlaprolog compare results.safetensors golden.safetensors
  mlaprolog compare a.safetensors b.safetensors --standard dual-l1 --benchmark c.safetensors --json)";

struct CompareOptions {
  std::string actual_path;
  std::string golden_path;
  std::string benchmark_path;
  std::string standard = "auto";
  std::vector<std::string> tensors;
  bool json = false;
};

// The tensor, or the one that it is the expectation of.
const TensorView* FindCounterpart(const LoadedFile& file, const std::string& name) {
  constexpr std::string_view kExpected = "expected.";
  if (const TensorView* found = file.Find(name)) return found;
  return name.starts_with(kExpected) ? file.Find(std::string_view(name).substr(kExpected.size())) : nullptr;
}

int Compare(const CompareOptions& options) {
  if (options.standard != "auto") FindStandard(options.standard);
  const bool is_dual = options.standard.starts_with("dual-");
  if (is_dual && options.benchmark_path.empty()) {
    Fail("--benchmark: expected a file with --standard {}, found none", options.standard);
  }
  if (!is_dual && !options.benchmark_path.empty()) {
    Fail("--benchmark: expected with --standard dual-l0, dual-l1 or dual-l2, found with {}", options.standard);
  }
  const LoadedFile actual = LoadedFile::Open(options.actual_path);
  const LoadedFile golden = LoadedFile::Open(options.golden_path);
  std::optional<LoadedFile> benchmark;
  if (is_dual) benchmark = LoadedFile::Open(options.benchmark_path);

  std::vector<std::string> names = options.tensors;
  if (names.empty()) {
    for (const auto& [name, view] : golden.tensors()) names.push_back(name);
  }
  if (names.empty()) Fail("{}: expected tensors to compare with, found none", golden.name());
  std::vector<TensorComparison> comparisons;
  for (const std::string& name : names) {
    const TensorView& expected = golden.Tensor(name);
    const std::string standard = options.standard == "auto" ? DefaultStandard(expected.dtype) : options.standard;
    const TensorView* found = FindCounterpart(actual, name);
    const TensorView* other = benchmark.has_value() ? FindCounterpart(*benchmark, name) : nullptr;
    if (found == nullptr || (benchmark.has_value() && other == nullptr)) {
      TensorComparison missing;
      missing.name = name;
      missing.standard = standard;
      missing.problem = fmt::format("{} has no such tensor", found == nullptr ? actual.name() : benchmark->name());
      comparisons.push_back(missing);
      continue;
    }
    comparisons.push_back(CompareTensors(name, *found, expected, other, standard));
  }
  const bool is_passed = std::all_of(comparisons.begin(), comparisons.end(),
                                     [](const TensorComparison& comparison) { return comparison.IsPassed(); });
  if (options.json) {
    const nlohmann::json report = {{"actual", options.actual_path},
                                   {"golden", options.golden_path},
                                   {"passed", is_passed},
                                   {"tensors", ToJson(comparisons)}};
    fmt::print("{}\n", report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("{}{}\n", FormatComparisons(comparisons), is_passed ? "passed" : "NOT PASSED");
  }
  return is_passed ? kExitDone : kExitBeyondAcceptedError;
}

}  // namespace

void AddCompareCommand(CLI::App* app, CommandAction* action) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* verb = app->add_subcommand("compare", "Compare the tensors of two files by a named standard");
  verb->footer(kFooter);
  verb->add_option("A", options->actual_path, "The results, a .safetensors file")->type_name("FILE")->required();
  verb->add_option("B", options->golden_path, "What to compare with")->type_name("FILE")->required();
  verb->add_option("--standard", options->standard, "The standard, for all tensors")->capture_default_str();
  verb->add_option("--benchmark", options->benchmark_path, "Another implementation's results, for dual-*")
      ->type_name("FILE");
  verb->add_option("--tensor", options->tensors, "Compare this tensor only; may be given again")->type_name("NAME");
  AddFlag(verb, "--json", &options->json, "Print JSON");
  verb->callback([options, action] { *action = [options] { return Compare(*options); }; });
}

}  // namespace mlap::tools
