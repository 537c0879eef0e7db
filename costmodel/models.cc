#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "costmodel/booster.h"
#include "costmodel/model.h"

namespace tilewright {
namespace {

template <typename Rows, typename GetFeatures>
DenseMatrix ToMatrix(const Rows& rows, GetFeatures&& get) {
  DenseMatrix matrix;
  for (const auto& row : rows) {
    matrix.columns = std::max(matrix.columns, static_cast<int>(get(row).size()));
  }
  matrix.values.reserve(rows.size() * matrix.columns);
  for (const auto& row : rows) {
    const FeatureRow& features = get(row);
    matrix.values.insert(matrix.values.end(), features.begin(), features.end());
    matrix.values.insert(matrix.values.end(), matrix.columns - features.size(), kMissingFeature);
  }
  return matrix;
}
DenseMatrix ToMatrix(absl::Span<const FeatureRow> rows) {
  return ToMatrix(rows, [](const FeatureRow& row) -> const FeatureRow& { return row; });
}
DenseMatrix ToMatrix(const std::vector<const TrainingRow*>& rows) {
  return ToMatrix(rows, [](const TrainingRow* row) -> const FeatureRow& { return row->features; });
}

// The bound's score; +infinity where a row lacks it.
std::vector<double> BoundScores(absl::Span<const FeatureRow> rows) {
  std::vector<double> scores;
  scores.reserve(rows.size());
  for (const FeatureRow& row : rows) {
    const bool known =
        row.size() > FeatureSchema::kBoundColumn && !std::isnan(row[FeatureSchema::kBoundColumn]);
    scores.push_back(known ? row[FeatureSchema::kBoundColumn]
                           : std::numeric_limits<double>::infinity());
  }
  return scores;
}

absl::Status CheckCosts(absl::Span<const TrainingRow> rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].cost.has_value() && !(*rows[i].cost > 0 && std::isfinite(*rows[i].cost))) {
      return absl::InvalidArgumentError(absl::StrCat("training row ", i, " of group '",
                                                     rows[i].group, "': its cost ", *rows[i].cost,
                                                     " is not positive and finite"));
    }
  }
  return absl::OkStatus();
}

// The newest kMaxTrainingRows rows that `use` accepts, in the order given.
template <typename Use>
std::vector<const TrainingRow*> Newest(absl::Span<const TrainingRow> rows, Use&& use) {
  std::vector<const TrainingRow*> newest;
  for (size_t i = rows.size(); i-- > 0 && newest.size() < kMaxTrainingRows;) {
    if (use(rows[i])) newest.push_back(&rows[i]);
  }
  std::reverse(newest.begin(), newest.end());
  return newest;
}

class BoundModel : public Model {
 public:
  absl::Status Train(absl::Span<const TrainingRow>) override { return absl::OkStatus(); }
  absl::StatusOr<std::vector<double>> Score(absl::Span<const FeatureRow> rows) const override {
    return BoundScores(rows);
  }
  bool trained() const override { return false; }
};

// How a forest is told about times. Tuned on 50 to 1000 random rows of three recorded spaces
// (CLBlast GEMM on RTX 3090, convolution on A100, point in polygon on RTX 3090; means of 24 seeds).
// The figures are the share of held-out pairs in the right order on GEMM, and by how much the best
// of the 16 best-scored of 3000 held-out rows misses the best of them.
enum class Objective {
  // The order of each pair (Burges, "From RankNet to LambdaRank to LambdaMART", 2010, section 2).
  // XGBoost draws the pairs; four
  // for each row rank better than its one. 100 rows: 0.79, 10%; 400 rows: 0.86, 5%.
  kPairs,
  // The squared error of log(cost). 100 rows: 0.77, 8%; 400 rows: 0.86, 2%.
  kLogCost,
};

BoosterOptions OptionsFor(Objective objective) {
  if (objective == Objective::kPairs) {
    return {.rounds = 40,
            .parameters = {{"objective", "rank:pairwise"},
                           {"num_pairsample", "4"},
                           {"tree_method", "hist"},
                           {"max_depth", "5"},
                           {"eta", "0.2"},
                           {"min_child_weight", "1"}}};
  }
  return {.rounds = 40,
          .parameters = {{"objective", "reg:squarederror"},
                         {"base_score", "0"},
                         {"tree_method", "hist"},
                         {"max_depth", "6"},
                         {"eta", "0.2"},
                         {"min_child_weight", "2"}}};
}

// The relevance of a row is log(median cost of its group / cost): XGBoost puts higher labels first,
// and groups with different anchors are centred alike.
class BoostedModel : public Model {
 public:
  explicit BoostedModel(Objective objective) : objective_(objective) {}

