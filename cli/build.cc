#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/task_flags.h"
#include "cli/text_table.h"
#include "search/production.h"

namespace tilewright {
namespace {

struct BuildFlags {
  TaskFlags tasks;
  std::string db = "tuning.db";
  std::string out;
  std::string name;
  std::string reuse;
  std::vector<std::string> trusted;
  bool strict = false;
};

// "out/demo_kernels/" -> "demo_kernels".
std::string LastComponent(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path.substr(path.find_last_of('/') + 1);
}

int Build(const BuildFlags& flags) {
  absl::StatusOr<std::vector<TuneTask>> tasks = flags.tasks.AllTasks();  // every name is a function
  if (!tasks.ok()) return Fail(tasks.status());
  const absl::StatusOr<Target> target = flags.tasks.FindTarget();
  if (!target.ok()) return Fail(target.status());
  if (tasks->size() == 1 && (*tasks)[0].name.empty()) (*tasks)[0].name = "kernel";
  for (const TuneTask& task : *tasks) {  // refuse all before anything is begun
    if (const auto space = SpaceOf(task, *target); !space.ok()) return Fail(space.status());
  }
  absl::StatusOr<std::unique_ptr<Database>> log = Database::OpenReader(flags.db);
  if (!log.ok()) return FailToOpen(log.status());
  const ProductionOptions options{
      .name = flags.name.empty() ? LastComponent(flags.out) : flags.name,
      .target = *target,
      .catalogue = DefaultCatalogue(),
      .strict = flags.strict,
      .reuse = flags.reuse,
      .trusted_origins = flags.trusted};
  const absl::StatusOr<ProductionReport> report =
      BuildProduction(log->get(), *tasks, options, flags.out);
  if (!report.ok()) return Fail(report.status());
  for (const std::string& warning : report->warnings)
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
  TextTable table(
      {"function", "from", "digest", "library's time", "schedule", "not exact because"});
  for (const ProductionRow& row : report->rows) {
    table.Add({row.name, absl::StrCat(row.provenance.kind, row.reused ? ", reused" : ""),
               row.digests.binary.substr(0, 12),
               row.against_library ? absl::StrFormat("%.3f of ours", *row.against_library) : "",
               row.schedule.ToString(), row.inexact});
  }
  std::fputs(table.ToString().c_str(), stdout);
  if (!report->written) {
    std::fprintf(stderr, "tilewright: --strict: nothing was written, see the last column\n");
    return kExitStrictMiss;
  }
  std::printf("written to %s\n", flags.out.c_str());
  return kExitOk;
}

}  // namespace

std::function<int()> AddBuild(CLI::App* app) {
  auto flags = std::make_shared<BuildFlags>();
  flags->tasks.Add(app);
  app->add_option("--db", flags->db, "the tuning log")->capture_default_str();
  app->add_option("--out", flags->out, "the pack's directory; an older pack there is replaced")
      ->required();
  app->add_option("--name", flags->name,
                  "of the CMake package and the header; default: the directory's");
  app->add_flag(
      "--strict", flags->strict,
      "write nothing unless every kernel is exactly one that won a verdict (else exit 3)");
  app->add_option("--reuse", flags->reuse,
                  "an older pack whose unchanged kernels are copied byte for byte");
  app->add_option("--trust", flags->trusted,
                  "with --strict: origins whose imported verdicts count");
  return [flags] { return Build(*flags); };
}

}  // namespace tilewright
