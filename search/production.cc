#include "search/production.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "schedule/operators.h"
#include "search/model_surrogate.h"
#include "search/starts.h"

namespace tilewright {
namespace {

// Enough to find a near one; a log with more winners of one device kind is asked for the newest.
constexpr int64_t kMostNeighbours = 1000;

absl::Status AtTask(const TuneTask& task, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(task.name.empty() ? task.source : task.name, ": ",
                                                  status.message()));
}

// How unlike two workloads are: the ratios of their operations and of their bytes, as powers of
// two. A record of the same workload in another regime or on another device of the kind is at
// distance 0.
double Distance(const Workload& a, const Workload& b) {
  const Sizes sizes_a = a.HighestSizes();
  const Sizes sizes_b = b.HighestSizes();
  auto apart = [](double x, double y) { return std::abs(std::log2((x + 1) / (y + 1))); };
  return apart(a.Operations(sizes_a), b.Operations(sizes_b)) +
         apart(a.CompulsoryBytes(sizes_a), b.CompulsoryBytes(sizes_b));
}

struct Neighbour {
  double distance;
  Schedule schedule;
  std::string record;
};

// Winners of other workloads on this kind of device whose schedule is legal here, nearest first;
// among equals the newest.
absl::StatusOr<std::vector<Neighbour>> FindNeighbours(Database& log, const ScheduleSpace& space) {
  absl::StatusOr<std::vector<VerdictRow>> verdicts =
      log.QueryVerdicts({.target_kind = space.target().kind, .limit = kMostNeighbours});
  if (!verdicts.ok()) return verdicts.status();
  std::vector<Neighbour> neighbours;
  for (const VerdictRow& verdict : *verdicts) {
    absl::StatusOr<Schedule> schedule = ParseSchedule(verdict.winner_schedule);
    // Winners of other families are illegal here: no cause for a warning.
    if (!schedule.ok() || !space.space().IndexOf(*schedule).ok()) continue;
    absl::StatusOr<WorkloadRow> row = log.FindWorkload(verdict.workload_key);
    if (!row.ok()) continue;
    absl::StatusOr<Workload> workload = Workload::FromCanonicalText(row->canonical_text);
    if (!workload.ok()) continue;
    neighbours.push_back(
        {Distance(space.workload(), *workload), *std::move(schedule),
         absl::StrCat("winner of ", row->name.empty() ? row->source : row->name, " ", row->sizes)});
  }
  std::stable_sort(neighbours.begin(), neighbours.end(),
                   [](const Neighbour& a, const Neighbour& b) { return a.distance < b.distance; });
  return neighbours;
}

// The nearest neighbour that the model (before it has learned anything: the bound) ranks no lower
// than the default.
absl::StatusOr<std::optional<Neighbour>> NearestGoodNeighbour(
    Database& log, std::shared_ptr<const ScheduleSpace> space, const TuneTask& task) {
  absl::StatusOr<std::vector<Neighbour>> neighbours = FindNeighbours(log, *space);
  if (!neighbours.ok()) return neighbours.status();
  if (neighbours->empty()) return std::optional<Neighbour>();
  absl::StatusOr<int64_t> through_row = log.HighestTrialRow();
  if (!through_row.ok()) return through_row.status();
  absl::StatusOr<std::unique_ptr<LearningSurrogate>> model =
      NewModelSurrogate(space, task.regime.at, task.regime.ToString(task.workload),
                        {.log = &log, .through_row = *through_row});
  if (!model.ok()) return model.status();
  std::vector<absl::uint128> indices = {*space->space().IndexOf(space->DefaultSchedule())};
  for (const Neighbour& neighbour : *neighbours)
    indices.push_back(*space->space().IndexOf(neighbour.schedule));
  const std::vector<double> scores = (*model)->Score(indices);  // lower: faster
  for (size_t i = 0; i < neighbours->size(); ++i) {
    if (scores[i + 1] <= scores[0]) return std::optional<Neighbour>((*neighbours)[i]);
  }
  return std::optional<Neighbour>();
}

// What the log knows of exactly this workload, target and regime; false if nothing that can be
// used.
bool TakeBest(const BestAnswer& best, const ScheduleSpace& space, Database& log,
              const ProductionOptions& options, PackChoice* choice,
              std::vector<std::string>* warnings) {
  PackItem& item = choice->item;
  if (!best.verdicts.empty()) {
    const VerdictRow& verdict = best.verdicts.front();
    const std::string record = absl::StrCat("verdict ", verdict.id.ToHex());
    std::optional<Schedule> schedule =
        LegalSchedule(space, verdict.winner_schedule, record, warnings);
    if (!schedule) return false;
    item.schedule = *std::move(schedule);
    item.expected = {
        .ir = verdict.winner_ir_digest, .assembly = "", .binary = verdict.winner_binary_digest};
    item.provenance = {"verdict",
                       absl::StrFormat("%s, %s, %.3fx", record, verdict.outcome, verdict.ratio)};
    if (verdict.library_seconds && verdict.winner_seconds && *verdict.winner_seconds > 0)
      choice->against_library = *verdict.library_seconds / *verdict.winner_seconds;
    const auto& trusted = options.trusted_origins;
    if (best.kind == BestAnswer::Kind::kContested) {
      choice->inexact = absl::StrCat(
          "contested: ", best.verdicts.size(),
          " verdicts do not replace each other; another `tilewright tune` of it settles that");
    } else if (verdict.origin != log.origin() &&
               std::find(trusted.begin(), trusted.end(), verdict.origin) == trusted.end()) {
      choice->inexact =
          absl::StrCat("imported from '", verdict.origin, "', which is not listed as trusted");
    } else if (item.expected.ir.empty() && item.expected.binary.empty()) {
      choice->inexact = "the verdict has no digest";
    }
    return true;
  }
  if (!best.trial) return false;
  const std::string record = absl::StrCat("trial ", best.trial->id.ToHex());
  std::optional<Schedule> schedule = LegalSchedule(space, best.trial->schedule, record, warnings);
  if (!schedule) return false;
  item.schedule = *std::move(schedule);
  item.expected = {
      .ir = best.trial->ir_digest, .assembly = "", .binary = best.trial->binary_digest};
  item.provenance = {"unverified", record};
  choice->inexact = "unverified: the best trial, not decided by finals";
  return true;
}

}  // namespace

