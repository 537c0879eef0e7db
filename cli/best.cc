#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/record_json.h"
#include "cli/task_flags.h"
#include "cli/text_table.h"
#include "db/database.h"

namespace tilewright {
namespace {

struct BestFlags {
  TaskFlags tasks;
  std::string db = "tuning.db";
  bool json = false;
};

void PrintText(const std::string& title, const BestAnswer& best) {
  switch (best.kind) {
    case BestAnswer::Kind::kUnverified:
      std::printf("%s: %s, %s, unverified (trial %s)\n", title.c_str(),
                  best.trial->schedule.c_str(), FormatSeconds(*best.trial->seconds).c_str(),
                  best.trial->id.ToHex().c_str());
      return;
    case BestAnswer::Kind::kContested:
      std::printf(
          "%s: contested by %zu verdicts that do not replace each other; another `tilewright tune` "
          "settles that\n",
          title.c_str(), best.verdicts.size());
      break;
    case BestAnswer::Kind::kVerdict:
      break;
  }
  for (const VerdictRow& verdict : best.verdicts) {
    std::printf(
        "%s: %s%s, %s than %s (%s), verdict %s\n", title.c_str(), verdict.winner_schedule.c_str(),
        verdict.winner_seconds ? absl::StrCat(", ", FormatSeconds(*verdict.winner_seconds)).c_str()
                               : "",
        verdict.outcome == "tie" ? "no faster" : verdict.outcome.c_str(),
        verdict.rival_schedule.c_str(),
        FormatSpeed(verdict.ratio, verdict.ratio_low, verdict.ratio_high).c_str(),
        verdict.id.ToHex().c_str());
  }
}

int Best(const BestFlags& flags) {
  const absl::StatusOr<std::vector<TuneTask>> tasks = flags.tasks.Tasks();
  if (!tasks.ok()) return Fail(tasks.status());
  const absl::StatusOr<Target> target = flags.tasks.FindTarget();
  if (!target.ok()) return Fail(target.status());
  absl::StatusOr<std::unique_ptr<Database>> log = Database::OpenReader(flags.db);
  if (!log.ok()) return FailToOpen(log.status());
  int exit_code = kExitOk;
  for (const TuneTask& task : *tasks) {
    const std::string title = TitleOf(task);
    const absl::StatusOr<BestAnswer> best =
        (*log)->Best(task.workload.key(), TargetKey(*target), task.regime.ToString(task.workload));
    if (absl::IsNotFound(best.status())) {
      std::fprintf(stderr, "tilewright: %s: nothing is known on %s in regime `%s`\n", title.c_str(),
                   target->kind.c_str(), task.regime.ToString(task.workload).c_str());
      exit_code = kExitFailed;
      continue;
    }
    if (!best.ok()) return Fail(best.status());
    if (flags.json) {
      std::printf("%s\n", BestJson(title, *best).c_str());
    } else {
      PrintText(title, *best);
    }
  }
  return exit_code;
}

}  // namespace

std::function<int()> AddBest(CLI::App* app) {
  auto flags = std::make_shared<BestFlags>();
  flags->tasks.Add(app);
  app->add_option("--db", flags->db, "the tuning log")->capture_default_str();
  app->add_flag("--json", flags->json, "one JSON object per workload");
  return [flags] { return Best(*flags); };
}

}  // namespace tilewright
