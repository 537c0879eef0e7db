// The space and the plan of contraction.direct on an H100 whose numbers are typed in.
#include "schedule/contraction_direct.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace tilewright {
namespace {

using ::testing::HasSubstr;

// cuda:h100-sxm, less what this variant does not read.
Target H100() {
  Target target;
  target.kind = "cuda:test";
  target.backend = "nvptx";
  target.llvm_cpu = "sm_90a";
  target.cores = 132;
  target.clock_mhz = 1980;
  target.memory_bytes_per_second = 3'350'000'000'000;
  target.shared_memory_bytes = 232448;
  target.shared_memory_per_core_bytes = 233472;
  target.registers_per_core = 65536;
  target.threads_per_core = 2048;
  target.f32_operations_per_cycle = 256;
  target.tensor_operations_per_cycle = 4096;
  target.f64_operations_per_cycle = 256;
  return target;
}

struct Case {
  std::shared_ptr<const ScheduleSpace> space;
  Sizes sizes;
};

Case Make(const std::string& expression, const std::string& sizes, const std::string& types) {
  auto workload = Workload::Make(expression, {sizes, types});
  EXPECT_TRUE(workload.ok()) << workload.status();
  auto space = ScheduleSpace::Make(*workload, H100(), AllVariants());
  EXPECT_TRUE(space.ok()) << space.status();
  return {*space, workload->HighestSizes()};
}

std::unique_ptr<Plan> PlanOf(const Case& of, const std::string& schedule) {
  auto plan = of.space->MakePlan(*ParseSchedule(schedule), of.sizes);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *std::move(plan) : nullptr;
}

std::string RefusalOf(const Case& of, const std::string& schedule) {
  return std::string(of.space->MakePlan(*ParseSchedule(schedule), of.sizes).status().message());
}

std::string WhyNot(const std::string& expression, const std::string& sizes,
                   const std::string& types) {
  auto workload = Workload::Make(expression, {sizes, types});
  EXPECT_TRUE(workload.ok()) << workload.status();
  return std::string(ContractionDirectVariant().applies(*workload, H100()).message());
}

constexpr char kLinear[] = "C[m,n] = sum(k: A[m,k] * B[n,k])";

// 128 threads of a sum: each warp's 32 meet by shuffles, 4 warps' parts in shared memory: 4 parts
// x 2 x 2 sums x 4 B. 4 x 9 = 36 tiles of 2 x 2.
TEST(ContractionDirect, PlansPartsOfASum) {
  const Case product = Make(kLinear, "m=8 n=17 k=600", "bf16");
  const auto plan = PlanOf(product,
                           "contraction.direct{block=128 threads_k=128 threads_n=1 rows=2 "
                           "columns=2 vector_k=4 unroll=2}");
  ASSERT_NE(plan, nullptr);
  const auto& direct = static_cast<const ContractionDirectPlan&>(*plan);
  EXPECT_EQ(direct.threads_m, 1);
  EXPECT_EQ(direct.lanes_k, 32);
  EXPECT_EQ(direct.parts, 4);
  EXPECT_EQ(direct.shared_bytes, 64);
  EXPECT_EQ(direct.grid, 36);
  EXPECT_FALSE(direct.several_tiles);
  EXPECT_EQ(direct.memory_bytes, 2.0 * (8 * 600 + 17 * 600 + 8 * 17));
}

// What lies along n is taken by neighbouring threads that have neighbouring columns; 4 of a warp's
// 32 share a sum where 8 lie side by side.
TEST(ContractionDirect, PutsNeighboursWhereTheLargerOperandIsContiguous) {
  const Case across = Make("C[m,n] = sum(k: A[m,k] * B[k,n])", "m=2 n=64 k=640", "f32");
  const auto plan = PlanOf(across,
                           "contraction.direct{block=128 threads_k=16 threads_n=8 rows=1 "
                           "columns=4 vector_k=1 unroll=1}");
  ASSERT_NE(plan, nullptr);
  const auto& direct = static_cast<const ContractionDirectPlan&>(*plan);
  EXPECT_FALSE(direct.k_first);
  EXPECT_EQ(direct.lanes_k, 4);
  EXPECT_EQ(direct.parts, 4);
  EXPECT_EQ(direct.b.row_lanes, 4);
  EXPECT_EQ(direct.a.row_lanes, 1);
}

TEST(ContractionDirect, LoadsAtOnceWhatIsAligned) {
  auto lanes = [](const char* expression, const char* sizes, const char* types,
                  const char* schedule) {
    const Case of = Make(expression, sizes, types);
    const auto plan = PlanOf(of, schedule);
    if (plan == nullptr) return std::make_pair(0, 0);
    const auto& direct = static_cast<const ContractionDirectPlan&>(*plan);
    return std::make_pair(direct.a.depth_lanes, direct.b.depth_lanes);
  };
  constexpr char kFour[] =
      "contraction.direct{block=64 threads_k=64 threads_n=1 rows=1 columns=1 vector_k=4 unroll=1 "
      "blocks=each}";
  // Rows of 6676 bf16 are multiples of 8 bytes.
  EXPECT_EQ(lanes(kLinear, "m=8 n=2228 k=6676", "bf16", kFour), std::make_pair(4, 4));
  EXPECT_EQ(lanes("C[m,n] = sum(k: A[m,k] * B[k,n])", "m=8 n=2800 k=6676", "bf16", kFour),
            std::make_pair(4, 1));
  // Rows of odd length have one element at a time.
  EXPECT_THAT(RefusalOf(Make(kLinear, "m=8 n=2200 k=665", "bf16"), kFour), HasSubstr("vector_k"));
  EXPECT_THAT(RefusalOf(Make(kLinear, "m=8 n=2200 k=1..664", "bf16"), kFour),
              HasSubstr("vector_k"));
}

TEST(ContractionDirect, NamesTheConstraintThatAScheduleBreaks) {
  const Case product = Make(kLinear, "m=16 n=64 k=4096", "f64");
  EXPECT_THAT(RefusalOf(product,
                        "contraction.direct{block=64 threads_k=64 threads_n=2 rows=1 columns=1 "
                        "vector_k=1 unroll=1}"),
              HasSubstr("threads: 64 x 2 > a block of 64"));
  EXPECT_THAT(RefusalOf(product,
                        "contraction.direct{block=64 threads_k=64 threads_n=1 rows=16 columns=8 "
                        "vector_k=1 unroll=1}"),
              HasSubstr("registers: "));
}

TEST(ContractionDirect, IsForSmallOutputsFewRowsAndShortSums) {
  EXPECT_EQ(WhyNot(kLinear, "m=1 n=55 k=595", "bf16"), "");
  EXPECT_EQ(WhyNot(kLinear, "m=8 n=28672 k=4096", "bf16"), "");
  EXPECT_EQ(WhyNot(kLinear, "m=13738 n=93 k=9", "bf16"), "");
  EXPECT_THAT(WhyNot(kLinear, "m=1024 n=1024 k=1024", "bf16"),
              HasSubstr("1024 x 1024 outputs of 1024 products; accepted: at most 16 rows"));
}

TEST(ContractionDirect, HasALegalDefaultAndSuggestionsForEveryShapeOfIt) {
  const Variant variant = ContractionDirectVariant();
  for (const auto& [sizes, types] :
       {std::make_pair("m=1 n=1 k=1", "f64"), std::make_pair("m=1 n=55 k=595", "bf16"),
        std::make_pair("m=2 n=3 k=17", "bf16"), std::make_pair("m=13738 n=93 k=9", "bf16"),
        std::make_pair("m=13366 n=203 k=2", "e4m3,C:bf16"),
        std::make_pair("m=8 n=2228 k=6676", "bf16"),
        std::make_pair("m=1..16 n=1..4096 k=1..70", "f64"),
        std::make_pair("m=16 n=28672 k=4096", "i8,C:i32")}) {
    SCOPED_TRACE(sizes);
    for (const char* expression : {kLinear, "C[m,n] = sum(k: A[k,m] * B[k,n])"}) {
      const Case of = Make(expression, sizes, types);
      const VariantSpace& own = of.space->variant_space(variant.name);
      const Workload& workload = of.space->workload();
      EXPECT_TRUE(own.IndexOf(variant.default_schedule(workload, H100())).ok());
      const std::vector<Schedule> suggestions = variant.suggestions(workload, H100());
      EXPECT_FALSE(suggestions.empty());
      for (const Schedule& schedule : suggestions)
        EXPECT_TRUE(own.IndexOf(schedule).ok()) << own.IndexOf(schedule).status();
    }
  }
}

TEST(ContractionDirect, SuggestsNothingWhereTensorCoresReadTheMatrixInPlace) {
  auto suggested = [](const char* sizes) {
    auto workload = Workload::Make(kLinear, {sizes, "bf16"});
    EXPECT_TRUE(workload.ok()) << workload.status();
    return ContractionDirectVariant().suggestions(*workload, H100()).size();
  };
  EXPECT_EQ(suggested("m=8 n=6144 k=4096"), 0u);
  EXPECT_GT(suggested("m=8 n=6144 k=4092"), 0u);  // rows of 8184 bytes
  EXPECT_GT(suggested("m=8 n=64 k=4096"), 0u);
}

TEST(ContractionDirect, IsNoVariantOfACpu) {
  auto workload = Workload::Make(kLinear, {"m=8 n=8 k=8", "f32"});
  auto space = ScheduleSpace::Make(*workload, KnownTargets()[0], AllVariants());
  ASSERT_TRUE(space.ok()) << space.status();
  for (const Variant* variant : (*space)->variants())
    EXPECT_NE(variant->name, "contraction.direct");
}

}  // namespace
}  // namespace tilewright
