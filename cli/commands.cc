#include "cli/commands.h"

#include <cstdio>
#include <string>
#include <vector>

#include "cli/command.h"

namespace tilewright {

absl::Span<const Command> AllCommands() {
  static const auto* commands = new std::vector<Command>{
      {"tune", "search the best schedules of workloads and record the verdicts", false, AddTune},
      {"best", "show what the log knows to be best", false, AddBest},
      {"query", "list trials, verdicts, runs, workloads or failures of the log", false, AddQuery},
      {"build", "write a pack: the kernels a production build compiles against", false, AddBuild},
      {"replay", "write a record's kernel again and compare its digests", false, AddReplay},
      {"explain", "show a workload's schedule space, or one schedule's plan, features and score",
       false, AddExplain},
      {"simulate", "replay search strategies on recorded spaces and score them", false,
       AddSimulate},
      {"log", "export, import, merge or back up the log", false, AddLog},
      {"worker", "measure for a coordinator", false, AddWorker},
      {"builder", "a worker's child that compiles", true, AddBuilder},
      {"runner", "a worker's child that alone touches the device", true, AddRunner},
  };
  return *commands;
}

namespace {

int Print(const absl::Status& status, int code) {
  std::fprintf(stderr, "tilewright: %s\n", std::string(status.message()).c_str());
  return code;
}

}  // namespace

int Fail(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kAlreadyExists:
      return Print(status, kExitBadInput);
    case absl::StatusCode::kDataLoss:
      return Print(status, kExitDatabaseRefused);
    default:
      return Print(status, kExitFailed);
  }
}

int FailToOpen(const absl::Status& status) {
  if (absl::IsFailedPrecondition(status)) return Print(status, kExitDatabaseRefused);
  return Fail(status);
}

}  // namespace tilewright
