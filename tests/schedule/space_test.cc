#include "schedule/space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "schedule/diagram.h"

namespace tilewright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A mixing function, so that random definitions have no structure: splitmix64's finaliser.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}
uint64_t Hash(uint64_t seed, Numbers numbers) {
  for (int64_t number : numbers) seed = Mix(seed * 31 + static_cast<uint64_t>(number) + 1);
  return Mix(seed);
}

std::vector<std::string> RandomNames(std::mt19937_64& random, const std::vector<std::string>& from,
                                     size_t most) {
  std::vector<std::string> names;
  for (size_t i = random() % (most + 1); i > 0 && !from.empty(); --i) {
    names.push_back(from[random() % from.size()]);
  }
  return names;
}

// Up to 6 decisions of up to 4 values, half of them conditional, with combinations and constraints
// of random reads.
SpaceDefinition RandomDefinition(uint64_t seed) {
  std::mt19937_64 random(seed);
  SpaceDefinition definition;
  definition.variant = "random";
  std::vector<std::string> names;
  const int decisions = random() % 7;
  for (int i = 0; i < decisions; ++i) {
    Decision decision;
    decision.name = absl::StrCat("d", i);
    for (int64_t v = 0; v <= static_cast<int64_t>(random() % 4); ++v) {
      decision.values.push_back({v * v + i, absl::StrCat("t", v)});
    }
    if (random() % 2 == 0) decision.depends_on = RandomNames(random, names, 2);
    if (!decision.depends_on.empty()) {
      const uint64_t salt = random();
      decision.present = [salt](Numbers n) { return Hash(salt, n) % 3 != 0; };
    }
    names.push_back(decision.name);
    definition.decisions.push_back(std::move(decision));
  }
  for (int i = random() % 4; i > 0; --i) {
    Combination combination;
    combination.name = absl::StrCat("c", i);
    combination.reads = RandomNames(random, names, 3);
    const uint64_t salt = random();
    combination.value = [salt](Numbers n) { return static_cast<int64_t>(Hash(salt, n) % 3); };
    names.push_back(combination.name);
    definition.combinations.push_back(std::move(combination));
  }
  for (int i = random() % 4; i > 0; --i) {
    Constraint constraint;
    constraint.name = absl::StrCat("k", i);
    constraint.reads = RandomNames(random, names, 3);
    const uint64_t salt = random();
    constraint.holds = [salt](Numbers n, absl::Span<const int64_t> sizes) {
      return Hash(salt + sizes[0], n) % 5 != 0;
    };
    constraint.explain = [](Numbers n, absl::Span<const int64_t>) { return absl::StrJoin(n, " "); };
    definition.constraints.push_back(std::move(constraint));
  }
  return definition;
}

// The slow reference: every assignment, checked against every constraint at the end.
class BruteForce {
 public:
  BruteForce(const SpaceDefinition& definition, std::vector<std::vector<int64_t>> points,
             size_t constraints)
      : definition_(definition), points_(std::move(points)), constraints_(constraints) {
    Schedule schedule;
    schedule.variant = definition.variant;
    std::map<std::string, int64_t> numbers;
    Extend(0, schedule, numbers);
  }
  const std::vector<Schedule>& schedules() const { return schedules_; }

