// `mlaprolog info`
#include <fmt/format.h>
#include <mlaprolog/mlaprolog.h>

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>

#include "cann_session.h"
#include "commands.h"
#include "option_parsing.h"
#include "safetensors_error.h"
#include "text_format.h"
#include "tool_error.h"

namespace mlap::tools {
namespace {

struct EnvironmentVariable {
  const char* name;
  const char* meaning;
};

constexpr EnvironmentVariable kVariables[] = {
    {"MLAP_MAX_ISA", "the best instruction set kernels may use; one of those above"},
    {"MLAP_NUM_THREADS", "threads of an operator call; all CPUs the process may use if unset"},
    {"MLAP_SOC", "device whose limits apply: ascend910b (default), ascend910_93, ascend950, none"},
    {"MLAP_VERBOSE", "1: a line on the standard error for each operator call"},
    {"MLAP_DUMP_DIR", "directory aclDumpOpTensors writes to; it does nothing if unset"},
    {"MLAP_REQUIRE_ISA", "tests only: instruction sets whose absence is a failure, not a skip"},
    {"MLAP_FUZZ_ITERATIONS", "tests only: how many random descriptors the fuzz tests try"},
    {"MLAP_FUZZ_SECONDS", "tests only: how long each fuzz test tries random descriptors"},
    {"MLAP_FUZZ_SEED", "tests only: the first seed of the fuzz tests"},
};

// For what a variable with a wrong value decides; the variable is complained about at the end.
constexpr const char* kInvalid = "(invalid, see below)";

// What aclrtGetSocName reports for MLAP_SOC=none.
constexpr std::string_view kSocOfNone = "mlaprolog-cpu";

struct Isa {
  std::string name;
  bool is_built;
  bool is_usable;
  std::string why_unusable;
};

std::vector<Isa> Isas() {
  std::vector<Isa> isas;
  for (size_t i = 0; i < mlap_isa_count(); ++i) {
    mlap_isa isa = {};
    isa.struct_size = sizeof(isa);
    if (mlap_isa_at(i, &isa) != MLAP_OK) Fail("{}", mlap_last_error());
    isas.push_back({isa.name, isa.is_built != 0, isa.is_usable != 0, isa.why_unusable});
  }
  return isas;
}

struct Kernel {
  std::string op;
  std::string name;
};

// What depends on environment variables, which may be wrong: `errors` says what then.
struct Choice {
  std::string isa;
  std::vector<Kernel> kernels;
  int num_threads = 0;  // 0, and empty texts: invalid
  std::string soc;
  std::vector<std::string> errors;
};

Choice Chosen() {
  Choice choice;
  const char* isa = nullptr;
  if (mlap_chosen_isa(&isa) == MLAP_OK) {
    choice.isa = isa;
    for (size_t i = 0; i < mlap_kernel_count(); ++i) {
      mlap_kernel kernel = {};
      kernel.struct_size = sizeof(kernel);
      if (mlap_kernel_at(i, &kernel) == MLAP_OK) choice.kernels.push_back({kernel.op, kernel.name});
    }
  } else {
    choice.errors.emplace_back(mlap_last_error());
  }
  if (mlap_num_threads(&choice.num_threads) != MLAP_OK) {
    choice.num_threads = 0;
    choice.errors.emplace_back(mlap_last_error());
  }
  try {
    choice.soc = CannSession::SocName();
  } catch (const ToolError& error) {
    choice.errors.emplace_back(error.what());
  }
  return choice;
}

void PrintJson(const Choice& choice) {
  nlohmann::ordered_json out;
  out["version"] = mlap_version_string();
  out["cpu"] = mlap_cpu_name();
  out["cpus"] = std::thread::hardware_concurrency();
  const auto or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
  };
  out["threads"] = choice.num_threads == 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(choice.num_threads);
  out["soc"] = or_null(choice.soc);
  out["isa"] = or_null(choice.isa);
  out["isas"] = nlohmann::ordered_json::array();
  for (const Isa& isa : Isas()) {
    out["isas"].push_back(
        {{"name", isa.name}, {"built", isa.is_built}, {"usable", isa.is_usable}, {"why_unusable", isa.why_unusable}});
  }
  out["kernels"] = nlohmann::ordered_json::object();
  for (const Kernel& kernel : choice.kernels) out["kernels"][kernel.op] = kernel.name;
  out["environment"] = nlohmann::ordered_json::object();
  for (const EnvironmentVariable& variable : kVariables) {
    const char* value = std::getenv(variable.name);
    out["environment"][variable.name] = {
        {"value", value == nullptr ? nlohmann::ordered_json() : nlohmann::ordered_json(OneLine(value))},
        {"meaning", variable.meaning}};
  }
  out["errors"] = choice.errors;
  fmt::print("{}\n", out.dump(2));
}

void PrintText(const Choice& choice) {
  const std::string threads =
      choice.num_threads == 0
          ? kInvalid
          : fmt::format("{} of {}", choice.num_threads, Counted(std::thread::hardware_concurrency(), "CPU"));
  const std::string limits = choice.soc.empty()         ? kInvalid
                             : choice.soc == kSocOfNone ? "none: any size the CPU operator can compute"
                                                        : choice.soc;
  fmt::print("mlaprolog {}\nCPU       {}\nthreads   {}\nlimits    {}\n\n", mlap_version_string(), mlap_cpu_name(),
             threads, limits);
  fmt::print("instruction sets, in ascending order\n");
  for (const Isa& isa : Isas()) {
    const std::string state = !isa.is_built            ? "not built"
                              : !isa.is_usable         ? "not usable: " + isa.why_unusable
                              : isa.name == choice.isa ? "usable, chosen"
                                                       : "usable";
    fmt::print("  {:<20} {}\n", isa.name, state);
  }
  fmt::print("\nkernels\n");
  if (choice.isa.empty()) fmt::print("  {}\n", kInvalid);
  for (const Kernel& kernel : choice.kernels) fmt::print("  {:<20} {}\n", kernel.op, kernel.name);
  fmt::print("\nenvironment\n");
  for (const EnvironmentVariable& variable : kVariables) {
    const char* value = std::getenv(variable.name);
    fmt::print("  {:<20} {:<12} {}\n", variable.name, value == nullptr ? "(unset)" : OneLine(value), variable.meaning);
  }
}

int Info(bool as_json) {
  const Choice choice = Chosen();
  if (as_json) {
    PrintJson(choice);
  } else {
    PrintText(choice);
  }
  std::string errors;
  for (const std::string& error : choice.errors) errors += (errors.empty() ? "" : "; ") + error;
  if (!errors.empty()) throw ToolError(errors);
  return kExitDone;
}

}  // namespace

void AddInfoCommand(CLI::App* app, CommandAction* action) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* verb =
      app->add_subcommand("info", "Show the CPU, the kernels chosen for it, and the environment variables");
  verb->footer("Examples:\n  mlaprolog info\n  MLAP_MAX_ISA=scalar mlaprolog info --json");
  AddFlag(verb, "--json", as_json.get(), "As JSON");
  verb->callback([as_json, action] { *action = [as_json] { return Info(*as_json); }; });
}

}  // namespace mlap::tools
