// The space and the plan of contraction.simt on an H100 whose numbers are typed in.
#include "schedule/contraction_simt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

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

// The variant's own default, whichever variant is the workload's.
std::string DefaultOf(const Case& of) {
  return ContractionSimtVariant().default_schedule(of.space->workload(), H100()).ToString();
}

double QuantityOf(const Plan& plan, const std::string& name) {
  for (const Quantity& quantity : plan.quantities) {
    if (quantity.name == name) return quantity.value;
  }
  ADD_FAILURE() << "no quantity " << name;
  return 0;
}

constexpr char kMatmul[] = "C[m,n] = sum(k: A[m,k] * B[k,n])";
constexpr char kBig[] =
    "contraction.simt{tile_m=128 tile_n=128 thread_m=8 thread_n=8 tile_k=16 stages=3 "
    "epilogue=registers group_m=8 blocks_per_core=1}";

// a lies along k: 128 rows of 16 * 4 B + 16 B = 10240 B. b lies along n: 16 depths of 128 * 4 B +
// 16 B = 8448 B. Three stages: 56064 B. 16 x 16 threads. 8 x 8 = 64 tiles.
TEST(ContractionSimt, PlansSharedMemoryAsItLies) {
  const Case matmul = Make(kMatmul, "m=1024 n=1024 k=1024", "f32");
  const auto plan = PlanOf(matmul, kBig);
  ASSERT_NE(plan, nullptr);
  const auto& simt = static_cast<const ContractionSimtPlan&>(*plan);
  EXPECT_TRUE(simt.a.copied);
  EXPECT_TRUE(simt.a.depth_contiguous);
  EXPECT_EQ(simt.a.chunk_bytes, 16);
  EXPECT_EQ(simt.a.stage_bytes, 10240);
  EXPECT_TRUE(simt.b.copied);
  EXPECT_FALSE(simt.b.depth_contiguous);
  EXPECT_EQ(simt.b.stage_bytes, 8448);
  EXPECT_EQ(simt.shared_bytes, 56064);
  EXPECT_EQ(simt.block, 256);
  EXPECT_EQ(simt.grid, 64);
  EXPECT_EQ(simt.threads, 64);
  EXPECT_EQ(simt.warp_m * simt.warp_n, 32);
  EXPECT_EQ(simt.step_k, 4);
  // 64 sums, 8 rows x 4 depths, 8 columns, 5 for each of 2 + 2 chunks (128 x 16 x 4 B / 16 B / 256
  // threads), and 24 more.
  EXPECT_EQ(QuantityOf(*plan, "registers"), 148);
  // 64 tiles x 1024 depths x 256 elements x 4 B, and 4 MiB of output.
  EXPECT_EQ(plan->l2_bytes, 64.0 * 1024 * 256 * 4 + 4 * 1024 * 1024);
  EXPECT_EQ(plan->operations, 2.0 * 1024 * 1024 * 1024);
  // 64 FMAs for 4 loads of 16 bytes, of the 256 / 2048 of the peak that plain f32 arithmetic has.
  EXPECT_NEAR(plan->issue_efficiency, 64.0 / 68 * 256 / 2048, 1e-12);
}

