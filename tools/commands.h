// The verbs of the command line. Each adds itself to the parser and, when it is the one given, runs and returns the
// exit code: 0 done, 1 a verdict against what was asked about. Failures are exceptions, and exit code 2.
#ifndef MLAP_TOOLS_COMMANDS_H_
#define MLAP_TOOLS_COMMANDS_H_

#include <CLI/CLI.hpp>
#include <functional>

namespace mlap::tools {

using CommandAction = std::function<int()>;

// Each sets `*action` when its verb is parsed.
void AddRunCommand(CLI::App* app, CommandAction* action);
void AddNewCaseCommand(CLI::App* app, CommandAction* action);
void AddInfoCommand(CLI::App* app, CommandAction* action);
void AddDemoCommand(CLI::App* app, CommandAction* action);
void AddCompareCommand(CLI::App* app, CommandAction* action);
void AddGoldenCommand(CLI::App* app, CommandAction* action);
void AddCheckLimitsCommand(CLI::App* app, CommandAction* action);
void AddConvertCacheCommand(CLI::App* app, CommandAction* action);

inline constexpr int kExitDone = 0;
inline constexpr int kExitBeyondAcceptedError = 1;
inline constexpr int kExitRefused = 2;

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_COMMANDS_H_
