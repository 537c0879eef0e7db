#include "search/run_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace tilewright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr char kDefault[] = "v{x=0}";

TrialFacts Timed(const std::string& schedule, double seconds, double anchor_seconds) {
  return {.schedule = schedule, .seconds = seconds, .anchor_seconds = anchor_seconds};
}
TrialFacts Failed(const std::string& schedule, const std::string& kind) {
  return {.schedule = schedule, .failure_kind = kind, .failure_text = "why"};
}

TEST(FactsOf, SaysTheSameOfATrialFromTheWireAndFromTheLog) {
  v1::TrialResult wire;
  wire.set_schedule("v{x=1}");
  wire.set_seconds(2e-3);
  wire.set_anchor_seconds(4e-3);
  const TrialRow row = {.schedule = "v{x=1}", .seconds = 2e-3, .anchor_seconds = 4e-3};
  for (const TrialFacts& facts : {FactsOf(wire), FactsOf(row)}) {
    EXPECT_EQ(facts.schedule, "v{x=1}");
    EXPECT_EQ(facts.seconds, 2e-3);
    EXPECT_EQ(facts.anchor_seconds, 4e-3);
    EXPECT_EQ(facts.failure_kind, "");
  }
}

TEST(FactsOf, HasNoTimeWhereTheTrialFailed) {
  v1::TrialResult wire;
  wire.mutable_failure()->set_kind("crashed");
  wire.mutable_failure()->set_text("signal 11");
  const TrialFacts facts = FactsOf(wire);
  EXPECT_FALSE(facts.seconds.has_value());
  EXPECT_EQ(facts.failure_kind, "crashed");
  EXPECT_EQ(facts.failure_text, "signal 11");
}

TEST(RunResults, KeepsCostsInOrderAndTheBestByCostNotByTime) {
  RunResults results(kDefault);
  EXPECT_EQ(results.best(), nullptr);
  EXPECT_EQ(results.Add(Timed("v{x=1}", 3, 6), 1).cost, 0.5);
  // Faster in seconds, but in a session in which the anchor was faster too.
  EXPECT_EQ(results.Add(Timed("v{x=2}", 2, 2), 2).cost, 1);
  EXPECT_THAT(results.costs(), ElementsAre(Pair(0.5, "v{x=1}"), Pair(1, "v{x=2}")));
  EXPECT_EQ(*results.best(), "v{x=1}");
  EXPECT_EQ(results.Seconds("v{x=2}"), 2);
  EXPECT_EQ(results.Seconds("v{x=3}"), std::nullopt);
}

TEST(RunResults, CountsATimeWithoutAnAnchorButComparesItWithNothing) {
  RunResults results(kDefault);
  const Result result = results.Add({.schedule = "v{x=1}", .seconds = 3}, 1);
  EXPECT_FALSE(result.cost.has_value());
  EXPECT_EQ(results.trials(), 1);
  EXPECT_TRUE(results.costs().empty());
}

TEST(RunResults, CountsFailuresByKindAndKeepsTheFirst) {
  RunResults results(kDefault);
  results.Add(Failed("v{x=1}", "wrong output"), 1);
  results.Add(Failed("v{x=2}", "crashed"), 2);
  results.Add(Failed("v{x=3}", "crashed"), 3);
  EXPECT_THAT(results.failures(), ElementsAre(Pair("crashed", 2), Pair("wrong output", 1)));
  EXPECT_EQ(results.first_failure(), "wrong output: why");
}

TEST(RunResults, TeachesTheClassifierOnlyFailuresOfTheCandidate) {
  RunResults results(kDefault);
  EXPECT_TRUE(results.Add(Failed("v{x=1}", "wrong output"), 1).trains_classifier);
  EXPECT_FALSE(results.Add(Failed("v{x=2}", "worker lost"), 2).trains_classifier);
  EXPECT_FALSE(results.Add(Failed("v{x=3}", "build timeout"), 3).trains_classifier);
}

TEST(RunResults, GivesUpAfterTwentyEqualFailuresWithTheDefaultAmongThem) {
  RunResults results(kDefault);
  for (int i = 0; i < 19; ++i) {
    results.Add(Failed(i == 7 ? kDefault : absl::StrCat("v{x=", i + 1, "}"), "crashed"), i);
    EXPECT_TRUE(results.CheckHope().ok());
  }
  results.Add(Failed("v{x=30}", "crashed"), 30);
  EXPECT_EQ(results.CheckHope().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(results.CheckHope().message(), HasSubstr("first 20 trials all failed"));
  EXPECT_THAT(results.CheckHope().message(), HasSubstr("crashed: why"));
}

TEST(RunResults, GoesOnWhileTheDefaultHasNotFailedOrSomethingWorked) {
  RunResults untried(kDefault);
  for (int i = 0; i < 40; ++i) untried.Add(Failed(absl::StrCat("v{x=", i + 1, "}"), "crashed"), i);
  EXPECT_TRUE(untried.CheckHope().ok());
  RunResults worked(kDefault);
  worked.Add(Timed("v{x=1}", 1, 1), 1);
  for (int i = 0; i < 40; ++i) worked.Add(Failed(kDefault, "crashed"), 0);
  EXPECT_TRUE(worked.CheckHope().ok());
}

}  // namespace
}  // namespace tilewright
