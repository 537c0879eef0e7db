#include "search/run_pace.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

// A trial that was committed, and measured, so many seconds after the epoch.
void Add(RunPace* pace, double committed, double measured) {
  pace->AddTrial(At(committed), absl::ToInt64Nanoseconds(absl::Seconds(measured)));
}

TEST(RunPace, KnowsNothingBeforeTheFirstTrial) {
  RunPace pace;
  EXPECT_FALSE(pace.steps().known());
  pace.BeginTurn(At(0));
  EXPECT_FALSE(pace.steps().known());
}

TEST(RunPace, TellsTheOpeningFromTheTrialsAfterIt) {
  RunPace pace;
  pace.BeginTurn(At(10));
  Add(&pace, 13, 13);
  EXPECT_EQ(pace.steps().opening, absl::Seconds(3));
  EXPECT_FALSE(pace.steps().known());
  // Built in pairs: 2 s for both, then 0.5 s each to measure.
  for (double at : {13.5, 16.0, 16.5, 19.0, 19.5}) Add(&pace, at, at);
  EXPECT_EQ(pace.steps().opening, absl::Seconds(3));
  EXPECT_EQ(pace.steps().trial, absl::Seconds(1.3));
  EXPECT_EQ(pace.steps().burst, absl::Seconds(0.5));
}

TEST(RunPace, FollowsAMachineThatSlowsDown) {
  RunPace pace;
  pace.BeginTurn(At(0));
  for (int i = 0; i < 100; ++i) Add(&pace, i, i);
  EXPECT_EQ(pace.steps().trial, absl::Seconds(1));
  for (int i = 0; i < 40; ++i) Add(&pace, 100 + 4 * i, 100 + 4 * i);
  EXPECT_EQ(pace.steps().trial, absl::Seconds(4));
}

TEST(RunPace, CountsTrialsThatAreHeardOfTogether) {
  RunPace pace;
  pace.BeginTurn(At(0));
  for (double measured : {4.1, 4.4, 4.7, 5.0}) Add(&pace, 6, measured);
  EXPECT_EQ(pace.steps().trial, absl::Seconds(1.5));  // with a part of the opening
  EXPECT_EQ(pace.steps().burst, absl::Seconds(0.3));
  for (double measured : {8.1, 8.4, 8.7, 9.0}) Add(&pace, 10, measured);
  EXPECT_EQ(pace.steps().trial, absl::Seconds(1));
}

TEST(RunPace, KeepsWhatItKnewUntilTheNextTurnHasMeasured) {
  RunPace pace;
  pace.BeginTurn(At(0));
  for (int i = 0; i < 10; ++i) Add(&pace, 2 + i, 2 + i);
  pace.BeginTurn(At(1000));
  EXPECT_EQ(pace.steps().opening, absl::Seconds(2));
  EXPECT_EQ(pace.steps().trial, absl::Seconds(1));
  Add(&pace, 1005, 1005);
  EXPECT_EQ(pace.steps().opening, absl::Seconds(5));
  EXPECT_EQ(pace.steps().trial, absl::Seconds(1));
}

TEST(RunPace, TakesBurstsAsTheRoundsWere) {
  RunPace pace;
  pace.BeginTurn(At(0));
  for (int i = 0; i < 10; ++i) Add(&pace, 2 + i, 2 + i);
  pace.AddRounds(10, absl::Seconds(0.2), absl::Seconds(6));
  EXPECT_EQ(pace.steps().burst, absl::Seconds(0.4));
  pace.AddRounds(0, absl::Seconds(1), absl::Seconds(7));  // nobody entered
  EXPECT_EQ(pace.steps().burst, absl::Seconds(0.4));
}

TEST(StepTimes, AreRaisedToTheLongest) {
  StepTimes steps{absl::Seconds(1), absl::Seconds(2), absl::Seconds(3)};
  steps.RaiseTo({absl::Seconds(3), absl::Seconds(1), absl::Seconds(4)});
  EXPECT_EQ(steps.opening, absl::Seconds(3));
  EXPECT_EQ(steps.trial, absl::Seconds(2));
  EXPECT_EQ(steps.burst, absl::Seconds(4));
}

}  // namespace
}  // namespace tilewright
