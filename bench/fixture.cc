#include "fixture.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "case_generator.h"
#include "huge_buffer.h"
#include "tool_error.h"

namespace mlap::bench {
namespace {

tools::PrologCase Generate(const FixtureRecipe& recipe, const tools::Scenario* scenario, int64_t block_num) {
  tools::CaseRecipe generated;
  generated.shape = ShapeOf({scenario, recipe.heads, recipe.max_tokens}, block_num, kBlockSize);
  return tools::GenerateCase(generated);
}

// The cases have one seed: tensors of one name and type have the same contents, or the first rows of these. Key scales
// are one or a row.
std::string KeyOf(const tools::TensorSpec& spec) {
  const bool is_key_scale = spec.name == std::string_view("quant_scale_ckv");
  return fmt::format("{} {} {}", spec.name, tools::ElementTypeName(spec.dtype), is_key_scale ? spec.shape.back() : 0);
}

bool IsWeight(std::string_view name) { return name.starts_with("weight_"); }

tools::DeviceBuffer Upload(const tools::CaseTensor& tensor) {
  tools::DeviceBuffer buffer(tensor.view.num_bytes);
  if (tensor.view.num_bytes != 0) {
    // Device memory is the host's; copying with all threads also touches the pages.
    CopyInParallel(static_cast<std::byte*>(buffer.data()), tensor.view.bytes, tensor.view.num_bytes);
  }
  return buffer;
}

}  // namespace

Fixture::Fixture(const FixtureRecipe& recipe)
    : recipe_(recipe),
      block_num_(std::max<int64_t>(2, 2 * ((recipe.max_tokens + kBlockSize - 1) / kBlockSize))),
      host_(Generate(recipe, kNonQuant, block_num_)),
      weights_(static_cast<size_t>(recipe.num_copies)) {
  AddCase(host_);
  // What the last ones have is what the earlier ones need.
  for (auto scenario = recipe.scenarios.rbegin(); scenario != recipe.scenarios.rend(); ++scenario) {
    if (!HasAll(ShapeOf({*scenario, recipe.heads, recipe.max_tokens}, block_num_, kBlockSize))) {
      AddCase(Generate(recipe, *scenario, block_num_));
    }
  }
}

void Fixture::AddCase(const tools::PrologCase& prolog_case) {
  for (const tools::TensorSpec& spec : tools::InputSpecs(prolog_case.shape)) {
    const tools::CaseTensor& tensor = prolog_case.Input(spec.name);
    const std::string key = KeyOf(spec);
    if (!IsWeight(spec.name)) {
      if (!inputs_.contains(key)) inputs_.emplace(key, Upload(tensor));
      continue;
    }
    for (Buffers& copy : weights_) {
      if (!copy.contains(key)) copy.emplace(key, Upload(tensor));
    }
  }
}

bool Fixture::HasAll(const tools::CaseShape& shape) const {
  const std::vector<tools::TensorSpec> specs = tools::InputSpecs(shape);
  return std::all_of(specs.begin(), specs.end(), [this](const tools::TensorSpec& spec) {
    return (IsWeight(spec.name) ? weights_.front() : inputs_).contains(KeyOf(spec));
  });
}

void* Fixture::Data(const tools::CaseShape& shape, std::string_view name, int copy) const {
  for (const tools::TensorSpec& spec : tools::InputSpecs(shape)) {
    if (spec.name != name) continue;
    const Buffers& buffers = IsWeight(name) ? weights_[static_cast<size_t>(copy)] : inputs_;
    const auto found = buffers.find(KeyOf(spec));
    if (found != buffers.end()) return found->second.data();
  }
  tools::Fail("the benchmark's tensor {} of {}: expected to exist, found it does not", name, shape.scenario->label);
}

}  // namespace mlap::bench
