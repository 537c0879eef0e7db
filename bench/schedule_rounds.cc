// Times given schedules of one workload against each other, in paired rounds on this machine's CPU,
// or its first GPU.
//
//   schedule_rounds WORKER OPERATOR_OR_EXPRESSION SIZES TYPE ROUNDS [cuda IDLE_MS] < schedules
//
// WORKER is an executable that serves the hidden commands `builder` and `runner`. Each round times
// every schedule once, in an order of its own, after all outputs were checked; prints one line per
// schedule in the order given: median seconds over the rounds, or why it failed, a tab, the
// schedule. Before each timing on a GPU it is idle for IDLE_MS.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "measure/devices.h"
#include "measure/statistics.h"
#include "measure/workbench.h"
#include "schedule/operators.h"
#include "schedule/variant.h"

namespace tilewright {
namespace {

int Fail(const absl::Status& status) {
  fprintf(stderr, "schedule_rounds: %s\n", status.ToString().c_str());
  return 1;
}

absl::StatusOr<Workload> MakeWorkload(const char* expression, const char* sizes, const char* type) {
  const auto expanded = ExpandOperator(expression, sizes);
  if (!expanded.ok()) return expanded.status();
  return Workload::Make(expanded->expression, {expanded->sizes, type});
}

int Run(int argc, char** argv) {
  const bool cuda = argc > 6;
  const absl::StatusOr<DeviceDescription> device = DescribeDevice({.kind = cuda ? argv[6] : "cpu"});
  if (!device.ok()) return Fail(device.status());
  const absl::StatusOr<Workload> workload = MakeWorkload(argv[2], argv[3], argv[4]);
  if (!workload.ok()) return Fail(workload.status());
  const auto space = ScheduleSpace::Make(*workload, device->target, AllVariants());
  if (!space.ok()) return Fail(space.status());
  WorkbenchOptions options;
  options.executable = argv[1];
  const auto bench = Workbench::Make(*device, options);
  if (!bench.ok()) return Fail(bench.status());
  SessionSpec spec{*workload, {}, (*space)->DefaultSchedule()};
  spec.regime.at = workload->HighestSizes();
  if (absl::Status status = (*bench)->OpenSession(spec); !status.ok()) return Fail(status);

  std::vector<Schedule> schedules;
  for (std::string line; std::getline(std::cin, line);) {
    absl::StatusOr<Schedule> schedule = ParseSchedule(line);
    if (!schedule.ok()) return Fail(schedule.status());
    schedules.push_back(*std::move(schedule));
  }
  std::vector<Kernel> kernels;
  const std::vector<BuildOutcome> built = (*bench)->Build(*workload, schedules, absl::Seconds(60));
  for (const BuildOutcome& one : built) {
    if (one.kernel) kernels.push_back(*one.kernel);
  }
  const absl::Duration idle = absl::Milliseconds(cuda ? std::atoi(argv[7]) : 0);
  const FinalsOutcome outcome = (*bench)->Finals(kernels, std::atoi(argv[5]), idle, 1);
  bool failed = false;
  for (size_t i = 0, next = 0; i < schedules.size(); ++i) {
    const FinalsOutcome::Entrant* entrant = built[i].kernel ? &outcome.entrants[next++] : nullptr;
    const auto& failure = entrant != nullptr ? entrant->failure : built[i].failure;
    failed |= failure.has_value();
    const std::string result =
        failure ? failure->text : absl::StrFormat("%.9g", Median(entrant->round_seconds));
    printf("%s\t%s\n", result.c_str(), schedules[i].ToString().c_str());
  }
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace tilewright

int main(int argc, char** argv) {
  if (argc != 6 && argc != 8) {
    fprintf(
        stderr,
        "usage: schedule_rounds WORKER OPERATOR SIZES TYPE ROUNDS [cuda IDLE_MS] < schedules\n");
    return 2;
  }
  return tilewright::Run(argc, argv);
}
