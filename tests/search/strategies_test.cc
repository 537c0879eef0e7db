#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "search/strategy.h"
#include "tests/fakes/grid_space.h"

namespace tilewright {
namespace {

using ::testing::HasSubstr;

// A bowl with its bottom at (5, 5, …), far enough from the corners that neighbours must be
// followed.
double Bowl(const GridSpace& space, absl::uint128 index) {
  double cost = 1;
  for (int d : space.Point(index)) cost += 0.1 * (d - 5) * (d - 5);
  return cost;
}

std::unique_ptr<Strategy> Make(const std::string& text, const GridSpace& space, uint64_t seed,
                               std::vector<absl::uint128> starts = {}) {
  const absl::StatusOr<StrategyChoice> choice = ParseStrategy(text);
  EXPECT_TRUE(choice.ok()) << choice.status();
  return choice->row->make({.space = &space,
                            .seed = seed,
                            .starts = starts,
                            .surrogate = nullptr,
                            .parameters = choice->parameters});
}

double BestAfter(Strategy& strategy, const GridSpace& space, int trials) {
  double best = std::numeric_limits<double>::infinity();
  for (int done = 0; done < trials;) {
    for (absl::uint128 index : strategy.Propose(8)) {
      const double cost = Bowl(space, index);
      strategy.Observe({.index = index, .ok = true, .cost = cost});
      best = std::min(best, cost);
      ++done;
    }
  }
  return best;
}

class EveryStrategy : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryStrategy, ProposesEachScheduleOnceAndThenNothing) {
  const GridSpace space({3, 4, 5});
  std::unique_ptr<Strategy> strategy = Make(GetParam(), space, 1);
  std::set<absl::uint128> seen;
  while (true) {
    const std::vector<absl::uint128> batch = strategy->Propose(7);
    if (batch.empty()) break;
    for (absl::uint128 index : batch) {
      EXPECT_LT(index, space.Count());
      EXPECT_TRUE(seen.insert(index).second);
      strategy->Observe(
          {.index = index, .ok = absl::Uint128Low64(index) % 3 != 0, .cost = Bowl(space, index)});
    }
  }
  EXPECT_EQ(seen.size(), 60);
}

TEST_P(EveryStrategy, ProposesTheSameForTheSameSeedAndResults) {
  const GridSpace space({12, 12, 12, 12});
  for (uint64_t seed : {1, 2, 3}) {
    std::unique_ptr<Strategy> a = Make(GetParam(), space, seed);
    std::unique_ptr<Strategy> b = Make(GetParam(), space, seed);
    for (int round = 0; round < 12; ++round) {
      const std::vector<absl::uint128> batch = a->Propose(5);
      EXPECT_EQ(batch, b->Propose(5));
      for (absl::uint128 index : batch) {
        const Observation observation{.index = index, .ok = true, .cost = Bowl(space, index)};
        a->Observe(observation);
        b->Observe(observation);
      }
    }
  }
}

TEST_P(EveryStrategy, BeginsWithTheStartsInOrder) {
  const GridSpace space({12, 12, 12});
  std::unique_ptr<Strategy> strategy = Make(GetParam(), space, 1, {100, 7, 100});
  const std::vector<absl::uint128> batch = strategy->Propose(4);
  ASSERT_EQ(batch.size(), 4);
  EXPECT_EQ(batch[0], absl::uint128(100));
  EXPECT_EQ(batch[1], absl::uint128(7));
  EXPECT_NE(batch[2], absl::uint128(100));
}

TEST_P(EveryStrategy, DoesNotProposeWhatItWasToldOf) {
  const GridSpace space({2, 2});
  std::unique_ptr<Strategy> strategy = Make(GetParam(), space, 1);
  strategy->Observe({.index = 2, .ok = true, .cost = 1});
  std::set<absl::uint128> seen;
  for (absl::uint128 index : strategy->Propose(10)) seen.insert(index);
  EXPECT_EQ(seen, (std::set<absl::uint128>{0, 1, 3}));
}

TEST_P(EveryStrategy, GoesOnWhenEverythingFails) {
  const GridSpace space({9, 9, 9});
  std::unique_ptr<Strategy> strategy = Make(GetParam(), space, 1);
  for (int round = 0; round < 20; ++round) {
    const std::vector<absl::uint128> batch = strategy->Propose(8);
    EXPECT_EQ(batch.size(), 8);
    for (absl::uint128 index : batch) strategy->Observe({.index = index, .ok = false, .cost = 0});
  }
}

TEST_P(EveryStrategy, DoesWithTheLeastAndTheMostOfEachParameter) {
  const GridSpace space({3, 4, 5});
  const absl::StatusOr<StrategyChoice> row = ParseStrategy(GetParam());
  ASSERT_TRUE(row.ok()) << row.status();
  for (const StrategyParameter& parameter : row->row->parameters) {
    for (double value : {parameter.range.least, parameter.range.most}) {
      const std::unique_ptr<Strategy> strategy =
          Make(absl::StrCat(GetParam(), "{", parameter.name, "=", value, "}"), space, 1);
      std::set<absl::uint128> proposed;
      for (int round = 0; round < 100 && proposed.size() < 60; ++round) {
        for (absl::uint128 index : strategy->Propose(4)) {
          EXPECT_TRUE(proposed.insert(index).second) << parameter.name << "=" << value;
          strategy->Observe({.index = index, .ok = true, .cost = Bowl(space, index)});
        }
      }
      EXPECT_EQ(proposed.size(), 60u) << parameter.name << "=" << value;
    }
  }
}

std::vector<std::string> StrategyNames() {
  std::vector<std::string> names;
  for (const StrategyRow& row : AllStrategies()) names.push_back(row.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(All, EveryStrategy, ::testing::ValuesIn(StrategyNames()),
                         [](const auto& info) { return info.param; });

TEST(EvolutionarySearch, FindsTheBottomOfABowlThatRandomSearchMisses) {
  const GridSpace space({12, 12, 12, 12, 12});
  int wins = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::unique_ptr<Strategy> evolutionary = Make("evolutionary", space, seed);
    std::unique_ptr<Strategy> random = Make("random", space, seed);
    wins += BestAfter(*evolutionary, space, 200) < BestAfter(*random, space, 200);
  }
  EXPECT_GE(wins, 18);
}

TEST(ParseStrategy, TakesParametersAndKeepsTheDefaultsOfTheOthers) {
  const absl::StatusOr<StrategyChoice> choice =
      ParseStrategy("evolutionary{elite=3 random_share=0.5}");
  ASSERT_TRUE(choice.ok()) << choice.status();
  EXPECT_EQ(choice->row->name, "evolutionary");
  EXPECT_EQ(choice->parameters.at("elite"), 3);
  EXPECT_EQ(choice->parameters.at("random_share"), 0.5);
  EXPECT_EQ(choice->parameters.at("initial"), 6);
}

TEST(ParseStrategy, NamesWhatExistsWhenTheStrategyIsUnknown) {
  EXPECT_THAT(std::string(ParseStrategy("tabu").status().message()),
              HasSubstr("unknown strategy `tabu`; strategies are evolutionary, random, grid"));
}

TEST(ParseStrategy, NamesTheParametersWhenOneIsUnknown) {
  EXPECT_THAT(std::string(ParseStrategy("evolutionary{elites=3}").status().message()),
              HasSubstr("initial, elite"));
  EXPECT_FALSE(ParseStrategy("evolutionary{elite=3").ok());
  EXPECT_FALSE(ParseStrategy("random{x=1}").ok());
}

TEST(ParseStrategy, RefusesWhatIsOutsideAParametersRange) {
  EXPECT_THAT(
      std::string(ParseStrategy("annealing{chains=1e9}").status().message()),
      HasSubstr("strategy annealing: `chains=1e9`: chains is a whole number from 1 to 10000"));
  for (const StrategyRow& row : AllStrategies()) {
    for (const StrategyParameter& parameter : row.parameters) {
      for (const char* value : {"-1", "nan", "-nan", "inf", "1e300"}) {
        EXPECT_FALSE(
            ParseStrategy(absl::StrCat(row.name, "{", parameter.name, "=", value, "}")).ok())
            << row.name << " " << parameter.name << " " << value;
      }
      if (parameter.range.whole) {
        EXPECT_FALSE(ParseStrategy(absl::StrCat(row.name, "{", parameter.name, "=2.5}")).ok());
      }
    }
  }
}

}  // namespace
}  // namespace tilewright
