#include "costmodel/gaussian_process.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

DenseMatrix Line(std::vector<float> values) { return {1, std::move(values)}; }

TEST(GaussianProcess, PassesNearItsPointsAndDoubtsWhatIsFarFromThem) {
  GaussianProcess process;
  ASSERT_FALSE(process.fitted());
  const std::vector<double> values = {1.0, 0.2, -0.5, 0.1, 0.9};
  ASSERT_TRUE(process.Fit(Line({0, 0.25, 0.5, 0.75, 1}), values, {.steps = 30}).ok());
  const Posterior at = process.Predict(Line({0, 0.25, 0.5, 0.75, 1}));
  for (int i = 0; i < 5; ++i) EXPECT_NEAR(at.mean[i], values[i], 0.15) << i;
  const Posterior away = process.Predict(Line({0.5, 0.6, 1.5, 3}));
  EXPECT_LT(away.deviation[0], away.deviation[2]);
  EXPECT_LT(away.deviation[2], away.deviation[3]);
  EXPECT_NEAR(away.mean[3], 0.34, 0.2);  // far away the mean of the values is all there is
}

TEST(GaussianProcess, FindsThatAColumnDoesNotMatter) {
  // Values depend on the first of two columns.
  DenseMatrix inputs{2, {}};
  std::vector<double> values;
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 4; ++j) {
      inputs.values.insert(inputs.values.end(),
                           {i / 7.0f, static_cast<float>((i * 3 + j * 5) % 4) / 3});
      values.push_back(std::sin(i * 0.9));
    }
  }
  GaussianProcess process;
  ASSERT_TRUE(process.Fit(inputs, values, {.steps = 60}).ok());
  const std::vector<double> mean = process.PredictMean({2, {0, 0.1f, 0, 0.9f, 1, 0.5f}});
  EXPECT_NEAR(mean[0], mean[1], 0.1);
  EXPECT_GT(std::abs(mean[0] - mean[2]), 0.0);
}

TEST(GaussianProcess, SaysTheSameOfPointsAloneAndTogether) {
  GaussianProcess process;
  ASSERT_TRUE(process.Fit(Line({0, 0.3f, 0.9f}), {1, 2, 0}, {.steps = 10}).ok());
  const DenseMatrix points = Line({0.1f, 0.5f, 2});
  const Posterior posterior = process.Predict(points);
  const GaussianProcess::Joint joint = process.PredictJoint(points);
  const std::vector<double> mean = process.PredictMean(points);
  for (int i = 0; i < 3; ++i) {
    EXPECT_DOUBLE_EQ(joint.mean[i], posterior.mean[i]);
    EXPECT_NEAR(mean[i], posterior.mean[i], 1e-5);  // in single precision
    EXPECT_NEAR(joint.covariance[i * 3 + i], posterior.deviation[i] * posterior.deviation[i], 1e-9);
  }
  EXPECT_NEAR(joint.covariance[1], joint.covariance[3], 1e-12);
  EXPECT_GT(joint.noise, 0);
}

TEST(GaussianProcess, FitsTheSameTwiceAndEqualValuesWithoutTrouble) {
  GaussianProcess a, b;
  ASSERT_TRUE(a.Fit(Line({0, 0.3f, 0.9f}), {1, 2, 0}, {.steps = 20}).ok());
  ASSERT_TRUE(b.Fit(Line({0, 0.3f, 0.9f}), {1, 2, 0}, {.steps = 20}).ok());
  EXPECT_EQ(a.PredictMean(Line({0.5f})), b.PredictMean(Line({0.5f})));
  // One row, the same row twice, all values alike.
  EXPECT_TRUE(GaussianProcess().Fit(Line({0.5f}), {3}, {.steps = 5}).ok());
  ASSERT_TRUE(b.Fit(Line({0.5f, 0.5f, 0.5f}), {3, 3, 3}, {.steps = 5}).ok());
  EXPECT_NEAR(b.PredictMean(Line({0.7f}))[0], 3, 1e-9);
}

TEST(GaussianProcess, RefusesWhatItCannotFitAndKeepsWhatItKnew) {
  GaussianProcess process;
  ASSERT_TRUE(process.Fit(Line({0, 1}), {0, 1}, {}).ok());
  const std::vector<double> before = process.PredictMean(Line({0.5f}));
  EXPECT_FALSE(process.Fit(Line({}), {}, {}).ok());
  EXPECT_FALSE(process.Fit(Line({0, 1}), {0}, {}).ok());
  EXPECT_FALSE(process.Fit(Line({0, 1}), {0, std::nan("")}, {}).ok());
  EXPECT_FALSE(process.Fit(Line({0, std::numeric_limits<float>::infinity()}), {0, 1}, {}).ok());
  const absl::Status other = process.Fit({2, {0, 1, 1, 0}}, {0, 1}, {});
  EXPECT_THAT(std::string(other.message()), ::testing::HasSubstr("as many columns each time"));
  EXPECT_EQ(process.PredictMean(Line({0.5f})), before);
}

}  // namespace
}  // namespace tilewright