TEST(ContractionSimt, CopiesOnlyWhatIsAlignedAndUsedAsItIsStored) {
  auto operands = [](const char* sizes, const char* types, const char* expression) {
    const Case of = Make(expression, sizes, types);
    auto plan = PlanOf(of, DefaultOf(of));
    const auto& simt = static_cast<const ContractionSimtPlan&>(*plan);
    return std::make_pair(simt.a.copied ? simt.a.chunk_bytes : 0,
                          simt.b.copied ? simt.b.chunk_bytes : 0);
  };
  // Rows of 130 * 4 B are multiples of 8 bytes, of 129 * 4 B of 4; rows of 129 bf16 of 2.
  EXPECT_EQ(operands("m=128 n=128 k=130", "f32", kMatmul), std::make_pair(8, 16));
  EXPECT_EQ(operands("m=128 n=129 k=128", "f32", kMatmul), std::make_pair(16, 4));
  EXPECT_EQ(operands("m=128 n=129 k=128", "bf16", kMatmul), std::make_pair(16, 0));
  EXPECT_EQ(operands("m=128 n=128 k=128", "f32", "C[m,n] = sum(k: tf32(A[m,k]) * B[k,n])"),
            std::make_pair(0, 16));
  // A ranged size leaves rows whose length is not known.
  EXPECT_EQ(operands("m=128 n=128 k=1..128", "bf16", kMatmul), std::make_pair(0, 16));
  EXPECT_EQ(operands("m=1..128 n=128 k=128", "bf16", kMatmul), std::make_pair(16, 16));
}

// a: 128 rows of 64 * 4 + 16 B = 34816 B; b: 64 depths of 528 B = 33792 B; four times 68608 B.
TEST(ContractionSimt, NamesTheConstraintThatAScheduleBreaks) {
  const Case matmul = Make(kMatmul, "m=1024 n=1024 k=1024", "f32");
  EXPECT_THAT(RefusalOf(matmul,
                        "contraction.simt{tile_m=128 tile_n=128 thread_m=8 thread_n=8 tile_k=64 "
                        "stages=4 epilogue=registers group_m=1 blocks_per_core=1}"),
              HasSubstr("shared_memory: 1 blocks x (274432 B + 1024 B) > 233472 B"));
  EXPECT_THAT(RefusalOf(matmul,
                        "contraction.simt{tile_m=256 tile_n=256 thread_m=4 thread_n=4 tile_k=16 "
                        "stages=2 epilogue=registers group_m=1 blocks_per_core=1}"),
              HasSubstr("threads: 256 x 256 sums / 4 x 4 = 4096"));
  // 148 registers x 256 threads x 2 blocks = 75776.
  EXPECT_THAT(RefusalOf(matmul,
                        "contraction.simt{tile_m=128 tile_n=128 thread_m=8 thread_n=8 tile_k=16 "
                        "stages=2 epilogue=registers group_m=1 blocks_per_core=2}"),
              HasSubstr("registers: 148 of at most 255 x 256 threads x 2 blocks > 65536"));
  // 1024 threads with 2 x 2 sums: 4 + 2 * 4 + 2 + 2 * 5 + 24 = 48 registers, 49152 of 65536.
  EXPECT_THAT(RefusalOf(matmul,
                        "contraction.simt{tile_m=64 tile_n=64 thread_m=2 thread_n=2 tile_k=16 "
                        "stages=2 epilogue=registers group_m=1 blocks_per_core=2}"),
              HasSubstr("registers: 48 of at most 255 x 1024 threads x 2 blocks"));
}

TEST(ContractionSimt, HasALegalDefaultForEveryShapeOfTheFamily) {
  for (const char* sizes : {"m=1 n=1 k=1", "m=1 n=100000 k=3", "m=7 n=19 k=12",
                            "m=8192 n=8192 k=8192", "m=1..8192 n=64 k=64", "m=35 n=8457 k=4096"}) {
    for (const char* types : {"f32", "f64", "bf16,C:f32", "i8,C:i32", "e4m3,C:f16"}) {
      SCOPED_TRACE(std::string(sizes) + " " + types);
      const Case of = Make(kMatmul, sizes, types);
      EXPECT_NE(PlanOf(of, DefaultOf(of)), nullptr);
    }
  }
}

TEST(ContractionSimt, IsNoVariantOfACpu) {
  auto workload = Workload::Make(kMatmul, {"m=64 n=64 k=64", "f32"});
  auto space = ScheduleSpace::Make(*workload, KnownTargets()[0], AllVariants());
  for (const Variant* variant : (*space)->variants()) EXPECT_NE(variant->name, "contraction.simt");
}

}  // namespace
}  // namespace tilewright
