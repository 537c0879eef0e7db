#include "search/noise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"

namespace tilewright {
namespace {

using ::testing::HasSubstr;

// A space of a hundred schedules, 0.5% apart from the best on; samples scatter about the true time
// by `noise`, and one in thirty was disturbed: 5% slower.
std::unique_ptr<RecordedSpace> NoisySpace(double noise) {
  std::mt19937_64 random(1);
  const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  std::vector<RecordedConfiguration> configurations;
  for (int i = 0; i < 100; ++i) {
    const std::string text = absl::StrCat("r{a=", i / 10, " b=", i % 10, "}");
    RecordedConfiguration configuration{.schedule = *ParseSchedule(text),
                                        .key = text,
                                        .milliseconds = 1 + 0.005 * i,
                                        .failure = "",
                                        .samples = {}};
    for (int s = 0; s < 30; ++s) {
      configuration.samples.push_back(*configuration.milliseconds *
                                      (1 + noise * (2 * uniform() - 1)) * (s == 29 ? 1.05 : 1));
    }
    configurations.push_back(std::move(configuration));
  }
  return *RecordedSpace::Make(std::move(configurations));
}

TEST(SimulateNoise, NamesAScheduleNearTheBestThoughReadingsAreNoisy) {
  const auto space = NoisySpace(0.01);
  const absl::StatusOr<NoiseReport> report =
      SimulateNoise(*space, *ParseStrategy("random"), {.trials = 100, .seeds = 200});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->runs, 200);
  EXPECT_EQ(report->losses.size(), 200);
  EXPECT_GE(report->share_within(), 0.95);
  EXPECT_EQ(report->self_comparisons, 200 * 20);
  EXPECT_LE(report->share_self_different(), 0.05);
}

TEST(SimulateNoise, ShowsRulesThatDoNotSuffice) {
  const auto space = NoisySpace(0.1);
  const FinalsRules hasty{.most_qualifiers = 1, .finalists = 1};
  const absl::StatusOr<NoiseReport> report =
      SimulateNoise(*space, *ParseStrategy("random"), {.trials = 100, .seeds = 200}, hasty);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_LT(report->share_within(), 0.8);
}

TEST(SimulateNoise, SaysTheSameForTheSameSeeds) {
  const auto space = NoisySpace(0.03);
  const SimulateOptions options{.trials = 50, .seeds = 20};
  const auto once = SimulateNoise(*space, *ParseStrategy("random"), options);
  const auto again = SimulateNoise(*space, *ParseStrategy("random"), options);
  EXPECT_EQ(once->losses, again->losses);
  EXPECT_EQ(once->self_differences, again->self_differences);
}

TEST(SimulateNoise, RefusesASpaceWithoutSamples) {
  std::vector<RecordedConfiguration> configurations;
  for (int i = 0; i < 3; ++i) {
    configurations.push_back({.schedule = *ParseSchedule(absl::StrCat("r{a=", i, "}")),
                              .key = absl::StrCat(i),
                              .milliseconds = 1 + i,
                              .failure = "",
                              .samples = {}});
  }
  const auto space = *RecordedSpace::Make(std::move(configurations));
  EXPECT_THAT(std::string(SimulateNoise(*space, *ParseStrategy("random"), {}).status().message()),
              HasSubstr("no samples to draw readings from"));
}

}  // namespace
}  // namespace tilewright
