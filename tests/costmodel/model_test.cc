#include "costmodel/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tilewright {
namespace {

using ::testing::HasSubstr;

// A made-up device: the time falls with feature 1 up to 6, rises after it, and rises with feature
// 2; feature 3 says nothing. The bound (column 0) knows only feature 2. Where feature 1 + feature 2
// > 13 nothing runs. Each group has its own scale.
TrainingRow MakeRow(std::mt19937_64& random, int group) {
  TrainingRow row;
  const float a = static_cast<float>(random() % 10);
  const float b = static_cast<float>(random() % 8);
  const float c = static_cast<float>(random() % 5);
  row.features = {b, a, b, c};
  row.group = absl::StrCat("g", group);
  if (a + b <= 13) row.cost = (1 + 0.1 * (a - 6) * (a - 6) + 0.2 * b) * (1 + group);
  return row;
}

std::vector<TrainingRow> MakeRows(int count, uint64_t seed, int groups = 2) {
  std::mt19937_64 random(seed);
  std::vector<TrainingRow> rows;
  for (int i = 0; i < count; ++i) rows.push_back(MakeRow(random, i % groups));
  return rows;
}

std::vector<FeatureRow> FeaturesOf(const std::vector<TrainingRow>& rows) {
  std::vector<FeatureRow> features;
  for (const TrainingRow& row : rows) features.push_back(row.features);
  return features;
}

double Accuracy(const Model& model, const std::vector<TrainingRow>& rows) {
  return *PairwiseAccuracy(rows, *model.Score(FeaturesOf(rows)));
}

TEST(Models, EveryRowRanksByTheBoundUntilItIsTrained) {
  const std::vector<TrainingRow> rows = MakeRows(20, 1);
  for (const ModelRow& row : AllModels()) {
    const std::unique_ptr<Model> model = row.make();
    const std::vector<double> scores = *model->Score(FeaturesOf(rows));
    EXPECT_FALSE(model->trained());
    for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(scores[i], rows[i].features[0]) << row.name;
    EXPECT_EQ(model->Score({{}})->front(), std::numeric_limits<double>::infinity());
    EXPECT_TRUE(model->Score({})->empty());
  }
}

TEST(Models, EveryLearningRowRanksUnseenRowsBetterThanTheBound) {
  for (const ModelRow& row : AllModels()) {
    if (row.name == "bound") continue;
    const std::unique_ptr<Model> model = row.make();
    const std::vector<TrainingRow> unseen = MakeRows(200, 9);
    const double bound = Accuracy(*model, unseen);
    ASSERT_TRUE(model->Train(MakeRows(100, 2)).ok());
    EXPECT_TRUE(model->trained());
    EXPECT_GT(Accuracy(*model, unseen), 0.9) << row.name;
    EXPECT_LT(bound, 0.75);
  }
}

TEST(Models, TheSameRowsMakeTheSameScores) {
  for (const ModelRow& row : AllModels()) {
    const std::unique_ptr<Model> first = row.make();
    const std::unique_ptr<Model> second = row.make();
    // Training anew leaves nothing of an earlier training behind.
    ASSERT_TRUE(second->Train(MakeRows(40, 5)).ok());
    ASSERT_TRUE(first->Train(MakeRows(80, 3)).ok());
    ASSERT_TRUE(second->Train(MakeRows(80, 3)).ok());
    const std::vector<FeatureRow> features = FeaturesOf(MakeRows(50, 4));
    EXPECT_EQ(*first->Score(features), *second->Score(features)) << row.name;
  }
}

TEST(Models, RefuseWhatCannotBeRankedAndKeepWhatTheyKnow) {
  for (const ModelRow& row : AllModels()) {
    if (row.name == "bound") continue;
    const std::unique_ptr<Model> model = row.make();
    EXPECT_EQ(model->Train({}).code(), absl::StatusCode::kFailedPrecondition);
    std::vector<TrainingRow> rows = MakeRows(1, 1);
    EXPECT_EQ(model->Train(rows).code(), absl::StatusCode::kFailedPrecondition);
    // Two rows of one time, or of different groups, say nothing.
    rows = {{{1, 2}, "g", 1.0}, {{2, 3}, "g", 1.0}, {{2, 3}, "h", 2.0}};
    EXPECT_EQ(model->Train(rows).code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_FALSE(model->trained());
    ASSERT_TRUE(model->Train(MakeRows(100, 2)).ok());
    const std::vector<FeatureRow> features = FeaturesOf(MakeRows(50, 4));
    const std::vector<double> before = *model->Score(features);
    rows[0].cost = -1;
    const absl::Status refused = model->Train(rows);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("training row 0 of group 'g': its cost -1"));
    EXPECT_EQ(*model->Score(features), before);
  }
}

TEST(Models, TakeMissingFeaturesAndRowsOfDifferentLengths) {
  for (const ModelRow& row : AllModels()) {
    std::vector<TrainingRow> rows = MakeRows(60, 2);
    for (size_t i = 0; i < rows.size(); i += 2) rows[i].features.resize(2);
    for (size_t i = 0; i < rows.size(); i += 5) {
      rows[i].features.assign(4, std::numeric_limits<float>::quiet_NaN());
    }
    const std::unique_ptr<Model> model = row.make();
    ASSERT_TRUE(model->Train(rows).ok()) << row.name;
    EXPECT_EQ(model->Score(FeaturesOf(rows))->size(), rows.size());
  }
}

TEST(Models, LearnFromTheNewestRowsUpToTheCap) {
  std::vector<TrainingRow> rows = MakeRows(500, 1);
  for (TrainingRow& row : rows) {
    if (row.cost.has_value()) row.cost = 1 / *row.cost;  // the opposite of the truth
  }
  const std::vector<TrainingRow> newest = MakeRows(kMaxTrainingRows + 600, 2);
  rows.insert(rows.end(), newest.begin(), newest.end());
  const std::unique_ptr<Model> capped = (*FindModel("xgboost"))->make();
  const std::unique_ptr<Model> fresh = (*FindModel("xgboost"))->make();
  ASSERT_TRUE(capped->Train(rows).ok());
  ASSERT_TRUE(fresh->Train(newest).ok());
  const std::vector<FeatureRow> features = FeaturesOf(MakeRows(50, 4));
  EXPECT_EQ(*capped->Score(features), *fresh->Score(features));
}

TEST(Models, UnknownNamesAreRefusedWithTheKnownOnes) {
  EXPECT_THAT(std::string(FindModel("oracle").status().message()),
              HasSubstr("unknown model 'oracle'; known: xgboost, "));
}

TEST(ValidityModel, LearnsWhatFails) {
  const std::unique_ptr<ValidityModel> model = NewValidityModel();
  const std::vector<TrainingRow> unseen = MakeRows(300, 9);
  EXPECT_EQ(model->Probability(FeaturesOf(unseen))->front(), 1);
  ASSERT_TRUE(model->Train(MakeRows(200, 2)).ok());
  EXPECT_GT(*AreaUnderCurve(unseen, *model->Probability(FeaturesOf(unseen))), 0.95);
}

TEST(ValidityModel, FailuresThatSayNothingDoNotTrainIt) {
  std::vector<TrainingRow> rows = MakeRows(100, 2);
  std::vector<TrainingRow> measured;
  for (TrainingRow& row : rows) {
    row.trains_classifier = row.cost.has_value();
    if (row.cost.has_value()) measured.push_back(row);
  }
  const std::unique_ptr<ValidityModel> model = NewValidityModel();
  ASSERT_TRUE(model->Train(rows).ok());
  // All that is left is valid: the smoothed share.
  const double expected = (measured.size() + 1.0) / (measured.size() + 2.0);
  const std::vector<double> probability = *model->Probability(FeaturesOf(rows));
  for (double p : probability) EXPECT_EQ(p, expected);
  std::vector<TrainingRow> lost = {{{1, 2}, "g", std::nullopt, false}};
  EXPECT_EQ(model->Train(lost).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Evaluation, PairwiseAccuracyComparesWithinGroups) {
  const std::vector<TrainingRow> rows = {
      {{}, "a", 1.0}, {{}, "a", 2.0}, {{}, "a", 3.0}, {{}, "b", 9.0}, {{}, "b", std::nullopt}};
  EXPECT_EQ(*PairwiseAccuracy(rows, {1, 2, 3, 0, 0}), 1);
  EXPECT_EQ(*PairwiseAccuracy(rows, {3, 2, 1, 0, 0}), 0);
  EXPECT_EQ(*PairwiseAccuracy(rows, {5, 5, 5, 0, 0}), 0.5);
  EXPECT_NEAR(*PairwiseAccuracy(rows, {1, 3, 2, 0, 0}), 2.0 / 3, 1e-12);
  EXPECT_FALSE(PairwiseAccuracy({rows.data() + 3, 2}, {0, 0}).has_value());
}

TEST(Evaluation, AreaUnderCurveByHand) {
  std::vector<TrainingRow> rows = {
      {{}, "", 1.0}, {{}, "", std::nullopt}, {{}, "", 1.0}, {{}, "", std::nullopt}};
  // Pairs (valid, invalid): 0.9 beats 0.5 and 0.1, 0.3 beats 0.1 only: 3 of 4.
  EXPECT_EQ(*AreaUnderCurve(rows, {0.9, 0.5, 0.3, 0.1}), 0.75);
  EXPECT_EQ(*AreaUnderCurve(rows, {0.5, 0.5, 0.5, 0.5}), 0.5);
  rows[1].trains_classifier = false;
  EXPECT_EQ(*AreaUnderCurve(rows, {0.9, 0.95, 0.3, 0.1}), 1);
  rows[3].trains_classifier = false;
  EXPECT_FALSE(AreaUnderCurve(rows, {0.9, 0.5, 0.3, 0.1}).has_value());
}

TEST(Evaluation, HoldsOutEveryFifthRow) {
  absl::StatusOr<ModelFigures> figures = EvaluateModel(**FindModel("xgboost"), MakeRows(200, 2));
  ASSERT_TRUE(figures.ok()) << figures.status();
  EXPECT_EQ(figures->training_rows, 160);
  EXPECT_EQ(figures->held_out_rows, 40);
  EXPECT_GT(*figures->pairwise_accuracy, 0.9);
  EXPECT_LT(*figures->bound_pairwise_accuracy, *figures->pairwise_accuracy);
  EXPECT_GT(*figures->validity_auc, 0.9);
  EXPECT_THAT(figures->ToString(),
              HasSubstr("trained on 160 rows, held out 40: pairwise_accuracy=0."));
  figures = EvaluateModel(**FindModel("xgboost"), MakeRows(3, 2));
  ASSERT_TRUE(figures.ok()) << figures.status();
  EXPECT_FALSE(figures->pairwise_accuracy.has_value());
  EXPECT_THAT(figures->ToString(), HasSubstr("pairwise_accuracy=unknown"));
}

}  // namespace
}  // namespace tilewright