 private:
  std::vector<int64_t> Read(const std::vector<std::string>& names,
                            const std::map<std::string, int64_t>& numbers) const {
    std::vector<int64_t> result;
    for (const std::string& name : names) result.push_back(numbers.at(name));
    return result;
  }
  void Extend(size_t i, Schedule& schedule, std::map<std::string, int64_t>& numbers) {
    if (i == definition_.decisions.size()) return Finish(schedule, numbers);
    const Decision& decision = definition_.decisions[i];
    if (!decision.depends_on.empty() && !decision.present(Read(decision.depends_on, numbers))) {
      numbers[decision.name] = kAbsent;
      return Extend(i + 1, schedule, numbers);
    }
    for (const DecisionValue& value : decision.values) {
      numbers[decision.name] = value.number;
      schedule.decisions.emplace_back(decision.name, value.token);
      Extend(i + 1, schedule, numbers);
      schedule.decisions.pop_back();
    }
  }
  void Finish(const Schedule& schedule, std::map<std::string, int64_t> numbers) {
    for (const Combination& combination : definition_.combinations) {
      numbers[combination.name] = combination.value(Read(combination.reads, numbers));
    }
    for (size_t i = 0; i < constraints_; ++i) {
      for (const std::vector<int64_t>& point : points_) {
        const Constraint& constraint = definition_.constraints[i];
        if (!constraint.holds(Read(constraint.reads, numbers), point)) return;
      }
    }
    schedules_.push_back(schedule);
  }

  const SpaceDefinition& definition_;
  const std::vector<std::vector<int64_t>> points_;
  const size_t constraints_;
  std::vector<Schedule> schedules_;  // in order
};

// For each present decision and each other value of it: the first schedule that has it and agrees
// elsewhere on every decision present in both.
std::vector<absl::uint128> BruteNeighbours(const std::vector<Schedule>& all, size_t index,
                                           const SpaceDefinition& definition) {
  const Schedule& from = all[index];
  std::set<absl::uint128> result;
  for (const auto& [changed, own] : from.decisions) {
    std::set<std::string> done;
    for (size_t i = 0; i < all.size(); ++i) {
      const std::string* value = all[i].Find(changed);
      if (value == nullptr || *value == own || done.contains(*value)) continue;
      bool agrees = true;
      for (const auto& [name, token] : from.decisions) {
        const std::string* other = all[i].Find(name);
        agrees &= name == changed || other == nullptr || *other == token;
      }
      if (!agrees) continue;
      done.insert(*value);
      result.insert(i);
    }
  }
  return {result.begin(), result.end()};
}

std::unique_ptr<VariantSpace> MakeSpace(const SpaceDefinition& definition,
                                        std::vector<std::vector<int64_t>> points = {{}}) {
  absl::StatusOr<std::unique_ptr<VariantSpace>> space = VariantSpace::Make(definition, points);
  EXPECT_TRUE(space.ok()) << space.status();
  return *std::move(space);
}

class RandomSpace : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Seeds, RandomSpace, testing::Range(0, 40));

