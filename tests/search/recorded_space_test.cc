#include "search/recorded_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace tilewright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RecordedConfiguration At(const std::string& schedule, std::optional<double> milliseconds = 1) {
  return {.schedule = *ParseSchedule(schedule), .key = schedule, .milliseconds = milliseconds};
}

std::unique_ptr<RecordedSpace> Space(const std::vector<std::string>& schedules) {
  std::vector<RecordedConfiguration> configurations;
  for (const std::string& schedule : schedules) configurations.push_back(At(schedule));
  absl::StatusOr<std::unique_ptr<RecordedSpace>> space =
      RecordedSpace::Make(std::move(configurations));
  EXPECT_TRUE(space.ok()) << space.status();
  return *std::move(space);
}

std::vector<std::string> NeighboursOf(const RecordedSpace& space, const std::string& schedule) {
  std::vector<std::string> neighbours;
  for (absl::uint128 index : space.Neighbours(*space.IndexOf(*ParseSchedule(schedule))))
    neighbours.push_back(space.At(index).ToString());
  return neighbours;
}

TEST(RecordedSpace, OrdersNumbersByValueAndTheSchedulesByTheirValues) {
  const auto space = Space({"r{n=16 f=0.5 w=b}", "r{n=2 f=1.0 w=a}", "r{n=2 f=0.5 w=b}",
                            "r{n=16 f=0.5 w=a}", "r{n=100 f=1e1 w=b}"});
  EXPECT_THAT(space->decisions()[0].tokens, ElementsAre("2", "16", "100"));
  EXPECT_THAT(space->decisions()[0].numbers, ElementsAre(2, 16, 100));
  EXPECT_THAT(space->decisions()[1].tokens, ElementsAre("0.5", "1.0", "1e1"));
  EXPECT_THAT(space->decisions()[2].numbers, ElementsAre(0, 1));  // places, not numbers
  EXPECT_EQ(space->At(0).ToString(), "r{n=2 f=0.5 w=b}");
  EXPECT_EQ(space->At(4).ToString(), "r{n=100 f=1e1 w=b}");
  EXPECT_THAT(space->Values(4), ElementsAre(2, 2, 1));
}

TEST(RecordedSpace, OrdersFalseBeforeTrue) {
  const auto space = Space({"r{b=True}", "r{b=False}"});
  EXPECT_THAT(space->decisions()[0].tokens, ElementsAre("False", "True"));
  EXPECT_THAT(space->decisions()[0].numbers, ElementsAre(0, 1));
}

TEST(RecordedSpace, FindsEachScheduleByItsIndexAndBack) {
  std::vector<std::string> schedules;
  for (int a = 0; a < 7; ++a) {
    for (int b = 0; b < 5; ++b) {
      if ((a + b) % 3 != 0) schedules.push_back(absl::StrCat("r{a=", a * a, " b=", b, "}"));
    }
  }
  const auto space = Space(schedules);
  ASSERT_EQ(space->Count(), absl::uint128(schedules.size()));
  for (absl::uint128 index = 0; index < space->Count(); ++index)
    EXPECT_EQ(*space->IndexOf(space->At(index)), index);
}

TEST(RecordedSpace, NeighboursDifferInOneDecisionAndWereRecorded) {
  const auto space = Space({"r{a=1 b=1}", "r{a=1 b=2}", "r{a=2 b=2}", "r{a=4 b=1}", "r{a=4 b=4}"});
  EXPECT_THAT(NeighboursOf(*space, "r{a=1 b=1}"), ElementsAre("r{a=1 b=2}", "r{a=4 b=1}"));
  EXPECT_THAT(NeighboursOf(*space, "r{a=2 b=2}"), ElementsAre("r{a=1 b=2}"));
  EXPECT_THAT(NeighboursOf(*space, "r{a=4 b=4}"), ElementsAre("r{a=4 b=1}"));
}

TEST(RecordedSpace, NeighboursDropDecisionsThatVanishAndTakeTheFirstValueOfThoseThatAppear) {
  const auto space = Space({"r{pack=0 n=1}", "r{pack=0 n=2}", "r{pack=1 n=1 width=4}",
                            "r{pack=1 n=1 width=8}", "r{pack=1 n=2 width=8}"});
  EXPECT_THAT(NeighboursOf(*space, "r{pack=0 n=1}"),
              ElementsAre("r{pack=0 n=2}", "r{pack=1 n=1 width=4}"));
  EXPECT_THAT(NeighboursOf(*space, "r{pack=0 n=2}"),
              ElementsAre("r{pack=0 n=1}", "r{pack=1 n=2 width=8}"));
  EXPECT_THAT(NeighboursOf(*space, "r{pack=1 n=1 width=8}"),
              ElementsAre("r{pack=0 n=1}", "r{pack=1 n=1 width=4}", "r{pack=1 n=2 width=8}"));
}

TEST(RecordedSpace, KeepsVariantsApart) {
  const auto space = Space({"tiled{a=2 b=1}", "naive{a=1}", "naive{a=2}", "tiled{a=1 b=1}"});
  ASSERT_EQ(space->Parts().size(), 2);
  EXPECT_EQ(space->Parts()[0].variant, "naive");
  EXPECT_EQ(space->Parts()[0].end, absl::uint128(2));
  EXPECT_EQ(space->Parts()[1].begin, absl::uint128(2));
  EXPECT_EQ(space->Parts()[1].end, absl::uint128(4));
  EXPECT_THAT(NeighboursOf(*space, "naive{a=1}"), ElementsAre("naive{a=2}"));
  EXPECT_THAT(NeighboursOf(*space, "tiled{a=1 b=1}"), ElementsAre("tiled{a=2 b=1}"));
}

