#include "costmodel/booster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/status/status.h"

namespace tilewright {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
const BoosterOptions kRegression = {
    .rounds = 20,
    .parameters = {{"objective", "reg:squarederror"}, {"tree_method", "hist"}, {"max_depth", "4"}}};

// y = 2 x0, and x1 is noise that is missing in every third row.
DenseMatrix Line(int rows) {
  DenseMatrix matrix{2, {}};
  for (int i = 0; i < rows; ++i) {
    matrix.values.push_back(static_cast<float>(i));
    matrix.values.push_back(i % 3 == 0 ? kNan : static_cast<float>(i * 7 % 5));
  }
  return matrix;
}
std::vector<float> LineLabels(int rows) {
  std::vector<float> labels;
  for (int i = 0; i < rows; ++i) labels.push_back(2.0f * i);
  return labels;
}

TEST(Booster, LearnsALine) {
  auto booster = Booster::Train(Line(50), LineLabels(50), {}, kRegression);
  ASSERT_TRUE(booster.ok()) << booster.status();
  auto predicted = (*booster)->Predict(Line(50));
  ASSERT_TRUE(predicted.ok()) << predicted.status();
  ASSERT_EQ(predicted->size(), 50);
  EXPECT_LT((*predicted)[5], (*predicted)[25]);
  EXPECT_LT((*predicted)[25], (*predicted)[45]);
}

TEST(Booster, TheSameRowsMakeTheSameModel) {
  const BoosterOptions ranking = {.rounds = 20, .parameters = {{"objective", "rank:pairwise"}}};
  const std::vector<unsigned> groups = {20, 30};
  auto first = Booster::Train(Line(50), LineLabels(50), groups, ranking);
  auto second = Booster::Train(Line(50), LineLabels(50), groups, ranking);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*(*first)->Predict(Line(50)), *(*second)->Predict(Line(50)));
}

TEST(Booster, TakesMissingAndConstantFeaturesConstantLabelsAndOneRow) {
  DenseMatrix missing{3, std::vector<float>(30, kNan)};
  for (const char* objective : {"rank:pairwise", "reg:squarederror", "binary:logistic"}) {
    const BoosterOptions options = {.rounds = 5, .parameters = {{"objective", objective}}};
    for (const DenseMatrix& matrix : {missing, DenseMatrix{3, std::vector<float>(30, 1)}, Line(10),
                                      DenseMatrix{2, {1, kNan}}}) {
      const std::vector<float> labels(matrix.rows(), 1);
      const unsigned group = matrix.rows();
      auto booster = Booster::Train(matrix, labels, {&group, 1}, options);
      ASSERT_TRUE(booster.ok()) << objective << booster.status();
      auto predicted = (*booster)->Predict(matrix);
      ASSERT_TRUE(predicted.ok()) << objective << predicted.status();
      for (float x : *predicted) EXPECT_TRUE(std::isfinite(x));
    }
  }
}

TEST(Booster, PredictsRowsWithMoreOrFewerColumns) {
  auto booster = Booster::Train(Line(50), LineLabels(50), {}, kRegression);
  ASSERT_TRUE(booster.ok());
  const std::vector<float> expected = *(*booster)->Predict(DenseMatrix{2, {10, kNan, 40, kNan}});
  EXPECT_EQ(*(*booster)->Predict(DenseMatrix{1, {10, 40}}), expected);
  EXPECT_EQ(*(*booster)->Predict(DenseMatrix{3, {10, kNan, 5, 40, kNan, 6}}), expected);
  EXPECT_TRUE((*booster)->Predict(DenseMatrix{})->empty());
}

TEST(Booster, RefusesWhatItCannotLearnFromWithTheReason) {
  const auto message = [](const DenseMatrix& matrix, const std::vector<float>& labels,
                          const std::vector<unsigned>& groups) {
    auto booster = Booster::Train(matrix, labels, groups, kRegression);
    EXPECT_EQ(booster.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(booster.status().message());
  };
  EXPECT_EQ(message({}, {}, {}), "training needs at least one row and one column");
  EXPECT_EQ(message(Line(3), {1, 2}, {}), "training has 3 rows but 2 labels");
  EXPECT_EQ(message(Line(3), {1, 2, 3}, {2}), "training has 3 rows but 2 in groups");
  EXPECT_EQ(message({1, {1, kInfinity}}, {1, 2}, {}),
            "training row 1, feature 0 is infinite; missing is NaN");
  EXPECT_EQ(message(Line(2), {1, kNan}, {}), "label of training row 1 is not finite");
}

TEST(Booster, TellsWhatTheLibraryRefuses) {
  auto booster = Booster::Train(Line(3), {1, 2, 3}, {},
                                {.rounds = 1, .parameters = {{"objective", "no:such"}}});
  EXPECT_EQ(booster.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(booster.status().message()), testing::HasSubstr("no:such"));
}

}  // namespace
}  // namespace tilewright
