// The space and the plan of contraction.mma on typed-in GPUs.
#include "schedule/contraction_mma.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace tilewright {
namespace {

using ::testing::HasSubstr;

Target Gpu(const std::string& architecture, int64_t shared, int tensor) {
  Target target;
  target.kind = "cuda:test";
  target.backend = "nvptx";
  target.llvm_cpu = architecture;
  target.cores = 132;
  target.clock_mhz = 1980;
  target.memory_bytes_per_second = 3'350'000'000'000;
  target.shared_memory_bytes = shared;
  target.shared_memory_per_core_bytes = shared + 1024;
  target.registers_per_core = 65536;
  target.threads_per_core = 2048;
  target.f32_operations_per_cycle = 256;
  target.tensor_operations_per_cycle = tensor;
  target.f64_operations_per_cycle = 256;
  return target;
}
Target H100() { return Gpu("sm_90a", 232448, 4096); }
Target A100() { return Gpu("sm_80", 166912, 2048); }

struct Case {
  std::shared_ptr<const ScheduleSpace> space;
  Sizes sizes;
};

Case Make(const std::string& expression, const std::string& sizes, const std::string& types,
          const Target& target = H100()) {
  auto workload = Workload::Make(expression, {sizes, types});
  EXPECT_TRUE(workload.ok()) << workload.status();
  auto space = ScheduleSpace::Make(*workload, target, AllVariants());
  EXPECT_TRUE(space.ok()) << space.status();
  return {*space, workload->HighestSizes()};
}

bool Applies(const Case& of) {
  for (const Variant* variant : of.space->variants()) {
    if (variant->name == "contraction.mma") return true;
  }
  return false;
}

std::string RefusalOf(const std::string& expression, const std::string& sizes,
                      const std::string& types, const Target& target = H100()) {
  auto workload = Workload::Make(expression, {sizes, types});
  EXPECT_TRUE(workload.ok()) << workload.status();
  return std::string(ContractionMmaVariant().applies(*workload, target).message());
}

constexpr char kMatmul[] = "C[m,n] = sum(k: A[m,k] * B[k,n])";

// a lies along k: 128 rows of 32 * 2 B + 16 B = 10240 B. b lies along n: 32 depths of 128 * 2 B +
// 16 B = 8704 B. Four stages: 75776 B. Each of 2 x 2 warps has 64 x 64 outputs: 4 x 8 blocks.
TEST(ContractionMma, PlansTilesWarpsAndSharedMemory) {
  const Case matmul = Make(kMatmul, "m=1024 n=1024 k=1024", "bf16,C:f32");
  auto made = matmul.space->MakePlan(
      *ParseSchedule("contraction.mma{tile_m=128 tile_n=128 warps_m=2 warps_n=2 tile_k=32 stages=4 "
                     "epilogue=shared group_m=8 blocks_per_core=1}"),
      matmul.sizes);
  ASSERT_TRUE(made.ok()) << made.status();
  const auto& plan = static_cast<const ContractionMmaPlan&>(**made);
  EXPECT_TRUE(plan.a.copied);
  EXPECT_TRUE(plan.a.depth_contiguous);
  EXPECT_EQ(plan.a.stage_bytes, 10240);
  EXPECT_TRUE(plan.b.copied);
  EXPECT_FALSE(plan.b.depth_contiguous);
  EXPECT_EQ(plan.b.stage_bytes, 8704);
  EXPECT_EQ(plan.shared_bytes, 75776);
  EXPECT_EQ(plan.block, 128);
  EXPECT_EQ(plan.grid, 64);
  EXPECT_EQ(plan.blocks_m, 4);
  EXPECT_EQ(plan.blocks_n, 8);
  EXPECT_EQ(plan.block_k, 16);
  // 64 tiles x 1024 depths x 256 elements x 2 B, and 4 MiB of output.
  EXPECT_EQ(plan.l2_bytes, 64.0 * 1024 * 256 * 2 + 4 * 1024 * 1024);
  // 32 multiplications for 8 loads; mma.sync has 62% of what the tensor cores can do.
  EXPECT_NEAR(plan.issue_efficiency, 0.62 * 32 / 36, 1e-12);
}

TEST(ContractionMma, NamesTheConstraintThatAScheduleBreaks) {
  const Case matmul = Make(kMatmul, "m=1024 n=1024 k=1024", "bf16", A100());
  auto refusal = [&](const std::string& schedule) {
    return std::string(
        matmul.space->MakePlan(*ParseSchedule(schedule), matmul.sizes).status().message());
  };
  // One warp with 128 x 128: 8 x 16 blocks, 512 sums + 32 + 32, 5 for each of 2 x 16 chunks, 24.
  EXPECT_THAT(
      refusal("contraction.mma{tile_m=128 tile_n=128 warps_m=1 warps_n=1 tile_k=32 stages=2 "
              "epilogue=registers group_m=1 blocks_per_core=1}"),
      HasSubstr("registers: 760 of at most 255"));
  EXPECT_THAT(refusal("contraction.mma{tile_m=16 tile_n=64 warps_m=2 warps_n=1 tile_k=32 stages=2 "
                      "epilogue=registers group_m=1 blocks_per_core=1}"),
              HasSubstr("warp_tile: 16 / 2 x 64 / 1; at least 16 x 16"));
  // a: 256 rows of 64 * 2 + 16 B = 36864 B; b: 64 depths of 128 * 2 + 16 B = 17408 B; four times.
  EXPECT_THAT(
      refusal("contraction.mma{tile_m=256 tile_n=128 warps_m=4 warps_n=2 tile_k=64 stages=4 "
              "epilogue=registers group_m=1 blocks_per_core=1}"),
      HasSubstr("shared_memory: 1 blocks x (217088 B + 1024 B) > 167936 B"));
}

TEST(ContractionMma, AppliesToWhatTensorCoresMultiply) {
  EXPECT_TRUE(Applies(Make(kMatmul, "m=64 n=64 k=64", "f16", A100())));
  EXPECT_TRUE(Applies(Make(kMatmul, "m=64 n=64 k=64", "i8,C:i32", A100())));
  EXPECT_TRUE(
      Applies(Make("C[m,n] = sum(k: tf32(A[m,k]) * tf32(B[k,n]))", "m=64 n=64 k=64", "f32")));
  EXPECT_THAT(RefusalOf(kMatmul, "m=64 n=64 k=64", "f32"), HasSubstr("as tf32() only"));
  EXPECT_THAT(RefusalOf(kMatmul, "m=64 n=64 k=64", "e4m3,C:f32"),
              HasSubstr("do not multiply e4m3"));
  EXPECT_THAT(RefusalOf(kMatmul, "m=64 n=64 k=64", "bf16,A:f16"), HasSubstr("different types"));
  EXPECT_THAT(RefusalOf("C[m,n] = sum(k: exp(A[m,k]) * B[k,n])", "m=64 n=64 k=64", "bf16"),
              HasSubstr("computed, not read"));
  EXPECT_THAT(RefusalOf(kMatmul, "m=64 n=64 k=64", "bf16", Gpu("sm_75", 65536, 1024)),
              HasSubstr("sm_75 is older than sm_80"));
}

// All but outputs so small that no warp can read both operands element by element.
TEST(ContractionMma, HasALegalDefault) {
  for (const char* sizes : {"m=1 n=100000 k=3", "m=7 n=19 k=12", "m=8192 n=8192 k=8192",
                            "m=1..8192 n=64 k=64", "m=35 n=8457 k=4096"}) {
    for (const Target& target : {H100(), A100()}) {
      SCOPED_TRACE(std::string(sizes) + " " + target.llvm_cpu);
      const Case of = Make(kMatmul, sizes, "bf16", target);
      ASSERT_TRUE(Applies(of));
      const Schedule schedule =
          ContractionMmaVariant().default_schedule(of.space->workload(), target);
      EXPECT_TRUE(of.space->MakePlan(schedule, of.sizes).ok());
    }
  }
}

}  // namespace
}  // namespace tilewright
