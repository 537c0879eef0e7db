// Where a flag's value comes from: the command line, else the environment (TILEWRIGHT_DB for
// --db), else --config FILE, else the default. And what is said when a command line does not parse.
//
// A configuration file is TOML whose sections are named after commands; a flag that the command
// does not have is an error:
//
//   [tune]
//   db = "tuning.db"
//   time-limit = "2m"
#ifndef TILEWRIGHT_CLI_FLAG_SOURCES_H_
#define TILEWRIGHT_CLI_FLAG_SOURCES_H_

#include <string>

#include "CLI/CLI.hpp"

namespace tilewright {

// Adds --config to `app`, accepted before and after the command, and gives every flag of it and its
// commands a variable of the environment. To be called when all flags have been added.
void AddFlagSources(CLI::App* app);

// One line: what is wrong with the command line, the environment or the configuration file, and
// what would be accepted.
std::string UsageError(const CLI::App& app, const CLI::ParseError& error);

}  // namespace tilewright

#endif  // TILEWRIGHT_CLI_FLAG_SOURCES_H_
