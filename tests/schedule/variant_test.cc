#include "schedule/variant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "schedule/explain.h"

namespace tilewright {
namespace {

using ::testing::HasSubstr;

Workload Matmul(const std::string& sizes) {
  absl::StatusOr<Workload> workload =
      Workload::Make("C[m,n] = sum(k: A[m,k] * B[k,n])", {.sizes = sizes, .types = "f32"});
  EXPECT_TRUE(workload.ok()) << workload.status();
  return *std::move(workload);
}

// The sizes at which constraints of the toy variants were asked; each test clears it.
std::set<std::vector<int64_t>>& Asked() {
  static auto* const asked = new std::set<std::vector<int64_t>>;
  return *asked;
}

Variant Naive() {
  return {
      .name = "toy.naive",
      .family = "toy",
      .help = "one loop",
      .backends = {"host"},
      .applies = [](const Workload&, const Target&) { return absl::OkStatus(); },
      .define = [](const Workload&,
                   const Target&) { return SpaceDefinition{.variant = "toy.naive"}; },
      .plan =
          [](const Workload& workload, const Target&, Numbers, absl::Span<const int64_t> sizes) {
            auto plan = std::make_unique<Plan>();
            plan->operations = workload.Operations(sizes);
            return plan;
          },
      .default_schedule =
          [](const Workload&, const Target&) {
            return Schedule{"toy.naive", {}};
          }};
}

// tile <= the first size at every size; `most` bounds the tile. Default tile=2, stated without the
// decision added later.
Variant Tiled(int64_t most) {
  Variant variant = Naive();
  variant.name = "toy.tiled";
  variant.help = "tiles";
  variant.define = [most](const Workload&, const Target&) {
    SpaceDefinition definition{.variant = "toy.tiled"};
    definition.decisions = {
        {.name = "tile", .help = "Rows of a tile.", .values = IntegerValues({1, 2, 4, 8})},
        {.name = "order",
         .values = {{0, "rows"}, {1, "columns"}},
         .depends_on = {"tile"},
         .present = [](Numbers n) { return n[0] > 1; },
         .value_of_older_texts = "rows"}};
    definition.constraints = {
        {.name = "fits",
         .reads = {"tile"},
         .holds =
             [](Numbers n, absl::Span<const int64_t> sizes) {
               Asked().insert({sizes.begin(), sizes.end()});
               return n[0] <= sizes[0];
             },
         .explain =
             [](Numbers n, absl::Span<const int64_t> sizes) {
               return absl::StrCat("tile ", n[0], " > ", sizes[0]);
             },
         .monotone_in = {0},
         .breakpoints = {{5, 1000}}},
        {.name = "bounded",
         .reads = {"tile"},
         .holds = [most](Numbers n, absl::Span<const int64_t>) { return n[0] <= most; },
         .explain = [most](Numbers n,
                           absl::Span<const int64_t>) { return absl::StrCat(n[0], " > ", most); }}};
    return definition;
  };
  variant.plan = [](const Workload&, const Target&, Numbers n, absl::Span<const int64_t> sizes) {
    auto plan = std::make_unique<Plan>();
    plan->threads = static_cast<int>(n[0]);
    plan->quantities = {{"tiles", "tile", static_cast<double>(sizes[0] / n[0])},
                        {"by_columns", "", n[1] == kAbsent ? -1.0 : static_cast<double>(n[1])}};
    return plan;
  };
  variant.default_schedule = [](const Workload&, const Target&) {
    return Schedule{"toy.tiled", {{"tile", "2"}}};
  };
  return variant;
}

Variant Refusing() {
  Variant variant = Naive();
  variant.name = "other.naive";
  variant.family = "other";
  variant.applies = [](const Workload&, const Target&) {
    return absl::FailedPreconditionError("statement 1 is not a toy");
  };
  return variant;
}

const Target& V3() { return KnownTargets()[0]; }

TEST(ScheduleSpace, IsTheUnionOfTheVariantsThatApply) {
  const std::vector<Variant> variants = {Refusing(), Naive(), Tiled(4)};
  auto space = ScheduleSpace::Make(Matmul("m=64,n=64,k=64"), V3(), variants);
  ASSERT_TRUE(space.ok()) << space.status();
  EXPECT_EQ((*space)->space().Count(), 1 + 1 + 2 * 2);
  ASSERT_EQ((*space)->variants().size(), 2);
  EXPECT_EQ((*space)->variants()[1]->name, "toy.tiled");
  EXPECT_EQ((*space)->variant_space("toy.tiled").Count(), 5);
  EXPECT_EQ((*space)->NaiveSchedule().ToString(), "toy.naive{}");
  EXPECT_EQ((*space)->DefaultSchedule().ToString(), "toy.tiled{tile=2 order=rows}");
  EXPECT_EQ((*space)->target(), V3());
}

TEST(ScheduleSpace, MakesPlansFromNumbersAndSizes) {
  const std::vector<Variant> variants = {Naive(), Tiled(4)};
  auto space = *ScheduleSpace::Make(Matmul("m=64,n=64,k=64"), V3(), variants);
  auto plan = space->MakePlan(*ParseSchedule("toy.tiled{tile=4 order=columns}"), {64, 64, 64});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ((*plan)->threads, 4);
  EXPECT_EQ((*plan)->quantities[0].value, 16);
  EXPECT_EQ((*plan)->quantities[1].value, 1);
  plan = space->MakePlan(*ParseSchedule("toy.tiled{tile=1}"), {64, 64, 64});
  EXPECT_EQ((*plan)->quantities[1].value, -1);
  EXPECT_EQ(space->MakePlan(*ParseSchedule("toy.tiled{tile=8 order=rows}"), {64, 64, 64}).status(),
            absl::InvalidArgumentError("bounded: 8 > 4"));
  EXPECT_EQ(space->MakePlan(*ParseSchedule("toy.naive{}"), {64, 64, 65}).status().code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_THAT(
      std::string(space->MakePlan(*ParseSchedule("toy.x{}"), {64, 64, 64}).status().message()),
      HasSubstr("it has: toy.naive, toy.tiled"));
}

TEST(ScheduleSpace, EvaluatesConstraintsAtEveryCornerOfRangesAndAtBreakpoints) {
  const std::vector<Variant> variants = {Tiled(8)};
  Asked().clear();
  const Workload workload = Matmul("m=2..64,n=2..64,k=16");
  auto space = ScheduleSpace::Make(workload, V3(), variants);
  ASSERT_TRUE(space.ok()) << space.status();
  std::set<std::vector<int64_t>> expected;
  const int first = workload.sizes()[0].fixed() ? 0 : 1;
  ASSERT_EQ(first, 1);  // the canonical index 0 is one of the ranged ones
  for (int64_t a : {2, 5, 64}) {
    for (int64_t b : {workload.sizes()[1].low, workload.sizes()[1].high}) {
      for (int64_t c : {workload.sizes()[2].low, workload.sizes()[2].high})
        expected.insert({a, b, c});
    }
  }
  EXPECT_EQ(Asked(), expected);
  // tile must fit the least size, 2: tile=1, tile=2 in two orders.
  EXPECT_EQ((*space)->space().Count(), 3);
  EXPECT_THAT(std::string((*space)
                              ->space()
                              .IndexOf(*ParseSchedule("toy.tiled{tile=4 order=rows}"))
                              .status()
                              .message()),
              HasSubstr("fits: tile 4 > 2 (at sizes 2,"));
}

TEST(ScheduleSpace, RefusesAProgramThatNoFamilyCanWriteWithEachReason) {
  Variant gpu = Naive();
  gpu.family = "gpu";
  gpu.name = "gpu.tiled";
  gpu.backends = {"nvptx"};
  const std::vector<Variant> variants = {Refusing(), gpu};
  const absl::Status refused =
      ScheduleSpace::Make(Matmul("m=64,n=64,k=64"), V3(), variants).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::string(refused.message()),
            "no family can write this program for cpu:x86-64-v3: other: statement 1 is not a toy; "
            "gpu: gpu.tiled has writers for nvptx, not for host");
}

TEST(ScheduleSpace, AnEmptyVariantIsKeptOutAndExplained) {
  std::vector<Variant> variants = {Naive(), Tiled(0)};
  auto space = ScheduleSpace::Make(Matmul("m=64,n=64,k=64"), V3(), variants);
  ASSERT_TRUE(space.ok()) << space.status();
  EXPECT_EQ((*space)->variants().size(), 1);
  EXPECT_EQ((*space)->DefaultSchedule().ToString(), "toy.naive{}");
  variants = {Tiled(0)};
  EXPECT_THAT(
      std::string(ScheduleSpace::Make(Matmul("m=64,n=64,k=64"), V3(), variants).status().message()),
      HasSubstr(
          "toy.tiled has no legal schedule here: some after no constraint, some after fits, 0 "
          "after bounded"));
}

TEST(ScheduleSpace, TellsOfADefaultThatIsIllegal) {
  const std::vector<Variant> variants = {Naive(), Tiled(1)};
  const absl::Status status =
      ScheduleSpace::Make(Matmul("m=64,n=64,k=64"), V3(), variants).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(std::string(status.message()),
            "the default schedule toy.tiled{tile=2} is illegal: bounded: 2 > 1");
}

TEST(Variants, NamesAreDistinctAndBeginWithTheirFamily) {
  std::set<std::string> names;
  for (const Variant& variant : AllVariants()) {
    EXPECT_TRUE(names.insert(variant.name).second) << variant.name;
    EXPECT_EQ(variant.name.rfind(variant.family + ".", 0), 0) << variant.name;
    EXPECT_FALSE(variant.help.empty()) << variant.name;
    EXPECT_EQ(*FindVariant(variant.name), &variant);
  }
  EXPECT_THAT(std::string(FindVariant("toy.none").status().message()),
              HasSubstr("unknown variant 'toy.none'; known: "));
}

TEST(Explain, PrintsValuesHelpAndCountsAfterEachConstraint) {
  const std::vector<Variant> variants = {Naive(), Tiled(4)};
  auto space = *ScheduleSpace::Make(Matmul("m=64,n=64,k=64"), V3(), variants);
  const std::string text = ExplainSpace(*space);
  EXPECT_THAT(text,
              HasSubstr("toy.tiled: tiles\n  tile = 1 2 4 8\n      Rows of a tile.\n  order = "
                        "rows columns  (present depending on tile)\n"));
  EXPECT_THAT(text, HasSubstr("  all combinations                         7\n"
                              "  after fits                               7\n"
                              "  after bounded                            5\n"
                              "  legal schedules                          5\n"));
  EXPECT_THAT(text, HasSubstr("total: 6 legal schedules\ndefault: toy.tiled{tile=2 order=rows}\n"));
}

TEST(Explain, TellsWhyAScheduleIsIllegalOrWhatItComesTo) {
  const std::vector<Variant> variants = {Naive(), Tiled(4)};
  auto space = *ScheduleSpace::Make(Matmul("m=64,n=64,k=64"), V3(), variants);
  EXPECT_EQ(ExplainSchedule(*space, *ParseSchedule("toy.tiled{tile=8}"), {64, 64, 64}),
            "toy.tiled{tile=8}\nillegal: bounded: 8 > 4\n");
  const std::string text =
      ExplainSchedule(*space, *ParseSchedule("toy.tiled{tile=4}"), {64, 64, 64});
  EXPECT_THAT(text,
              HasSubstr("toy.tiled{tile=4 order=rows}\nlegal: schedule 4 of 6, 3 neighbours\n"));
  EXPECT_THAT(text, HasSubstr("  tiles                            16 tile\n"));
  EXPECT_THAT(text, HasSubstr("  balance                          1\n"));
}

TEST(Explain, CountsHaveGroupsOfDigits) {
  EXPECT_EQ(CountText(0), "0");
  EXPECT_EQ(CountText(999), "999");
  EXPECT_EQ(CountText(1048576), "1,048,576");
  EXPECT_EQ(CountText(absl::Uint128Max()), "340,282,366,920,938,463,463,374,607,431,768,211,455");
}

}  // namespace
}  // namespace tilewright
