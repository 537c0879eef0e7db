// A Model ranks schedules: it learns from measured rows and scores unmeasured ones. A ValidityModel
// says how likely a schedule is to build, run and be right.
//
//   std::unique_ptr<Model> model = (*FindModel("xgboost"))->make();
//   absl::Status trained = model->Train(rows);             // all rows so far; from scratch each
//   time absl::StatusOr<std::vector<double>> scores = model->Score(candidates);   // lower: faster
//
// A model is a pure function of the rows it was trained on, in their order: the number of threads
// and the seed are constants. Failures are Status; a model that failed to train keeps what it knew.
// Not thread-safe.
//
// Rows are plain numbers. Who has a database turns records into rows; nothing here knows of one.
#ifndef TILEWRIGHT_COSTMODEL_MODEL_H_
#define TILEWRIGHT_COSTMODEL_MODEL_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "costmodel/features.h"

namespace tilewright {

// One trial.
struct TrainingRow {
  FeatureRow features;
  // Times are compared within a group only: the session, workload, regime and anchor in one text.
  std::string group;
  // Seconds / the anchor's seconds, > 0. Absent: it failed.
  std::optional<double> cost;
  // False for failures that say nothing about the candidate (device lost, worker lost, build
  // timeout).
  bool trains_classifier = true;
};

// A training set is capped at the newest rows in the order given: callers put rows of other shapes
// and devices first and the run's own last. The cap bounds how long a device may wait for a
// training (bench/model_bench.cc).
inline constexpr int kMaxTrainingRows = 2000;

class Model {
 public:
  virtual ~Model() = default;
  // Learns from the rows that have a cost. FailedPrecondition: fewer than two different costs in
  // every group, so there is nothing to rank by. InvalidArgument: a cost that is not positive and
  // finite. Internal: the library's own message.
  virtual absl::Status Train(absl::Span<const TrainingRow> rows) = 0;
  // One score per row; lower is predicted faster. Scores of one call compare with each other only.
  // Until a training has succeeded the bound ranks.
  virtual absl::StatusOr<std::vector<double>> Score(absl::Span<const FeatureRow> rows) const = 0;
  // True once scores come from measurements.
  virtual bool trained() const = 0;
};

struct ModelRow {
  std::string name;
  std::string help;
  std::function<std::unique_ptr<Model>()> make;
};
// The only list (models.cc); CLI help and tests iterate over it.
absl::Span<const ModelRow> AllModels();
// InvalidArgument lists the models that exist.
absl::StatusOr<const ModelRow*> FindModel(std::string_view name);

class ValidityModel {
 public:
  virtual ~ValidityModel() = default;
  // Learns from successes and from the failures that train it. With rows of one kind only it
  // predicts their share, smoothed: (valid + 1) / (rows + 2). FailedPrecondition: no rows.
  virtual absl::Status Train(absl::Span<const TrainingRow> rows) = 0;
  // The probability that each is valid, 0..1; 1 until trained.
  virtual absl::StatusOr<std::vector<double>> Probability(
      absl::Span<const FeatureRow> rows) const = 0;
};
std::unique_ptr<ValidityModel> NewValidityModel();

// ---- Evaluation
// ------------------------------------------------------------------------------------------------

// The share of pairs of one group, of different costs, that `scores` order as the costs do; a tie
// of scores counts half. Rows without a cost are left out. Absent: there is no such pair.
std::optional<double> PairwiseAccuracy(absl::Span<const TrainingRow> rows,
                                       absl::Span<const double> scores);
// The area under the ROC curve of `probability` against "has a cost", over the rows that train the
// classifier; a tie counts half. Absent: all are of one kind.
std::optional<double> AreaUnderCurve(absl::Span<const TrainingRow> rows,
                                     absl::Span<const double> probability);

// How good a model is on rows that it has not seen. Stored with it.
struct ModelFigures {
  int training_rows = 0;
  int held_out_rows = 0;
  std::optional<double> pairwise_accuracy;        // of the model on held-out rows
  std::optional<double> bound_pairwise_accuracy;  // of the bound on the same rows
  std::optional<double> validity_auc;             // of the validity model
  std::string ToString() const;
};
// Trains new models of the row on all but every fifth row and scores those. Errors as Train's,
// except that models which cannot be trained leave their figure absent.
absl::StatusOr<ModelFigures> EvaluateModel(const ModelRow& model,
                                           absl::Span<const TrainingRow> rows);

}  // namespace tilewright

#endif  // TILEWRIGHT_COSTMODEL_MODEL_H_