  absl::Status Train(absl::Span<const TrainingRow> rows) override {
    absl::Status checked = CheckCosts(rows);
    if (!checked.ok()) return checked;
    std::vector<const TrainingRow*> used =
        Newest(rows, [](const TrainingRow& row) { return row.cost.has_value(); });
    const std::vector<unsigned> groups = SortByGroup(used);
    if (!HasPair(used)) {
      return absl::FailedPreconditionError(
          absl::StrCat("nothing to rank by: ", used.size(),
                       " measured rows, no two of one group with different times"));
    }
    absl::StatusOr<std::unique_ptr<Booster>> booster = Booster::Train(
        ToMatrix(used), Labels(used, groups),
        objective_ == Objective::kPairs ? groups : std::vector<unsigned>(), OptionsFor(objective_));
    if (!booster.ok()) return booster.status();
    booster_ = *std::move(booster);
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<double>> Score(absl::Span<const FeatureRow> rows) const override {
    if (booster_ == nullptr) return BoundScores(rows);
    absl::StatusOr<std::vector<float>> margins = booster_->Predict(ToMatrix(rows));
    if (!margins.ok()) return margins.status();
    std::vector<double> scores;
    for (float margin : *margins) scores.push_back(-margin);
    return scores;
  }

  bool trained() const override { return booster_ != nullptr; }

 private:
  // `rows` are sorted by group.
  static std::vector<float> Labels(const std::vector<const TrainingRow*>& rows,
                                   absl::Span<const unsigned> groups) {
    std::vector<float> labels;
    size_t begin = 0;
    for (unsigned size : groups) {
      std::vector<double> logs;
      for (size_t i = begin; i < begin + size; ++i) logs.push_back(std::log(*rows[i]->cost));
      std::vector<double> sorted = logs;
      std::nth_element(sorted.begin(), sorted.begin() + size / 2, sorted.end());
      for (double log : logs) labels.push_back(static_cast<float>(sorted[size / 2] - log));
      begin += size;
    }
    return labels;
  }
  // Makes groups contiguous, in order of first appearance, and returns their sizes.
  static std::vector<unsigned> SortByGroup(std::vector<const TrainingRow*>& rows) {
    absl::flat_hash_map<std::string, int> numbers;
    for (const TrainingRow* row : rows) {
      numbers.try_emplace(row->group, static_cast<int>(numbers.size()));
    }
    std::vector<unsigned> sizes(numbers.size(), 0);
    for (const TrainingRow* row : rows) ++sizes[numbers[row->group]];
    std::stable_sort(rows.begin(), rows.end(), [&](const TrainingRow* a, const TrainingRow* b) {
      return numbers[a->group] < numbers[b->group];
    });
    return sizes;
  }
  // `rows` are sorted by group.
  static bool HasPair(const std::vector<const TrainingRow*>& rows) {
    for (size_t i = 1; i < rows.size(); ++i) {
      if (rows[i]->group == rows[i - 1]->group && *rows[i]->cost != *rows[i - 1]->cost) return true;
    }
    return false;
  }

  const Objective objective_;
  std::unique_ptr<Booster> booster_;
};

class BoostedValidityModel : public ValidityModel {
 public:
  absl::Status Train(absl::Span<const TrainingRow> rows) override {
    const std::vector<const TrainingRow*> used = Newest(
        rows, [](const TrainingRow& row) { return row.cost.has_value() || row.trains_classifier; });
    if (used.empty()) {
      return absl::FailedPreconditionError("no rows that say whether a schedule is valid");
    }
    std::vector<float> labels;
    for (const TrainingRow* row : used) labels.push_back(row->cost.has_value() ? 1 : 0);
    const int valid = static_cast<int>(std::count(labels.begin(), labels.end(), 1));
    if (valid == 0 || valid == static_cast<int>(used.size())) {
      booster_ = nullptr;
      share_ = (valid + 1.0) / (static_cast<double>(used.size()) + 2.0);
      return absl::OkStatus();
    }
    // Starts from the share of valid rows, so that features which say nothing leave it.
    const double base = static_cast<double>(valid) / static_cast<double>(used.size());
    absl::StatusOr<std::unique_ptr<Booster>> booster =
        Booster::Train(ToMatrix(used), labels, {},
                       {.rounds = 40,
                        .parameters = {{"objective", "binary:logistic"},
                                       {"tree_method", "hist"},
                                       {"base_score", absl::StrCat(std::clamp(base, 0.01, 0.99))},
                                       {"max_depth", "4"},
                                       {"eta", "0.2"},
                                       {"min_child_weight", "0.1"}}});
    if (!booster.ok()) return booster.status();
    booster_ = *std::move(booster);
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<double>> Probability(
      absl::Span<const FeatureRow> rows) const override {
    if (booster_ == nullptr) return std::vector<double>(rows.size(), share_);
    absl::StatusOr<std::vector<float>> predicted = booster_->Predict(ToMatrix(rows));
    if (!predicted.ok()) return predicted.status();
    return std::vector<double>(predicted->begin(), predicted->end());
  }

 private:
  std::unique_ptr<Booster> booster_;  // null: `share_` for all
  double share_ = 1;
};

}  // namespace

absl::Span<const ModelRow> AllModels() {
  static const auto* const models = new std::vector<ModelRow>{
      {"xgboost", "learns the order of measured times from features (boosted trees, pairwise)",
       [] { return std::make_unique<BoostedModel>(Objective::kPairs); }},
      {"xgboost_regression", "learns the logarithm of measured times from features (boosted trees)",
       [] { return std::make_unique<BoostedModel>(Objective::kLogCost); }},
      {"bound", "ranks by the calibrated bound and learns nothing",
       [] { return std::make_unique<BoundModel>(); }},
  };
  return *models;
}

absl::StatusOr<const ModelRow*> FindModel(std::string_view name) {
  for (const ModelRow& model : AllModels()) {
    if (model.name == name) return &model;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown model '", std::string(name),
      "'; known: ", absl::StrJoin(AllModels(), ", ", [](std::string* out, const ModelRow& model) {
        *out += model.name;
      })));
}

std::unique_ptr<ValidityModel> NewValidityModel() {
  return std::make_unique<BoostedValidityModel>();
}

}  // namespace tilewright
