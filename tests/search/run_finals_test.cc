#include "search/run_finals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "search/run_pace.h"

namespace tilewright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Rounds in which each schedule takes always the same time; what has none fails.
class RunFinalsTest : public ::testing::Test {
 protected:
  absl::StatusOr<FinalsOutcome> Hold(const FinalsField& field) {
    const FinalsCalls calls{
        .hold = [&](const v1::Finals& finals,
                    FinalsStage stage) -> absl::StatusOr<v1::FinalsResult> {
          if (stage == stopped_at_) return absl::CancelledError("stopped");
          now_ += opening_ + finals.rounds() * finals.schedules_size() *
                                 (absl::Milliseconds(finals.idle_ms()) + burst_);
          opening_ = absl::ZeroDuration();
          v1::FinalsResult result;
          std::vector<std::string>& entered = entered_[stage];
          for (const std::string& schedule : finals.schedules()) {
            entered.push_back(schedule);
            v1::FinalsResult::Entrant* entrant = result.add_entrants();
            entrant->set_schedule(schedule);
            const auto found = seconds_.find(schedule);
            if (found == seconds_.end()) {
              entrant->mutable_failure()->set_kind("launch failed");
              entrant->mutable_failure()->set_text("no " + schedule);
              continue;
            }
            for (uint32_t i = 0; i < finals.rounds(); ++i)
              entrant->add_round_seconds(found->second * (1 + 1e-4 * i));
          }
          return result;
        },
        .warn = [&](std::string warning) { warnings_.push_back(std::move(warning)); },
        .ended = [&](FinalsStage stage) { ended_.push_back(stage); },
        .now = [&] { return now_; }};
    return HoldFinals(field, rules_, calls);
  }

  // Six that qualify, x1 the best, against the default as the anchor.
  FinalsField Field() {
    FinalsField field{.anchor = "d{}", .default_schedule = "d{}"};
    seconds_["d{}"] = 1;
    for (int i = 1; i <= 6; ++i) {
      const std::string schedule = "x" + std::to_string(i) + "{}";
      field.costs.emplace_back(0.5 + 0.001 * i, schedule);
      seconds_[schedule] = 0.5 + 0.001 * i;
    }
    return field;
  }

  FinalsRules rules_{.finalists = 2, .deciding_rounds = 6};
  std::map<std::string, double> seconds_;
  std::optional<FinalsStage> stopped_at_;
  std::map<FinalsStage, std::vector<std::string>> entered_;
  std::vector<FinalsStage> ended_;
  std::vector<std::string> warnings_;
  absl::Time now_ = absl::UnixEpoch();
  absl::Duration burst_ = absl::Milliseconds(100);  // beside its idle
  absl::Duration opening_;                          // before the first rounds
};

TEST_F(RunFinalsTest, TheBestOfTheQualifyingRoundsMeetTheAnchor) {
  const FinalsField field = Field();
  seconds_["x5{}"] = 0.4;  // screening took it for slower
  const absl::StatusOr<FinalsOutcome> outcome = Hold(field);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(entered_[FinalsStage::kQualifying].size(), 6);
  EXPECT_THAT(entered_[FinalsStage::kDeciding], UnorderedElementsAre("x5{}", "x1{}", "d{}"));
  EXPECT_EQ(outcome->decision.winner, "x5{}");
  EXPECT_EQ(outcome->decision.rival, "d{}");
  EXPECT_THAT(ended_,
              ElementsAre(FinalsStage::kQualifying, FinalsStage::kLibrary, FinalsStage::kDeciding));
}

TEST_F(RunFinalsTest, WithoutTimeToQualifyScreeningDecidesWhoEnters) {
  FinalsField field = Field();
  field.library_algorithms = {"contraction.library{name=cublaslt algo=0}"};
  field.burst = burst_;
  field.by = now_ + absl::Seconds(3);
  const absl::StatusOr<FinalsOutcome> outcome = Hold(field);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_THAT(entered_[FinalsStage::kQualifying], IsEmpty());
  EXPECT_THAT(entered_[FinalsStage::kLibrary], IsEmpty());
  EXPECT_THAT(entered_[FinalsStage::kDeciding], UnorderedElementsAre("x1{}", "d{}"));
  // 3 s / (2 entrants * 6 rounds) = 250 ms, of which twice 100 ms are kept for the burst.
  EXPECT_EQ(outcome->idle_ms, 50);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("leaves no time for it")));
}

