// Plans and constraints against numbers worked out by hand for an H200: 132 SMs, 232448 B of shared
// memory per CTA, 65536 registers, 4096 bf16 operations per SM and cycle.
#include "schedule/contraction_wgmma.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "schedule/contraction_skinny.h"

namespace tilewright {
namespace {

using ::testing::HasSubstr;

// Row-major times transposed: both operands contiguous along k.
constexpr char kLinear[] = "C[m,n] = sum(k: A[m,k] * B[n,k])";

absl::StatusOr<std::shared_ptr<const ScheduleSpace>> TrySpace(
    const std::string& expression, const std::string& sizes, const std::string& types = "bf16",
    const std::string& target = "cuda:h200") {
  static const auto* const variants = new std::vector<Variant>{ContractionWgmmaVariant()};
  absl::StatusOr<Workload> workload = Workload::Make(expression, WorkloadOptions{sizes, types});
  EXPECT_TRUE(workload.ok()) << workload.status();
  return ScheduleSpace::Make(*std::move(workload), *FindTarget(target), *variants);
}

std::shared_ptr<const ScheduleSpace> WgmmaSpace(const std::string& expression,
                                                const std::string& sizes,
                                                const std::string& types = "bf16") {
  auto space = TrySpace(expression, sizes, types);
  EXPECT_TRUE(space.ok()) << space.status();
  return *space;
}

std::unique_ptr<ContractionWgmmaPlan> PlanOf(const ScheduleSpace& space, const std::string& text) {
  auto plan = space.MakePlan(*ParseSchedule(text), space.workload().HighestSizes());
  EXPECT_TRUE(plan.ok()) << plan.status();
  return std::unique_ptr<ContractionWgmmaPlan>(static_cast<ContractionWgmmaPlan*>(plan->release()));
}

double QuantityOf(const Plan& plan, const std::string& name) {
  for (const Quantity& quantity : plan.quantities) {
    if (quantity.name == name) return quantity.value;
  }
  ADD_FAILURE() << "no quantity " << name;
  return 0;
}

std::string Cooperative(int tile_m, int tile_n, int stages, const std::string& cluster = "1") {
  return absl::StrCat("contraction.wgmma{swap=0 mode=cooperative consumers=2 tile_m=", tile_m,
                      " tile_n=", tile_n,
                      " producer_registers=24 store=tma store_columns=64 store_buffers=2 tile_k=64 "
                      "stages=",
                      stages, " in_flight=0 cluster=", cluster, " group=8 raster=rows}");
}

TEST(ContractionWgmma, AddsUpSharedMemory) {
  auto space = WgmmaSpace(kLinear, "m=4096 n=4096 k=4096");
  auto plan = PlanOf(*space, Cooperative(128, 256, 4));
  // A stage: (128 + 256) rows x 128 B = 49152. Staging: 128 rows x 64 columns x 2 B x 2 = 32768.
  // Barriers: 4 stages x 2 x 8 B. In all 4 * 49152 + 32768 + 64 = 229440 of 232448 B.
  EXPECT_EQ(plan->stage_bytes, 49152);
  EXPECT_EQ(plan->columns_operand.stage_offset, 128 * 128);
  EXPECT_EQ(plan->staging_offset, 196608);
  EXPECT_EQ(plan->shared_memory_bytes, 229440);
  auto five = space->space().IndexOf(*ParseSchedule(Cooperative(128, 256, 5)));
  EXPECT_THAT(std::string(five.status().message()),
              HasSubstr("shared_memory: 5 stages x 49152 B + 32768 B + 80 B > 232448 B"));
}

TEST(ContractionWgmma, SharesRegistersBetweenConsumers) {
  // 65536 / 128 = 512 registers for a thread of each warpgroup: (512 - 24) / 2 = 244, in eights
  // 240.
  EXPECT_EQ(ConsumerRegisters(2, 24), 240);
  EXPECT_EQ(ConsumerRegisters(2, 40), 232);  // 236
  EXPECT_EQ(ConsumerRegisters(3, 24), 160);  // 162.7
  EXPECT_EQ(ConsumerRegisters(1, 24), 0);
  // 128 rows x 256 columns of f32 on 128 threads each having 64 rows: 64 * 256 / 128 = 128.
  EXPECT_EQ(Accumulators(ConsumerRows(false, 2, 128), 256), 128);
  // Ping-pong: each consumer has the whole tile.
  EXPECT_EQ(Accumulators(ConsumerRows(true, 2, 128), 192), 192);
  auto space = WgmmaSpace(kLinear, "m=4096 n=4096 k=4096");
  auto large = space->space().IndexOf(*ParseSchedule(Cooperative(256, 216, 3)));
  EXPECT_THAT(std::string(large.status().message()),
              HasSubstr("accumulators: 216 accumulators per thread > 208"));
}

TEST(ContractionWgmma, CountsWavesOfTiles) {
  auto space = WgmmaSpace(kLinear, "m=4096 n=4096 k=4096");
  auto plan = PlanOf(*space, Cooperative(128, 256, 4));
  // 32 x 16 = 512 tiles on 132 SMs: 3.88 waves, 512 / (4 * 132) = 0.970.
  EXPECT_EQ(plan->grid, 132);
  EXPECT_EQ(QuantityOf(*plan, "tiles"), 512);
  EXPECT_NEAR(QuantityOf(*plan, "wave_efficiency"), 0.970, 0.001);
  // 2 * 128 * 256 * 4096 / 4096 = 65536 cycles of multiplying; shared memory is read for
  // 256 k steps x 2 blocks x (16 + 64) = 40960.
  EXPECT_EQ(QuantityOf(*plan, "mma_cycles"), 65536);
  EXPECT_EQ(QuantityOf(*plan, "shared_read_cycles"), 40960);
  // From L2: 512 tiles x 64 k blocks x 49152 B, and the output.
  EXPECT_EQ(plan->l2_bytes, 512.0 * 64 * 49152 + 2.0 * 4096 * 4096);
  auto pair = PlanOf(*space, Cooperative(128, 256, 4, "2m"));
  // Columns, 256 x 128 B of the stage, are loaded once for two.
  EXPECT_EQ(pair->l2_bytes, 512.0 * 64 * (16384 + 32768 / 2) + 2.0 * 4096 * 4096);
  EXPECT_EQ(pair->columns_operand.box_rows, 128);
}

TEST(ContractionWgmma, TakesAnyOrderOfDimensionsOf16BitOperands) {
  for (const char* expression :
       {"C[m,n] = sum(k: A[m,k] * B[n,k])", "C[m,n] = sum(k: A[m,k] * B[k,n])",
        "C[m,n] = sum(k: A[k,m] * B[n,k])", "C[m,n] = sum(k: A[k,m] * B[k,n])"}) {
    for (const char* type : {"bf16", "f16"})
      EXPECT_TRUE(TrySpace(expression, "m=256 n=512 k=128", type).ok()) << expression;
  }
  EXPECT_TRUE(TrySpace(kLinear, "m=256 n=512 k=128", "e4m3,C:bf16").ok());
}

TEST(ContractionWgmma, SaysWhyItDoesNotApply) {
  auto reason = [](const std::string& expression, const std::string& sizes,
                   const std::string& types, const std::string& target = "cuda:h200") {
    return std::string(TrySpace(expression, sizes, types, target).status().message());
  };
  EXPECT_THAT(reason(kLinear, "m=256 n=256 k=256", "bf16", "cuda:a100"),
              HasSubstr("needs sm_90a; cuda:a100 has sm_80"));
  EXPECT_THAT(reason(kLinear, "m=256 n=256 k=256", "f32"),
              HasSubstr("operands must both be f16, bf16 or e4m3, not f32 and f32"));

  EXPECT_THAT(reason("C[m,n] = sum(k: A[m,k] * B[k,n])", "m=256 n=256 k=256", "e4m3,C:bf16"),
              HasSubstr("8-bit elements must be contiguous along k"));
  EXPECT_THAT(reason("C[m,n] = sum(k: relu(A[m,k]) * B[n,k])", "m=256 n=256 k=256", "bf16"),
              HasSubstr("operand a is not read as it lies in memory"));
}

TEST(ContractionWgmma, CopiesOperandsWhoseLinesAreNoMultipleOf16Bytes) {
  auto space = WgmmaSpace(kLinear, "m=1021 n=1531 k=2039");
  auto plan = PlanOf(*space,
                     "contraction.wgmma{swap=0 mode=cooperative consumers=2 tile_m=128 tile_n=96 "
                     "producer_registers=24 store=rows tile_k=64 stages=6 in_flight=1 cluster=1 "
                     "group=8 raster=rows}");
  // Lines of 2039 elements become 2048, 4096 B. A has 1021 of them, 4182016 B, a multiple of 256,
  // where B begins with 1531 of them, 6270976 B.
  EXPECT_EQ(plan->rows_operand.pitch, 2048);
  EXPECT_EQ(plan->rows_operand.workspace_offset, 0);
  EXPECT_EQ(plan->columns_operand.workspace_offset, 4182016);
  EXPECT_EQ(plan->workspace_bytes, 10452992);
  // Six stages of (128 + 96) x 128 B; 64 rows of each consumer, 96 * 2 -> 256 + 16 B apart;
  // barriers.
  EXPECT_EQ(plan->shared_memory_bytes, 6 * 28672 + 2 * 64 * 272 + 96);
  // Only what needs it: rows of B are contiguous here, and 1531 of them no multiple of 8.
  auto one = WgmmaSpace("C[m,n] = sum(k: A[m,k] * B[k,n])", "m=1021 n=1531 k=2048");
  auto copied = PlanOf(*one, one->DefaultSchedule().ToString());
  EXPECT_FALSE(copied->rows_operand.padded);
  EXPECT_TRUE(copied->columns_operand.padded);
  EXPECT_EQ(copied->columns_operand.pitch, 1536);
  EXPECT_EQ(copied->columns_operand.lines, 2048);
}

TEST(ContractionWgmma, HasALegalDefaultForShapesOfRealLayers) {
  const std::vector<std::vector<int>> shapes = {
      {8192, 8192, 8192}, {1024, 1024, 1024}, {777, 3584, 18944}, {1, 6144, 4096},
      {16, 4096, 14336},  {64, 6144, 4096},   {128, 128, 65536},  {8192, 8192, 128},
      {8, 128256, 4096},  {256, 28672, 4096}, {3, 8, 8}};
  for (const std::vector<int>& shape : shapes) {
    for (const char* types : {"bf16", "f16,C:f32", "e4m3,C:bf16"}) {
      const std::string sizes = absl::StrCat("m=", shape[0], " n=", shape[1], " k=", shape[2]);
      if (shape[2] % 16 != 0 && std::string(types).substr(0, 4) == "e4m3") continue;
      auto space = WgmmaSpace(kLinear, sizes, types);
      EXPECT_GT(space->space().Count(), 0u) << sizes;
      auto plan = PlanOf(*space, space->DefaultSchedule().ToString());
      EXPECT_LE(plan->shared_memory_bytes, 232448) << sizes;
    }
  }
}

TEST(ContractionWgmma, KeepsEverySampledPlanWithinTheMachine) {
  auto space = WgmmaSpace("C[m,n] = sum(k: A[m,k] * B[k,n])", "m=1..4096 n=4096 k=4096");
  std::mt19937_64 random(1);
  for (int i = 0; i < 300; ++i) {
    const Schedule schedule = space->space().At(UniformIndex(random, space->space().Count()));
    auto plan = PlanOf(*space, schedule.ToString());
    const std::string text = schedule.ToString();
    EXPECT_LE(plan->shared_memory_bytes, 232448) << text;
    EXPECT_EQ(plan->stage_bytes % 1024, 0) << text;  // swizzle atoms repeat every 1024 B
    EXPECT_EQ(plan->staging_bytes % 1024, 0) << text;
    const int registers = plan->producer_registers + plan->consumers * plan->consumer_registers;
    EXPECT_LE(128 * registers, 65536) << text;
    for (const auto& operand : {plan->rows_operand, plan->columns_operand}) {
      EXPECT_LE(operand.box_rows, 256) << text;
      const int halves = operand.multicast ? 2 : 1;
      EXPECT_EQ(operand.boxes * operand.box_bytes * halves, operand.atom_bytes) << text;
    }
  }
}

std::string Splitting(const char* stream_k) {
  return absl::StrCat(
      "contraction.wgmma{swap=0 mode=cooperative consumers=2 tile_m=128 tile_n=256 "
      "producer_registers=24 store=tma store_columns=64 store_buffers=2 tile_k=64 stages=4 "
      "in_flight=0 cluster=1 group=8 raster=rows stream_k=",
      stream_k, "}");
}

TEST(ContractionWgmma, SplitsTheTilesThatWholeWavesLeaveOver) {
  // 448 = 3 x 132 + 52.
  EXPECT_EQ(SplitTiles(WgmmaStreamK::kOff, 448, 128, 132), 0);
  EXPECT_EQ(SplitTiles(WgmmaStreamK::kRemainder, 448, 128, 132), 52);
  EXPECT_EQ(SplitTiles(WgmmaStreamK::kWave, 448, 128, 132), 52 + 132);
  // Less than a wave: there is no whole one to join.
  EXPECT_EQ(SplitTiles(WgmmaStreamK::kWave, 98, 296, 132), 98);
  EXPECT_EQ(SplitTiles(WgmmaStreamK::kWave, 264, 128, 132), 0);
  // 8 x 64 = 512 k blocks are less than 4 for each of 132.
  EXPECT_EQ(SplitTiles(WgmmaStreamK::kRemainder, 8, 64, 132), 0);

  auto space = WgmmaSpace(kLinear, "m=2048 n=7168 k=8192");
  auto plan = PlanOf(*space, Splitting("remainder"));
  // 16 x 28 = 448 tiles. Flags: 132 CTAs x 2 consumers x 4 B = 1056, in multiples of 256 B 1280.
  // Sums: 132 x 128 x 256 x 4 B = 17301504.
  EXPECT_EQ(QuantityOf(*plan, "split_tiles"), 52);
  EXPECT_EQ(plan->flag_bytes, 1280);
  EXPECT_EQ(plan->partials_offset, 1280);
  EXPECT_EQ(plan->workspace_bytes, 17302784);
  // Three whole tiles and 52 x 128 / 132 = 50.4 -> 51 k blocks of 128, 3.398 waves:
  // 448 / (3.398 x 132) = 0.9987. Without, 448 / (4 x 132) = 0.848.
  EXPECT_NEAR(plan->balance, 0.9987, 1e-4);
  EXPECT_NEAR(PlanOf(*space, Splitting("off"))->balance, 0.848, 1e-3);
  // A text from before there was stream-K.
  EXPECT_EQ(PlanOf(*space, Cooperative(128, 256, 4))->workspace_bytes, 0);

  // 11 x 12 = 132 tiles.
  auto whole = WgmmaSpace(kLinear, "m=1408 n=3072 k=8192");
  auto none = whole->space().IndexOf(*ParseSchedule(Splitting("remainder")));
  EXPECT_THAT(std::string(none.status().message()),
              HasSubstr("132 tiles of 128 k blocks on 132 SMs leave nothing to split"));
}

TEST(ContractionWgmma, SuggestsOtherKindsOfTilesAndPairs) {
  auto space = WgmmaSpace(kLinear, "m=4096 n=32768 k=512");
  const std::vector<Schedule> suggestions = space->Suggestions(16);
  ASSERT_GE(suggestions.size(), 6u);
  EXPECT_LE(suggestions.size(), 16u);
  EXPECT_EQ(suggestions[0], space->DefaultSchedule());
  std::set<std::string> tiles, clusters, all;
  for (const Schedule& schedule : suggestions) {
    EXPECT_TRUE(space->space().IndexOf(schedule).ok()) << schedule.ToString();
    EXPECT_TRUE(all.insert(schedule.ToString()).second) << schedule.ToString();
    for (const auto& [name, value] : schedule.decisions) {
      if (name == "tile_m") tiles.insert(value);
      if (name == "cluster") clusters.insert(value);
    }
  }
  EXPECT_GE(tiles.size(), 2u);
  EXPECT_GE(clusters.size(), 2u);
}

// Decode: both variants have their say, the default first.
TEST(ContractionWgmma, SuggestionsOfSeveralVariantsTakeTurns) {
  auto workload = Workload::Make(kLinear, {"m=64 n=6144 k=4096", "bf16"});
  auto space = ScheduleSpace::Make(*workload, *FindTarget("cuda:h200"), AllVariants());
  ASSERT_TRUE(space.ok()) << space.status();
  const std::vector<Schedule> suggestions = (*space)->Suggestions(4);
  ASSERT_EQ(suggestions.size(), 4u);
  EXPECT_EQ(suggestions[0], (*space)->DefaultSchedule());
  EXPECT_EQ(suggestions[0].variant, "contraction.skinny");
  EXPECT_EQ(suggestions[1].variant, "contraction.wgmma");
}

TEST(ContractionSkinny, FitsSeveralCtasInAnSm) {
  static const auto* const variants = new std::vector<Variant>{ContractionSkinnyVariant()};
  auto workload = Workload::Make(kLinear, {"m=16 n=28672 k=4096", "bf16"});
  ASSERT_TRUE(workload.ok()) << workload.status();
  auto space = ScheduleSpace::Make(*workload, *FindTarget("cuda:h200"), *variants);
  ASSERT_TRUE(space.ok()) << space.status();
  const std::string four =
      "contraction.skinny{rows=56 split=1 groups=1 tile_k=64 stages=5 occupancy=4 in_flight=0}";
  auto plan = (*space)->MakePlan(*ParseSchedule(four), workload->HighestSizes());
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto& skinny = static_cast<const ContractionSkinnyPlan&>(**plan);
  // A stage: (56 + 16) x 128 = 9216 B. Five of them, the 8 rows that the last block of 64 reads
  // beyond the tile, 1024 B, and 80 B of barriers: 47184 B. Four such CTAs and 1024 B that the
  // system keeps for each are 192832 of the SM's 233472 B.
  EXPECT_EQ(skinny.stage_bytes, 9216);
  EXPECT_EQ(skinny.shared_memory_bytes, 47184);
  EXPECT_EQ(skinny.grid, 512);  // 28672 / 56
  // 20 warps share 65536 registers in units of 256: 12.8 -> 12 units of 8 for each thread.
  EXPECT_EQ(SkinnyRegisters(4), 96);
  const std::string seven =
      "contraction.skinny{rows=56 split=1 groups=1 tile_k=64 stages=7 occupancy=4 in_flight=0}";
  EXPECT_THAT(std::string((*space)->space().IndexOf(*ParseSchedule(seven)).status().message()),
              HasSubstr("shared_memory: 4 CTAs x (65648 B + 1024 B) > 233472 B"));
}

TEST(ContractionSkinny, AsksL2ForWholeLinesOfEachRowAhead) {
  static const auto* const variants = new std::vector<Variant>{ContractionSkinnyVariant()};
  auto ahead_of = [](const std::string& expression, const std::string& sizes,
                     const std::string& schedule) -> int64_t {
    auto workload = Workload::Make(expression, {sizes, "bf16"});
    auto space = ScheduleSpace::Make(*workload, *FindTarget("cuda:h200"), *variants);
    EXPECT_TRUE(space.ok()) << space.status();
    auto plan =
        (*space)->MakePlan(*ParseSchedule(absl::StrCat("contraction.skinny{", schedule, "}")),
                           workload->HighestSizes());
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? static_cast<const ContractionSkinnyPlan&>(**plan).ahead_bytes : -1;
  };
  const std::string sizes = "m=16 n=6144 k=4096";
  // 64 KB / 48 rows = 1365 B: ten lines of 128 B. Two CTAs of an SM share them.
  EXPECT_EQ(ahead_of(kLinear, sizes,
                     "rows=48 split=1 groups=1 tile_k=64 stages=4 occupancy=1 in_flight=0 ahead=64 "
                     "later=copied"),
            1280);
  EXPECT_EQ(ahead_of(kLinear, sizes,
                     "rows=24 split=1 groups=1 tile_k=64 stages=4 occupancy=2 in_flight=0 ahead=64 "
                     "later=copied"),
            1280);
  // 64 KB / 64 rows are 1024 B, but a share of k has 2 of 8 stages of 128 B.
  EXPECT_EQ(ahead_of(kLinear, "m=16 n=6144 k=512",
                     "rows=64 split=4 groups=1 tile_k=64 stages=2 occupancy=1 in_flight=0 "
                     "ahead=64 later=begin"),
            256);
  // Texts from before there was such a choice.
  EXPECT_EQ(ahead_of(kLinear, sizes,
                     "rows=48 split=1 groups=1 tile_k=64 stages=4 occupancy=1 in_flight=0"),
            0);
  // Rows of B lie across k.
  auto across = Workload::Make("C[m,n] = sum(k: A[m,k] * B[k,n])", {sizes, "bf16"});
  auto space = ScheduleSpace::Make(*across, *FindTarget("cuda:h200"), *variants);
  ASSERT_TRUE(space.ok()) << space.status();
  EXPECT_THAT((*space)->DefaultSchedule().ToString(), ::testing::Not(HasSubstr("ahead")));
}

TEST(ContractionSkinny, SharesALongKOverTheGrid) {
  static const auto* const variants = new std::vector<Variant>{ContractionSkinnyVariant()};
  auto workload = Workload::Make(kLinear, {"m=128 n=128 k=65536", "bf16"});
  auto space = ScheduleSpace::Make(*workload, *FindTarget("cuda:h200"), *variants);
  ASSERT_TRUE(space.ok()) << space.status();
  auto plan = (*space)->MakePlan((*space)->DefaultSchedule(), workload->HighestSizes());
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto& skinny = static_cast<const ContractionSkinnyPlan&>(**plan);
  EXPECT_GT(skinny.groups, 1);
  EXPECT_GE(skinny.grid, 100);  // of 132 SMs
  EXPECT_EQ(skinny.workspace_bytes, int64_t{skinny.groups} * 128 * 128 * 4);
}

TEST(ContractionWgmma, AsksL2ForTheLongerOperandsRowsAhead) {
  const std::string text =
      "contraction.wgmma{swap=%s mode=cooperative consumers=1 tile_m=64 tile_n=48 store=tma "
      "store_columns=64 store_buffers=1 tile_k=64 stages=8 in_flight=1 cluster=1 group=8 "
      "raster=rows stream_k=off ahead=32}";
  auto space = WgmmaSpace(kLinear, "m=64 n=6144 k=4096");
  // 32 KB / 48 rows = 682 B: five lines of 128 B. n is longer: its rows are the columns.
  auto plan = PlanOf(*space, absl::StrReplaceAll(text, {{"%s", "0"}}));
  EXPECT_EQ(plan->ahead_bytes, 640);
  EXPECT_FALSE(plan->ahead_rows);
  plan = PlanOf(*space, absl::StrReplaceAll(text, {{"%s", "1"}}));
  EXPECT_EQ(plan->ahead_bytes, 512);
  EXPECT_TRUE(plan->ahead_rows);
  // Shares of split tiles begin elsewhere; long kernels have little to win.
  auto split = space->space().IndexOf(
      *ParseSchedule(absl::StrReplaceAll(text, {{"%s", "0"}, {"stream_k=off", "stream_k=wave"}})));
  EXPECT_FALSE(split.ok());
  EXPECT_THAT(WgmmaSpace(kLinear, "m=4096 n=4096 k=4096")->DefaultSchedule().ToString(),
              ::testing::Not(HasSubstr("ahead")));
}

TEST(ContractionWgmma, AddsEightBitStagesUpInSingles) {
  auto space = WgmmaSpace(kLinear, "m=4096 n=4096 k=4096", "e4m3,C:bf16");
  // Twice the sums: 128 x 208 on two consumers are 2 * 104 = 208; 128 x 216 are too many.
  const std::string text =
      "contraction.wgmma{swap=0 mode=cooperative consumers=2 tile_m=128 tile_n=%d "
      "producer_registers=24 store=tma store_columns=64 store_buffers=1 stages=4 "
      "cluster=1 group=8 raster=rows}";
  EXPECT_TRUE(PlanOf(*space, absl::StrReplaceAll(text, {{"%d", "208"}}))->promote);
  auto large = space->space().IndexOf(*ParseSchedule(absl::StrReplaceAll(text, {{"%d", "216"}})));
  EXPECT_THAT(std::string(large.status().message()),
              HasSubstr("accumulators: 216 accumulators per thread > 208"));
}

// What StoresInFlight must say, by keeping a list of which buffer each store used.
TEST(StoresInFlight, NeverLetsABufferBeWrittenWhileItIsRead) {
  for (int groups = 1; groups <= 8; ++groups) {
    for (int buffers = 1; buffers <= 4; ++buffers) {
      std::vector<int> used;  // buffers of all stores so far
      for (int tile = 0; tile < 6; ++tile) {
        for (int group = 0; group < groups; ++group) {
          int since = 0;
          bool found = false;
          for (size_t i = used.size(); i-- > 0 && !found;) {
            found = used[i] == group % buffers;
            since += !found;
          }
          if (found) {
            EXPECT_EQ(StoresInFlight(group, groups, buffers), since)
                << group << " of " << groups << " groups, " << buffers << " buffers";
          }
          used.push_back(group % buffers);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tilewright
