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

// Also as the metadata of case files spell it.
const Scenario& ScenarioFromOption(const std::string& name) {
  if (const Scenario* scenario = FindScenario(name)) return *scenario;
  Fail("--scenario: expected {}, found '{}'", ScenarioChoices(), OneLine(name));
}

mlap_cache_mode CacheModeFromOption(const std::string& name) {
  mlap_cache_mode mode;
  if (FindCacheMode(name, &mode)) return mode;
  Fail("--cache-mode: expected {}, found '{}'", CacheModeChoices(), OneLine(name));
}

// The first device that has the scenario, if nothing else is said.
std::string SocFromOption(const std::string& name, const Scenario& scenario) {
  if (name == "auto") return scenario.HasFloat8() ? "ascend950" : "ascend910b";
  if (!IsSocName(name)) Fail("--soc: expected auto, {}, found '{}'", kSocChoices, OneLine(name));
  if (scenario.HasFloat8() && name.starts_with("ascend910")) {
    Fail("--soc: expected ascend950 or none with --scenario {}, found {}", scenario.label, name);
  }
  return name;
}

std::vector<int64_t> Lead(const CaseOptions& options, mlap_cache_mode mode) {
  if (options.batch == 0 && options.seq == 0) {
    if (mode == MLAP_BSND) Fail("--batch: expected with --cache-mode BSND, whose tokens are (B, S), found none");
    return {options.tokens == 0 ? 8 : options.tokens};
  }
  if (options.tokens != 0) Fail("--tokens: expected without --batch and --seq, found all of them: one is the product");
  if (mode == MLAP_TND) Fail("--cache-mode TND: expected with --tokens, as its tokens are (T), found --batch or --seq");
  return {std::max<int64_t>(options.batch, 1), std::max<int64_t>(options.seq, 1)};
}

void CheckScenario(const CaseOptions& options, const CaseShape& shape) {
  const Scenario& scenario = *shape.scenario;
  if (options.smooth && !scenario.MayHaveSmoothScales()) {
    Fail("--smooth: expected with a scenario that quantises the query latent, but not as MXFP8; found with {}",
         scenario.label);
  }
  if (options.clip_alpha >= 0.0 && !scenario.HasClipAlpha()) {
    Fail("--clip-alpha: expected with {} or {}, found with {}", FindScenario("partial-kv-per-group")->label,
         FindScenario("full-int8-kv-per-group")->label, scenario.label);
  }
  for (const auto& [option, size] : {std::pair{"--hidden", shape.dims.hidden}, {"--q-rank", shape.dims.q_rank}}) {
    if (!scenario.HasMxScales() || size % 32 == 0) continue;
    Fail("{}: expected a multiple of 32 with --scenario {}, which has a scale per 32 values, found {}", option,
         scenario.label, size);
  }
  if (scenario.IsPerGroup() && (shape.IsNz() || shape.HasBlocks())) {
    Fail("--cache-mode: expected PA_BSND, BSND or TND with --scenario {}, found {}", scenario.label,
         CacheModeName(shape.cache_mode));
  }
}

// Twice the pages the rows need, and a page for each of the first 64 rows to lie in.
int64_t AutomaticBlocks(int64_t rows, int64_t block_size) {
  return std::max({2 * CeilDiv(rows, block_size), std::min<int64_t>(rows, 64), int64_t{2}});
}

int64_t Blocks(const std::string& text, int64_t rows, int64_t block_size) {
  if (text == "auto") return AutomaticBlocks(rows, block_size);
  int64_t blocks = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), blocks);
  if (error != std::errc() || end != text.data() + text.size() || blocks < 1 || blocks > kMaxBlocks) {
    Fail("--blocks: expected auto or a number from 1 to {}, found '{}'", kMaxBlocks, OneLine(text));
  }
  return blocks;
}

// The pages, and in PA_BLK_* modes the sequences that begin in them.
void SetCache(const CaseOptions& options, CaseRecipe* recipe) {
  CaseShape& shape = recipe->shape;
  if (options.sequences != 0 && !shape.HasSequenceEnds()) {
    Fail("--sequences: expected with --tokens and --cache-mode PA_BLK_BSND or PA_BLK_NZ, found with {}",
         CacheModeName(shape.cache_mode));
  }
  if (!shape.IsPaged()) {
    if (options.blocks != "auto") {
      Fail("--blocks: expected without --cache-mode {}, whose caches have the tokens' shape",
           CacheModeName(shape.cache_mode));
    }
    shape.block_num = shape.lead[0];
    shape.block_size = shape.IsFused() ? 1 : shape.lead[1];
    return;
  }
  shape.block_size = options.block_size;
  int64_t rows = shape.Tokens();  // that pages must have, those that stay empty at a sequence's end included
  if (shape.HasSequenceEnds()) {
    shape.num_sequences = options.sequences != 0 ? options.sequences : std::min<int64_t>(shape.Tokens(), 3);
    recipe->sequence_ends = RandomSequenceEnds(recipe->seed, shape.Tokens(), shape.num_sequences);
    int64_t begin = 0;
    for (const int64_t end : recipe->sequence_ends) {
      shape.num_indices += CeilDiv(end - begin, shape.block_size);
      begin = end;
    }
    rows = shape.num_indices * shape.block_size;
  } else if (shape.HasBlocks()) {
    rows = shape.lead[0] * CeilDiv(shape.lead[1], shape.block_size) * shape.block_size;
  }
  shape.block_num = Blocks(options.blocks, rows, shape.block_size);
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

  shape.scenario = &ScenarioFromOption(options.scenario);
  shape.cache_mode = CacheModeFromOption(options.cache_mode);
  shape.has_smooth_scales = options.smooth;
  shape.has_query_norm = options.query_norm;
  CheckScenario(options, shape);
  shape.lead = Lead(options, shape.cache_mode);
  recipe.seed = static_cast<uint64_t>(options.seed);
  SetCache(options, &recipe);
  for (const NzWidth& row : NzWidths(shape)) {
    if (row.width % row.multiple == 0) continue;
    Fail("{}: expected a multiple of {} with --cache-mode {}, found {}; the modes without NZ take any width",
         row.cache == std::string_view("kv_cache") ? "--kv-rank" : "--rope", row.multiple,
         CacheModeName(shape.cache_mode), row.width);
  }
  recipe.soc = SocFromOption(options.soc, *shape.scenario);
  recipe.qc_qr_scale = options.qc_qr_scale;
  recipe.kc_scale = options.kc_scale;
  if (options.clip_alpha >= 0.0) recipe.clip_alpha = static_cast<float>(options.clip_alpha);
  recipe.epsilon = options.epsilon >= 0.0 ? options.epsilon : model.epsilon;
  recipe.rope_theta = options.rope_theta != 0.0 ? options.rope_theta : model.rope_theta;
  recipe.yarn_factor = options.yarn_factor >= 0.0 ? options.yarn_factor : model.yarn_factor;
  return recipe;
}

}  // namespace mlap::tools
