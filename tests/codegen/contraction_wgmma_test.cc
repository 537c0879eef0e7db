// Hopper contractions without a GPU: what ptxas makes of schedules of every kind, and what their
// recipes say.
#include "codegen/contraction_wgmma.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/ptxas.h"
#include "codegen/wgmma_copies.h"
#include "codegen/writer.h"
#include "schedule/contraction_skinny.h"
#include "schedule/contraction_wgmma.h"

namespace tilewright {
namespace {

const Target& H200() {
  static const auto* const kTarget = new Target(*FindTarget("cuda:h200"));
  return *kTarget;
}

Workload WorkloadOf(const std::string& expression, const std::string& sizes,
                    const std::string& types) {
  auto workload = Workload::Make(expression, {sizes, types});
  EXPECT_TRUE(workload.ok()) << workload.status();
  return *workload;
}

absl::StatusOr<Kernel> Build(const Workload& workload, const std::string& schedule) {
  return WriteKernel({workload, H200(), *ParseSchedule(schedule)}, DefaultCatalogue());
}

// A diagnostic of ptxas that tells of serialised wgmma, spills or a stack is an error of the build
// (codegen/ptxas.h), so building is the test.
void ExpectBuilds(const Workload& workload, const std::string& schedule) {
  const auto kernel = Build(workload, schedule);
  EXPECT_TRUE(kernel.ok()) << schedule << ": " << kernel.status();
}

bool HasAssembler() {
  const auto ptxas = FindPtxas();
  return ptxas.ok() && !ptxas->path.empty();
}

constexpr char kLinear[] = "C[m,n] = sum(k: A[m,k] * B[n,k])";

TEST(ContractionWgmma, EverySchedulesKindIsAssembledWithoutComplaint) {
  if (!HasAssembler()) GTEST_SKIP() << "[SKIP] no ptxas";
  const Workload workload = WorkloadOf(kLinear, "m=4096 n=4096 k=4096", "bf16");
  for (const char* schedule :
       {"swap=0 mode=cooperative consumers=2 tile_m=128 tile_n=256 producer_registers=24 store=tma "
        "store_columns=64 store_buffers=2 tile_k=64 stages=4 in_flight=1 cluster=1 group=8 "
        "raster=rows",
        "swap=0 mode=cooperative consumers=1 tile_m=64 tile_n=256 store=direct tile_k=64 stages=4 "
        "in_flight=0 cluster=1 group=1 raster=columns",
        "swap=0 mode=cooperative consumers=2 tile_m=256 tile_n=192 producer_registers=24 store=tma "
        "store_columns=64 store_buffers=1 tile_k=64 stages=3 in_flight=1 cluster=2n group=8 "
        "raster=rows",
        "swap=0 mode=pingpong tile_m=128 tile_n=176 producer_registers=24 store=tma "
        "store_columns=64 store_buffers=1 tile_k=64 stages=4 cluster=2m group=16 "
        "raster=rows",
        "swap=1 mode=cooperative consumers=2 tile_m=256 tile_n=144 producer_registers=24 store=tma "
        "store_columns=64 store_buffers=1 tile_k=64 stages=3 in_flight=0 cluster=1 group=8 "
        "raster=rows",
        "swap=0 mode=cooperative consumers=3 tile_m=192 tile_n=192 producer_registers=24 store=tma "
        "store_columns=64 store_buffers=1 tile_k=128 stages=2 in_flight=1 cluster=1 group=4 "
        "raster=columns",
        "swap=0 mode=cooperative consumers=2 tile_m=256 tile_n=208 producer_registers=24 store=tma "
        "store_columns=32 store_buffers=1 tile_k=64 stages=3 in_flight=1 cluster=1 group=8 "
        "raster=rows stream_k=wave",
        "swap=1 mode=cooperative consumers=1 tile_m=64 tile_n=72 store=direct tile_k=64 stages=8 "
        "in_flight=1 cluster=2m group=8 raster=rows stream_k=remainder"}) {
    ExpectBuilds(workload, absl::StrCat("contraction.wgmma{", schedule, "}"));
  }
}

TEST(ContractionWgmma, LinesOfEitherOperandAreAskedOfL2Ahead) {
  if (!HasAssembler()) GTEST_SKIP() << "[SKIP] no ptxas";
  const Workload wide = WorkloadOf(kLinear, "m=64 n=6144 k=4096", "bf16");
  ExpectBuilds(
      wide,
      "contraction.wgmma{swap=0 mode=cooperative consumers=1 tile_m=64 tile_n=48 store=tma "
      "store_columns=64 store_buffers=2 tile_k=128 stages=7 in_flight=1 cluster=2m group=8 "
      "raster=rows stream_k=off ahead=32}");
  ExpectBuilds(wide,
               "contraction.wgmma{swap=1 mode=pingpong tile_m=64 tile_n=64 producer_registers=24 "
               "store=tma store_columns=64 store_buffers=1 tile_k=64 stages=8 cluster=1 group=1 "
               "raster=columns ahead=16}");
  ExpectBuilds(
      WorkloadOf("C[b,m,n] = sum(k: A[b,m,k] * B[b,n,k])", "b=1..8 m=700 n=256 k=128", "f16"),
      "contraction.wgmma{swap=0 mode=cooperative consumers=2 tile_m=128 tile_n=64 "
      "producer_registers=24 store=direct tile_k=64 stages=4 in_flight=0 cluster=1 group=8 "
      "raster=rows stream_k=off ahead=32}");
}

TEST(ContractionWgmma, TransposesBatchesTypesAndEpiloguesAreAssembled) {
  if (!HasAssembler()) GTEST_SKIP() << "[SKIP] no ptxas";
  struct Program {
    const char *expression, *sizes, *types;
  };
  for (const Program& program : std::vector<Program>{
           {"C[m,n] = sum(k: A[m,k] * B[k,n])", "m=512 n=512 k=512", "f16"},
           {"C[m,n] = sum(k: A[k,m] * B[k,n])", "m=512 n=512 k=512", "bf16"},
           {kLinear, "m=512 n=512 k=512", "e4m3,C:f16"},
           {kLinear, "m=1..512 n=512 k=512", "bf16,C:f32"},
           {"C[b,m,n] = sum(k: A[b,m,k] * B[b,n,k])", "b=8 m=200 n=256 k=128", "bf16"},
           {"C[m,n] = gelu(sum(k: A[m,k] * B[n,k]) + bias[n])", "m=512 n=512 k=512",
            "bf16,bias:f32"},
           {"C[m,n] = gelu(sum(k: A[m,k] * B[n,k]) + bias[n])", "m=4096 n=4096 k=4096",
            "bf16,bias:f32"},
           {"C[m,n] = sum(k: A[m,k] * B[n,k]) + R[m,n]", "m=4096 n=4096 k=4096", "bf16"},
           {"C[m,n] = relu(sum(k: A[m,k] * B[n,k]) * 0.5 + R[m,n])", "m=512 n=512 k=512",
            "bf16"}}) {
    const Workload workload = WorkloadOf(program.expression, program.sizes, program.types);
    const Variant variant = ContractionWgmmaVariant();
    ExpectBuilds(workload, variant.default_schedule(workload, H200()).ToString());
  }
}

TEST(ContractionWgmma, ADrawOfSchedulesIsAssembledWithoutComplaint) {
  if (!HasAssembler()) GTEST_SKIP() << "[SKIP] no ptxas";
  const Workload workload = WorkloadOf(kLinear, "m=2048 n=2048 k=1024", "bf16");
  const std::vector<Variant> variants = {ContractionWgmmaVariant()};
  auto space = ScheduleSpace::Make(workload, H200(), variants);
  ASSERT_TRUE(space.ok()) << space.status();
  std::mt19937_64 random(3);
  for (int i = 0; i < 12; ++i) {
    const absl::uint128 at = UniformIndex(random, (*space)->space().Count());
    ExpectBuilds(workload, (*space)->space().At(at).ToString());
  }
}

TEST(ContractionWgmma, AsksForClustersDependentLaunchAndAlignedBuffers) {
  const Workload workload = WorkloadOf(kLinear, "m=1..8192 n=4096 k=1024", "bf16");
  const auto kernel =
      Build(workload,
            "contraction.wgmma{swap=0 mode=pingpong tile_m=128 tile_n=176 producer_registers=24 "
            "store=tma store_columns=64 store_buffers=1 tile_k=64 stages=4 cluster=2m "
            "group=16 raster=rows}");
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  ASSERT_EQ(kernel->launches.size(), 1u);
  const Launch& launch = kernel->launches[0];
  EXPECT_EQ(launch.cluster, 2);
  EXPECT_EQ(launch.grid[0], 132);
  EXPECT_EQ(launch.block, 384);
  EXPECT_TRUE(launch.dependent_launch);
  EXPECT_EQ(kernel->domain.alignments, (std::vector<int64_t>{16, 16, 16}));
  // Rows of A; half of the columns of B, which pairs along m share; the output's 64 columns; and
  // the 48 of 176 = 2 x 64 + 48 that are left over, 96 bytes, too many for one swizzle and too few
  // for the next.
  ASSERT_EQ(kernel->tensor_maps.size(), 4u);
  EXPECT_EQ(kernel->tensor_maps[kRowsMap].box, (std::vector<int>{64, 128}));
  EXPECT_EQ(kernel->tensor_maps[kColumnsMap].box, (std::vector<int>{64, 88}));
  EXPECT_EQ(kernel->tensor_maps[kOutputMap].box, (std::vector<int>{64, 128}));
  EXPECT_EQ(kernel->tensor_maps[kOutputTailMap].box, (std::vector<int>{48, 128}));
  EXPECT_EQ(kernel->tensor_maps[kOutputTailMap].swizzle_bytes, 0);
  // m is a range: the kernel reads it, and the maps' extents follow it.
  EXPECT_EQ(kernel->tensor_maps[kRowsMap].dims[1].extent.Evaluate({100, 4096, 1024}), 100);
}

TEST(ContractionWgmma, CopiesOperandsOfOddStridesInALaunchBefore) {
  const Workload workload = WorkloadOf(kLinear, "m=1021 n=1531 k=2039", "bf16");
  const Variant variant = ContractionWgmmaVariant();
  const auto kernel = Build(workload, variant.default_schedule(workload, H200()).ToString());
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  ASSERT_EQ(kernel->launches.size(), 2u);
  EXPECT_EQ(kernel->launches[0].shared_memory_bytes, 0);
  // Maps of both operands point to their copies: 1021 lines of 2048 elements first.
  ASSERT_EQ(kernel->tensor_maps.size(), 2u);
  EXPECT_EQ(kernel->tensor_maps[kRowsMap].buffer, TensorMap::kWorkspace);
  EXPECT_EQ(kernel->tensor_maps[kRowsMap].dims[0].extent.Evaluate({}), 2039);
  EXPECT_EQ(kernel->tensor_maps[kRowsMap].dims[1].stride.Evaluate({}), 2048);
  EXPECT_EQ(kernel->tensor_maps[kColumnsMap].offset_bytes, 4182016);
  // Operands are read in pieces of 16 bytes, the output is stored element by element.
  EXPECT_EQ(kernel->domain.alignments, (std::vector<int64_t>{16, 16, 2}));
}

TEST(ContractionWgmma, SplitTilesMeetInAWorkspaceThatBeginsWithFlags) {
  const Workload workload = WorkloadOf(kLinear, "m=777 n=3584 k=18944", "bf16");
  const auto kernel =
      Build(workload,
            "contraction.wgmma{swap=0 mode=cooperative consumers=2 tile_m=128 tile_n=256 "
            "producer_registers=24 store=tma store_columns=64 store_buffers=2 tile_k=64 stages=4 "
            "in_flight=1 cluster=1 group=8 raster=rows stream_k=remainder}");
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  ASSERT_EQ(kernel->launches.size(), 1u);
  // 7 x 14 = 98 tiles are shared by all 132 SMs.
  EXPECT_EQ(kernel->launches[0].grid[0], 132);
  EXPECT_EQ(kernel->workspace.flag_bytes, 1280);
  EXPECT_FALSE(kernel->workspace.zeroed);
  EXPECT_EQ(ParseRecipe(kernel->RecipeJson())->workspace, kernel->workspace);
}

TEST(ContractionSkinny, EverySchedulesKindIsAssembledWithoutComplaint) {
  if (!HasAssembler()) GTEST_SKIP() << "[SKIP] no ptxas";
  const Workload workload = WorkloadOf(kLinear, "m=24 n=6144 k=4096", "bf16");
  for (const char* schedule :
       {"rows=48 split=1 groups=1 tile_k=256 stages=6 occupancy=1 in_flight=0",
        "rows=64 split=4 groups=1 tile_k=128 stages=4 occupancy=2 in_flight=1",
        "rows=224 split=1 groups=4 tile_k=64 stages=6 occupancy=1 in_flight=0",
        "rows=56 split=1 groups=1 tile_k=64 stages=4 occupancy=4 in_flight=0",
        "rows=48 split=2 groups=1 tile_k=512 stages=2 occupancy=1 in_flight=0 "
        "k_order=turned",
        "rows=48 split=1 groups=1 tile_k=256 stages=4 occupancy=1 in_flight=0 ahead=64 "
        "later=copied",
        "rows=96 split=2 groups=2 tile_k=64 stages=4 occupancy=2 in_flight=1 k_order=turned "
        "ahead=32 later=begin"}) {
    ExpectBuilds(workload, absl::StrCat("contraction.skinny{", schedule, "}"));
  }
  // A text from before there were groups.
  ExpectBuilds(workload,
               "contraction.skinny{rows=48 split=1 tile_k=256 stages=6 occupancy=1 in_flight=0}");
}

TEST(ContractionSkinny, BatchesRangesAndBytesAreAskedOfL2Ahead) {
  if (!HasAssembler()) GTEST_SKIP() << "[SKIP] no ptxas";
  const std::string schedule =
      "contraction.skinny{rows=64 split=1 groups=1 tile_k=128 stages=4 occupancy=1 in_flight=0 "
      "ahead=64 later=copied}";
  ExpectBuilds(WorkloadOf("C[b,m,n] = sum(k: A[b,m,k] * B[b,n,k])", "b=8 m=16 n=256 k=512", "bf16"),
               schedule);
  ExpectBuilds(WorkloadOf(kLinear, "m=1..64 n=1000 k=1000", "f16"), schedule);
  ExpectBuilds(WorkloadOf(kLinear, "m=16 n=4096 k=4096", "e4m3,C:bf16"),
               "contraction.skinny{rows=64 split=1 groups=1 stages=8 occupancy=1 ahead=64 "
               "later=copied}");
}

TEST(ContractionSkinny, SharesOfTheGridAreAddedByASecondLaunch) {
  const Workload workload = WorkloadOf(kLinear, "m=128 n=128 k=65536", "bf16");
  const auto kernel = Build(
      workload,
      "contraction.skinny{rows=128 split=2 groups=64 tile_k=64 stages=6 occupancy=1 in_flight=0}");
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  ASSERT_EQ(kernel->launches.size(), 2u);
  EXPECT_EQ(kernel->launches[0].grid[0], 128);
  EXPECT_EQ(kernel->launches[0].cluster, 2);
  // 64 groups x 128 x 128 f32.
  EXPECT_EQ(kernel->workspace.bytes, 64 * 128 * 128 * 4);
  // 16384 elements by 128 threads.
  EXPECT_EQ(kernel->launches[1].grid[0], 128);
}

}  // namespace
}  // namespace tilewright
