#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/task_flags.h"
#include "cli/text_table.h"
#include "cli/tune_report.h"
#include "codegen/writer.h"
#include "costmodel/model.h"
#include "measure/local_worker.h"
#include "schedule/variant.h"
#include "search/coordinator.h"
#include "search/log_sink.h"
#include "search/shared_tuning.h"
#include "search/tuner.h"

namespace tilewright {
namespace {

struct TuneFlags {
  TaskFlags tasks;
  TuneOptions options;
  std::string db = "tuning.db";
  std::string time_limit;
  std::string dump;
  int64_t floor = SharedTuning{}.floor;
  bool resume = false;
  bool json = false;
  bool dry_run = false;
  bool no_finals = false;
  bool no_starts = false;
  bool no_log = false;
};

// Set by the first Ctrl-C, or by what ends a job or its terminal: the search ends with the best so
// far. The second ends the program at once; the log is safe.
std::atomic<bool> stop_requested{false};
void HandleInterrupt(int) {
  if (stop_requested.exchange(true)) _exit(130);
}

void HandleInterrupts() {
  std::signal(SIGINT, HandleInterrupt);
  std::signal(SIGTERM, HandleInterrupt);
  // nohup ignores SIGHUP, and so a program under it shall.
  if (std::signal(SIGHUP, HandleInterrupt) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
}

std::vector<std::string> EffortNames() {
  std::vector<std::string> names;
  for (const Effort& effort : AllEfforts()) names.push_back(effort.name);
  return names;
}

std::vector<std::string> StrategyHelp() {
  std::vector<std::string> lines;
  for (const StrategyRow& row : AllStrategies())
    lines.push_back(absl::StrCat(row.name, ": ", row.help));
  return lines;
}

std::vector<std::string> ModelHelp() {
  std::vector<std::string> lines;
  for (const ModelRow& row : AllModels()) lines.push_back(absl::StrCat(row.name, ": ", row.help));
  return lines;
}

// What the log knows of a task's best; null: there is no log.
std::string KnownText(Database* log, const TuneTask& task, const Target& target) {
  if (log == nullptr) return "no";
  const absl::StatusOr<BestAnswer> best =
      log->Best(task.workload.key(), TargetKey(target), task.regime.ToString(task.workload));
  if (!best.ok()) return "no";
  return best->verdicts.empty()      ? "unverified"
         : best->verdicts.size() > 1 ? "contested"
                                     : "verdict";
}

// How several share: `total` trials, of which the floors take `first`.
std::string SharingText(const TuneFlags& flags, int64_t trials, double total, double first) {
  if (flags.floor >= trials)
    return absl::StrFormat("equal shares of at most %d trials, %.0f in all", trials, first);
  return absl::StrFormat(
      "%.0f trials in all: the floors first, together %.0f; the other %.0f by turns where they are "
      "expected to save most of the weighted time",
      total, first, total - first);
}

// --dry-run: what would be done.
int DryRun(const TuneFlags& flags, const std::vector<TuneTask>& tasks, const Target& target) {
  absl::StatusOr<std::unique_ptr<Database>> log = Database::OpenReader(flags.db);
  if (!log.ok() && !absl::IsNotFound(log.status())) return FailToOpen(log.status());
  const int64_t trials = TrialsOf(flags.options);
  const bool shared = tasks.size() > 1;
  TextTable table(
      shared
          ? std::vector<std::string>{"workload", ">weight", "key", "known", ">schedules", ">floor"}
          : std::vector<std::string>{"workload", "key", "known", ">schedules", ">trials"});
  double all_schedules = 0;
  double first = 0;
  for (const TuneTask& task : tasks) {
    absl::StatusOr<std::shared_ptr<const ScheduleSpace>> space = SpaceOf(task, target);
    if (!space.ok()) return Fail(space.status());
    const double schedules = static_cast<double>((*space)->space().Count());
    const int64_t surely = shared ? std::min(flags.floor, trials) : trials;
    const double own = std::min(static_cast<double>(surely), schedules);
    all_schedules += schedules;
    first += own;
    std::vector<std::string> row = {TitleOf(task), task.workload.key().substr(0, 12),
                                    KnownText(log.ok() ? log->get() : nullptr, task, target),
                                    FormatCount(schedules), absl::StrFormat("%.0f", own)};
    if (shared) row.insert(row.begin() + 1, absl::StrFormat("%g", task.weight));
    table.Add(row);
  }
  const double total = std::min(static_cast<double>(trials) * tasks.size(), all_schedules);
  std::printf("%s%zu workload%s on %s; at most %s of device time (40 ms a trial)%s\n",
              table.ToString().c_str(), tasks.size(), shared ? "s" : "", target.kind.c_str(),
              FormatSeconds(0.04 * total).c_str(),
              flags.time_limit.empty()
                  ? ""
                  : absl::StrCat("; ends, finals included, after ", flags.time_limit).c_str());
  if (shared) std::printf("%s\n", SharingText(flags, trials, total, first).c_str());
  return kExitOk;
}

// Refuses a workload that this machine's memory cannot hold once, with the reference of its outputs
// (a value and a bound in f64 each). Without this the system would end other processes first.
absl::Status CheckFitsMemory(const TuneTask& task) {
  const Sizes& at = task.regime.at;
  double bytes = task.workload.CompulsoryBytes(at);
  for (int output : task.workload.outputs()) {
    double elements = 1;
    for (int64_t size : task.workload.Shape(output, at)) elements *= static_cast<double>(size);
    bytes += 16 * elements;
  }
  const double memory =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (bytes <= 0.9 * memory) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s: its tensors and their reference take %.3g GB, this machine has %.3g GB of memory",
      TitleOf(task), bytes / 1e9, memory / 1e9));
}

// Refuses what cannot be tuned here, all of it before anything is begun.
absl::Status CheckBeforeBeginning(const TuneFlags& flags, const std::vector<TuneTask>& tasks,
                                  const Target& target) {
  if (absl::Status here = flags.tasks.CheckIsHere(target); !here.ok()) return here;
  if (!flags.dump.empty()) {
    std::error_code error;
    std::filesystem::create_directories(flags.dump, error);
    if (error || access(flags.dump.c_str(), W_OK | X_OK) != 0) {
      return absl::InvalidArgumentError(absl::StrCat("--dump ", flags.dump, ": ",
                                                     error ? error.message() : std::strerror(errno),
                                                     "; expected a directory that can be written"));
    }
  }
  for (const TuneTask& task : tasks) {
    if (const auto space = SpaceOf(task, target); !space.ok()) return space.status();
    if (target.backend == "host") {
      if (absl::Status fits = CheckFitsMemory(task); !fits.ok()) return fits;
    }
    if (target.backend == "host" && task.regime.chain == Regime::Chain::kDependent) {
      return absl::InvalidArgumentError(
          "regime: chain=dependent is for GPUs; a CPU accepts chain=plain");
    }
  }
  return absl::OkStatus();
}

// Coordinator and local worker: what a lone `tune` needs around the tuner.
struct Fleet {
  std::unique_ptr<PrivateDirectory> directory;
  std::unique_ptr<Coordinator> coordinator;
  std::unique_ptr<LocalWorker> worker;
  std::unique_ptr<TuningClient> client;
};

absl::StatusOr<Fleet> StartFleet(const TuneFlags& flags, const Target& target,
                                 std::unique_ptr<Database> writer) {
  Fleet fleet;
  absl::StatusOr<std::unique_ptr<PrivateDirectory>> directory = PrivateDirectory::Make();
  if (!directory.ok()) return directory.status();
  fleet.directory = *std::move(directory);
  const std::string address = fleet.directory->socket_address();
  absl::StatusOr<std::unique_ptr<Coordinator>> coordinator =
      Coordinator::Start({.listen = {address}}, NewLogSink(std::move(writer)));
  if (!coordinator.ok()) return coordinator.status();
  fleet.coordinator = *std::move(coordinator);
  LocalWorkerOptions options{.address = address};
  if (target.is_gpu()) {
    // Leases so long that all builders have work while the device measures.
    options.flags = {"--target", "cuda", "--batch", "16"};
    if (!flags.tasks.device.empty()) {
      options.flags.insert(options.flags.end(), {"--device", flags.tasks.device});
    }
  } else {
    options.flags = {"--cores", absl::StrCat(flags.tasks.cores)};
  }
  if (!flags.dump.empty()) options.flags.insert(options.flags.end(), {"--dump", flags.dump});
  absl::StatusOr<std::unique_ptr<LocalWorker>> worker = LocalWorker::Start(std::move(options));
  if (!worker.ok()) return worker.status();
  fleet.worker = *std::move(worker);
  fleet.client = NewLocalTuningClient(fleet.coordinator.get());
  return fleet;
}

// One workload by itself, several with a shared budget; every report as it comes.
int TuneAll(const TuneFlags& flags, const std::vector<TuneTask>& tasks, const Target& target,
            TuningClient* client, Database* log) {
  TunerContext context{.client = client,
                       .log = log,
                       .target = target,
                       .toolchain = ToolchainId(target),
                       .variants = AllVariants(),
                       .libraries = AllLibraries(),
                       .stop = &stop_requested};
  std::vector<std::unique_ptr<ProgressLine>> lines;
  for (size_t i = 0; i < tasks.size(); ++i) {
    lines.push_back(std::make_unique<ProgressLine>(TitleOf(tasks[i]), static_cast<int>(i + 1),
                                                   static_cast<int>(tasks.size()), !flags.json));
  }
  int exit_code = kExitOk;
  std::map<size_t, TuneReport> reports;  // by task
  const auto ended = [&](size_t i, absl::StatusOr<TuneReport> report) {
    const std::string title = TitleOf(tasks[i]);
    lines[i]->Finish();
    if (!report.ok()) {
      exit_code = Fail(absl::Status(report.status().code(),
                                    absl::StrCat(title, ": ", report.status().message())));
      return;
    }
    if (!HasBest(*report)) exit_code = kExitFailed;
    std::fputs(
        flags.json ? ReportJson(*report).c_str() : ReportText(*report, title, flags.db).c_str(),
        stdout);
    std::fflush(stdout);
    reports.emplace(i, *std::move(report));
  };
  if (tasks.size() > 1) {
    TuneShared(
        context, tasks, {.each = flags.options, .floor = flags.floor, .resume = flags.resume},
        {.progress = [&](size_t i, const TuneProgress& progress) { lines[i]->Show(progress); },
         .ended = ended});
    if (!flags.json) std::fputs(SharesText(reports).c_str(), stdout);
    return exit_code;
  }
  std::optional<Id> resume;
  if (flags.resume) {
    absl::StatusOr<std::optional<Id>> unfinished = FindUnfinishedRun(*log, tasks[0], target);
    if (!unfinished.ok()) return Fail(unfinished.status());
    resume = *unfinished;
  }
  context.progress = [&](const TuneProgress& progress) { lines[0]->Show(progress); };
  ended(0, TuneWorkload(context, tasks[0], flags.options, resume));
  return exit_code;
}

int Tune(TuneFlags& flags) {
  if (!flags.time_limit.empty() &&
      (!absl::ParseDuration(flags.time_limit, &flags.options.time_limit) ||
       flags.options.time_limit <= absl::ZeroDuration())) {
    return Fail(absl::InvalidArgumentError(absl::StrCat("--time-limit `", flags.time_limit,
                                                        "` is not a time; 90s, 2m and 1h30m are")));
  }
  flags.options.run_finals = !flags.no_finals;
  flags.options.use_starts = !flags.no_starts;
  flags.options.use_log = !flags.no_log;
  if (const auto strategy = ParseStrategy(flags.options.strategy); !strategy.ok())
    return Fail(strategy.status());
  if (const auto effort = FindEffort(flags.options.effort); !effort.ok())
    return Fail(effort.status());
  if (const auto model = FindModel(flags.options.model);
      !model.ok() && flags.options.model != "none")
    return Fail(absl::InvalidArgumentError(absl::StrCat(model.status().message(), ", none")));
  const absl::StatusOr<std::vector<TuneTask>> tasks = flags.tasks.Tasks();
  if (!tasks.ok()) return Fail(tasks.status());
  const absl::StatusOr<Target> target = flags.tasks.FindTarget();
  if (!target.ok()) return Fail(target.status());
  if (flags.dry_run) return DryRun(flags, *tasks, *target);
  if (absl::Status fits = CheckBeforeBeginning(flags, *tasks, *target); !fits.ok())
    return Fail(fits);

  absl::StatusOr<std::unique_ptr<Database>> writer = Database::OpenWriter(flags.db);
  if (!writer.ok()) return FailToOpen(writer.status());
  for (const TuneTask& task : *tasks) {
    if (absl::Status status = RegisterTask(**writer, task, *target); !status.ok())
      return Fail(status);
  }
  absl::StatusOr<std::unique_ptr<Database>> reader = Database::OpenReader(flags.db);
  if (!reader.ok()) return FailToOpen(reader.status());
  HandleInterrupts();
  absl::StatusOr<Fleet> fleet = StartFleet(flags, *target, *std::move(writer));
  if (!fleet.ok()) return Fail(fleet.status());

  const int exit_code = TuneAll(flags, *tasks, *target, fleet->client.get(), reader->get());
  fleet->coordinator->Drain();
  return exit_code;
}

}  // namespace

