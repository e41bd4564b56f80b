#include "tensor_comparison.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "native_tensor.h"
#include "safetensors_error.h"
#include "tool_error.h"

namespace mlap::tools {
namespace {

// Bytes that no number is known for are compared as numbers of their own.
mlap_tensor ComparableTensor(const TensorView& view) {
  if (NativeDtype(view.dtype).has_value()) return NativeTensor(view);
  TensorView bytes = view;
  bytes.dtype = Dtype::kI8;
  bytes.shape = {static_cast<int64_t>(view.num_bytes)};
  return NativeTensor(bytes);
}

// JSON has no infinities and NaN.
nlohmann::json Number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(fmt::format("{}", value));
}

}  // namespace

std::vector<std::string> StandardNames() {
  std::vector<std::string> names;
  mlap_standard standard;
  const char* name = nullptr;
  while (mlap_standard_at(names.size(), &standard, &name) == MLAP_OK) names.emplace_back(name);
  return names;
}

mlap_standard FindStandard(const std::string& name) {
  const std::vector<std::string> names = StandardNames();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    Fail("--standard: expected one of auto, {}, found '{}'", fmt::join(names, ", "), OneLine(name));
  }
  mlap_standard standard;
  const char* same = nullptr;
  mlap_standard_at(static_cast<size_t>(found - names.begin()), &standard, &same);
  return standard;
}

std::string DefaultStandard(Dtype dtype) {
  switch (dtype) {
    case Dtype::kI8:
    case Dtype::kI32:
    case Dtype::kI64:
      return "int-within-1";
    case Dtype::kBF16:
    case Dtype::kF16:
    case Dtype::kF32:
    case Dtype::kF8E4M3:
      return "mixed-tolerance";
    case Dtype::kF64:
      return "unrounded";
    default:
      return "exact";
  }
}

TensorComparison CompareTensors(const std::string& name, const TensorView& actual, const TensorView& golden,
                                const TensorView* benchmark, const std::string& standard) {
  TensorComparison result;
  result.name = name;
  result.standard = standard;
  const auto describe = [](const TensorView& view) {
    return fmt::format("{} {}", DtypeName(view.dtype), ShapeText(view.shape));
  };
  const bool is_exact = standard == "exact";
  for (const TensorView* view : {&actual, &golden, benchmark}) {
    if (view == nullptr || is_exact || NativeDtype(view->dtype).has_value()) continue;
    result.problem =
        fmt::format("{} takes numbers, found {}; --standard exact takes anything", standard, describe(*view));
  }
  if (actual.shape != golden.shape || (is_exact && actual.dtype != golden.dtype)) {
    result.problem = fmt::format("expected {}, found {}", describe(golden), describe(actual));
  }
  if (benchmark != nullptr && benchmark->shape != golden.shape) {
    result.problem = fmt::format("expected {} in the benchmark, found {}", describe(golden), describe(*benchmark));
  }
  if (!result.problem.empty()) return result;
  const mlap_tensor a = ComparableTensor(actual), g = ComparableTensor(golden);
  const mlap_tensor b = benchmark != nullptr ? ComparableTensor(*benchmark) : mlap_tensor{};
  result.numbers.struct_size = sizeof(result.numbers);
  const mlap_status status =
      mlap_compare(&a, &g, benchmark != nullptr ? &b : nullptr, FindStandard(standard), &result.numbers);
  if (status != MLAP_OK) result.problem = mlap_last_error();
  return result;
}

std::string FormatComparisons(const std::vector<TensorComparison>& comparisons) {
  size_t width = 6;
  for (const TensorComparison& comparison : comparisons) width = std::max(width, comparison.name.size());
  std::string text = fmt::format("  {:<{}}{:>12}{:>12}{:>11}{:>11}{:>11}{:>11}{:>11}  {}\n", "tensor", width,
                                 "elements", "different", "relF", "max/rms", "1-cosine", "MERE", "MARE", "verdict");
  for (const TensorComparison& comparison : comparisons) {
    const mlap_comparison& n = comparison.numbers;
    if (!comparison.problem.empty()) {
      text += fmt::format("  {:<{}}  NOT COMPARED: {}\n", comparison.name, width, comparison.problem);
      continue;
    }
    text += fmt::format("  {:<{}}{:>12}{:>12}{:>11.2e}{:>11.2e}{:>11.2e}{:>11.2e}{:>11.2e}  {}: {}\n", comparison.name,
                        width, n.num_elements, n.num_different, n.relative_norm, n.max_row_rms, 1.0 - n.cosine, n.mere,
                        n.mare, comparison.standard, comparison.IsPassed() ? "passed" : n.verdict);
  }
  return text;
}

nlohmann::json ToJson(const std::vector<TensorComparison>& comparisons) {
  nlohmann::json all = nlohmann::json::array();
  for (const TensorComparison& comparison : comparisons) {
    nlohmann::json one = {
        {"tensor", comparison.name}, {"standard", comparison.standard}, {"passed", comparison.IsPassed()}};
    if (!comparison.problem.empty()) {
      one["problem"] = comparison.problem;
    } else {
      const mlap_comparison& n = comparison.numbers;
      one["verdict"] = n.verdict;
      one["num_elements"] = n.num_elements;
      one["num_different"] = n.num_different;
      one["num_nonfinite_different"] = n.num_nonfinite_different;
      const std::pair<const char*, double> numbers[] = {{"relative_norm", n.relative_norm},
                                                        {"max_row_rms", n.max_row_rms},
                                                        {"cosine", n.cosine},
                                                        {"max_abs", n.max_abs},
                                                        {"mere", n.mere},
                                                        {"mare", n.mare},
                                                        {"rmse", n.rmse},
                                                        {"share_beyond", n.share_beyond}};
      for (const auto& [key, value] : numbers) one[key] = Number(value);
      if (comparison.standard.starts_with("dual-")) {
        const std::pair<const char*, double> ratios[] = {{"mare_ratio", n.mare_ratio},
                                                         {"mere_ratio", n.mere_ratio},
                                                         {"rmse_ratio", n.rmse_ratio},
                                                         {"small_value_ratio", n.small_value_ratio}};
        for (const auto& [key, value] : ratios) one[key] = Number(value);
      }
    }
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace mlap::tools