absl::StatusOr<PackChoice> ChooseForPack(Database* log, const TuneTask& task,
                                         const ProductionOptions& options,
                                         std::vector<std::string>* warnings) {
  absl::StatusOr<std::shared_ptr<const ScheduleSpace>> space =
      ScheduleSpace::Make(task.workload, options.target, options.catalogue.variants);
  if (!space.ok()) return space.status();
  // The caller's expression, which fixes the order of the function's arguments.
  absl::StatusOr<ExpandedOperator> expanded = ExpandOperator(task.source, task.sizes);
  if (!expanded.ok()) return expanded.status();
  const std::string regime = task.regime.ToString(task.workload);
  PackChoice choice{.item = {.name = task.name,
                             .workload = task.workload,
                             .names = task.names,
                             .source = expanded->expression,
                             .regime = regime,
                             .dependent_launch = task.regime.chain == Regime::Chain::kDependent}};
  if (log != nullptr) {
    absl::StatusOr<BestAnswer> best =
        log->Best(task.workload.key(), TargetKey(options.target), regime);
    if (!best.ok() && !absl::IsNotFound(best.status())) return best.status();
    if (best.ok() && TakeBest(*best, **space, *log, options, &choice, warnings)) return choice;
    absl::StatusOr<std::optional<Neighbour>> near = NearestGoodNeighbour(*log, *space, task);
    if (!near.ok()) return near.status();
    if (*near) {
      choice.item.schedule = (*near)->schedule;
      choice.item.provenance = {"unmeasured", (*near)->record};
      choice.inexact =
          absl::StrCat("unmeasured: no record of this workload, target and regime; taken from the ",
                       (*near)->record);
      return choice;
    }
  }
  choice.item.schedule = (*space)->DefaultSchedule();
  choice.item.provenance = {"default", ""};
  choice.inexact = "default: no record of this workload, target and regime";
  return choice;
}

