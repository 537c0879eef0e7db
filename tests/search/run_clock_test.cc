#include "search/run_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

TuningStats Stats(int busy, int enrolled) {
  TuningStats stats;
  stats.busy = absl::Seconds(busy);
  stats.enrolled = absl::Seconds(enrolled);
  return stats;
}

TEST(RunClock, StandsStillBetweenTwoParts) {
  RunClock clock;
  const absl::Time started = clock.started();
  clock.Leave(std::nullopt);
  absl::SleepFor(absl::Milliseconds(30));
  clock.Enter(std::nullopt);
  EXPECT_GE(clock.started() - started, absl::Milliseconds(30));
  clock.EndPhase("screening");
  EXPECT_LE(clock.phases().at(0).second, clock.elapsed());
}

TEST(RunClock, AddsUpAPhaseThatComesAgain) {
  RunClock clock;
  clock.EndPhase("first trial");
  clock.EndPhase("screening");
  clock.EndPhase("screening");
  ASSERT_EQ(clock.phases().size(), 2);
  EXPECT_EQ(clock.phases()[0].first, "first trial");
  EXPECT_EQ(clock.phases()[1].first, "screening");
}

TEST(RunClock, CountsTheDevicesInItsOwnPartsAlone) {
  RunClock clock;
  EXPECT_EQ(clock.Utilisation(Stats(0, 0)), 0);
  clock.Leave(std::nullopt);
  clock.Enter(Stats(100, 200));
  EXPECT_EQ(clock.Utilisation(Stats(103, 204)), 0.75);
  clock.Leave(Stats(103, 204));
  clock.Enter(Stats(500, 600));
  EXPECT_EQ(clock.Utilisation(Stats(500, 600)), 0.75);
  EXPECT_EQ(clock.Utilisation(Stats(503, 604)), 0.75);
}

}  // namespace
}  // namespace tilewright
