#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "search/finals.h"

namespace tilewright {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kDropped = std::numeric_limits<double>::quiet_NaN();

TEST(ChooseQualifiers, TakesThoseWithinEightPercentOfTheBestButNotTheIncumbent) {
  EXPECT_THAT(
      ChooseQualifiers({{1.07, "c"}, {1.0, "a"}, {1.09, "d"}, {1.02, "b"}}, "b", FinalsRules()),
      ElementsAre("a", "c"));
}

TEST(ChooseQualifiers, TakesNoMoreThanTheRulesAllow) {
  FinalsRules rules;
  rules.most_qualifiers = 2;
  EXPECT_THAT(ChooseQualifiers({{1.0, "a"}, {1.01, "b"}, {1.02, "c"}}, "x", rules),
              ElementsAre("a", "b"));
  EXPECT_THAT(ChooseQualifiers({}, "x", rules), IsEmpty());
}

TEST(ChooseFinalists, RanksByTheMedianAndLeavesOutWhoFailed) {
  FinalsRules rules;
  rules.finalists = 2;
  const std::vector<Entrant> entrants = {{"slow", {3, 3}},
                                         {"failed", {}},
                                         {"fast", {1, 1.2}},
                                         {"dropped", {kDropped, kDropped}},
                                         {"middle", {kDropped, 2}}};
  EXPECT_THAT(ChooseFinalists(entrants, rules), ElementsAre("fast", "middle"));
}

TEST(Decide, NamesTheFasterScheduleTheWinner) {
  const std::vector<Entrant> entrants = {{"old", {1.10, 1.12, 1.11, 1.10, 1.13, 1.12}},
                                         {"new", {1, 1, 1, 1, 1, 1}}};
  const absl::StatusOr<FinalsDecision> decision = Decide(entrants, "old");
  ASSERT_TRUE(decision.ok());
  EXPECT_EQ(decision->winner, "new");
  EXPECT_EQ(decision->rival, "old");
  EXPECT_EQ(decision->comparison.outcome, Outcome::kFaster);
  EXPECT_NEAR(decision->comparison.ratio, 1.115, 1e-9);
}

TEST(Decide, KeepsTheIncumbentInATie) {
  // The new one's median is better, but the pairs disagree: the interval holds 1.
  const std::vector<Entrant> entrants = {{"old", {1.02, 0.99, 1.03, 0.99, 1.03, 1.02}},
                                         {"new", {1, 1, 1, 1, 1, 1}}};
  const absl::StatusOr<FinalsDecision> decision = Decide(entrants, "old");
  ASSERT_TRUE(decision.ok());
  EXPECT_EQ(decision->winner, "old");
  EXPECT_EQ(decision->rival, "new");
  EXPECT_EQ(decision->comparison.outcome, Outcome::kTie);
}

TEST(Decide, KeepsTheIncumbentWhenTheGainIsBelowOnePercent) {
  const std::vector<Entrant> entrants = {{"old", std::vector<double>(8, 1.005)},
                                         {"new", std::vector<double>(8, 1.0)}};
  EXPECT_EQ(Decide(entrants, "old")->winner, "old");
}

TEST(Decide, ComparesAWinningIncumbentWithTheRunnerUp) {
  const std::vector<Entrant> entrants = {{"old", std::vector<double>(6, 1.0)},
                                         {"b", std::vector<double>(6, 1.5)},
                                         {"c", std::vector<double>(6, 1.2)}};
  const absl::StatusOr<FinalsDecision> decision = Decide(entrants, "old");
  EXPECT_EQ(decision->winner, "old");
  EXPECT_EQ(decision->rival, "c");
  EXPECT_EQ(decision->comparison.outcome, Outcome::kFaster);
}

TEST(Decide, ReplacesAnIncumbentThatFailed) {
  const std::vector<Entrant> entrants = {{"old", {}}, {"new", std::vector<double>(6, 1.0)}};
  const absl::StatusOr<FinalsDecision> decision = Decide(entrants, "old");
  EXPECT_EQ(decision->winner, "new");
  EXPECT_EQ(decision->rival, "old");
  EXPECT_FALSE(decision->rival_seconds.has_value());
}

TEST(Decide, RefusesAFieldWithoutASample) {
  EXPECT_EQ(Decide({{{"old", {}}, {"new", {kDropped}}}}, "old").status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(MedianSeconds, IsOfTheRoundsThatHaveASample) {
  const std::vector<Entrant> entrants = {
      {"a", {3, kDropped, 1, 2}}, {"failed", {}}, {"dropped", {kDropped}}};
  EXPECT_EQ(MedianSeconds(entrants, "a"), 2);
  EXPECT_EQ(MedianSeconds(entrants, "failed"), std::nullopt);
  EXPECT_EQ(MedianSeconds(entrants, "dropped"), std::nullopt);
  EXPECT_EQ(MedianSeconds(entrants, "absent"), std::nullopt);
}

TEST(RoundsOf, ListsRoundAfterRoundWithoutThoseWhoFailed) {
  const Rounds rounds = RoundsOf({{{"a", {1, 2}}, {"failed", {}}, {"b", {3, 4}}}}, 2);
  EXPECT_THAT(rounds.schedules, ElementsAre("a", "b"));
  EXPECT_THAT(rounds.seconds, ElementsAre(1, 3, 2, 4));
}

TEST(RoundsOf, LeavesOutRoundsWithADroppedOrMissingSample) {
  const double dropped = std::nan("");
  const Rounds rounds = RoundsOf({{{"a", {1, dropped, 3, 4}}, {"b", {5, 6, 7}}}}, 4);
  EXPECT_THAT(rounds.schedules, ElementsAre("a", "b"));
  EXPECT_THAT(rounds.seconds, ElementsAre(1, 5, 3, 7));
}

}  // namespace
}  // namespace tilewright