absl::StatusOr<ProductionReport> BuildProduction(Database* log, absl::Span<const TuneTask> tasks,
                                                 const ProductionOptions& options,
                                                 const std::string& directory) {
  ProductionReport report;
  std::vector<PackItem> items;
  for (const TuneTask& task : tasks) {
    absl::StatusOr<PackChoice> choice = ChooseForPack(log, task, options, &report.warnings);
    if (!choice.ok()) return AtTask(task, choice.status());
    report.rows.push_back({.name = task.name,
                           .inexact = choice->inexact,
                           .against_library = choice->against_library});
    items.push_back(std::move(choice->item));
  }
  absl::StatusOr<Pack> pack = BuildPack(items, {.name = options.name,
                                                .target = options.target,
                                                .catalogue = options.catalogue,
                                                .reuse = options.reuse});
  if (!pack.ok()) return pack.status();
  bool all_exact = true;
  for (size_t i = 0; i < report.rows.size(); ++i) {
    ProductionRow& row = report.rows[i];
    const PackEntry& entry = pack->entries[i];
    row.schedule = entry.item.schedule;
    row.provenance = entry.item.provenance;
    row.digests = entry.kernel.digests;
    row.reused = entry.reused;
    if (row.inexact.empty() && !entry.digest_mismatch.empty()) {
      row.inexact =
          absl::StrCat("rewritten: this program makes another kernel than the one measured; ",
                       entry.digest_mismatch);
    }
    all_exact = all_exact && row.inexact.empty();
  }
  if (options.strict && !all_exact) return report;
  if (absl::Status written = WritePack(*pack, directory); !written.ok()) return written;
  report.written = true;
  return report;
}

bool ReplayReport::same() const {
  auto met = [](const std::string& want, const std::string& have) {
    return want.empty() || want == have;
  };
  const bool recorded =
      !expected.ir.empty() || !expected.assembly.empty() || !expected.binary.empty();
  return recorded && met(expected.ir, got.ir) && met(expected.assembly, got.assembly) &&
         met(expected.binary, got.binary);
}

namespace {

// A record as text, before it is parsed.
struct RecordText {
  std::string kind;
  std::string workload_key;
  std::string target_key;
  std::string regime;
  std::string schedule;
  std::string toolchain;
  Digests digests;
};

absl::StatusOr<RecordText> FindRecord(Database& log, const Id& id) {
  absl::StatusOr<TrialRow> trial = log.FindTrial(id);
  if (trial.ok()) {
    RecordText record{"trial",
                      trial->workload_key,
                      trial->target_key,
                      trial->regime,
                      trial->schedule,
                      "",
                      {.ir = trial->ir_digest, .assembly = "", .binary = trial->binary_digest}};
    absl::StatusOr<RunRow> run = log.FindRun(trial->run);
    if (run.ok()) record.toolchain = run->toolchain;
    return record;
  }
  if (!absl::IsNotFound(trial.status())) return trial.status();
  absl::StatusOr<VerdictRow> verdict = log.FindVerdict(id);
  if (verdict.ok()) {
    return RecordText{
        "verdict",
        verdict->workload_key,
        verdict->target_key,
        verdict->regime,
        verdict->winner_schedule,
        verdict->environment.toolchain,
        {.ir = verdict->winner_ir_digest, .assembly = "", .binary = verdict->winner_binary_digest}};
  }
  if (!absl::IsNotFound(verdict.status())) return verdict.status();
  return absl::NotFoundError(
      absl::StrCat("record ", id.ToHex(), ": no trial and no verdict of this id in ", log.path()));
}

}  // namespace

absl::StatusOr<ReplayReport> Replay(Database& log, const Id& id, const Catalogue& catalogue,
                                    const std::string& dump_directory) {
  absl::StatusOr<RecordText> record = FindRecord(log, id);
  if (!record.ok()) return record.status();
  absl::StatusOr<WorkloadRow> workload_row = log.FindWorkload(record->workload_key);
  if (!workload_row.ok()) return workload_row.status();
  absl::StatusOr<TargetRow> target_row = log.FindTarget(record->target_key);
  if (!target_row.ok()) return target_row.status();
  absl::StatusOr<Workload> workload = Workload::FromCanonicalText(workload_row->canonical_text);
  if (!workload.ok()) return workload.status();
  absl::StatusOr<Target> target = ParseTarget(target_row->text);
  if (!target.ok()) return target.status();
  absl::StatusOr<Schedule> schedule = ParseSchedule(record->schedule);
  if (!schedule.ok()) return schedule.status();
  absl::StatusOr<Kernel> kernel =
      WriteKernel({*workload, *target, *schedule}, catalogue, {.dump_directory = dump_directory});
  if (!kernel.ok()) return kernel.status();
  return ReplayReport{.record = record->kind,
                      .workload = *std::move(workload),
                      .target = *target,
                      .schedule = *std::move(schedule),
                      .regime = record->regime,
                      .toolchain_then = record->toolchain,
                      .toolchain_now = ToolchainId(*target),
                      .expected = record->digests,
                      .got = kernel->digests};
}

}  // namespace tilewright