// Each parameter is a block of ten seeds, to keep the list of tests readable.
TEST_P(RandomSpace, EqualsBruteForce) {
  for (uint64_t seed = GetParam() * 10; seed < GetParam() * 10 + 10; ++seed) {
    SCOPED_TRACE(seed);
    const SpaceDefinition definition = RandomDefinition(seed);
    const std::vector<std::vector<int64_t>> points =
        seed % 2 == 0 ? std::vector<std::vector<int64_t>>{{1}}
                      : std::vector<std::vector<int64_t>>{{1}, {7}};
    const size_t constraints = definition.constraints.size();
    const std::vector<Schedule> expected = BruteForce(definition, points, constraints).schedules();
    const std::unique_ptr<VariantSpace> space = MakeSpace(definition, points);
    ASSERT_EQ(space->Count(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(space->At(i), expected[i]);
      absl::StatusOr<absl::uint128> index = space->IndexOf(expected[i]);
      ASSERT_TRUE(index.ok()) << index.status();
      ASSERT_EQ(*index, i);
    }
    for (size_t i = 0; i < expected.size(); i += 1 + expected.size() / 50) {
      ASSERT_EQ(space->Neighbours(i), BruteNeighbours(expected, i, definition)) << i;
    }
    const auto counts = space->CountsAfterEachConstraint();
    ASSERT_EQ(counts.size(), constraints + 1);
    for (size_t n = 0; n <= constraints; ++n) {
      EXPECT_EQ(counts[n].count, BruteForce(definition, points, n).schedules().size()) << n;
    }
    // Everything outside the space is refused with a reason.
    std::set<std::string> legal;
    for (const Schedule& schedule : expected) legal.insert(schedule.ToString());
    const BruteForce unconstrained(definition, points, 0);
    for (const Schedule& schedule : unconstrained.schedules()) {
      absl::StatusOr<absl::uint128> index = space->IndexOf(schedule);
      ASSERT_EQ(index.ok(), legal.contains(schedule.ToString()));
      if (!index.ok()) {
        EXPECT_THAT(std::string(index.status().message()), testing::StartsWith("k"));
      }
    }
  }
}

// tile_m x tile_n <= 64; vector only for tile_n >= 8; store absent unless stages > 1.
SpaceDefinition SmallDefinition() {
  SpaceDefinition definition;
  definition.variant = "toy.small";
  definition.decisions = {
      {.name = "tile_m", .help = "rows", .values = IntegerValues({4, 8, 16})},
      {.name = "tile_n", .help = "columns", .values = IntegerValues({4, 8, 16})},
      {.name = "stages",
       .help = "buffers",
       .values = IntegerValues({1, 2}),
       .value_of_older_texts = "1"},
      {.name = "store",
       .help = "how",
       .values = {{0, "plain"}, {1, "tma"}},
       .depends_on = {"stages"},
       .present = [](Numbers n) { return n[0] > 1; }},
  };
  definition.combinations = {{.name = "area",
                              .reads = {"tile_m", "tile_n"},
                              .value = [](Numbers n) { return n[0] * n[1]; }}};
  definition.constraints = {
      {.name = "accumulators",
       .reads = {"area"},
       .holds = [](Numbers n, absl::Span<const int64_t>) { return n[0] <= 64; },
       .explain = [](Numbers n, absl::Span<const int64_t>) { return absl::StrCat(n[0], " > 64"); }},
      {.name = "tma_width",
       .reads = {"tile_n", "store"},
       .holds = [](Numbers n, absl::Span<const int64_t>) { return n[1] != 1 || n[0] >= 8; },
       .explain = [](Numbers n,
                     absl::Span<const int64_t>) { return absl::StrCat(n[0], " columns < 8"); }},
  };
  return definition;
}

std::string Why(const Space& space, const std::string& text) {
  absl::StatusOr<absl::uint128> index = space.IndexOf(*ParseSchedule(text));
  EXPECT_EQ(index.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(index.status().message());
}

// Six pairs have area <= 64 (4x4 4x8 4x16 8x4 8x8 16x4), three of them with tile_n = 4: 6 * 3 - 3
// = 15.
TEST(VariantSpace, CountsByHand) {
  const std::unique_ptr<VariantSpace> space = MakeSpace(SmallDefinition());
  EXPECT_EQ(space->Count(), 15);
  const auto counts = space->CountsAfterEachConstraint();
  ASSERT_EQ(counts.size(), 3);
  EXPECT_EQ(counts[0].count, 27);
  EXPECT_EQ(counts[1].count, 18);
  EXPECT_EQ(counts[1].constraint, "accumulators");
  EXPECT_EQ(counts[2].count, 15);
  EXPECT_EQ(space->At(0).ToString(), "toy.small{tile_m=4 tile_n=4 stages=1}");
  EXPECT_EQ(space->At(14).ToString(), "toy.small{tile_m=16 tile_n=4 stages=2 store=plain}");
  EXPECT_EQ(space->Parts().size(), 1);
}

TEST(VariantSpace, NamesTheConstraintAndItsNumbers) {
  const std::unique_ptr<VariantSpace> space = MakeSpace(SmallDefinition());
  EXPECT_EQ(Why(*space, "toy.small{tile_m=16 tile_n=16 stages=1}"), "accumulators: 256 > 64");
  EXPECT_EQ(Why(*space, "toy.small{tile_m=4 tile_n=4 stages=2 store=tma}"),
            "tma_width: 4 columns < 8");
}

TEST(VariantSpace, SaysWhatIsWrongWithATextAndWhatWouldBeAccepted) {
  const std::unique_ptr<VariantSpace> space = MakeSpace(SmallDefinition());
  EXPECT_EQ(Why(*space, "toy.big{}"), "variant 'toy.big' is not in this space; it has: toy.small");
  EXPECT_EQ(Why(*space, "toy.small{tile_m=5 tile_n=4 stages=1}"),
            "tile_m=5 is no value of that decision; accepted: 4, 8, 16");
  EXPECT_EQ(Why(*space, "toy.small{tile_n=4 stages=1}"),
            "decision 'tile_m' is missing; accepted: 4, 8, 16");
  EXPECT_EQ(Why(*space, "toy.small{tile_m=4 tile_n=4 stages=1 store=tma}"),
            "decision 'store' has no effect here (it depends on stages); leave it out");
  EXPECT_EQ(Why(*space, "toy.small{tile_m=4 tile_n=4 stages=1 warps=4}"),
            "'warps' is no decision of toy.small; its decisions: tile_m, tile_n, stages, store");
}

TEST(VariantSpace, ADecisionAddedLaterHasAValueInOlderTexts) {
  const std::unique_ptr<VariantSpace> space = MakeSpace(SmallDefinition());
  absl::StatusOr<absl::uint128> index =
      space->IndexOf(*ParseSchedule("toy.small{tile_m=4 tile_n=8}"));
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ(space->At(*index).ToString(), "toy.small{tile_m=4 tile_n=8 stages=1}");
}

TEST(VariantSpace, ReadsDecisionsInAnyOrder) {
  const std::unique_ptr<VariantSpace> space = MakeSpace(SmallDefinition());
  EXPECT_EQ(*space->IndexOf(*ParseSchedule("toy.small{stages=1 tile_n=8 tile_m=4}")),
            *space->IndexOf(*ParseSchedule("toy.small{tile_m=4 tile_n=8 stages=1}")));
}

TEST(VariantSpace, GivesNumbersWithAbsentOnesMarked) {
  const std::unique_ptr<VariantSpace> space = MakeSpace(SmallDefinition());
  EXPECT_THAT(*space->NumbersOf(*ParseSchedule("toy.small{tile_m=4 tile_n=8 stages=1}")),
              ElementsAre(4, 8, 1, kAbsent));
  EXPECT_THAT(*space->NumbersOf(*ParseSchedule("toy.small{tile_m=4 tile_n=8 stages=2 store=tma}")),
              ElementsAre(4, 8, 2, 1));
}

TEST(VariantSpace, NeighboursDropWhatVanishesAndTakeTheFirstOfWhatAppears) {
  const std::unique_ptr<VariantSpace> space = MakeSpace(SmallDefinition());
  const auto neighbours = [&](const std::string& text) {
    std::vector<std::string> result;
    for (absl::uint128 i : space->Neighbours(*space->IndexOf(*ParseSchedule(text)))) {
      result.push_back(space->At(i).ToString());
    }
    return result;
  };
  EXPECT_THAT(
      neighbours("toy.small{tile_m=8 tile_n=8 stages=1}"),
      ElementsAre("toy.small{tile_m=4 tile_n=8 stages=1}", "toy.small{tile_m=8 tile_n=4 stages=1}",
                  "toy.small{tile_m=8 tile_n=8 stages=2 store=plain}"));
  EXPECT_THAT(neighbours("toy.small{tile_m=8 tile_n=8 stages=2 store=tma}"),
              ElementsAre("toy.small{tile_m=4 tile_n=8 stages=2 store=tma}",
                          "toy.small{tile_m=8 tile_n=8 stages=1}",
                          "toy.small{tile_m=8 tile_n=8 stages=2 store=plain}"));
}

TEST(VariantSpace, MayHaveNoDecisionsOrNoSchedules) {
  SpaceDefinition naive;
  naive.variant = "toy.naive";
  std::unique_ptr<VariantSpace> space = MakeSpace(naive);
  EXPECT_EQ(space->Count(), 1);
  EXPECT_EQ(space->At(0).ToString(), "toy.naive{}");
  EXPECT_TRUE(space->Neighbours(0).empty());
  naive.constraints = {
      {.name = "never",
       .reads = {},
       .holds = [](Numbers, absl::Span<const int64_t> sizes) { return sizes[0] > 5; },
       .explain = [](Numbers,
                     absl::Span<const int64_t> sizes) { return absl::StrCat(sizes[0], " <= 5"); }}};
  space = MakeSpace(naive, {{6}, {4}});
  EXPECT_EQ(space->Count(), 0);
  EXPECT_EQ(Why(*space, "toy.naive{}"), "never: 4 <= 5 (at sizes 4)");
  EXPECT_EQ(MakeSpace(naive, {{6}})->Count(), 1);
}

TEST(VariantSpace, RefusesDefinitionsThatContradictThemselves) {
  const auto message = [](const SpaceDefinition& definition) {
    return std::string(VariantSpace::Make(definition, {{}}).status().message());
  };
  SpaceDefinition definition = SmallDefinition();
  definition.decisions[0].depends_on = {"stages"};
  definition.decisions[0].present = [](Numbers) { return true; };
  EXPECT_EQ(message(definition),
            "toy.small: 'tile_m' reads 'stages', which is no earlier decision or combination");
  definition = SmallDefinition();
  definition.decisions[1].name = "tile_m";
  EXPECT_EQ(message(definition), "toy.small: the name 'tile_m' is used twice");
  definition = SmallDefinition();
  definition.decisions[1].values.clear();
  EXPECT_EQ(message(definition), "toy.small: decision 'tile_n' has no values");
  definition = SmallDefinition();
  definition.decisions[1].values = IntegerValues({4, 4});
  EXPECT_EQ(message(definition), "toy.small: decision 'tile_n' has the value '4' twice");
  definition = SmallDefinition();
  definition.decisions[2].value_of_older_texts = "3";
  EXPECT_THAT(message(definition), HasSubstr("decision 'stages' has no value '3'"));
  definition = SmallDefinition();
  definition.constraints[0].reads = {"volume"};
  EXPECT_THAT(message(definition), HasSubstr("'accumulators' reads 'volume'"));
  EXPECT_EQ(VariantSpace::Make(SmallDefinition(), {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// The constraint reads twelve decisions at the end, so nothing can be forgotten before it.
SpaceDefinition WideDefinition(bool with_combinations) {
  SpaceDefinition definition;
  definition.variant = "toy.wide";
  std::vector<std::string> reads;
  for (int i = 0; i < 12; ++i) {
    definition.decisions.push_back(
        {.name = absl::StrCat("d", i), .help = "", .values = IntegerValues({1, 2, 3, 4, 5, 6})});
    if (with_combinations && i > 0) {
      definition.combinations.push_back(
          {.name = absl::StrCat("sum", i),
           .reads = {i == 1 ? "d0" : absl::StrCat("sum", i - 1), absl::StrCat("d", i)},
           .value = [](Numbers n) { return n[0] + n[1]; }});
    }
    reads.push_back(absl::StrCat("d", i));
  }
  if (with_combinations) reads = {"sum11"};
  definition.constraints = {
      {.name = "sum",
       .reads = reads,
       .holds =
           [](Numbers n, absl::Span<const int64_t>) {
             int64_t sum = 0;
             for (int64_t number : n) sum += number;
             return sum <= 42;
           },
       .explain = [](Numbers, absl::Span<const int64_t>) { return std::string("> 42"); }}};
  return definition;
}

TEST(VariantSpace, RefusesASpaceThatRemembersTooMuchAndCombinationsCureIt) {
  absl::StatusOr<Diagram> wide =
      Diagram::Compile(*ResolvedDefinition::Make(WideDefinition(false)), {{}}, 10000);
  EXPECT_EQ(wide.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(wide.status().message()),
              HasSubstr("constraint 'sum' keeps more than 10000 states after decision 'd5'"));
  absl::StatusOr<Diagram> combined =
      Diagram::Compile(*ResolvedDefinition::Make(WideDefinition(true)), {{}}, 100);
  ASSERT_TRUE(combined.ok()) << combined.status();
  // Twelve dice: the 6^12 = 2176782336 outcomes are symmetric about 42; those of exactly 42 are
  // 144840476.
  EXPECT_EQ(combined->count(), (2176782336 + 144840476) / 2);
  EXPECT_LT(combined->nodes(), 500);
}

TEST(UniformIndex, IsUniformOverASpace) {
  const std::unique_ptr<VariantSpace> space = MakeSpace(SmallDefinition());
  std::mt19937_64 random(7);
  std::vector<int> seen(15, 0);
  constexpr int kDraws = 15000;
  for (int i = 0; i < kDraws; ++i) {
    const Schedule schedule = space->At(UniformIndex(random, space->Count()));
    ++seen[static_cast<size_t>(*space->IndexOf(schedule))];
  }
  double chi_square = 0;
  for (int count : seen) chi_square += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_LT(chi_square, 36.1);  // 14 degrees of freedom, p = 0.001
}

TEST(UniformIndex, CoversBoundsOfEveryWidth) {
  std::mt19937_64 random(1);
  EXPECT_EQ(UniformIndex(random, 1), 0);
  EXPECT_EQ(random(), std::mt19937_64(1)());  // a bound of 1 draws nothing
  const absl::uint128 bounds[] = {2, 3, absl::uint128(1) << 64, (absl::uint128(1) << 64) + 1,
                                  absl::Uint128Max()};
  for (absl::uint128 bound : bounds) {
    bool upper_half = false;
    for (int i = 0; i < 100; ++i) {
      const absl::uint128 drawn = UniformIndex(random, bound);
      ASSERT_LT(drawn, bound);
      upper_half |= drawn >= bound / 2;
    }
    EXPECT_TRUE(upper_half);
  }
}

TEST(UnionSpace, PutsPartsOneAfterAnother) {
  SpaceDefinition naive;
  naive.variant = "toy.naive";
  SpaceDefinition empty = SmallDefinition();
  empty.variant = "toy.empty";
  empty.constraints[0].holds = [](Numbers, absl::Span<const int64_t>) { return false; };
  std::vector<std::shared_ptr<const Space>> parts = {MakeSpace(naive), MakeSpace(empty),
                                                     MakeSpace(SmallDefinition())};
  const std::unique_ptr<Space> space = NewUnionSpace(parts);
  EXPECT_EQ(space->Count(), 16);
  ASSERT_EQ(space->Parts().size(), 2);
  EXPECT_EQ(space->Parts()[1].variant, "toy.small");
  EXPECT_EQ(space->Parts()[1].begin, 1);
  EXPECT_EQ(space->Parts()[1].end, 16);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(*space->IndexOf(space->At(i)), i);
  EXPECT_TRUE(space->Neighbours(0).empty());
  for (absl::uint128 neighbour : space->Neighbours(5)) {
    EXPECT_EQ(space->At(neighbour).variant, "toy.small");
  }
  EXPECT_EQ(Why(*space, "toy.empty{tile_m=4 tile_n=4 stages=1}"), "accumulators: 16 > 64");
  EXPECT_EQ(Why(*space, "toy.other{}"),
            "variant 'toy.other' is not in this space; it has: toy.naive, toy.empty, toy.small");
}

}  // namespace
}  // namespace tilewright
