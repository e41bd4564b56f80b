#include "bench_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

#include "tool_error.h"
#include "work_model.h"

namespace mlap::bench {
namespace {

constexpr const char* kFooter =
    R"(Everything is measured in one process and in rounds, in which each contender has a turn: the machine's read bandwidth
and arithmetic peak, the operator, and a peer composed of oneDNN's products. MLAP_NUM_THREADS and MLAP_MAX_ISA apply to
all of them.

Examples:
  mlaprolog_bench
  mlaprolog_bench --full --json results.json
  mlaprolog_bench --heads 128 --tokens 16,64 --scenario non-quant)";

std::string ScenarioOptions() {
  std::string text;
  for (const tools::Scenario* scenario : MeasuredScenarios()) {
    text += (text.empty() ? "" : ", ") + std::string(scenario->label);
  }
  return text;
}

const tools::Scenario* ScenarioFromOption(const std::string& name) {
  for (const tools::Scenario* scenario : MeasuredScenarios()) {
    if (name == scenario->label) return scenario;
  }
  tools::Fail("--scenario: expected one of {}, found '{}'", ScenarioOptions(), name);
}

std::string CommandText(int argc, char** argv) {
  std::string text;
  for (const char* name : {"MLAP_NUM_THREADS", "MLAP_MAX_ISA"}) {
    const char* value = std::getenv(name);
    if (value != nullptr) text += std::string(name) + "=" + value + " ";
  }
  text += "mlaprolog_bench";
  for (int i = 1; i < argc; ++i) text += std::string(" ") + argv[i];
  return text;
}

}  // namespace

bool ParseOptions(int argc, char** argv, BenchOptions* options, int* exit_code) {
  CLI::App app("How fast the operator is: against the machine's limits and against oneDNN.", "mlaprolog_bench");
  app.footer(kFooter);
  std::vector<std::string> scenarios;
  bool has_no_peer = false;
  app.add_flag("--full", options->is_full,
               "More heads, tokens and scenarios, and longer: below 15 minutes instead of 2");
  app.add_flag("--no-peer", has_no_peer, "Without oneDNN");
  app.add_option("--heads", options->heads, "Only these head counts")->delimiter(',')->check(CLI::Range(1, 128));
  app.add_option("--tokens", options->tokens, "Only these token counts")->delimiter(',')->check(CLI::Range(1, 65536));
  app.add_option("--scenario", scenarios, "Only these: " + ScenarioOptions())->delimiter(',');
  app.add_option("--seconds", options->seconds_per_point, "Time for each pair of heads and tokens")
      ->check(CLI::Range(0.01, 3600.0));
  app.add_option("--json", options->json, "Write everything to this file as well")->type_name("FILE");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    *exit_code = code == 0 ? 0 : 2;
    return false;
  }
  options->has_peer = !has_no_peer;
  options->command = CommandText(argc, argv);
  const bool is_full = options->is_full;
  if (options->heads.empty())
    options->heads = is_full ? std::vector<int64_t>{16, 32, 128} : std::vector<int64_t>{16, 128};
  if (options->tokens.empty()) {
    options->tokens =
        is_full ? std::vector<int64_t>{1, 2, 4, 8, 16, 32, 64, 256, 1024} : std::vector<int64_t>{1, 4, 16, 64, 256};
  }
  for (const std::string& name : scenarios) options->scenarios.push_back(ScenarioFromOption(name));
  if (options->scenarios.empty()) {
    options->scenarios = {kNonQuant, kPartial, kFullInt8};
    if (is_full) options->scenarios = {MeasuredScenarios().begin(), MeasuredScenarios().end()};
  }
  if (options->seconds_per_point == 0.0) options->seconds_per_point = is_full ? 22.0 : 6.5;
  for (std::vector<int64_t>* list : {&options->heads, &options->tokens}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  std::sort(options->scenarios.begin(), options->scenarios.end());  // they lie in one table
  return true;
}

}  // namespace mlap::bench
