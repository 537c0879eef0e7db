#include "schedule/contraction_tiled.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace tilewright {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Two cores with 256-bit vectors (8 lanes of f32), 16 registers, 32 KiB L1, 512 KiB L2, 32 MiB L3.
Target TwoCores() {
  Target target;
  target.kind = "cpu:test/avx2/2";
  target.backend = "host";
  target.llvm_cpu = "x86-64-v3";
  target.cores = 2;
  target.vector_bits = 256;
  target.vector_registers = 16;
  target.fma_per_cycle = 2;
  target.l1_bytes = 32 << 10;
  target.l2_bytes = 512 << 10;
  target.l3_bytes = 32 << 20;
  return target;
}

std::shared_ptr<const ScheduleSpace> Space(const std::string& expression, const std::string& sizes,
                                           const std::string& types = "f32",
                                           const Target& target = TwoCores()) {
  static const std::vector<Variant>* const variants =
      new std::vector<Variant>{ContractionTiledVariant()};
  absl::StatusOr<Workload> workload = Workload::Make(expression, WorkloadOptions{sizes, types});
  EXPECT_TRUE(workload.ok()) << workload.status();
  absl::StatusOr<std::shared_ptr<const ScheduleSpace>> space =
      ScheduleSpace::Make(*std::move(workload), target, *variants);
  EXPECT_TRUE(space.ok()) << space.status();
  return *space;
}

constexpr char kMatmul[] = "C[m,n] = sum(k: A[m,k] * B[k,n])";

std::unique_ptr<ContractionTiledPlan> PlanOf(const ScheduleSpace& space, const std::string& text,
                                             const Sizes& sizes) {
  absl::StatusOr<Schedule> schedule = ParseSchedule(text);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  absl::StatusOr<std::unique_ptr<Plan>> plan = space.MakePlan(*schedule, sizes);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return std::unique_ptr<ContractionTiledPlan>(static_cast<ContractionTiledPlan*>(plan->release()));
}

double QuantityOf(const Plan& plan, const std::string& name) {
  for (const Quantity& quantity : plan.quantities) {
    if (quantity.name == name) return quantity.value;
  }
  ADD_FAILURE() << "no quantity " << name;
  return 0;
}

std::string ReasonAgainst(const ScheduleSpace& space, const std::string& text) {
  absl::StatusOr<Schedule> schedule = ParseSchedule(text);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return std::string(space.space().IndexOf(*schedule).status().message());
}

constexpr char kSchedule[] =
    "contraction.tiled{threads_m=2 micro_m=6 tile_m=144 threads_n=1 vectors_n=2 tile_n=512 "
    "tile_k=256 unroll_k=4 order=nkm inner=m pack_a=private pack_b=private}";

TEST(ContractionTiledPlan, CountsWhatAMatrixProductComesTo) {
  const auto space = Space(kMatmul, "m=1024,n=1024,k=1024");
  const auto plan = PlanOf(*space, kSchedule, {1024, 1024, 1024});
  EXPECT_EQ(plan->threads, 2);
  EXPECT_EQ(plan->micro_n(), 16);
  // 1024 / 6 = 171 strips of rows (1026 rows), 1024 / 16 = 64 strips of columns.
  EXPECT_DOUBLE_EQ(plan->operations, 2.0 * 1026 * 1024 * 1024);
  // One thread has 86 strips of rows, the other 85: 171 / (2 * 86).
  EXPECT_DOUBLE_EQ(plan->balance, 171.0 / 172.0);
  // 6 * 2 multiply-adds in 6 cycles; 8 loads need 4.
  EXPECT_DOUBLE_EQ(plan->issue_efficiency, 1);
  // Per thread: a block of a, 144 x 256 x 4 B = 147456 B, and one of b, 512 x 256 x 4 B = 524288 B;
  // together 671744 B = 164 pages.
  EXPECT_EQ(plan->thread_bytes, 671744);
  EXPECT_EQ(plan->workspace_bytes, 2 * 671744);
  EXPECT_TRUE(plan->sums_in_output);
  EXPECT_DOUBLE_EQ(QuantityOf(*plan, "blocks_k"), 4);
  EXPECT_DOUBLE_EQ(QuantityOf(*plan, "blocks_n"), 2);
  // 86 * 6 = 516 rows of a thread in blocks of 144: 4.
  EXPECT_DOUBLE_EQ(QuantityOf(*plan, "blocks_m"), 4);
  // Each thread copies its 516 rows of a twice (once per block of n), and all of b once.
  EXPECT_DOUBLE_EQ(QuantityOf(*plan, "packed_a_elements"), 2.0 * 516 * 1024 * 2);
  EXPECT_DOUBLE_EQ(QuantityOf(*plan, "packed_b_elements"), 2.0 * 1024 * 1024);
}

