#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/record_json.h"
#include "cli/text_table.h"
#include "db/database.h"
#include "db/find_workload.h"
#include "measure/failure.h"

namespace tilewright {
namespace {

struct QueryFlags {
  std::string what = "trials";
  std::string db = "tuning.db";
  std::string workload;  // a name, or the beginning of a key
  std::string target;    // a kind
  std::string regime;
  std::string run;    // an id
  std::string state;  // ok or failed
  std::string failure;
  std::string order = "committed";
  int64_t limit = 50;
  bool all = false;  // verdicts: replaced ones too
  bool json = false;
};

// Rows beyond the limit are not shown: says so, beside the rows themselves.
void SayIfCut(size_t rows, const QueryFlags& flags) {
  if (static_cast<int64_t>(rows) < flags.limit) return;
  std::fprintf(stderr, "%zu rows shown; more with --limit\n", rows);
}

absl::StatusOr<TrialFilter> MakeFilter(Database& log, const QueryFlags& flags) {
  TrialFilter filter{.target_kind = flags.target,
                     .regime = flags.regime,
                     .failure_kind = flags.failure,
                     .limit = flags.limit};
  if (!flags.workload.empty()) {
    absl::StatusOr<std::string> key = FindWorkloadKey(log, flags.workload);
    if (!key.ok()) return key.status();
    filter.workload_key = *key;
  }
  if (!flags.run.empty()) {
    absl::StatusOr<Id> id = Id::FromHex(flags.run);
    if (!id.ok()) return id.status();
    filter.run = *id;
  }
  if (flags.state == "ok") filter.state = TrialFilter::State::kOk;
  if (flags.state == "failed") filter.state = TrialFilter::State::kFailed;
  filter.order = flags.order == "newest"    ? TrialFilter::Order::kNewest
                 : flags.order == "fastest" ? TrialFilter::Order::kFastest
                                            : TrialFilter::Order::kCommitted;
  return filter;
}

int Trials(Database& log, const QueryFlags& flags) {
  const absl::StatusOr<TrialFilter> filter = MakeFilter(log, flags);
  if (!filter.ok()) return Fail(filter.status());
  const absl::StatusOr<std::vector<TrialRow>> trials = log.QueryTrials(*filter);
  if (!trials.ok()) return Fail(trials.status());
  TextTable table({"trial", "workload", ">time", ">of anchor", "schedule or failure"});
  for (const TrialRow& trial : *trials) {
    if (flags.json) {
      std::printf("%s\n", TrialJson(trial).c_str());
      continue;
    }
    const bool relative = trial.seconds && trial.anchor_seconds;
    table.Add({trial.id.ToHex(), trial.workload_key.substr(0, 8),
               trial.seconds ? FormatSeconds(*trial.seconds) : "-",
               relative ? absl::StrFormat("%.3f", *trial.seconds / *trial.anchor_seconds) : "-",
               trial.failure ? absl::StrCat(trial.schedule, "  ", trial.failure->kind, ": ",
                                            trial.failure->message)
                             : trial.schedule});
  }
  if (!flags.json) std::fputs(table.ToString().c_str(), stdout);
  SayIfCut(trials->size(), flags);
  return kExitOk;
}

int Failures(Database& log, const QueryFlags& flags) {
  const absl::StatusOr<TrialFilter> filter = MakeFilter(log, flags);
  if (!filter.ok()) return Fail(filter.status());
  const auto counts = log.CountFailures(*filter);
  if (!counts.ok()) return Fail(counts.status());
  TextTable table({"failure", ">trials"});
  for (const auto& [kind, count] : *counts) {
    if (flags.json) {
      std::printf("{\"failure\":\"%s\",\"trials\":%lld}\n", kind.c_str(),
                  static_cast<long long>(count));
    } else {
      table.Add({kind, absl::StrCat(count)});
    }
  }
  if (!flags.json) std::fputs(table.ToString().c_str(), stdout);
  return kExitOk;
}

int Verdicts(Database& log, const QueryFlags& flags) {
  VerdictFilter filter{.target_kind = flags.target,
                       .regime = flags.regime,
                       .current_only = !flags.all,
                       .limit = flags.limit};
  if (!flags.workload.empty()) {
    absl::StatusOr<std::string> key = FindWorkloadKey(log, flags.workload);
    if (!key.ok()) return Fail(key.status());
    filter.workload_key = *key;
  }
  const absl::StatusOr<std::vector<VerdictRow>> verdicts = log.QueryVerdicts(filter);
  if (!verdicts.ok()) return Fail(verdicts.status());
  TextTable table({"verdict", "workload", ">time", "outcome", ">ratio", "winner"});
  for (const VerdictRow& verdict : *verdicts) {
    if (flags.json) {
      std::printf("%s\n", VerdictJson(verdict).c_str());
      continue;
    }
    table.Add({verdict.id.ToHex(), verdict.workload_key.substr(0, 8),
               verdict.winner_seconds ? FormatSeconds(*verdict.winner_seconds) : "-",
               verdict.outcome, absl::StrFormat("%.3f", verdict.ratio), verdict.winner_schedule});
  }
  if (!flags.json) std::fputs(table.ToString().c_str(), stdout);
  SayIfCut(verdicts->size(), flags);
  return kExitOk;
}

int Runs(Database& log, const QueryFlags& flags) {
  const absl::StatusOr<std::vector<RunRow>> runs = log.ListRuns({.limit = flags.limit});
  if (!runs.ok()) return Fail(runs.status());
  TextTable table({"run", "state", "workload", ">seed", "regime"});
  for (const RunRow& run : *runs) {
    if (flags.json) {
      std::printf("%s\n", RunJson(run).c_str());
      continue;
    }
    std::vector<std::string> keys;
    for (const RunWorkload& workload : run.workloads)
      keys.push_back(workload.workload_key.substr(0, 8));
    table.Add(
        {run.id.ToHex(), run.state, absl::StrJoin(keys, " "), absl::StrCat(run.seed), run.regime});
  }
  if (!flags.json) std::fputs(table.ToString().c_str(), stdout);
  SayIfCut(runs->size(), flags);
  return kExitOk;
}

int Workloads(Database& log, const QueryFlags& flags) {
  const absl::StatusOr<std::vector<WorkloadRow>> workloads = log.ListWorkloads();
  if (!workloads.ok()) return Fail(workloads.status());
  TextTable table({"key", "name", "sizes", "types", "source"});
  for (const WorkloadRow& workload : *workloads) {
    if (flags.json) {
      std::printf("%s\n", WorkloadJson(workload).c_str());
      continue;
    }
    table.Add({workload.key.substr(0, 16), workload.name, workload.sizes, workload.types,
               workload.source});
  }
  if (!flags.json) std::fputs(table.ToString().c_str(), stdout);
  return kExitOk;
}

struct Listing {
  const char* name;
  int (*print)(Database&, const QueryFlags&);
  std::vector<std::string> flags;  // that it heeds, beside --db and --json
};
const std::vector<Listing>& Listings() {
  static const auto* listings = new std::vector<Listing>{
      {"trials",
       Trials,
       {"workload", "target", "regime", "run", "state", "failure", "order", "limit"}},
      {"verdicts", Verdicts, {"workload", "target", "regime", "all", "limit"}},
      {"runs", Runs, {"limit"}},
      {"workloads", Workloads, {}},
      {"failures", Failures, {"workload", "target", "regime", "run", "failure"}}};
  return *listings;
}

// A flag that a listing does not heed would leave rows in the answer that were not asked for.
absl::Status CheckFlags(const CLI::App& app, const Listing& listing) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0 || option->get_lnames().empty()) continue;
    const std::string& flag = option->get_lnames()[0];
    if (flag == "db" || flag == "json" || absl::c_linear_search(listing.flags, flag)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("query ", listing.name, " does not heed --", flag, "; it heeds --db, --json",
                     listing.flags.empty() ? "" : ", --", absl::StrJoin(listing.flags, ", --")));
  }
  return absl::OkStatus();
}

