// `mlaprolog compare`
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands.h"
#include "native_tensor.h"
#include "option_parsing.h"
#include "prolog_case.h"
#include "safetensors_error.h"
#include "tensor_comparison.h"
#include "tool_error.h"

namespace mlap::tools {
namespace {

constexpr const char* kCompareFooter =
    R"(Compares A with B tensor by tensor, those of one name. Where a file has tensors expected.X, as 'golden' writes, these
are its results X, and whatever else it has are inputs, which are not compared. Else all its tensors are its results.

A must have all results of B. Of a B with expected.* it must have the operator's outputs: query, query_rope, kv_cache,
kr_cache, dequant_scale_q_nope, query_norm, dequant_scale_q_norm. Others (c_q, exact.query, ...) are compared if A has
them. --tensor X, or --tensor expected.X, takes X only, which both must have.

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
  auto               int-within-1 for integers, mixed-tolerance for floats, exact for anything else; the parts of
                     per-group rows each by its type

Exit codes: 0 all passed, 1 one did not pass or is missing, 2 bad input.

Examples:
  mlaprolog new-case case.safetensors --heads 8 --tokens 4
  mlaprolog run case.safetensors -o results.safetensors
  mlaprolog golden case.safetensors -o golden.safetensors
  mlaprolog compare results.safetensors golden.safetensors
  mlaprolog compare results.safetensors golden.safetensors --tensor query --standard staged
  mlaprolog compare results.safetensors golden.safetensors --tensor query --standard dual-l1 --benchmark results.safetensors)";

struct CompareOptions {
  std::string actual_path;
  std::string golden_path;
  std::string benchmark_path;
  std::string standard = "auto";
  std::vector<std::string> tensors;
  bool json = false;
};

constexpr std::string_view kExpected = "expected.";

// What the operator gives. A result of another name is something it computes on the way, or an exact value.
constexpr std::string_view kOperatorOutputs[] = {
    "query", "query_rope", "kv_cache", "kr_cache", "dequant_scale_q_nope", "query_norm", "dequant_scale_q_norm"};

// A file's results by the names without "expected.".
class Results {
 public:
  explicit Results(const LoadedFile& file) : file_(file) {
    has_expected_ = std::any_of(file.tensors().begin(), file.tensors().end(),
                                [](const auto& tensor) { return tensor.first.starts_with(kExpected); });
  }

  bool HasExpected() const { return has_expected_; }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& [name, view] : file_.tensors()) {
      if (!has_expected_) names.push_back(name);
      if (has_expected_ && name.starts_with(kExpected)) names.push_back(name.substr(kExpected.size()));
    }
    return names;
  }

  // As messages say it.
  std::string NameInFile(const std::string& name) const {
    return has_expected_ ? fmt::format("{}{}", kExpected, name) : name;
  }

  const TensorView* Find(const std::string& name) const { return file_.Find(NameInFile(name)); }

 private:
  const LoadedFile& file_;
  bool has_expected_ = false;
};

// The results of `golden` to compare, those that --tensor names or all that `actual` must have or has.
std::vector<std::string> NamesToCompare(const CompareOptions& options, const Results& actual, const Results& golden) {
  std::vector<std::string> names;
  for (const std::string& given : options.tensors) {
    const std::string name = given.starts_with(kExpected) ? given.substr(kExpected.size()) : given;
    if (golden.Find(name) == nullptr) {
      Fail("--tensor: expected a result of {}, found '{}'; it has no tensor {}", options.golden_path, OneLine(given),
           OneLine(golden.NameInFile(name)));
    }
    names.push_back(name);
  }
  if (!names.empty()) return names;
  for (const std::string& name : golden.Names()) {
    const bool is_output =
        std::find(std::begin(kOperatorOutputs), std::end(kOperatorOutputs), name) != std::end(kOperatorOutputs);
    if (!golden.HasExpected() || is_output || actual.Find(name) != nullptr) names.push_back(name);
  }
  if (names.empty()) {
    Fail("{}: expected tensors to compare {} with, found none", options.golden_path, options.actual_path);
  }
  return names;
}

// The sizes of a per-group cache's rows, as the metadata of cases and results say; none where they do not.
struct RowSizes {
  int64_t kv_rank = 0;
  int64_t rope = 0;
};

