#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "costmodel/model.h"

namespace tilewright {
namespace {

std::string FigureText(const char* name, const std::optional<double>& figure) {
  return figure.has_value() ? absl::StrFormat("%s=%.3f", name, *figure)
                            : absl::StrCat(name, "=unknown");
}

std::vector<FeatureRow> FeaturesOf(absl::Span<const TrainingRow> rows) {
  std::vector<FeatureRow> features;
  for (const TrainingRow& row : rows) features.push_back(row.features);
  return features;
}

}  // namespace

std::optional<double> PairwiseAccuracy(absl::Span<const TrainingRow> rows,
                                       absl::Span<const double> scores) {
  absl::flat_hash_map<std::string, std::vector<size_t>> groups;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].cost.has_value()) groups[rows[i].group].push_back(i);
  }
  double right = 0;
  double pairs = 0;
  for (const auto& [group, members] : groups) {
    for (size_t i = 0; i < members.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const double cost = *rows[members[i]].cost - *rows[members[j]].cost;
        if (cost == 0) continue;
        const double score = scores[members[i]] - scores[members[j]];
        pairs += 1;
        right += std::isnan(score) || score == 0 ? 0.5 : (score > 0) == (cost > 0) ? 1 : 0;
      }
    }
  }
  if (pairs == 0) return std::nullopt;
  return right / pairs;
}

std::optional<double> AreaUnderCurve(absl::Span<const TrainingRow> rows,
                                     absl::Span<const double> probability) {
  // By ranks: the probability that a valid row is above an invalid one (Mann and Whitney, 1947).
  std::vector<size_t> order;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].cost.has_value() || rows[i].trains_classifier) order.push_back(i);
  }
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return probability[a] < probability[b]; });
  double below = 0;  // invalid rows with a lower probability
  double area = 0;
  double valid = 0;
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    double tied_valid = 0;
    double tied_invalid = 0;
    while (end < order.size() && probability[order[end]] == probability[order[begin]]) {
      (rows[order[end]].cost.has_value() ? tied_valid : tied_invalid) += 1;
      ++end;
    }
    area += tied_valid * (below + tied_invalid / 2);
    below += tied_invalid;
    valid += tied_valid;
    begin = end;
  }
  if (valid == 0 || below == 0) return std::nullopt;
  return area / (valid * below);
}

std::string ModelFigures::ToString() const {
  return absl::StrCat("trained on ", training_rows, " rows, held out ", held_out_rows, ": ",
                      FigureText("pairwise_accuracy", pairwise_accuracy), " ",
                      FigureText("bound_pairwise_accuracy", bound_pairwise_accuracy), " ",
                      FigureText("validity_auc", validity_auc));
}

absl::StatusOr<ModelFigures> EvaluateModel(const ModelRow& model,
                                           absl::Span<const TrainingRow> rows) {
  constexpr size_t kHeldOut = 5;  // every fifth row
  std::vector<TrainingRow> training;
  std::vector<TrainingRow> held_out;
  for (size_t i = 0; i < rows.size(); ++i) {
    (i % kHeldOut == kHeldOut - 1 ? held_out : training).push_back(rows[i]);
  }
  const std::vector<FeatureRow> features = FeaturesOf(held_out);
  ModelFigures figures;
  figures.training_rows = static_cast<int>(training.size());
  figures.held_out_rows = static_cast<int>(held_out.size());

  const std::unique_ptr<Model> ranker = model.make();
  absl::StatusOr<std::vector<double>> bound = ranker->Score(features);  // untrained: the bound
  if (!bound.ok()) return bound.status();
  figures.bound_pairwise_accuracy = PairwiseAccuracy(held_out, *bound);
  absl::Status trained = ranker->Train(training);
  if (trained.ok()) {
    absl::StatusOr<std::vector<double>> scores = ranker->Score(features);
    if (!scores.ok()) return scores.status();
    figures.pairwise_accuracy = PairwiseAccuracy(held_out, *scores);
  } else if (trained.code() != absl::StatusCode::kFailedPrecondition) {
    return trained;
  }

  const std::unique_ptr<ValidityModel> validity = NewValidityModel();
  trained = validity->Train(training);
  if (trained.ok()) {
    absl::StatusOr<std::vector<double>> probability = validity->Probability(features);
    if (!probability.ok()) return probability.status();
    figures.validity_auc = AreaUnderCurve(held_out, *probability);
  } else if (trained.code() != absl::StatusCode::kFailedPrecondition) {
    return trained;
  }
  return figures;
}

}  // namespace tilewright