std::function<int()> AddTune(CLI::App* app) {
  auto flags = std::make_shared<TuneFlags>();
  flags->tasks.Add(app);
  app->add_option("--db", flags->db, "the tuning log; created if there is none")
      ->capture_default_str();
  app->add_option("--strategy", flags->options.strategy,
                  absl::StrCat("how to search; ", absl::StrJoin(StrategyHelp(), "; ")))
      ->capture_default_str();
  app->add_option(
         "--model", flags->options.model,
         absl::StrCat("the cost model; ", absl::StrJoin(ModelHelp(), "; "), "; none: no model"))
      ->capture_default_str();
  app->add_option("--effort", flags->options.effort,
                  absl::StrCat("how hard to try: ", absl::StrJoin(EffortNames(), ", ")))
      ->capture_default_str();
  app->add_option("--trials", flags->options.trials,
                  "screening trials per workload, of several on average; default: what the effort "
                  "says")
      ->check(CLI::Range(int64_t{1}, int64_t{100000000}));
  app->add_option("--floor", flags->floor,
                  "of several workloads, which share their trials by the time that these are "
                  "expected to save, weighted: trials that each gets first; as many as --trials: "
                  "equal shares")
      ->check(CLI::Range(int64_t{1}, int64_t{100000000}))
      ->capture_default_str();
  app->add_option("--rounds", flags->options.rounds,
                  "paired rounds that decide in the finals, six at least, as fewer have no 95% "
                  "interval; default: what the effort says")
      ->check(CLI::Range(6, 1000));
  app->add_option(
      "--time-limit", flags->time_limit,
      "for all workloads, finals included: 90s, 2m, 1h30m; only what each must do may take "
      "longer: a quarter of a batch and its verdict's rounds");
  app->add_option("--seed", flags->options.seed, "decides the order of proposals and the inputs")
      ->check(CLI::Range(uint64_t{0}, uint64_t{std::numeric_limits<int64_t>::max()}))
      ->capture_default_str();
  app->add_option("--batch", flags->options.batch, "schedules proposed at a time")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app->add_option("--dump", flags->dump,
                  "write schedule, IR and assembly of every candidate into this directory");
  app->add_flag("--resume", flags->resume,
                "go on with the unfinished run of each workload, where there is one; --trials, "
                "--rounds and --time-limit are this call's, strategy, model, effort, seed and "
                "batch the run's");
  app->add_flag("--no-finals", flags->no_finals, "screen only: no verdict");
  app->add_flag("--no-starts", flags->no_starts,
                "do not propose the default and known winners first");
  app->add_flag("--no-log", flags->no_log, "let the model learn from this run alone");
  app->add_flag("--dry-run", flags->dry_run, "show what would be tuned, and stop");
  app->add_flag("--json", flags->json, "one JSON object per workload instead of tables");
  return [flags] { return Tune(*flags); };
}

}  // namespace tilewright
