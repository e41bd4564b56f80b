// `mlaprolog check-limits`
#include <fmt/ranges.h>
#include <mlaprolog/mlaprolog.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "case_scenario.h"
#include "commands.h"
#include "model_table.h"
#include "option_parsing.h"
#include "safetensors_error.h"
#include "soc_choice.h"
#include "tool_error.h"

namespace mlap::tools {
namespace {

constexpr const char* kCheckLimitsFooter =
    R"(Says whether a device would accept a call of these sizes and modes, and if not, every reason. Sizes are the model's
unless they are given; --q-rank 0 stands for a query without low rank. The device is the one --soc names, else MLAP_SOC,
else ascend910b. MLAP_SOC=none has no limits to ask for: name a device then.

Exit codes: 0 accepted, 1 not accepted, 2 bad input.

Examples:
  mlaprolog check-limits --model kimi-k2
  mlaprolog check-limits --model deepseek-v3 --heads 96 --soc ascend910b --op-version 3 --weights int8 --kv per-group)";

struct LimitsOptions {
  std::string model = "deepseek-v3";
  std::string soc;
  int32_t version = 3;
  int64_t hidden = 0, q_rank = -1, heads = 0, nope = 0, rope = 0, kv_rank = 0;
  int64_t tokens = 1, batch = 0, block_size = 128;
  std::string cache_mode = "PA_BSND";
  std::string weights = "bf16";
  std::string kv = "bf16";
  std::string rope_style = "interleaved-to-half";
  bool json = false;
};

// The place of a word in a list; the enumerations of the native interface count in the same order.
template <class Enum, size_t count>
Enum Choose(const char* option, const std::string& word, const char* const (&words)[count]) {
  for (size_t i = 0; i < count; ++i) {
    if (word == words[i]) return static_cast<Enum>(i);
  }
  Fail("{}: expected one of {}, found '{}'", option, fmt::join(words, ", "), OneLine(word));
}

constexpr std::string_view kDevices = "ascend910b, ascend910_93 or ascend950";
constexpr const char* kCacheModes[] = {"PA_BSND", "PA_NZ", "PA_BLK_BSND", "PA_BLK_NZ", "BSND", "TND"};
constexpr const char* kWeights[] = {"bf16", "uq-qr-int8", "int8", "mxfp8", "fp8", "hifloat8"};
constexpr const char* kKv[] = {"bf16", "per-tensor", "per-channel", "per-group"};
constexpr const char* kRopeStyles[] = {"interleaved-to-half", "half", "interleaved", "none"};

// Of --soc, else of MLAP_SOC, which must name a device, too.
std::string ChosenDevice(const std::string& option) {
  if (!option.empty()) return option;
  const std::string variable = SocVariable();
  if (variable == "none" || (!variable.empty() && !IsSocName(variable))) {
    Fail("MLAP_SOC: expected {}, whose limits to ask for, found '{}'; set it to one of them, unset it, or give --soc",
         kDevices, OneLine(variable));
  }
  return variable.empty() ? "ascend910b" : variable;
}

int CheckLimits(const LimitsOptions& options) {
  const std::string soc = ChosenDevice(options.soc);
  const LayerDims& model = FindModel(options.model).dims;
  const auto or_model = [](int64_t given, int64_t of_model) { return given > 0 ? given : of_model; };
  mlap_limits_args args = {};
  args.struct_size = sizeof(args);
  args.soc = soc.c_str();
  args.version = options.version;
  args.dims.hidden = or_model(options.hidden, model.hidden);
  args.dims.q_rank = options.q_rank >= 0 ? options.q_rank : model.q_rank;
  args.dims.heads = or_model(options.heads, model.heads);
  args.dims.nope = or_model(options.nope, model.nope);
  args.dims.rope = or_model(options.rope, model.rope);
  args.dims.kv_rank = or_model(options.kv_rank, model.kv_rank);
  args.batch = options.batch;
  args.sequence = options.tokens;
  args.block_size = options.block_size;
  args.cache_mode = Choose<mlap_cache_mode>("--cache-mode", options.cache_mode, kCacheModes);
  args.weight_quant = Choose<mlap_weight_quant>("--weights", options.weights, kWeights);
  args.kv_quant = Choose<mlap_kv_quant>("--kv", options.kv, kKv);
  args.rope_style = Choose<mlap_rope_style>("--rope-style", options.rope_style, kRopeStyles);
  int is_accepted = 0;
  std::vector<char> text(16384);
  if (mlap_check_limits(&args, &is_accepted, text.data(), text.size()) != MLAP_OK) Fail("{}", mlap_last_error());
  std::vector<std::string> reasons;
  std::istringstream lines(text.data());
  for (std::string line; std::getline(lines, line);) reasons.push_back(line);
  if (options.json) {
    const nlohmann::json report = {
        {"soc", soc}, {"version", options.version}, {"accepted", is_accepted != 0}, {"reasons", reasons}};
    fmt::print("{}\n", report.dump(2));
  } else {
    fmt::print("{} {} version {} of the operator with these sizes and modes\n", soc,
               is_accepted != 0 ? "accepts" : "does not accept", options.version);
    for (const std::string& reason : reasons) fmt::print("  {}\n", reason);
  }
  return is_accepted != 0 ? kExitDone : kExitBeyondAcceptedError;
}

}  // namespace

