// `mlaprolog new-case`
#include <fmt/format.h>

#include <cstdio>
#include <limits>
#include <memory>
#include <string>

#include "cann_case.h"
#include "case_generator.h"
#include "case_options.h"
#include "commands.h"
#include "memory_budget.h"
#include "model_table.h"
#include "option_parsing.h"
#include "output_path.h"
#include "prolog_case.h"
#include "soc_choice.h"
#include "text_format.h"

namespace mlap::tools {
namespace {

constexpr const char* kNewCaseFooter =
    R"(The same options give the same bytes on every machine. Weights are N(0, 0.02^2) in FRACTAL_NZ, or
these quantised per column (MXFP8: per 32 values); activations N(0, 1), quantised per token where x is; tokens go to
distinct random slots, sequences of PA_BLK_* modes to distinct random pages. BSND takes --batch and --seq, TND takes
--tokens; PA_BLK_* take either, and with --tokens sequences of random lengths.

Examples:
  mlaprolog new-case --model list
  mlaprolog new-case v3.safetensors --model deepseek-v3 --tokens 8
  mlaprolog new-case k2.safetensors --model kimi-k2 --heads 8 --scenario partial-kv-int8 --smooth --cache-mode PA_NZ
  mlaprolog new-case full.safetensors --scenario full-int8-kv-int8 --query-norm --heads 16
  mlaprolog new-case blocks.safetensors --heads 8 --tokens 40 --cache-mode PA_BLK_BSND --sequences 3 --block-size 16
  mlaprolog new-case merged.safetensors --heads 8 --batch 2 --seq 4 --cache-mode BSND --scenario partial-kv-per-group
  mlaprolog new-case fp8.safetensors --heads 8 --scenario full-mxfp8
  mlaprolog new-case prefill.safetensors --model youtu-llm --batch 2 --seq 512 --blocks 64)";

struct NewCaseOptions {
  std::string path;
  bool force = false;
  CaseOptions recipe;
};

int ListModels() {
  const std::string_view soc = CannSession::SocName();
  fmt::print("{:<19}{:>6}{:>6}{:>5}{:>5}{:>4}{:>6}{:>8}{:>10}{:>6}  {:<14}{}\n", "model", "He", "Hcq", "N", "D", "Dr",
             "Hckv", "epsilon", "theta", "yarn", soc, "notes");
  for (const Model& model : Models()) {
    const LayerDims& d = model.dims;
    CaseOptions options;
    options.model = model.name;
    std::string why_not;
    const CaseShape shape = MakeRecipe(options).shape;
    const bool is_accepted = IsShapeAccepted(shape, FirstVersionFor(shape, {}), &why_not);
    fmt::print("{:<19}{:>6}{:>6}{:>5}{:>5}{:>4}{:>6}{:>8.0e}{:>10g}{:>6g}  {:<14}{}\n", model.name, d.hidden, d.q_rank,
               d.heads, d.nope, d.rope, d.kv_rank, model.epsilon, model.rope_theta, model.yarn_factor,
               is_accepted ? "accepts it" : "refuses it", model.note);
  }
  fmt::print("The column {} says what the operator answers under its limits; MLAP_SOC chooses the device.\n", soc);
  return kExitDone;
}

// A case is written for other devices too; who runs it next is told.
void HintIfRefused(const PrologCase& prolog_case) {
  const CaseShape& shape = prolog_case.shape;
  ChooseSoc("", prolog_case.soc);
  std::string why_not;
  if (IsShapeAccepted(shape, FirstVersionFor(shape, AttributesOf(prolog_case)), &why_not)) return;
  std::fflush(stdout);
  if (why_not.find("MLAP_SOC=none") != std::string::npos) {
    // Without a device int8 is rounded as on A2.
    fmt::print(stderr, "mlaprolog: {} refuses this case; run it with MLAP_SOC=none{}\n", CannSession::SocName(),
               RulesOf(prolog_case.soc) == MLAP_RULES_950
                   ? fmt::format(", or with run --native, which keeps the roundings of {}", prolog_case.soc)
                   : "");
  } else {
    fmt::print(stderr, "mlaprolog: the operator refuses this case: {}\n", why_not);
  }
}

int NewCase(const NewCaseOptions& options) {
  if (options.recipe.model == "list") return ListModels();
  const CaseRecipe recipe = MakeRecipe(options.recipe);
  if (!options.force) RequireNewFile("OUT", options.path, "--force replaces it");
  RequireWritable("OUT", options.path);
  PrologCase prolog_case = GenerateCase(recipe);
  prolog_case.metadata["model"] = options.recipe.model;
  SaveTensors(options.path, prolog_case.inputs, prolog_case.metadata);
  fmt::print("{}\n  case     {}\n  size     {}\n", options.path, DescribeShape(recipe.shape),
             FormatBytes(InputBytes(recipe.shape)));
  HintIfRefused(prolog_case);
  return kExitDone;
}

void AddSize(CLI::App* verb, const char* flag, int64_t* value, int64_t max, const char* text) {
  AddWholeNumber(verb, flag, value, 1, max, text);
}

}  // namespace

