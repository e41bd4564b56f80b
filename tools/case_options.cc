#include "case_options.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "model_table.h"
#include "safetensors_error.h"
#include "tool_error.h"

namespace mlap::tools {
namespace {

constexpr int64_t kMaxBlocks = int64_t{1} << 31;

// Also as the metadata of case files spell it, and with '-' for '_' or the other way round.
Scenario ScenarioFromOption(const std::string& name) {
  std::string dashed = name;
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  if (dashed == "non-quant") return Scenario::kNonQuant;
  if (dashed == "partial") return Scenario::kPartial;
  if (dashed == "partial-kv-int8" || dashed == "partial-kv-per-channel") return Scenario::kPartialKvInt8;
  Fail("--scenario: expected non-quant, partial or partial-kv-int8, found '{}'", OneLine(name));
}

CacheMode CacheModeFromOption(const std::string& name) {
  if (name == "PA_BSND") return CacheMode::kPaBsnd;
  if (name == "PA_NZ") return CacheMode::kPaNz;
  Fail("--cache-mode: expected PA_BSND or PA_NZ, found '{}'", OneLine(name));
}

std::vector<int64_t> Lead(const CaseOptions& options) {
  if (options.batch == 0 && options.seq == 0) return {options.tokens == 0 ? 8 : options.tokens};
  if (options.tokens != 0) Fail("--tokens: expected without --batch and --seq, found all of them: one is the product");
  return {std::max<int64_t>(options.batch, 1), std::max<int64_t>(options.seq, 1)};
}

// Twice the pages the tokens need, and a page for each of the first 64 tokens to lie in.
int64_t AutomaticBlocks(int64_t tokens, int64_t block_size) {
  const int64_t needed = (tokens + block_size - 1) / block_size;
  return std::max({2 * needed, std::min<int64_t>(tokens, 64), int64_t{2}});
}

int64_t Blocks(const std::string& text, int64_t tokens, int64_t block_size) {
  if (text == "auto") return AutomaticBlocks(tokens, block_size);
  int64_t blocks = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), blocks);
  if (error != std::errc() || end != text.data() + text.size() || blocks < 1 || blocks > kMaxBlocks) {
    Fail("--blocks: expected auto or a number from 1 to {}, found '{}'", kMaxBlocks, OneLine(text));
  }
  return blocks;
}

}  // namespace

CaseRecipe MakeRecipe(const CaseOptions& options) {
  const Model& model = FindModel(options.model);
  CaseRecipe recipe;
  CaseShape& shape = recipe.shape;
  shape.dims = model.dims;
  const auto override_size = [](int64_t given, int64_t* size) {
    if (given != 0) *size = given;
  };
  override_size(options.hidden, &shape.dims.hidden);
  override_size(options.q_rank, &shape.dims.q_rank);
  override_size(options.heads, &shape.dims.heads);
  override_size(options.nope, &shape.dims.nope);
  override_size(options.rope, &shape.dims.rope);
  override_size(options.kv_rank, &shape.dims.kv_rank);
  if (shape.dims.rope % 2 != 0) Fail("--rope: expected an even number, found {}", shape.dims.rope);

  shape.scenario = ScenarioFromOption(options.scenario);
  shape.cache_mode = CacheModeFromOption(options.cache_mode);
  shape.has_smooth_scales = options.smooth;
  if (options.smooth && !shape.HasInt8Weight()) {
    Fail("--smooth: expected with --scenario partial or partial-kv-int8, found with {}", ScenarioLabel(shape.scenario));
  }
  shape.lead = Lead(options);
  shape.block_size = options.block_size;
  shape.block_num = Blocks(options.blocks, shape.Tokens(), options.block_size);
  if (shape.cache_mode == CacheMode::kPaNz) {
    const int64_t c0 = FractalColumns(shape.CacheDtype());
    for (const auto& [option, width] : {std::pair{"--kv-rank", shape.dims.kv_rank}, {"--rope", shape.dims.rope}}) {
      if (width % c0 == 0) continue;
      Fail("{}: expected a multiple of {} with --cache-mode PA_NZ, found {}; --cache-mode PA_BSND takes any width",
           option, c0, width);
    }
  }
  recipe.epsilon = options.epsilon >= 0.0 ? options.epsilon : model.epsilon;
  recipe.rope_theta = options.rope_theta != 0.0 ? options.rope_theta : model.rope_theta;
  recipe.yarn_factor = options.yarn_factor >= 0.0 ? options.yarn_factor : model.yarn_factor;
  recipe.seed = static_cast<uint64_t>(options.seed);
  return recipe;
}

}  // namespace mlap::tools