void AddCheckLimitsCommand(CLI::App* app, CommandAction* action) {
  constexpr int64_t kMaxSize = int64_t{1} << 40;
  auto options = std::make_shared<LimitsOptions>();
  CLI::App* verb = app->add_subcommand("check-limits", "Say whether a device would accept a call, and if not, why");
  verb->footer(kCheckLimitsFooter);
  verb->add_option("--soc", options->soc, fmt::format("{}; else MLAP_SOC, else ascend910b", kDevices));
  AddWholeNumber(verb, "--op-version", &options->version, 1, 3,
                 "1 aclnnMlaProlog, 2 aclnnMlaPrologV2WeightNz, 3 aclnnMlaPrologV3WeightNz")
      ->capture_default_str();
  verb->add_option("--model", options->model, "The model whose sizes to take")->capture_default_str();
  const auto add_size = [&](const char* flag, int64_t* value, int64_t least, const char* text) {
    AddWholeNumber(verb, flag, value, least, kMaxSize, text);
  };
  add_size("--hidden", &options->hidden, 1, "He, instead of the model's");
  add_size("--q-rank", &options->q_rank, 0, "Hcq, instead of the model's");
  add_size("--heads", &options->heads, 1, "N, instead of the model's");
  add_size("--nope", &options->nope, 1, "D, instead of the model's");
  add_size("--rope", &options->rope, 1, "Dr, instead of the model's");
  add_size("--kv-rank", &options->kv_rank, 1, "Hckv, instead of the model's");
  add_size("--tokens", &options->tokens, 0, "T, or with --batch S");
  add_size("--batch", &options->batch, 1, "B of x [B, S, He]");
  add_size("--block-size", &options->block_size, 1, "Slots of a cache page; 128 if nothing is said");
  verb->add_option("--cache-mode", options->cache_mode, "PA_BSND, PA_NZ, PA_BLK_BSND, PA_BLK_NZ, BSND or TND")
      ->capture_default_str();
  verb->add_option("--weights", options->weights, "bf16, uq-qr-int8, int8, mxfp8, fp8 or hifloat8")
      ->capture_default_str();
  verb->add_option("--kv", options->kv, "bf16, per-tensor, per-channel or per-group")->capture_default_str();
  verb->add_option("--rope-style", options->rope_style, "interleaved-to-half, half, interleaved or none")
      ->capture_default_str();
  AddFlag(verb, "--json", &options->json, "Print JSON");
  verb->callback([options, action] { *action = [options] { return CheckLimits(*options); }; });
}

}  // namespace mlap::tools