TEST(ContractionTiledPlan, MapsSharedPackingBeforeTheThreads) {
  const auto space = Space(kMatmul, "m=1024,n=1024,k=1024");
  const auto plan =
      PlanOf(*space, absl::StrReplaceAll(kSchedule, {{"pack_b=private", "pack_b=shared"}}),
             {1024, 1024, 1024});
  EXPECT_EQ(plan->shared_b_offset, 0);
  EXPECT_EQ(plan->threads_offset, 1024 * 1024 * 4);
  EXPECT_EQ(plan->thread_bytes, 147456);
  EXPECT_DOUBLE_EQ(QuantityOf(*plan, "packed_b_elements"), 1024.0 * 1024);
  EXPECT_DOUBLE_EQ(QuantityOf(*plan, "launches"), 2);
}

TEST(ContractionTiledPlan, KeepsPartialSumsInTheWorkspaceIfTheOutputIsNarrow) {
  const auto space = Space(kMatmul, "m=1024,n=1024,k=1024", "bf16");
  const auto plan = PlanOf(*space, kSchedule, {1024, 1024, 1024});
  EXPECT_FALSE(plan->sums_in_output);
  // Order nkm: 516 rows of a thread by a block of 512 columns.
  EXPECT_EQ(plan->c_block_columns, 512);
  EXPECT_EQ(plan->c_block_offset, 147456 + 524288);
  EXPECT_EQ(plan->thread_bytes, (147456 + 524288 + 516 * 512 * 4 + 4095) / 4096 * 4096);
  const auto nmk = PlanOf(*space, absl::StrReplaceAll(kSchedule, {{"order=nkm", "order=nmk"}}),
                          {1024, 1024, 1024});
  EXPECT_EQ(nmk->thread_bytes, (147456 + 524288 + 144 * 512 * 4 + 4095) / 4096 * 4096);
}

TEST(ContractionTiledSpace, NamesConstraintsWithTheirNumbers) {
  const auto space = Space(kMatmul, "m=1024,n=1024,k=1024");
  auto with = [&](const std::string& from, const std::string& to) {
    return ReasonAgainst(*space, absl::StrReplaceAll(kSchedule, {{from, to}}));
  };
  EXPECT_THAT(
      ReasonAgainst(*space, absl::StrReplaceAll(kSchedule, {{"micro_m=6", "micro_m=8"},
                                                            {"vectors_n=2", "vectors_n=3"}})),
      StartsWith("registers: 8 x 3 accumulators + 3 + 1 > 16"));
  EXPECT_THAT(with("threads_n=1", "threads_n=2"), StartsWith("threads: 1 x 2 x 2 > 2 cores"));
  // Half of 1024 rows is 516 in strips of 6; 576 would cover them.
  EXPECT_THAT(with("tile_m=144", "tile_m=576"),
              StartsWith("tile_m: 576 covers the 516 rows of a thread"));
}

TEST(ContractionTiledSpace, HoldsManySchedulesButNotTooMany) {
  const auto space = Space(kMatmul, "m=1024,n=1024,k=1024");
  EXPECT_GT(space->space().Count(), 10000);
  EXPECT_LT(space->space().Count(), 10000000);
  // Both orders of packing with nothing to choose: one vector times one vector.
  EXPECT_GE(Space(kMatmul, "m=1,n=1,k=1")->space().Count(), 1);
}