std::optional<RowSizes> MergedRows(const LoadedFile& file, const TensorView& view) {
  const auto value = [&file](std::string_view key) -> int64_t {
    const auto found = file.metadata().find(key);
    if (found == file.metadata().end()) return 0;
    const std::string& text = found->second;
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    constexpr int64_t kMax = int64_t{1} << 28;
    return error == std::errc() && end == text.data() + text.size() && number > 0 && number <= kMax ? number : 0;
  };
  const RowSizes sizes = {value("kv_rank"), value("rope")};
  const bool is_merged = value("kv_cache_quant_mode") == MLAP_KV_PER_GROUP && sizes.kv_rank > 0 && sizes.rope > 0 &&
                         NativeDtype(view.dtype).has_value() && DtypeBytes(view.dtype) == 1 && !view.shape.empty() &&
                         view.shape.back() == sizes.kv_rank + 2 * sizes.rope + 4 * CeilDiv(sizes.kv_rank, 128);
  return is_merged ? std::optional(sizes) : std::nullopt;
}

// Rows of CANN's order taken apart, for each part has a type of its own.
std::vector<std::pair<const char*, CaseTensor>> RowParts(const TensorView& rows, const RowSizes& sizes) {
  const auto part = [&rows](Dtype dtype, int64_t width) {
    std::vector<int64_t> shape = rows.shape;
    shape.back() = width;
    std::byte* bytes = nullptr;
    return NewTensor(dtype, std::move(shape), &bytes);
  };
  std::vector<std::pair<const char*, CaseTensor>> parts = {{".values", part(rows.dtype, sizes.kv_rank)},
                                                           {".rope", part(Dtype::kBF16, sizes.rope)},
                                                           {".scales", part(Dtype::kF32, CeilDiv(sizes.kv_rank, 128))}};
  const mlap_tensor in = NativeTensor(rows), values = NativeTensor(parts[0].second.view),
                    rope = NativeTensor(parts[1].second.view), scales = NativeTensor(parts[2].second.view);
  if (mlap_cache_rows_split(&in, MLAP_ROW_CANN, &values, &rope, &scales) != MLAP_OK) Fail("{}", mlap_last_error());
  return parts;
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

  const Results results(actual), expected_results(golden);
  std::optional<Results> others;
  if (is_dual) others.emplace(*benchmark);
  std::vector<TensorComparison> comparisons;
  for (const std::string& name : NamesToCompare(options, results, expected_results)) {
    const TensorView& expected = *expected_results.Find(name);
    const std::string standard = options.standard == "auto" ? DefaultStandard(expected.dtype) : options.standard;
    const TensorView* found = results.Find(name);
    const TensorView* other = is_dual ? others->Find(name) : nullptr;
    if (found == nullptr || (is_dual && other == nullptr)) {
      TensorComparison missing;
      missing.name = name;
      missing.standard = standard;
      const Results& lacking = found == nullptr ? results : *others;
      missing.problem = fmt::format("{} has no such tensor{}", found == nullptr ? actual.name() : benchmark->name(),
                                    lacking.HasExpected() ? " " + lacking.NameInFile(name) : "");
      comparisons.push_back(missing);
      continue;
    }
    const std::optional<RowSizes> rows = name == "kv_cache" ? MergedRows(golden, expected) : std::nullopt;
    if (options.standard == "auto" && rows.has_value() && found->shape == expected.shape &&
        found->dtype == expected.dtype) {
      const auto parts = RowParts(*found, *rows), expected_parts = RowParts(expected, *rows);
      for (size_t i = 0; i < parts.size(); ++i) {
        const TensorView& golden_part = expected_parts[i].second.view;
        comparisons.push_back(CompareTensors(name + parts[i].first, parts[i].second.view, golden_part, nullptr,
                                             DefaultStandard(golden_part.dtype)));
      }
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
  verb->footer(kCompareFooter);
  verb->add_option("A", options->actual_path, "The results, a .safetensors file")->type_name("FILE")->required();
  verb->add_option("B", options->golden_path, "What to compare with")->type_name("FILE")->required();
  verb->add_option("--standard", options->standard, "The standard, for all tensors")->capture_default_str();
  verb->add_option("--benchmark", options->benchmark_path, "Another implementation's results, for dual-*")
      ->type_name("FILE");
  verb->add_option("--tensor", options->tensors, "Compare this result only; may be given again")->type_name("NAME");
  AddFlag(verb, "--json", &options->json, "Print JSON");
  verb->callback([options, action] { *action = [options] { return Compare(*options); }; });
}

}  // namespace mlap::tools
