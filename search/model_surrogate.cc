#include "search/model_surrogate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "costmodel/features.h"
#include "costmodel/model.h"
#include "search/training_rows.h"

namespace tilewright {
namespace {

class ModelSurrogate : public LearningSurrogate {
 public:
  ModelSurrogate(std::shared_ptr<const ScheduleSpace> space, const Sizes& at, std::string group,
                 const ModelRow& row)
      : space_(space),
        group_(std::move(group)),
        extractor_(space, at, DefaultRates(space->target(), space->workload()), &schema_),
        model_(row.make()),
        validity_(NewValidityModel()) {}

  // Rows of other runs, which every training begins with.
  absl::Status Learn(Database& log, int64_t through_row) {
    absl::StatusOr<std::vector<TrainingRow>> rows = ReadTrainingRows(
        log, space_->target().backend, through_row, kMaxTrainingRows / 2, &schema_);
    if (!rows.ok()) return rows.status();
    known_ = *std::move(rows);
    // What cannot be learned from alone (one success, failures only) still counts in later
    // trainings.
    if (!known_.empty()) TrainOn(known_).IgnoreError();
    return absl::OkStatus();
  }

  absl::Status Train(absl::Span<const Result> results) override {
    std::vector<TrainingRow> rows = known_;
    for (const Result& result : results) {
      rows.push_back({.features = Features(result.index),
                      .group = absl::StrCat(group_, "/", result.session),
                      .cost = result.cost,
                      .trains_classifier = result.trains_classifier});
    }
    return TrainOn(rows);
  }

  std::vector<double> Score(absl::Span<const absl::uint128> indices) override {
    std::vector<FeatureRow> rows;
    rows.reserve(indices.size());
    for (absl::uint128 index : indices) rows.push_back(Features(index));
    absl::StatusOr<std::vector<double>> scores = model_->Score(rows);
    // A model that cannot score ranks all alike; the strategy then draws among them.
    if (!scores.ok()) return std::vector<double>(indices.size(), 0);
    const absl::StatusOr<std::vector<double>> valid = validity_->Probability(rows);
    if (valid.ok()) {
      const double spread = Spread(*scores);
      for (size_t i = 0; i < scores->size(); ++i)
        (*scores)[i] += kInvalidPenalty * spread * (1 - (*valid)[i]);
    }
    return *std::move(scores);
  }

  std::vector<double> BoundSeconds(absl::Span<const absl::uint128> indices) override {
    std::vector<double> seconds;
    for (absl::uint128 index : indices) {
      const FeatureRow& row = Features(index);
      seconds.push_back(row.empty() ? std::numeric_limits<double>::infinity()
                                    : std::exp2(row[FeatureSchema::kBoundColumn]));
    }
    return seconds;
  }

  bool trained() const override { return model_->trained(); }

 private:
  // A schedule that surely fails ranks as if it were this many standard deviations of the scores
  // slower.
  static constexpr double kInvalidPenalty = 3;

  absl::Status TrainOn(absl::Span<const TrainingRow> rows) {
    const absl::Status valid = validity_->Train(rows);
    const absl::Status ranked = model_->Train(rows);
    // FailedPrecondition: not enough to learn from yet.
    if (!ranked.ok() && !absl::IsFailedPrecondition(ranked)) return ranked;
    return absl::IsFailedPrecondition(valid) ? absl::OkStatus() : valid;
  }

  const FeatureRow& Features(absl::uint128 index) {
    const auto [found, fresh] = features_.try_emplace(index);
    if (fresh) {
      // A schedule of the space has features; a plan that has none would be missing in every
      // column.
      absl::StatusOr<FeatureRow> row = extractor_.Extract(space_->space().At(index));
      if (row.ok()) found->second = *std::move(row);
    }
    return found->second;
  }

  static double Spread(absl::Span<const double> scores) {
    double mean = 0;
    int finite = 0;
    for (double score : scores) {
      if (!std::isfinite(score)) continue;  // a schedule without features
      mean += score;
      ++finite;
    }
    if (finite == 0) return 0;
    mean /= finite;
    double variance = 0;
    for (double score : scores) {
      if (std::isfinite(score)) variance += (score - mean) * (score - mean) / finite;
    }
    return std::sqrt(variance);
  }

  const std::shared_ptr<const ScheduleSpace> space_;
  const std::string group_;
  FeatureSchema schema_;
  FeatureExtractor extractor_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<ValidityModel> validity_;
  std::vector<TrainingRow> known_;
  absl::flat_hash_map<absl::uint128, FeatureRow> features_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LearningSurrogate>> NewModelSurrogate(
    std::shared_ptr<const ScheduleSpace> space, const Sizes& at, const std::string& regime,
    const ModelSurrogateOptions& options) {
  absl::StatusOr<const ModelRow*> row = FindModel(options.model);
  if (!row.ok()) return row.status();
  const std::string group = absl::StrCat(space->workload().key(), "/", regime, "/", options.run);
  auto surrogate = std::make_unique<ModelSurrogate>(std::move(space), at, group, **row);
  if (options.log != nullptr) {
    if (absl::Status learned = surrogate->Learn(*options.log, options.through_row); !learned.ok())
      return learned;
  }
  return surrogate;
}

}  // namespace tilewright
