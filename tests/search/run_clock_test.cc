#include "search/run_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"

namespace tilewright {
namespace {

TuningStats Stats(int busy, int enrolled) {
  TuningStats stats;
  stats.busy = absl::Seconds(busy);
  stats.enrolled = absl::Seconds(enrolled);
  return stats;
}

TEST(RunClock, StandsStillBetweenTwoParts) {
  absl::Time now = absl::UnixEpoch();
  RunClock clock([&] { return now; });
  now += absl::Seconds(2);
  clock.Leave(std::nullopt);
  now += absl::Seconds(30);
  EXPECT_EQ(clock.elapsed_before(), absl::Seconds(2));
  clock.Enter(std::nullopt);
  now += absl::Seconds(1);
  EXPECT_EQ(clock.elapsed(), absl::Seconds(3));
  EXPECT_EQ(clock.started(), absl::UnixEpoch() + absl::Seconds(30));
  clock.EndPhase("screening");
  EXPECT_EQ(clock.phases().at(0).second, absl::Seconds(3));
}

TEST(RunClock, AddsUpAPhaseThatComesAgain) {
  RunClock clock(absl::Now);
  clock.EndPhase("first trial");
  clock.EndPhase("screening");
  clock.EndPhase("screening");
  ASSERT_EQ(clock.phases().size(), 2);
  EXPECT_EQ(clock.phases()[0].first, "first trial");
  EXPECT_EQ(clock.phases()[1].first, "screening");
}

TEST(RunClock, CountsTheDevicesInItsOwnPartsAlone) {
  RunClock clock(absl::Now);
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
