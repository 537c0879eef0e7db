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
#include "search/decision_encoding.h"
#include "search/training_rows.h"

namespace tilewright {
namespace {

// What a schedule looks like to a model.
class FeatureSource {
 public:
  virtual ~FeatureSource() = default;
  // Column 0 is the bound (features.h). Empty: the schedule has no features, so that a model sees
  // every column missing.
  virtual FeatureRow Extract(absl::uint128 index) = 0;
};

class PlanFeatures : public FeatureSource {
 public:
  PlanFeatures(std::shared_ptr<const ScheduleSpace> space, const Sizes& at)
      : space_(space),
        extractor_(space, at, DefaultRates(space->target(), space->workload()), &schema_) {}
  FeatureRow Extract(absl::uint128 index) override {
    absl::StatusOr<FeatureRow> row = extractor_.Extract(space_->space().At(index));
    return row.ok() ? *std::move(row) : FeatureRow();
  }
  absl::StatusOr<std::vector<TrainingRow>> ReadLog(Database& log, int64_t through_row) {
    return ReadTrainingRows(log, space_->target().backend, through_row, kMaxTrainingRows / 2,
                            &schema_);
  }

 private:
  const std::shared_ptr<const ScheduleSpace> space_;
  FeatureSchema schema_;
  FeatureExtractor extractor_;
};

// Decisions do not say which device they ran on: where two devices differ, the rows of the other
// are wrong and have to go. Each result of the run takes the place of so many of them.
constexpr double kOthersPerResult = 10;

// Decisions alone; there is no plan, so no bound.
class DecisionFeatures : public FeatureSource {
 public:
  DecisionFeatures(const Space* space, uint64_t seed) : encoding_(space, seed) {}
  FeatureRow Extract(absl::uint128 index) override {
    FeatureRow row = {kMissingFeature};
    const std::vector<float>& decisions = encoding_.Row(index);
    row.insert(row.end(), decisions.begin(), decisions.end());
    return row;
  }

 private:
  DecisionEncoding encoding_;
};

class ModelSurrogate : public LearningSurrogate {
 public:
  ModelSurrogate(std::unique_ptr<FeatureSource> source, std::string group, const ModelRow& row)
      : source_(std::move(source)),
        group_(std::move(group)),
        model_(row.make()),
        validity_(NewValidityModel()) {}

  // Rows of other runs, which every training begins with.
  // Each result of this run takes the place of so many of them.
  void Learn(std::vector<TrainingRow> rows, double replaced_by_each_result) {
    known_ = std::move(rows);
    replaced_by_each_result_ = replaced_by_each_result;
    // What cannot be learned from alone (one success, failures only) still counts in later
    // trainings.
    if (!known_.empty()) TrainOn(known_).IgnoreError();
  }

  absl::Status Train(absl::Span<const Result> results) override {
    // Those that go are spread evenly, so that what is left still covers all.
    std::vector<TrainingRow> rows;
    const double kept = std::max(
        0.0, static_cast<double>(known_.size()) - replaced_by_each_result_ * results.size());
    for (size_t i = 0; i < known_.size(); ++i) {
      const double share = kept / known_.size();
      if (std::floor((i + 1) * share) > std::floor(i * share)) rows.push_back(known_[i]);
    }
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
      const bool known = !row.empty() && !std::isnan(row[FeatureSchema::kBoundColumn]);
      seconds.push_back(known ? std::exp2(row[FeatureSchema::kBoundColumn])
                              : std::numeric_limits<double>::infinity());
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
    if (fresh) found->second = source_->Extract(index);
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

  const std::unique_ptr<FeatureSource> source_;
  const std::string group_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<ValidityModel> validity_;
  std::vector<TrainingRow> known_;
  double replaced_by_each_result_ = 0;
  absl::flat_hash_map<absl::uint128, FeatureRow> features_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LearningSurrogate>> NewModelSurrogate(
    std::shared_ptr<const ScheduleSpace> space, const Sizes& at, const std::string& regime,
    const ModelSurrogateOptions& options) {
  absl::StatusOr<const ModelRow*> row = FindModel(options.model);
  if (!row.ok()) return row.status();
  const std::string group = absl::StrCat(space->workload().key(), "/", regime, "/", options.run);
  auto features = std::make_unique<PlanFeatures>(std::move(space), at);
  std::vector<TrainingRow> known;
  if (options.log != nullptr) {
    absl::StatusOr<std::vector<TrainingRow>> rows =
        features->ReadLog(*options.log, options.through_row);
    if (!rows.ok()) return rows.status();
    known = *std::move(rows);
  }
  auto surrogate = std::make_unique<ModelSurrogate>(std::move(features), group, **row);
  surrogate->Learn(std::move(known), 0);
  return surrogate;
}

absl::StatusOr<std::unique_ptr<LearningSurrogate>> NewDecisionSurrogate(
    const Space* space, uint64_t seed, const std::string& model, absl::Span<const Result> known) {
  absl::StatusOr<const ModelRow*> row = FindModel(model);
  if (!row.ok()) return row.status();
  auto features = std::make_unique<DecisionFeatures>(space, seed);
  std::vector<TrainingRow> rows;
  for (const Result& result : known) {
    rows.push_back({.features = features->Extract(result.index),
                    .group = absl::StrCat("known/", result.session),
                    .cost = result.cost,
                    .trains_classifier = result.trains_classifier});
  }
  auto surrogate = std::make_unique<ModelSurrogate>(std::move(features), "recorded", **row);
  surrogate->Learn(std::move(rows), kOthersPerResult);
  return surrogate;
}

}  // namespace tilewright