void AddNewCaseCommand(CLI::App* app, CommandAction* action) {
  constexpr int64_t kMaxDim = int64_t{1} << 20;
  constexpr int64_t kMaxTokens = int64_t{1} << 24;
  auto options = std::make_shared<NewCaseOptions>();
  CaseOptions& recipe = options->recipe;
  CLI::App* verb = app->add_subcommand("new-case", "Write a case with a model's sizes and random contents");
  verb->footer(kNewCaseFooter);
  CLI::Option* out = verb->add_option("OUT", options->path, "The .safetensors file to write; none for --model list");
  out->type_name("FILE")->required();
  AddFlag(verb, "--force", &options->force, "Replace OUT if it exists");
  verb->add_option("--model", recipe.model, "The model whose sizes to take; 'list' shows them")
      ->each([out](const std::string& name) { out->required(name != "list"); })
      ->capture_default_str();
  verb->add_option("--scenario", recipe.scenario, "What is quantised: " + ScenarioChoices())->capture_default_str();
  AddFlag(verb, "--smooth", &recipe.smooth, "With smooth scales for the query latent");
  verb->add_option("--cache-mode", recipe.cache_mode, CacheModeChoices())->capture_default_str();
  AddFlag(verb, "--query-norm", &recipe.query_norm, "With the outputs query_norm and dequant_scale_q_norm");
  AddSize(verb, "--tokens", &recipe.tokens, kMaxTokens, "T: tokens of a (T) case; 8 if nothing is said");
  AddSize(verb, "--batch", &recipe.batch, kMaxDim, "B: sequences of a (B, S) case");
  AddSize(verb, "--seq", &recipe.seq, kMaxDim, "S: tokens of each sequence of a (B, S) case");
  AddSize(verb, "--sequences", &recipe.sequences, kMaxTokens,
          "B: sequences of a (T) case in PA_BLK_* modes; 3 if nothing is said");
  AddSize(verb, "--block-size", &recipe.block_size, kMaxDim, "Slots of a cache page; 128 if nothing is said");
  verb->add_option("--blocks", recipe.blocks, "Pages of each cache")->capture_default_str();
  AddSize(verb, "--heads", &recipe.heads, kMaxDim, "N, instead of the model's");
  AddSize(verb, "--hidden", &recipe.hidden, kMaxDim, "He, instead of the model's");
  AddSize(verb, "--q-rank", &recipe.q_rank, kMaxDim, "Hcq, instead of the model's");
  AddSize(verb, "--kv-rank", &recipe.kv_rank, kMaxDim, "Hckv, instead of the model's");
  AddSize(verb, "--nope", &recipe.nope, kMaxDim, "D, instead of the model's");
  AddSize(verb, "--rope", &recipe.rope, kMaxDim, "Dr, instead of the model's");
  AddNumber(verb, "--epsilon", &recipe.epsilon, 0.0, 1e6, "Of both norms, instead of the model's");
  AddNumber(verb, "--rope-theta", &recipe.rope_theta, 1.5, 1e12, "Instead of the model's");
  AddNumber(verb, "--yarn-factor", &recipe.yarn_factor, 1.0, 1e6, "Instead of the model's; 1 is plain RoPE");
  AddNumber(verb, "--qc-qr-scale", &recipe.qc_qr_scale, -1e6, 1e6, "Multiplies the normalised query latent; V3 only");
  AddNumber(verb, "--kc-scale", &recipe.kc_scale, -1e6, 1e6, "Multiplies the normalised key latent; V3 only");
  AddNumber(verb, "--clip-alpha", &recipe.clip_alpha, 0.0, 1e6, "Of per-group int8 caches; 0.9 if nothing is said");
  verb->add_option("--soc", recipe.soc, "The device the case is for: auto, ascend910b, ascend910_93, ascend950 or none")
      ->capture_default_str();
  AddWholeNumber(verb, "--seed", &recipe.seed, 0, std::numeric_limits<int64_t>::max(),
                 "Another number gives other contents")
      ->capture_default_str();
  verb->callback([options, action] { *action = [options] { return NewCase(*options); }; });
}

}  // namespace mlap::tools
