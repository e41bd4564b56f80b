#include "fixture.h"

#include <algorithm>

#include "case_generator.h"
#include "huge_buffer.h"
#include "tool_error.h"

namespace mlap::bench {
namespace {

// Marks what has another type in the quantised scenarios.
constexpr std::string_view kInt8Suffix = ".int8";

tools::PrologCase Generate(const FixtureRecipe& recipe, tools::Scenario scenario, int64_t block_num) {
  tools::CaseRecipe generated;
  generated.shape = ShapeOf({scenario, recipe.heads, recipe.max_tokens}, block_num, kBlockSize);
  return tools::GenerateCase(generated);
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
      host_(Generate(recipe, tools::Scenario::kNonQuant, block_num_)),
      weights_(static_cast<size_t>(recipe.num_copies)) {
  AddCase(host_, "");
  if (recipe.has_quantised) AddCase(Generate(recipe, tools::Scenario::kPartialKvInt8, block_num_), kInt8Suffix);
}

// Both cases have the same seed, so tensors of the same name and type have the same contents.
void Fixture::AddCase(const tools::PrologCase& prolog_case, std::string_view suffix) {
  for (const auto& [name, tensor] : prolog_case.inputs) {
    const bool is_int8 = tensor.view.dtype == tools::Dtype::kI8;
    const std::string key = name + std::string(is_int8 ? suffix : "");
    if (!IsWeight(name)) {
      if (!inputs_.contains(key)) inputs_.emplace(key, Upload(tensor));
      continue;
    }
    for (Buffers& copy : weights_) {
      if (!copy.contains(key)) copy.emplace(key, Upload(tensor));
    }
  }
}

void* Fixture::Data(const tools::CaseShape& shape, std::string_view name, int copy) const {
  const bool is_int8 = (name == "weight_uq_qr" && shape.HasInt8Weight()) ||
                       ((name == "kv_cache" || name == "kr_cache") && shape.HasInt8Cache());
  const std::string key = std::string(name) + std::string(is_int8 ? kInt8Suffix : "");
  const Buffers& buffers = IsWeight(name) ? weights_[static_cast<size_t>(copy)] : inputs_;
  const auto found = buffers.find(key);
  if (found == buffers.end()) tools::Fail("the benchmark's tensor {}: expected to exist, found it does not", key);
  return found->second.data();
}

}  // namespace mlap::bench