TEST(RecordedSpace, SaysWhatWasNotRecorded) {
  const auto space = Space({"r{a=1 b=1}", "r{a=2 b=2}"});
  const auto message = [&](const std::string& schedule) {
    return std::string(space->IndexOf(*ParseSchedule(schedule)).status().message());
  };
  EXPECT_THAT(message("s{a=1 b=1}"), HasSubstr("variant `s` was not recorded; recorded are r"));
  EXPECT_THAT(message("r{a=1 c=1}"), HasSubstr("no recorded schedule decides `c`"));
  EXPECT_THAT(message("r{a=3 b=1}"), HasSubstr("`a=3` was not recorded; its values are 1, 2"));
  EXPECT_THAT(message("r{a=1 b=2}"), HasSubstr("no configuration has these values together"));
  EXPECT_THAT(message("r{a=1}"), HasSubstr("was not recorded"));
  EXPECT_TRUE(absl::IsNotFound(space->IndexOfKey("r{a=1 b=2}").status()));
  EXPECT_EQ(*space->IndexOfKey("r{a=2 b=2}"), absl::uint128(1));
}

TEST(RecordedSpace, RefusesNothingAndTheSameTwice) {
  EXPECT_FALSE(RecordedSpace::Make({}).ok());
  EXPECT_FALSE(RecordedSpace::Make({At("r{a=1}"), At("r{a=1}")}).ok());
  RecordedConfiguration other_key = At("r{a=1}");
  other_key.key = "another";
  EXPECT_THAT(std::string(RecordedSpace::Make({At("r{a=1}"), other_key}).status().message()),
              HasSubstr("choose the same"));
}

TEST(RecordedSpace, HoldsDecisionsOfMoreCombinationsThanAnIntegerCounts) {
  std::vector<std::string> schedules;
  for (int i = 0; i < 300; ++i) {
    std::string schedule = "r{a=0";
    for (int d = 0; d < 20; ++d) absl::StrAppend(&schedule, " d", d, "=", (i + 7 * d) % 300);
    schedules.push_back(schedule + "}");
  }
  schedules.push_back(absl::StrReplaceAll(schedules[0], {{"a=0", "a=1"}}));
  const auto space = Space(schedules);
  for (absl::uint128 index = 0; index < space->Count(); ++index)
    EXPECT_EQ(*space->IndexOf(space->At(index)), index);
  EXPECT_THAT(NeighboursOf(*space, schedules[0]), ElementsAre(schedules[300]));
  EXPECT_THAT(NeighboursOf(*space, schedules[1]), IsEmpty());
}

TEST(RecordedSpace, RefusesSchedulesThatHardlyEverDecideTheSame) {
  std::vector<RecordedConfiguration> configurations;
  for (int i = 1; i < 8192; ++i) {
    std::string schedule = "r{";
    for (int d = 0; d < 13; ++d) {
      if ((i >> d & 1) != 0) absl::StrAppend(&schedule, schedule == "r{" ? "" : " ", "d", d, "=1");
    }
    configurations.push_back(At(schedule + "}"));
  }
  EXPECT_THAT(std::string(RecordedSpace::Make(std::move(configurations)).status().message()),
              HasSubstr("the 8191 configurations have 8191 different sets of parameters"));
}

TEST(RecordedSpace, ListsTheTimesOfWhatDidNotFail) {
  const auto space =
      RecordedSpace::Make({At("r{a=1}", 3), At("r{a=2}", std::nullopt), At("r{a=3}", 2)});
  EXPECT_THAT((*space)->ascending_milliseconds(), ElementsAre(2, 3));
}

// Forty configurations; each one's samples scatter by `noise` about its time.
std::unique_ptr<RecordedSpace> Noisy(double noise, bool all_alike = false) {
  std::vector<RecordedConfiguration> configurations;
  for (int i = 0; i < 40; ++i) {
    RecordedConfiguration configuration =
        At(absl::StrCat("r{a=", i, "}"), all_alike && i > 10 ? 1.0 : 1 + 0.1 * i);
    for (int s = -2; s <= 2; ++s)
      configuration.samples.push_back(*configuration.milliseconds * (1 + noise * s));
    configurations.push_back(std::move(configuration));
  }
  return *RecordedSpace::Make(std::move(configurations));
}

TEST(NonsenseIn, WarnsWhenTheSamplesScatterAsMuchAsTheConfigurations) {
  EXPECT_THAT(NonsenseIn(*Noisy(0.002)), IsEmpty());
  EXPECT_THAT(NonsenseIn(*Noisy(0.01)), IsEmpty());
  EXPECT_THAT(NonsenseIn(*Noisy(0.2)),
              ElementsAre(HasSubstr("the samples of one configuration scatter so much")));
}

TEST(NonsenseIn, WarnsWhenMostTimesAreTheSame) {
  EXPECT_THAT(NonsenseIn(*Noisy(0.0, true)),
              ElementsAre(HasSubstr("30 of 40 configurations have the very same")));
}

}  // namespace
}  // namespace tilewright
