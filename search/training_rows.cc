#include "search/training_rows.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "measure/failure.h"
#include "measure/regime.h"

namespace tilewright {
namespace {

// Makes the features of trials of many workloads and targets; each one's space is compiled once.
class TrialReader {
 public:
  TrialReader(Database& log, FeatureSchema* schema) : log_(log), schema_(schema) {}

  // Absent: this program cannot read the record.
  std::optional<TrainingRow> Read(const TrialRow& trial, const std::string& backend) {
    FeatureExtractor* extractor = FindExtractor(trial, backend);
    if (extractor == nullptr) return std::nullopt;
    const absl::StatusOr<Schedule> schedule = ParseSchedule(trial.schedule);
    if (!schedule.ok()) return std::nullopt;
    absl::StatusOr<FeatureRow> features = extractor->Extract(*schedule);
    if (!features.ok()) return std::nullopt;
    TrainingRow row{
        .features = *std::move(features),
        .group = absl::StrCat(trial.workload_key, "/", trial.regime, "/", trial.run.ToHex(), "/",
                              trial.session ? trial.session->ToHex() : "")};
    if (trial.failure) {
      const absl::StatusOr<FailureKind> kind = ParseFailureKind(trial.failure->kind);
      row.trains_classifier = kind.ok() && Info(*kind).trains_classifier;
    } else {
      if (!trial.anchor_seconds) return std::nullopt;
      row.cost = *trial.seconds / *trial.anchor_seconds;
    }
    return row;
  }

 private:
  // Null: its workload, target or regime does not parse here, or is of another backend.
  FeatureExtractor* FindExtractor(const TrialRow& trial, const std::string& backend) {
    const auto [found, fresh] = extractors_.try_emplace(
        absl::StrCat(trial.workload_key, "/", trial.target_key, "/", trial.regime));
    if (!fresh) return found->second.get();
    const absl::StatusOr<TargetRow> target_row = log_.FindTarget(trial.target_key);
    const absl::StatusOr<WorkloadRow> workload_row = log_.FindWorkload(trial.workload_key);
    if (!target_row.ok() || !workload_row.ok()) return nullptr;
    const absl::StatusOr<Target> target = ParseTarget(target_row->text);
    const absl::StatusOr<Workload> workload =
        Workload::FromCanonicalText(workload_row->canonical_text);
    if (!target.ok() || target->backend != backend || !workload.ok()) return nullptr;
    const absl::StatusOr<Regime> regime = ParseRegime(trial.regime, *workload);
    absl::StatusOr<std::shared_ptr<const ScheduleSpace>> space =
        ScheduleSpace::Make(*workload, *target, AllVariants());
    if (!regime.ok() || !space.ok()) return nullptr;
    found->second = std::make_unique<FeatureExtractor>(*space, regime->at,
                                                       DefaultRates(*target, *workload), schema_);
    return found->second.get();
  }

  Database& log_;
  FeatureSchema* schema_;
  std::map<std::string, std::unique_ptr<FeatureExtractor>> extractors_;
};

}  // namespace

absl::StatusOr<std::vector<TrainingRow>> ReadTrainingRows(Database& log, const std::string& backend,
                                                          int64_t through_row, int most,
                                                          FeatureSchema* schema) {
  absl::StatusOr<std::vector<TrialRow>> trials = log.QueryTrials(
      {.through_row = through_row, .order = TrialFilter::Order::kNewest, .limit = most});
  if (!trials.ok()) return trials.status();
  std::reverse(trials->begin(), trials->end());
  TrialReader reader(log, schema);
  std::vector<TrainingRow> rows;
  for (const TrialRow& trial : *trials) {
    if (std::optional<TrainingRow> row = reader.Read(trial, backend))
      rows.push_back(*std::move(row));
  }
  return rows;
}

absl::StatusOr<double> CalibratedBoundSeconds(
    std::shared_ptr<const ScheduleSpace> space, const Sizes& at,
    absl::Span<const std::pair<double, Schedule>> measured, const Schedule& schedule) {
  FeatureSchema schema;
  const DeviceRates start = DefaultRates(space->target(), space->workload());
  const FeatureExtractor extractor(space, at, start, &schema);
  std::vector<CalibrationRow> rows;
  for (const auto& [seconds, measured_schedule] : measured) {
    absl::StatusOr<BoundQuantities> quantities = extractor.Quantities(measured_schedule);
    if (!quantities.ok()) return quantities.status();
    rows.push_back({*quantities, seconds});
  }
  const absl::StatusOr<DeviceRates> rates = Calibrate(start, rows);
  if (!rates.ok()) return rates.status();
  const absl::StatusOr<BoundQuantities> quantities = extractor.Quantities(schedule);
  if (!quantities.ok()) return quantities.status();
  return ComputeBound(*quantities, *rates).seconds;
}

absl::StatusOr<std::string> ExplainScore(std::shared_ptr<const ScheduleSpace> space,
                                         const Sizes& at, const Schedule& schedule) {
  FeatureSchema schema;
  const DeviceRates rates = DefaultRates(space->target(), space->workload());
  FeatureExtractor extractor(space, at, rates, &schema);
  const absl::StatusOr<FeatureRow> row = extractor.Extract(schedule);
  if (!row.ok()) return row.status();
  const absl::StatusOr<BoundQuantities> quantities = extractor.Quantities(schedule);
  if (!quantities.ok()) return quantities.status();
  const Bound bound = ComputeBound(*quantities, rates);
  std::string text = absl::StrCat("features\n", FeaturesText(schema, *row),
                                  "bound by level, rates ", rates.ToString(), "\n");
  const std::pair<const char*, double> levels[] = {{"arithmetic", bound.arithmetic_seconds},
                                                   {"L1", bound.l1_seconds},
                                                   {"L2", bound.l2_seconds},
                                                   {"L3", bound.l3_seconds},
                                                   {"memory", bound.memory_seconds},
                                                   {"overhead", bound.overhead_seconds}};
  for (const auto& [name, seconds] : levels)
    absl::StrAppendFormat(&text, "  %-12s %.3g s\n", name, seconds);
  absl::StrAppendFormat(&text, "score: %.3g s, decided by %s\n", bound.seconds, bound.level);
  return text;
}

}  // namespace tilewright