TEST(ContractionTiledSpace, LeavesOutLoopOrdersThatChangeNothing) {
  const auto space = Space(kMatmul, "m=1024,n=1024,k=1024");
  const std::string whole =
      absl::StrReplaceAll(kSchedule, {{"tile_m=144", "tile_m=all"}, {"tile_n=512", "tile_n=all"}});
  EXPECT_THAT(ReasonAgainst(*space, whole), HasSubstr("order"));
  const auto plan =
      PlanOf(*space, absl::StrReplaceAll(whole, {{"order=nkm ", ""}}), {1024, 1024, 1024});
  EXPECT_EQ(plan->tile_m, 516);
  EXPECT_EQ(plan->tile_n, 1024);
}

TEST(ContractionTiledSpace, UsesOperandsInPlaceOnlyAsTheyAre) {
  // bf16 is widened while it is packed; a b whose columns are not adjacent cannot be loaded as
  // vectors.
  EXPECT_THAT(ReasonAgainst(*Space(kMatmul, "m=1024,n=1024,k=1024", "bf16"),
                            absl::StrReplaceAll(kSchedule, {{"pack_a=private", "pack_a=none"}})),
              HasSubstr("pack_a"));
  EXPECT_THAT(ReasonAgainst(*Space("C[m,n] = sum(k: A[m,k] * B[n,k])", "m=1024,n=1024,k=1024"),
                            absl::StrReplaceAll(kSchedule, {{"pack_b=private", "pack_b=none"}})),
              HasSubstr("pack_b"));
}

TEST(ContractionTiledSpace, HasALegalDefaultForEveryShapeTypeAndTarget) {
  Target narrow = TwoCores();
  narrow.cores = 1;
  narrow.vector_bits = 0;
  narrow.vector_registers = 8;
  narrow.l1_bytes = 8 << 10;
  narrow.l2_bytes = 64 << 10;
  narrow.l3_bytes = 0;
  Target wide = TwoCores();
  wide.cores = 96;
  wide.vector_bits = 512;
  wide.vector_registers = 32;
  wide.l2_bytes = 2 << 20;
  for (const Target& target : {TwoCores(), narrow, wide}) {
    for (const char* types : {"f32", "f64", "bf16", "i8,C:i32"}) {
      for (const char* sizes :
           {"m=1,n=1,k=1", "m=1,n=4096,k=4096", "m=4096,n=1,k=65536", "m=7,n=13,k=100003",
            "m=1..8192,n=4096,k=4096", "m=3,n=1..50000,k=1..3000", "m=20000,n=20000,k=20000"}) {
        // ScheduleSpace::Make checks that the default is legal.
        const auto space = Space(kMatmul, sizes, types, target);
        const Schedule schedule = space->DefaultSchedule();
        EXPECT_TRUE(space->space().IndexOf(schedule).ok()) << schedule.ToString();
        const auto plan = space->MakePlan(schedule, space->workload().LowestSizes());
        ASSERT_TRUE(plan.ok());
        EXPECT_LE((*plan)->threads, target.cores);
        EXPECT_GT((*plan)->balance, 0);
        EXPECT_LE((*plan)->balance, 1);
      }
    }
  }
}

TEST(ContractionTiledSpace, PlansEverySampledSchedule) {
  const auto space =
      Space("Y[t,o] = gelu(sum(i: X[t,i] * W[o,i]) + bias[o])", "t=1..512,i=96,o=160", "bf16");
  std::mt19937_64 random(1);
  for (int i = 0; i < 300; ++i) {
    const Schedule schedule = space->space().At(UniformIndex(random, space->space().Count()));
    absl::StatusOr<std::unique_ptr<Plan>> plan =
        space->MakePlan(schedule, space->workload().HighestSizes());
    ASSERT_TRUE(plan.ok()) << schedule.ToString();
    EXPECT_GE((*plan)->operations, space->workload().Operations(space->workload().HighestSizes()));
    EXPECT_GT((*plan)->issue_efficiency, 0);
    EXPECT_LE((*plan)->issue_efficiency, 1);
  }
}

}  // namespace
}  // namespace tilewright
