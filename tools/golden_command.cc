// `mlaprolog golden`
#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "case_slots.h"
#include "commands.h"
#include "memory_budget.h"
#include "native_case.h"
#include "option_parsing.h"
#include "output_check.h"
#include "output_path.h"
#include "prolog_case.h"
#include "soc_choice.h"
#include "tensor_comparison.h"

namespace mlap::tools {
namespace {

constexpr const char* kGoldenFooter =
    R"(Writes the case with what is expected of an implementation:
  expected.*        results of the staged reference: binary64 sums, the operator's roundings; and what it computes on
                    the way: c_q, q_c, q_r, c_kv, k_r, and with an int8 weight c_q_int8 and c_q_scale
  expected.exact.*  the formula without any rounding, in F64: query, query_rope, and the keys' rows c_kv and k_r
and prints how far the operator is from both, and the reference from the exact formula. What is quantised to 8 bits is
compared with the staged reference only, and so is what follows from a query latent in 8-bit floats. The int8 scenarios
have the roundings of the case's soc. The file of --output is replaced if it exists.

Examples:
  mlaprolog new-case v3.safetensors --heads 8 --tokens 4
  mlaprolog golden v3.safetensors -o golden.safetensors
  mlaprolog run v3.safetensors -o mine.safetensors
  mlaprolog compare mine.safetensors golden.safetensors --tensor query --standard staged)";

struct GoldenOptions {
  std::string case_path;
  std::string output_path;
  bool json = false;
};

// The rows of a bf16 cache that the tokens were written to, for each token that still has its own; and those rows of
// the exact key.
struct KeyRows {
  CaseTensor cache_rows;
  CaseTensor exact_rows;
};

KeyRows RowsOfTokens(const PrologCase& prolog_case, const CaseTensor& cache, const CaseTensor& exact) {
  const CaseShape& shape = prolog_case.shape;
  const int64_t width = cache.view.shape.back();
  const std::vector<int64_t> slots = SlotsOfTokens(prolog_case);
  std::map<int64_t, int64_t> last_token;  // by slot
  for (int64_t t = 0; t < shape.Tokens(); ++t) {
    const int64_t slot = slots[static_cast<size_t>(t)];
    if (slot != kNoSlot) last_token[slot] = t;
  }
  const auto count = static_cast<int64_t>(last_token.size());
  std::byte* cache_bytes = nullptr;
  std::byte* exact_bytes = nullptr;
  KeyRows rows = {NewTensor(cache.view.dtype, {count, width}, &cache_bytes),
                  NewTensor(Dtype::kF64, {count, width}, &exact_bytes)};
  const size_t element = DtypeBytes(cache.view.dtype);
  for (const auto& [slot, token] : last_token) {
    for (int64_t d = 0; d < width; ++d) {
      std::memcpy(cache_bytes,
                  cache.view.bytes + static_cast<size_t>(CacheOffset(shape, MLAP_BF16, width, slot, d)) * element,
                  element);
      cache_bytes += element;
    }
    const size_t row_bytes = static_cast<size_t>(width) * sizeof(double);
    std::memcpy(exact_bytes, exact.view.bytes + static_cast<size_t>(token) * row_bytes, row_bytes);
    exact_bytes += row_bytes;
  }
  return rows;
}

// Against the exact formula; caches by the rows of their tokens.
std::vector<TensorComparison> CompareWithExact(const PrologCase& prolog_case, const CaseOutputs& outputs,
                                               const TensorMap& exact) {
  std::vector<TensorComparison> comparisons;
  const Scenario& scenario = *prolog_case.shape.scenario;
  for (const std::string name : {"query", "query_rope"}) {
    if (scenario.IsPerTensor() || scenario.HasFloat8()) break;
    TensorView flat = outputs.at(name).view;
    flat.shape = exact.at(name).view.shape;  // (B, S) or (T) tokens
    comparisons.push_back(CompareTensors(name, flat, exact.at(name).view, nullptr, "unrounded"));
  }
  for (const auto& [cache, key] : {std::pair{"kv_cache", "c_kv"}, std::pair{"kr_cache", "k_r"}}) {
    const TensorView& view = outputs.at(cache).view;
    if (view.dtype != Dtype::kBF16 || view.shape.size() == 1) continue;
    const KeyRows rows = RowsOfTokens(prolog_case, outputs.at(cache), exact.at(key));
    comparisons.push_back(CompareTensors(cache, rows.cache_rows.view, rows.exact_rows.view, nullptr, "unrounded"));
  }
  return comparisons;
}

// By the standard of each tensor's type. Merged rows and 8-bit floats have none: CheckOutputs judges them.
std::vector<TensorComparison> CompareWithStaged(const PrologCase& prolog_case, const CaseOutputs& outputs,
                                                const CaseOutputs& staged) {
  std::vector<TensorComparison> comparisons;
  for (const TensorSpec& spec : ResultSpecs(prolog_case.shape)) {
    const bool is_cache = IsCacheName(spec.name);
    const char* standard = nullptr;
    if (spec.dtype == MLAP_INT8) standard = "int-within-1";
    if (spec.dtype == MLAP_BF16) standard = is_cache ? "staged-cache" : "staged";
    if (spec.dtype == MLAP_FLOAT32) standard = "scales";
    if (standard == nullptr || (is_cache && prolog_case.shape.scenario->IsPerGroup())) continue;
    comparisons.push_back(
        CompareTensors(spec.name, outputs.at(spec.name).view, staged.at(spec.name).view, nullptr, standard));
  }
  return comparisons;
}

int Golden(const GoldenOptions& options) {
  if (!options.output_path.empty()) {
    RequireOtherFile("--output", options.output_path, options.case_path);
    RequireWritable("--output", options.output_path);
  }
  PrologCase prolog_case = LoadCase(options.case_path);
  const LayerDims& d = prolog_case.shape.dims;
  const auto tokens = static_cast<double>(prolog_case.shape.Tokens());
  // The results three times, and the reference's and the formula's rows in binary32 and binary64.
  RequireMemory(InputBytes(prolog_case.shape) + 3.0 * OutputBytes(prolog_case.shape) +
                    24.0 * tokens * static_cast<double>(d.hidden + d.q_rank + d.QueryColumns() + d.heads * d.kv_rank),
                prolog_case.name);
  const NativeCase native(prolog_case, RulesOf(prolog_case.soc));
  TensorMap intermediates;
  const CaseOutputs staged = native.RunReference(&intermediates);
  const TensorMap exact = native.RunExact();
  const CaseOutputs outputs = native.RunOperator();

  struct Report {
    const char* title;
    const char* key;
    std::vector<TensorComparison> comparisons;
  };
  const Report reports[] = {
      {"the operator and the staged reference", "operator_staged", CompareWithStaged(prolog_case, outputs, staged)},
      {"the operator and the exact formula", "operator_exact", CompareWithExact(prolog_case, outputs, exact)},
      {"the staged reference and the exact formula", "staged_exact", CompareWithExact(prolog_case, staged, exact)},
  };
  bool is_passed = AllAccepted(CheckOutputs(prolog_case, outputs, staged));
  nlohmann::json json = {{"case", options.case_path}};
  if (!options.json) fmt::print("{}\n  case     {}\n", prolog_case.name, DescribeShape(prolog_case.shape));
  for (const Report& report : reports) {
    for (const TensorComparison& comparison : report.comparisons) is_passed = is_passed && comparison.IsPassed();
    if (options.json) {
      json[report.key] = ToJson(report.comparisons);
    } else {
      fmt::print("{}\n{}", report.title, FormatComparisons(report.comparisons));
    }
  }
  json["passed"] = is_passed;
  if (options.json) {
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("{}\n", is_passed ? "within the accepted error" : "BEYOND THE ACCEPTED ERROR");
  }

  if (!options.output_path.empty()) {
    TensorMap all = prolog_case.inputs;
    for (const auto& [name, tensor] : staged) all["expected." + name] = tensor;
    for (const auto& [name, tensor] : intermediates) all["expected." + name] = tensor;
    for (const auto& [name, tensor] : exact) all["expected.exact." + name] = tensor;
    SaveTensors(options.output_path, all, prolog_case.metadata);
  }
  return is_passed ? kExitDone : kExitBeyondAcceptedError;
}

}  // namespace

void AddGoldenCommand(CLI::App* app, CommandAction* action) {
  auto options = std::make_shared<GoldenOptions>();
  CLI::App* verb = app->add_subcommand("golden", "Write a case with results, intermediates and exact values");
  verb->footer(kGoldenFooter);
  verb->add_option("CASE", options->case_path, "The case, a .safetensors file")->type_name("FILE")->required();
  verb->add_option("-o,--output", options->output_path, "Write everything to this file")->type_name("FILE");
  AddFlag(verb, "--json", &options->json, "Print JSON");
  verb->callback([options, action] { *action = [options] { return Golden(*options); }; });
}

}  // namespace mlap::tools
