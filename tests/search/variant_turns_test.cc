#include "search/variant_turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>

namespace tilewright {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

constexpr double kUnknown = std::numeric_limits<double>::infinity();

// One schedule of `naive`, 2^10 - 1 of `small`, 2^20 - 1 of `large`.
std::vector<Space::Part> ThreeParts() {
  return {{"naive", 0, 1}, {"small", 1, 1024}, {"large", 1024, 1024 + (1 << 20) - 1}};
}

std::map<std::string, int> Turns(VariantTurns turns, int count) {
  std::map<std::string, int> taken;
  for (int i = 0; i < count; ++i) ++taken[turns.Next()->variant];
  return taken;
}

TEST(VariantTurns, AreSharedByTheLogarithmOfTheSchedules) {
  const VariantTurns turns(ThreeParts(), {kUnknown, kUnknown, kUnknown});
  EXPECT_THAT(Turns(turns, 31),
              ElementsAre(Pair("large", 20), Pair("naive", 1), Pair("small", 10)));
  // Evenly spread.
  EXPECT_THAT(Turns(turns, 3), ElementsAre(Pair("large", 2), Pair("small", 1)));
}

TEST(VariantTurns, AreNotForAVariantWhoseBoundIsFarAboveAnothers) {
  EXPECT_THAT(Turns(VariantTurns(ThreeParts(), {1e-3, 17e-3, 15e-3}), 21),
              ElementsAre(Pair("large", 20), Pair("naive", 1)));
}

TEST(VariantTurns, AreForAVariantWithoutABound) {
  EXPECT_THAT(Turns(VariantTurns(ThreeParts(), {1e-3, kUnknown, 17e-3}), 11),
              ElementsAre(Pair("naive", 1), Pair("small", 10)));
}

TEST(VariantTurns, EndForAVariantWhoseBestResultIsFarBehind) {
  VariantTurns turns(ThreeParts(), {kUnknown, kUnknown, kUnknown});
  turns.Observe({.index = 5, .ok = true, .cost = 1});
  turns.Observe({.index = 5000, .ok = true, .cost = 5});
  turns.Observe({.index = 0, .ok = false, .cost = 0});  // a failure says nothing of the others
  EXPECT_THAT(Turns(turns, 11), ElementsAre(Pair("naive", 1), Pair("small", 10)));
  turns.Observe({.index = 6000, .ok = true, .cost = 3.9});
  EXPECT_THAT(Turns(turns, 31),
              ElementsAre(Pair("large", 20), Pair("naive", 1), Pair("small", 10)));
}

TEST(VariantTurns, EndForAVariantThatIsUsedUp) {
  VariantTurns turns(ThreeParts(), {kUnknown, kUnknown, kUnknown});
  for (const char* used_up : {"large", "small", "naive"}) {
    const Space::Part* part = turns.Next();
    while (part->variant != used_up) part = turns.Next();
    turns.RemoveLast();
  }
  EXPECT_EQ(turns.Next(), nullptr);
}

}  // namespace
}  // namespace tilewright
