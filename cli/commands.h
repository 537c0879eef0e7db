// What the rows of commands.cc point to: each adds its command's flags and returns what runs it.
#ifndef TILEWRIGHT_CLI_COMMANDS_H_
#define TILEWRIGHT_CLI_COMMANDS_H_

#include <functional>

#include "CLI/CLI.hpp"

namespace tilewright {

std::function<int()> AddTune(CLI::App* app);
std::function<int()> AddBest(CLI::App* app);
std::function<int()> AddQuery(CLI::App* app);
std::function<int()> AddBuild(CLI::App* app);
std::function<int()> AddReplay(CLI::App* app);
std::function<int()> AddExplain(CLI::App* app);
std::function<int()> AddSimulate(CLI::App* app);
std::function<int()> AddLog(CLI::App* app);
std::function<int()> AddWorker(CLI::App* app);
std::function<int()> AddBuilder(CLI::App* app);
std::function<int()> AddRunner(CLI::App* app);

}  // namespace tilewright

#endif  // TILEWRIGHT_CLI_COMMANDS_H_