// A kind that nothing can have is a slip of the pen, not an empty answer.
absl::Status CheckKinds(Database& log, const QueryFlags& flags) {
  if (!flags.target.empty()) {
    const absl::StatusOr<std::vector<TargetRow>> targets = log.ListTargets();
    if (!targets.ok()) return targets.status();
    std::set<std::string> kinds;
    for (const TargetRow& target : *targets) kinds.insert(target.kind);
    if (!kinds.contains(flags.target)) {
      return absl::NotFoundError(absl::StrCat("no target in the log is `", flags.target,
                                              "`; its kinds are ", absl::StrJoin(kinds, ", ")));
    }
  }
  return flags.failure.empty() ? absl::OkStatus() : ParseFailureKind(flags.failure).status();
}

int RunQuery(const CLI::App& app, const QueryFlags& flags) {
  const Listing& listing =
      *absl::c_find_if(Listings(), [&](const Listing& known) { return flags.what == known.name; });
  if (absl::Status heeded = CheckFlags(app, listing); !heeded.ok()) return Fail(heeded);
  absl::StatusOr<std::unique_ptr<Database>> log = Database::OpenReader(flags.db);
  if (!log.ok()) return FailToOpen(log.status());
  if (absl::Status known = CheckKinds(**log, flags); !known.ok()) return Fail(known);
  return listing.print(**log, flags);
}

}  // namespace

std::function<int()> AddQuery(CLI::App* app) {
  auto flags = std::make_shared<QueryFlags>();
  std::vector<std::string> names;
  for (const Listing& listing : Listings()) names.push_back(listing.name);
  app->add_option("what", flags->what, "what to list")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  app->add_option("--db", flags->db, "the tuning log")->capture_default_str();
  app->add_option("--workload", flags->workload, "a workload's name, or the beginning of its key");
  app->add_option("--target", flags->target, "a target's kind");
  app->add_option("--regime", flags->regime, "a regime, as listed");
  app->add_option("--run", flags->run, "a run's id");
  app->add_option("--state", flags->state, "ok or failed")->check(CLI::IsMember({"ok", "failed"}));
  app->add_option("--failure", flags->failure, "a failure's kind");
  app->add_option("--order", flags->order,
                  "committed, newest or fastest (times of different sessions do not compare)")
      ->check(CLI::IsMember({"committed", "newest", "fastest"}))
      ->capture_default_str();
  app->add_option("--limit", flags->limit, "rows at most")
      ->check(CLI::Range(int64_t{1}, int64_t{100000000}))
      ->capture_default_str();
  app->add_flag("--all", flags->all, "verdicts: those that were replaced as well");
  app->add_flag("--json", flags->json, "one JSON object per row");
  return [app, flags] { return RunQuery(*app, *flags); };
}

}  // namespace tilewright
