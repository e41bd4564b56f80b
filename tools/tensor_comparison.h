// Comparisons of tensors by a named standard, as a table and as JSON.
#ifndef MLAP_TOOLS_TENSOR_COMPARISON_H_
#define MLAP_TOOLS_TENSOR_COMPARISON_H_

#include <mlaprolog/mlaprolog.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "safetensors_file.h"

namespace mlap::tools {

struct TensorComparison {
  std::string name;
  std::string standard;
  std::string problem;  // why nothing could be compared; empty otherwise
  mlap_comparison numbers = {};

  bool IsPassed() const { return problem.empty() && numbers.is_passed != 0; }
};

// The names of all standards, for messages.
std::vector<std::string> StandardNames();

// The standard of a name; throws ToolError with the names there are.
mlap_standard FindStandard(const std::string& name);

// The standard for a type where none is asked for: integers within 1, floats by the mixed tolerance, bytes exactly.
std::string DefaultStandard(Dtype dtype);

// `benchmark` may be null. Types and shapes that cannot be compared are the comparison's problem.
TensorComparison CompareTensors(const std::string& name, const TensorView& actual, const TensorView& golden,
                                const TensorView* benchmark, const std::string& standard);

std::string FormatComparisons(const std::vector<TensorComparison>& comparisons);
nlohmann::json ToJson(const std::vector<TensorComparison>& comparisons);

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_TENSOR_COMPARISON_H_
