#include <cstdio>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/commands.h"
#include "cli/task_flags.h"
#include "schedule/explain.h"
#include "schedule/variant.h"
#include "search/training_rows.h"

namespace tilewright {
namespace {

struct ExplainFlags {
  TaskFlags tasks;
  std::string schedule;
};

int Explain(const ExplainFlags& flags) {
  const absl::StatusOr<std::vector<TuneTask>> tasks = flags.tasks.Tasks();
  if (!tasks.ok()) return Fail(tasks.status());
  const absl::StatusOr<Target> target = flags.tasks.FindTarget();
  if (!target.ok()) return Fail(target.status());
  for (const TuneTask& task : *tasks) {
    const absl::StatusOr<std::shared_ptr<const ScheduleSpace>> space = SpaceOf(task, *target);
    if (!space.ok()) return Fail(space.status());
    std::printf("workload %s\n%s\ntarget %s\nregime %s\n\n", task.workload.key().c_str(),
                task.workload.canonical_text().c_str(), target->ToString().c_str(),
                task.regime.ToString(task.workload).c_str());
    if (flags.schedule.empty()) {
      std::fputs(ExplainSpace(**space).c_str(), stdout);
      continue;
    }
    const absl::StatusOr<Schedule> schedule = ParseSchedule(flags.schedule);
    if (!schedule.ok()) return Fail(schedule.status());
    const absl::StatusOr<absl::uint128> index = (*space)->space().IndexOf(*schedule);
    if (!index.ok()) return Fail(index.status());
    const absl::StatusOr<std::string> score = ExplainScore(*space, task.regime.at, *schedule);
    if (!score.ok()) return Fail(score.status());
    std::printf("%s\n%s", ExplainSchedule(**space, *schedule, task.regime.at).c_str(),
                score->c_str());
  }
  return kExitOk;
}

}  // namespace

std::function<int()> AddExplain(CLI::App* app) {
  auto flags = std::make_shared<ExplainFlags>();
  flags->tasks.Add(app);
  app->add_option("--schedule", flags->schedule,
                  "a schedule's text: show its plan, features and score, or why it is illegal");
  return [flags] { return Explain(*flags); };
}

}  // namespace tilewright
