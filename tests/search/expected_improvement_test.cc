#include "search/expected_improvement.h"

#include <cmath>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/grid_space.h"

namespace tilewright {
namespace {

TEST(DecisionEncoding, ScalesNumbersByTheirRatioAndShowsHowTheyDivide) {
  class Tiles : public GridSpace {
   public:
    Tiles() : GridSpace({5, 2}) {}
    Schedule At(absl::uint128 index) const override {
      static constexpr const char* kTiles[] = {"16", "32", "48", "64", "128"};
      const std::vector<int> point = Point(index);
      return {"tiles", {{"tile", kTiles[point[0]]}, {"order", point[1] == 0 ? "rows" : "columns"}}};
    }
  };
  const Tiles space;
  DecisionEncoding encoding(&space, 1);
  ASSERT_EQ(encoding.columns(), 3);  // one of two labels, the size, its odd part
  const auto row = [&](int tile, int order) { return encoding.Row(space.Index({tile, order})); };
  EXPECT_THAT(row(0, 0), ::testing::ElementsAre(0, 0, 0));
  EXPECT_THAT(row(4, 0), ::testing::ElementsAre(0, 1, 0));
  EXPECT_THAT(row(0, 1), ::testing::ElementsAre(1, 0, 0));
  EXPECT_NEAR(row(1, 0)[1], 1.0 / 3, 1e-6);
  EXPECT_NEAR(row(3, 0)[1], 2.0 / 3, 1e-6);
  EXPECT_EQ(row(2, 0)[2], 1) << "48 is 16 times 3";
  EXPECT_EQ(row(3, 0)[2], 0) << "64 is a power of two";
}

TEST(DecisionEncoding, GivesADecisionThatIsAbsentTheMiddleAndAFlag) {
  class Optional : public GridSpace {
   public:
    Optional() : GridSpace({3}) {}
    Schedule At(absl::uint128 index) const override {
      Schedule schedule{"v", {}};
      if (index > 0) schedule.decisions.emplace_back("split", index == 1 ? "2" : "8");
      return schedule;
    }
  };
  const Optional space;
  DecisionEncoding encoding(&space, 1);
  EXPECT_THAT(encoding.Row(0), ::testing::ElementsAre(0.5, 1));
  EXPECT_THAT(encoding.Row(1), ::testing::ElementsAre(0, 0));
  EXPECT_THAT(encoding.Row(2), ::testing::ElementsAre(1, 0));
}

std::vector<absl::uint128> Everything(const GridSpace& space) {
  std::vector<absl::uint128> all;
  for (absl::uint128 i = 0; i < space.Count(); ++i) all.push_back(i);
  return all;
}

std::vector<int> Choose(ExpectedImprovement& improvement, const std::vector<absl::uint128>& pool,
                        const std::vector<absl::uint128>& pending, int count) {
  improvement.Learn(pending);
  return improvement.Choose(pool, count);
}

TEST(ExpectedImprovement, ChoosesNothingBeforeTwoSuccesses) {
  const GridSpace space({9, 9});
  ExpectedImprovement improvement(&space, 1);
  EXPECT_TRUE(Choose(improvement, Everything(space), {}, 4).empty());
  improvement.Observe({.index = 3, .ok = false, .cost = 0});
  improvement.Observe({.index = 4, .ok = true, .cost = 2});
  EXPECT_TRUE(Choose(improvement, Everything(space), {}, 4).empty());
  improvement.Observe({.index = 40, .ok = true, .cost = 1});
  EXPECT_EQ(Choose(improvement, Everything(space), {}, 4).size(), 4);
  EXPECT_TRUE(Choose(improvement, {}, {}, 4).empty());
}

TEST(ExpectedImprovement, WalksToTheBottomOfABowl) {
  const GridSpace space({16, 16, 16});
  ExpectedImprovement improvement(&space, 1);
  std::set<absl::uint128> seen;
  double best = 1e9;
  const auto measure = [&](absl::uint128 index) {
    double cost = 1;
    for (int d : space.Point(index)) cost += 0.1 * (d - 11) * (d - 11);
    improvement.Observe({.index = index, .ok = true, .cost = cost});
    seen.insert(index);
    best = std::min(best, cost);
  };
  for (int i = 0; i < 6; ++i) measure(space.Index({i, 15 - 2 * i, 3 * i}));
  for (int step = 0; step < 25; ++step) {
    std::vector<absl::uint128> pool;
    for (absl::uint128 i = 0; i < space.Count(); ++i) {
      if (!seen.contains(i)) pool.push_back(i);
    }
    measure(pool[Choose(improvement, pool, {}, 1).front()]);
  }
  EXPECT_LT(best, 1.35);  // at most three steps from (11, 11, 11), of 4096 points
}

TEST(ExpectedImprovement, SpreadsABatchAndKeepsAwayFromWhatIsPending) {
  const GridSpace space({64, 2});
  ExpectedImprovement improvement(&space, 1);
  for (int d : {1, 20, 45, 63}) {
    improvement.Observe({.index = space.Index({d, 0}), .ok = true, .cost = 2 + std::sin(d * 0.3)});
  }
  const std::vector<absl::uint128> pool = Everything(space);
  const std::vector<int> batch = Choose(improvement, pool, {}, 6);
  ASSERT_EQ(batch.size(), 6);
  EXPECT_EQ(std::set<int>(batch.begin(), batch.end()).size(), 6);
  // What would be first is not, once it is pending: its mean is believed.
  const std::vector<int> then = Choose(improvement, pool, {pool[batch[0]], pool[batch[1]]}, 1);
  ASSERT_EQ(then.size(), 1);
  EXPECT_NE(then[0], batch[0]);
}

}  // namespace
}  // namespace tilewright
