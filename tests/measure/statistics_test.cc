#include "measure/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tilewright {
namespace {

std::vector<double> Ramp(int n) {
  std::vector<double> values;
  for (int i = n; i >= 1; --i) values.push_back(i);
  return values;
}

TEST(Median, IsTheMiddleOrTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(Median({3}), 3);
  EXPECT_EQ(Median({4, 1}), 2.5);
  EXPECT_EQ(Median({9, 1, 5}), 5);
  EXPECT_EQ(Median({9, 1, 5, 7}), 6);
}

// The probability that [x(r), x(n+1-r)] covers the median, by counting all 2^n ways the samples may
// lie around it.
double CoverageByCounting(int n, int r) {
  int covered = 0;
  for (int mask = 0; mask < (1 << n); ++mask) {
    const int below = __builtin_popcount(mask);
    if (below >= r && below <= n - r) ++covered;
  }
  return static_cast<double>(covered) / (1 << n);
}

TEST(MedianInterval, IsTheNarrowestThatCoversByCountingAllCases) {
  for (double confidence : {0.5, 0.9, 0.95, 0.99}) {
    for (int n = 1; n <= 18; ++n) {
      const std::optional<Interval> interval = MedianInterval(Ramp(n), confidence);
      int best = 0;
      for (int r = 1; 2 * r <= n; ++r) {
        if (CoverageByCounting(n, r) >= confidence) best = r;
      }
      ASSERT_EQ(interval.has_value(), best > 0) << n << " " << confidence;
      if (best == 0) continue;
      EXPECT_EQ(interval->low, best) << n << " " << confidence;
      EXPECT_EQ(interval->high, n + 1 - best) << n << " " << confidence;
    }
  }
}

TEST(MedianInterval, SixSamplesAreTheFewestAt95Percent) {
  EXPECT_FALSE(MedianInterval(Ramp(5)).has_value());
  const std::optional<Interval> interval = MedianInterval(Ramp(6));
  ASSERT_TRUE(interval.has_value());
  EXPECT_EQ(interval->low, 1);
  EXPECT_EQ(interval->high, 6);
}

TEST(MedianInterval, HoldsForManySamples) {
  // Normal approximation: r = n/2 - 1.96 sqrt(n)/2 = 5000 - 98 = 4902.
  const std::optional<Interval> interval = MedianInterval(Ramp(10000));
  ASSERT_TRUE(interval.has_value());
  EXPECT_NEAR(interval->low, 4902, 3);
  EXPECT_EQ(interval->low + interval->high, 10001);
}

TEST(ComparePaired, SaysFasterOnlyIfTheIntervalAndTheMedianBothDo) {
  const std::vector<double> slow(6, 1.02);
  const std::vector<double> fast(6, 1.0);
  PairedComparison comparison = ComparePaired(fast, slow);
  EXPECT_EQ(comparison.outcome, Outcome::kFaster);
  EXPECT_NEAR(comparison.ratio, 1.02, 1e-12);
  EXPECT_EQ(ComparePaired(slow, fast).outcome, Outcome::kSlower);
  // Half a percent: the interval is above 1, the median is not enough.
  const std::vector<double> little(6, 1.005);
  EXPECT_EQ(ComparePaired(fast, little).outcome, Outcome::kTie);
  EXPECT_EQ(ComparePaired(little, fast).outcome, Outcome::kTie);
}

TEST(ComparePaired, OneRoundTheOtherWayMakesSixRoundsATie) {
  const std::vector<double> candidate = {1, 1, 1, 1, 1, 1};
  const std::vector<double> rival = {1.1, 1.1, 1.1, 1.1, 1.1, 0.99};
  EXPECT_EQ(ComparePaired(candidate, rival).outcome, Outcome::kTie);
}

TEST(ComparePaired, DroppedSamplesTakeTheirRoundWithThem) {
  const double nan = std::nan("");
  const std::vector<double> candidate = {1, nan, 1, 1, 1, 1, 1, 1};
  const std::vector<double> rival = {2, 2, nan, 2, 2, 2, 2, 2};
  const PairedComparison comparison = ComparePaired(candidate, rival);
  EXPECT_EQ(comparison.rounds, 6);
  EXPECT_EQ(comparison.outcome, Outcome::kFaster);
}

TEST(ComparePaired, TooFewRoundsAreATieWithoutAnInterval) {
  const PairedComparison comparison = ComparePaired({1, 1, 1, 1, 1}, {2, 2, 2, 2, 2});
  EXPECT_EQ(comparison.outcome, Outcome::kTie);
  EXPECT_FALSE(comparison.interval.has_value());
  EXPECT_EQ(ComparePaired({}, {}).rounds, 0);
}

TEST(ComparePaired, EqualKernelsAreRarelyToldApartAndOnePercentIsFound) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> noise(0, 0.01);
  int false_verdicts = 0;
  int found = 0;
  constexpr int kRuns = 2000;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<double> a, b, better;
    for (int round = 0; round < 20; ++round) {
      const double drift = 1 + 0.05 * round / 20;  // both slow down: pairing takes it out
      a.push_back(drift * (1 + noise(random)));
      b.push_back(drift * (1 + noise(random)));
      better.push_back(drift * (0.96 + noise(random)));
    }
    if (ComparePaired(a, b).outcome != Outcome::kTie) ++false_verdicts;
    if (ComparePaired(better, b).outcome == Outcome::kFaster) ++found;
  }
  EXPECT_LE(false_verdicts, kRuns * 0.05);
  EXPECT_GE(found, kRuns * 0.95);
}

}  // namespace
}  // namespace tilewright