TEST_F(RunFinalsTest, AsManyQualifyAndEnterAsSurelyFit) {
  // The least, 2 entrants * 6 rounds * (20 + 2 * 100 ms), is 2.64 s; each that qualifies takes at
  // most 2 * (200 + 200 ms), of half of the rest.
  FinalsField field = Field();
  field.burst = burst_;
  field.by = now_ + absl::Seconds(2.64 + 2 * 3.3);
  ASSERT_TRUE(Hold(field).ok());
  EXPECT_EQ(entered_[FinalsStage::kQualifying].size(), 4);
  // That took 2.4 s; each that decides takes at most 6 * 0.4 s of the 6.84 s left: two beside
  // the default would be 7.2 s.
  EXPECT_THAT(entered_[FinalsStage::kDeciding], UnorderedElementsAre("x1{}", "d{}"));
  EXPECT_LE(now_, field.by);
}

TEST_F(RunFinalsTest, EndInTimeThoughEveryBurstTakesTwiceAsLong) {
  for (double seconds : {6.0, 8.0, 12.0, 20.0, 40.0}) {
    FinalsField field = Field();
    field.library_algorithms = {"contraction.library{name=cublaslt algo=0}"};
    seconds_[field.library_algorithms[0]] = 0.2;
    field.burst = absl::Milliseconds(100);
    burst_ = kSlack * field.burst;
    field.by = now_ + absl::Seconds(seconds);
    ASSERT_TRUE(Hold(field).ok());
    EXPECT_LE(now_, field.by) << seconds;
  }
}

TEST_F(RunFinalsTest, HoldFewerRoundsRatherThanTooMany) {
  rules_.deciding_rounds = 9;
  FinalsField field = Field();
  field.burst = burst_;
  // 2 entrants * 7 rounds * 220 ms, and a little.
  field.by = now_ + absl::Seconds(3.2);
  const absl::StatusOr<FinalsOutcome> outcome = Hold(field);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->rounds, 7);
  field.by = now_;
  EXPECT_EQ(Hold(field)->rounds, rules_.least_rounds);
}

TEST_F(RunFinalsTest, KeepTimeForASessionThatIsToBeOpened) {
  FinalsField field = Field();
  field.burst = burst_;
  field.opening = absl::Seconds(2);
  opening_ = kSlack * field.opening;
  field.by = now_ + absl::Seconds(15);
  ASSERT_TRUE(Hold(field).ok());
  EXPECT_LE(now_, field.by);
}

TEST_F(RunFinalsTest, TheLeastIsHeldThoughTheTimeIsOver) {
  FinalsField field = Field();
  field.burst = burst_;
  field.by = now_ - absl::Seconds(1);
  const absl::StatusOr<FinalsOutcome> outcome = Hold(field);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->idle_ms, 20);
  EXPECT_THAT(entered_[FinalsStage::kDeciding], UnorderedElementsAre("x1{}", "d{}"));
}

TEST_F(RunFinalsTest, ALibraryIsMeasuredAgainstButDoesNotWin) {
  FinalsField field = Field();
  field.library_algorithms = {"contraction.library{name=cublaslt algo=0}",
                              "contraction.library{name=cublaslt algo=1}"};
  seconds_[field.library_algorithms[0]] = 0.2;
  seconds_[field.library_algorithms[1]] = 0.1;
  const absl::StatusOr<FinalsOutcome> outcome = Hold(field);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->library, field.library_algorithms[1]);
  EXPECT_EQ(outcome->decision.winner, "x1{}");
  EXPECT_EQ(outcome->deciding.size(), 4);
}

TEST_F(RunFinalsTest, ALibraryOfWhichNothingRunsIsSaidOnce) {
  FinalsField field = Field();
  field.library_algorithms = {"contraction.library{name=cublaslt algo=0}"};
  const absl::StatusOr<FinalsOutcome> outcome = Hold(field);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->library, "");
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("the library does not compete: no contraction")));
}

TEST_F(RunFinalsTest, EndsWhereItIsStopped) {
  for (FinalsStage stage : {FinalsStage::kQualifying, FinalsStage::kDeciding}) {
    stopped_at_ = stage;
    EXPECT_TRUE(absl::IsCancelled(Hold(Field()).status()));
  }
}

}  // namespace
}  // namespace tilewright
