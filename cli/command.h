// The commands of `tilewright`. A command turns flags into options, makes one library call and
// prints; nothing is decided here.
//
// The only list is in commands.cc: a new command is a file and a row.
#ifndef TILEWRIGHT_CLI_COMMAND_H_
#define TILEWRIGHT_CLI_COMMAND_H_

#include <functional>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/types/span.h"

namespace tilewright {

struct Command {
  std::string name;
  std::string help;
  bool hidden;  // not shown in help: what the program starts as its own children
  // Adds the command's flags and returns what runs it; that returns the exit code.
  std::function<std::function<int()>(CLI::App*)> add;
};

absl::Span<const Command> AllCommands();

// Exit codes of every command (DESIGN.md 11); workers have more (measure/worker.h).
enum Exit {
  kExitOk = 0,
  kExitFailed = 1,
  kExitBadInput = 2,
  kExitStrictMiss = 3,
  kExitDatabaseRefused = 4
};

// Prints `tilewright: MESSAGE` to standard error and returns the exit code that the status means:
// bad input for InvalidArgument, NotFound, OutOfRange and AlreadyExists, database refused for
// DataLoss, else failed.
int Fail(const absl::Status& status);
// For a database that could not be opened: refused for FailedPrecondition and DataLoss, bad input
// if there is none.
int FailToOpen(const absl::Status& status);

}  // namespace tilewright

#endif  // TILEWRIGHT_CLI_COMMAND_H_
