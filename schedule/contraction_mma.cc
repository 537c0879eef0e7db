#include "schedule/contraction_mma.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "schedule/contraction_tiled_space.h"
#include "schedule/space_writer.h"

namespace tilewright {
namespace {

constexpr char kMmaName[] = "contraction.mma";
constexpr int kWarpThreads = 32;
constexpr int kMostThreads = 1024;
constexpr int kMostRegisters = 255;
constexpr int64_t kReservedSharedBytes = 1024;  // of each block, kept by the driver
constexpr int64_t kOtherRegisters = 24;         // counters, the epilogue
// PTX ISA, "mma": m16n8k16 for 16-bit types, m16n8k32 for 8-bit ones, m16n8k8 for tf32: in each a
// row's part of a block of k has 32 bytes.
constexpr int64_t kBlockM = 16;
constexpr int64_t kBlockN = 8;
constexpr int64_t kBlockBytes = 32;
// The first architecture with these instructions and with cp.async.
constexpr int kFirstArchitecture = 80;

struct MmaProblem {
  std::shared_ptr<const Contraction> contraction;
  Target target;
  int64_t batches = 1, m = 1, n = 1, k = 1;  // the highest sizes
  ElementType type = ElementType::kBF16;
  bool tf32 = false;
  OperandSource a;
  OperandSource b;
};

// The read that an operand is, or that its tf32() rounds.
const Expr* ReadOf(const Expr& value) {
  if (value.kind == Expr::Kind::kRead) return &value;
  const bool rounds = value.kind == Expr::Kind::kCall && value.function == Function::kTf32;
  return rounds && value.operands[0]->kind == Expr::Kind::kRead ? value.operands[0].get() : nullptr;
}

absl::Status NoMma(absl::string_view reason) {
  return absl::FailedPreconditionError(
      absl::StrCat(kMmaName, ": ", reason, "; contraction.simt takes any types"));
}

absl::StatusOr<MmaProblem> StudyMma(const Workload& workload, const Target& target,
                                    std::shared_ptr<const Contraction> contraction) {
  absl::string_view architecture = target.llvm_cpu;
  int number = 0;
  absl::ConsumePrefix(&architecture, "sm_");
  absl::ConsumeSuffix(&architecture, "a");
  if (!absl::SimpleAtoi(architecture, &number) || number < kFirstArchitecture)
    return NoMma(absl::StrCat(target.llvm_cpu, " is older than sm_", kFirstArchitecture));
  const Contraction& c = *contraction;
  MmaProblem p;
  std::optional<ElementType> type;
  for (const ContractionOperand* operand : {&c.a, &c.b}) {
    const Expr* read = ReadOf(*operand->value);
    if (read == nullptr) return NoMma("an operand is computed, not read");
    const ElementType stored = workload.layout(read->tensor).type;
    const bool tf32 = operand->value.get() != read;
    if (tf32 != (stored == ElementType::kF32))
      return NoMma("f32 is multiplied as tf32() only, and nothing else is");
    if (type.has_value() && *type != stored) return NoMma("operands of different types");
    type = stored;
    p.tf32 = tf32;
  }
  const bool integer = *type == ElementType::kI8;
  const bool floating =
      *type == ElementType::kF16 || *type == ElementType::kBF16 || *type == ElementType::kF32;
  if (!integer && !floating)
    return NoMma(absl::StrCat("tensor cores here do not multiply ", std::string(Info(*type).name)));
  if (c.accumulator != (integer ? ElementType::kI32 : ElementType::kF32))
    return NoMma("the sum is not in f32 (i32 for i8)");
  p.type = *type;
  const Sizes high = workload.HighestSizes();
  p.target = target;
  p.batches = c.Batches(high);
  p.m = c.m.Extent(high);
  p.n = c.n.Extent(high);
  p.k = c.K(high);
  p.a = StudySource(workload, c.a, p.tf32);
  p.b = StudySource(workload, c.b, p.tf32);
  p.contraction = std::move(contraction);
  return p;
}

// ---- Quantities

SharedOperand PlaceMma(const MmaProblem& p, bool is_a, int64_t tile, int64_t tile_k) {
  const OperandSource& source = is_a ? p.a : p.b;
  // Matrices are transposed on the way to registers in units of 16 bits only.
  const bool fits = source.along_depth || Info(p.type).bytes == 2;
  return PlaceOperand(source, is_a ? p.contraction->a : p.contraction->b, tile, tile_k,
                      /*asynchronous=*/fits, p.type, /*deep=*/true);
}

int64_t SharedBytesOfMma(const MmaProblem& p, int64_t tile_m, int64_t tile_n, int64_t tile_k,
                         int64_t stages, bool staged) {
  const int64_t ring = stages * (PlaceMma(p, true, tile_m, tile_k).stage_bytes +
                                 PlaceMma(p, false, tile_n, tile_k).stage_bytes);
  return std::max(ring,
                  staged ? StagedBytes(tile_m, tile_n, p.contraction->accumulator) : int64_t{0});
}

// What a schedule's registers depend on.
struct MmaWarps {
  int64_t tile_m, tile_n, warps_m, warps_n, tile_k;

  int64_t threads() const { return kWarpThreads * warps_m * warps_n; }
};

// An estimate of what ptxas will need: sums, a block of k of both operands, copies, and the rest.
int64_t RegistersOfMma(const MmaProblem& p, const MmaWarps& w) {
  const int64_t blocks_m = w.tile_m / w.warps_m / kBlockM;
  const int64_t blocks_n = w.tile_n / w.warps_n / kBlockN;
  return 4 * blocks_m * blocks_n + 4 * blocks_m + 2 * blocks_n +
         CopyRegisters(PlaceMma(p, true, w.tile_m, w.tile_k), p.contraction->a, w.tile_k,
                       w.threads()) +
         CopyRegisters(PlaceMma(p, false, w.tile_n, w.tile_k), p.contraction->b, w.tile_k,
                       w.threads()) +
         kOtherRegisters;
}

// ---- The space

std::vector<DecisionValue> MmaTilesUpTo(int64_t least, int64_t extent) {
  std::vector<int64_t> numbers;
  for (int64_t tile : {16, 32, 64, 128, 256}) {
    if (tile < least) continue;
    numbers.push_back(tile);
    if (tile >= extent) break;
  }
  return IntegerValues(numbers);
}

void DecideMmaTiles(const MmaProblem& p, SpaceWriter* space) {
  space->Decide("tile_m",
                "Rows of a block's tile (BLOCK_M in Triton). More reuses b oftener, until blocks "
                "are too few for all SMs.",
                MmaTilesUpTo(kBlockM, p.m));
  space->Decide("tile_n", "Columns of a block's tile (BLOCK_N in Triton).",
                MmaTilesUpTo(2 * kBlockN, p.n));
  space->Decide("warps_m",
                "Warps that share the tile along m. More gives each fewer rows to reuse b for.",
                IntegerValues({1, 2, 4}));
  space->Decide("warps_n", "Warps that share the tile along n.", IntegerValues({1, 2, 4}));
  space->Constrain(
      "warp_tile", {"tile_m", "tile_n", "warps_m", "warps_n"},
      [](Numbers v) { return v[0] / v[2] >= kBlockM && v[1] / v[3] >= 2 * kBlockN; },
      [](Numbers v) {
        return absl::StrCat("warp_tile: ", v[0], " / ", v[2], " x ", v[1], " / ", v[3],
                            "; at least ", kBlockM, " x ", 2 * kBlockN);
      });
}

void DecideMmaDepth(const MmaProblem& p, SpaceWriter* space) {
  const int64_t bytes = Info(p.type).bytes;
  space->Decide("tile_k",
                "Depth of a step (BLOCK_K in Triton): 64 or 128 bytes. More means fewer barriers, "
                "until shared memory holds too few stages.",
                IntegerValues({64 / bytes, 128 / bytes}));
  space->Decide("stages",
                "Steps that are in shared memory at once (num_stages in Triton): all but one are "
                "on their way. More hides memory's latency, until fewer blocks fit.",
                IntegerValues({2, 3, 4, 5, 6}));
  space->Decide("epilogue",
                "Where sums are finished: in registers, or after passing through shared memory, so "
                "that neighbouring threads store neighbouring elements.",
                {{0, "registers"}, {1, "shared"}});
  space->Decide("group_m",
                "Rows of tiles that are taken together (GROUP_M in Triton), so that their operands "
                "are in L2 together.",
                IntegerValues({1, 4, 8}), {"tile_m"}, [m = p.m](Numbers v) { return m > v[0]; });
  space->Decide("blocks_per_core",
                "Blocks that every SM has room for (minBlocksPerMultiprocessor in CUDA): limits "
                "registers. More hides latency.",
                IntegerValues({1, 2, 3, 4}));
}

void ConstrainMmaBlocks(const MmaProblem& p, SpaceWriter* space) {
  const Target& target = p.target;
  auto warps = [](Numbers v) { return MmaWarps{v[0], v[1], v[2], v[3], v[4]}; };
  space->Constrain(
      "registers", {"tile_m", "tile_n", "warps_m", "warps_n", "tile_k", "blocks_per_core"},
      [=](Numbers v) {
        const int64_t own = RegistersOfMma(p, warps(v));
        return own <= kMostRegisters &&
               own * warps(v).threads() * v[5] <= target.registers_per_core;
      },
      [=](Numbers v) {
        return absl::StrCat("registers: ", RegistersOfMma(p, warps(v)), " of at most ",
                            kMostRegisters, " x ", warps(v).threads(), " threads x ", v[5],
                            " blocks > ", target.registers_per_core);
      });
  auto bytes = [=](Numbers v) { return SharedBytesOfMma(p, v[0], v[1], v[2], v[3], v[4] == 1); };
  space->Constrain(
      "shared_memory", {"tile_m", "tile_n", "tile_k", "stages", "epilogue", "blocks_per_core"},
      [=](Numbers v) {
        return bytes(v) <= target.shared_memory_bytes &&
               (bytes(v) + kReservedSharedBytes) * v[5] <= target.shared_memory_per_core_bytes;
      },
      [=](Numbers v) {
        return absl::StrCat("shared_memory: ", v[5], " blocks x (", bytes(v), " B + ",
                            kReservedSharedBytes, " B) > ", target.shared_memory_per_core_bytes,
                            " B of an SM, or a block's > ", target.shared_memory_bytes, " B");
      });
}

struct PreparedMma {
  std::string workload;
  MmaProblem problem;
  SpaceWriter space{kMmaName};
};

// The last one is kept: a search asks for thousands of plans of one workload.
absl::StatusOr<std::shared_ptr<const PreparedMma>> PrepareMma(const Workload& workload,
                                                              const Target& target) {
  thread_local std::shared_ptr<const PreparedMma> last;
  if (last != nullptr && last->workload == workload.canonical_text() &&
      last->problem.target == target)
    return last;
  absl::StatusOr<Contraction> contraction = MatchContraction(workload);
  if (!contraction.ok()) return contraction.status();
  absl::StatusOr<MmaProblem> problem =
      StudyMma(workload, target, std::make_shared<const Contraction>(*std::move(contraction)));
  if (!problem.ok()) return problem.status();
  auto prepared = std::make_shared<PreparedMma>();
  prepared->workload = workload.canonical_text();
  prepared->problem = *std::move(problem);
  DecideMmaTiles(prepared->problem, &prepared->space);
  DecideMmaDepth(prepared->problem, &prepared->space);
  ConstrainMmaBlocks(prepared->problem, &prepared->space);
  last = prepared;
  return last;
}

// ---- The plan

void CountMmaTraffic(const MmaProblem& p, const Workload& workload, absl::Span<const int64_t> sizes,
                     ContractionMmaPlan* plan) {
  const Contraction& c = *p.contraction;
  const double m = static_cast<double>(c.m.Extent(sizes)),
               n = static_cast<double>(c.n.Extent(sizes)), k = static_cast<double>(c.K(sizes)),
               batches = static_cast<double>(c.Batches(sizes));
  const double tile_m = static_cast<double>(plan->tile_m),
               tile_n = static_cast<double>(plan->tile_n);
  const double bytes = Info(p.type).bytes;
  const double steps = std::ceil(k / static_cast<double>(plan->tile_k));
  const double depth = steps * static_cast<double>(plan->tile_k);
  const double tiles = batches * std::ceil(m / tile_m) * std::ceil(n / tile_n);
  const double useful = 2 * batches * m * n * k;
  plan->operations =
      2 * tiles * tile_m * tile_n * depth + std::max(0.0, workload.Operations(sizes) - useful);
  plan->memory_bytes = workload.CompulsoryBytes(sizes);
  plan->l2_bytes = tiles * k * (tile_m + tile_n) * bytes +
                   batches * m * n * Info(workload.layout(c.output).type).bytes;
  // Every warp reads its rows and columns; what arrives is written once.
  plan->l1_bytes =
      tiles * depth * bytes * (tile_m * plan->warps_n + tile_n * plan->warps_m + tile_m + tile_n);
  const double sms = std::min<double>(p.target.cores, tiles);
  const double waves = std::ceil(tiles / (sms * plan->blocks_per_core));
  plan->threads = static_cast<int>(sms);
  plan->balance = tiles / (sms * std::ceil(tiles / sms));
  // mma.sync reaches about 62% of what Hopper's wgmma does, and all of an A100's peak ("Dissecting
  // the NVIDIA Hopper Architecture through Microbenchmarking", 2024, table of mma throughput).
  const double peak_share = p.target.tensor_operations_per_cycle > 2048 ? 0.62 : 1.0;
  // Of a block of k: multiplications, and the loads of matrices that go with them.
  const double products = plan->blocks_m * plan->blocks_n;
  const double loads = plan->blocks_m + plan->blocks_n / 2.0;
  plan->issue_efficiency = peak_share * products / (products + loads / 2);
  plan->quantities = {
      {"padding", "", plan->operations / std::max(1.0, workload.Operations(sizes))},
      {"tiles", "tile", tiles},
      {"waves", "", waves},
      {"wave_efficiency", "", tiles / (waves * sms * plan->blocks_per_core)},
      {"steps_per_tile", "", steps},
      {"shared_memory_bytes", "B", static_cast<double>(plan->shared_bytes)},
      {"registers", "register",
       static_cast<double>(RegistersOfMma(
           p, {plan->tile_m, plan->tile_n, plan->warps_m, plan->warps_n, plan->tile_k}))},
      {"resident_threads", "thread", static_cast<double>(plan->block * plan->blocks_per_core)},
      {"loads_per_mma", "", loads / products},
      {"bytes_in_flight", "B",
       static_cast<double>((plan->a.stage_bytes + plan->b.stage_bytes) * (plan->stages - 1) *
                           plan->blocks_per_core)},
      {"copied_operands", "", static_cast<double>(plan->a.copied + plan->b.copied)},
  };
}

std::unique_ptr<Plan> MakeMmaPlan(const Workload& workload, const Target& target,
                                  absl::Span<const int64_t> numbers,
                                  absl::Span<const int64_t> sizes) {
  std::shared_ptr<const PreparedMma> prepared = *PrepareMma(workload, target);
  const MmaProblem& p = prepared->problem;
  std::map<std::string, int64_t> values = prepared->space.AllNumbers(numbers);
  auto plan = std::make_unique<ContractionMmaPlan>();
  plan->contraction = p.contraction;
  plan->type = p.type;
  plan->tf32 = p.tf32;
  plan->tile_m = values["tile_m"];
  plan->tile_n = values["tile_n"];
  plan->tile_k = values["tile_k"];
  plan->warps_m = static_cast<int>(values["warps_m"]);
  plan->warps_n = static_cast<int>(values["warps_n"]);
  plan->stages = static_cast<int>(values["stages"]);
  plan->staged_epilogue = values["epilogue"] == 1;
  plan->group_m = values["group_m"] == kAbsent ? 1 : static_cast<int>(values["group_m"]);
  plan->blocks_per_core = static_cast<int>(values["blocks_per_core"]);
  plan->block = kWarpThreads * plan->warps_m * plan->warps_n;
  plan->blocks_m = static_cast<int>(plan->tile_m / plan->warps_m / kBlockM);
  plan->blocks_n = static_cast<int>(plan->tile_n / plan->warps_n / kBlockN);
  plan->block_k = kBlockBytes / Info(p.type).bytes;
  plan->a = PlaceMma(p, true, plan->tile_m, plan->tile_k);
  plan->b = PlaceMma(p, false, plan->tile_n, plan->tile_k);
  plan->shared_bytes = SharedBytesOfMma(p, plan->tile_m, plan->tile_n, plan->tile_k, plan->stages,
                                        plan->staged_epilogue);
  const double tiles = static_cast<double>(p.batches) *
                       static_cast<double>(CeilDiv(p.m, plan->tile_m)) *
                       static_cast<double>(CeilDiv(p.n, plan->tile_n));
  plan->grid =
      static_cast<int>(std::min(tiles, static_cast<double>(target.cores) * plan->blocks_per_core));
  CountMmaTraffic(p, workload, sizes, plan.get());
  return plan;
}

// ---- The default: the tile whose rounds of all SMs take least

// The shapes worth a default, cut to what the extents allow.
std::vector<MmaWarps> DefaultShapesOfMma(const MmaProblem& p, const SpaceWriter& space) {
  auto most = [&](const char* name) {
    for (const Decision& decision : space.definition().decisions) {
      if (decision.name == name) return decision.values.back().number;
    }
    return space.fixed().at(name);
  };
  std::vector<MmaWarps> shapes = {
      {128, 128, 2, 2}, {128, 64, 2, 2}, {64, 128, 2, 2}, {64, 64, 2, 2}, {64, 64, 4, 4},
      {32, 128, 1, 4},  {64, 32, 2, 1},  {64, 32, 4, 2},  {32, 64, 1, 2}, {32, 64, 2, 4},
      {32, 32, 2, 2},   {16, 128, 1, 4}, {16, 64, 1, 4},  {16, 64, 1, 2}, {16, 32, 1, 2},
      {32, 16, 2, 1},   {32, 32, 1, 1},  {16, 16, 1, 1}};
  for (MmaWarps& shape : shapes) {
    shape.tile_m = std::min(shape.tile_m, most("tile_m"));
    shape.tile_n = std::min(shape.tile_n, most("tile_n"));
    shape.warps_m = std::min(shape.warps_m, shape.tile_m / kBlockM);
    shape.warps_n = std::min(shape.warps_n, shape.tile_n / (2 * kBlockN));
    shape.tile_k = 64 / Info(p.type).bytes;
  }
  return shapes;
}

// Where no shape of the list is: copies that take many registers leave odd ones only. A space with
// no schedule at all is never asked for its default.
Schedule FirstLegal(const Workload& workload, const SpaceWriter& space) {
  const auto all = VariantSpace::Make(space.definition(), {workload.HighestSizes()});
  if (!all.ok() || (*all)->Count() == 0) return Schedule{kMmaName, {}};
  return (*all)->At(0);
}

Schedule DefaultMmaSchedule(const Workload& workload, const Target& target) {
  std::shared_ptr<const PreparedMma> prepared = *PrepareMma(workload, target);
  const MmaProblem& p = prepared->problem;
  const std::vector<MmaWarps> shapes = DefaultShapesOfMma(p, prepared->space);
  const MmaWarps* chosen = nullptr;
  double least = -1;
  for (const MmaWarps& shape : shapes) {
    // With a margin of a quarter where elements go through registers: there the estimate is rough.
    int64_t registers = RegistersOfMma(p, shape);
    if (!PlaceMma(p, true, shape.tile_m, shape.tile_k).copied ||
        !PlaceMma(p, false, shape.tile_n, shape.tile_k).copied)
      registers += registers / 4;
    if (registers > kMostRegisters || registers * shape.threads() > target.registers_per_core)
      continue;
    const double tiles = static_cast<double>(p.batches) *
                         static_cast<double>(CeilDiv(p.m, shape.tile_m)) *
                         static_cast<double>(CeilDiv(p.n, shape.tile_n));
    // What arrives costs as much as 24 products of each element.
    const double work = static_cast<double>(shape.tile_m * shape.tile_n) +
                        24.0 * static_cast<double>(shape.tile_m + shape.tile_n);
    const double cost = std::ceil(tiles / p.target.cores) * work;
    if (least >= 0 && cost >= least) continue;
    least = cost;
    chosen = &shape;
  }
  if (chosen == nullptr) return FirstLegal(workload, prepared->space);
  const std::map<std::string, int64_t> wishes = {
      {"tile_m", chosen->tile_m},
      {"tile_n", chosen->tile_n},
      {"warps_m", chosen->warps_m},
      {"warps_n", chosen->warps_n},
      {"tile_k", chosen->tile_k},
      {"stages", 4},
      {"epilogue", 1},
      {"group_m", 8},
      {"blocks_per_core", 1},
  };
  return prepared->space.ClosestTo(wishes);
}

}  // namespace

Variant ContractionMmaVariant() {
  return {.name = kMmaName,
          .family = "contraction",
          .help = "tensor cores by mma.sync, tiles through shared memory by cp.async",
          .backends = {"nvptx"},
          .applies = [](const Workload& workload,
                        const Target& target) { return PrepareMma(workload, target).status(); },
          .define =
              [](const Workload& workload, const Target& target) {
                return (*PrepareMma(workload, target))->space.definition();
              },
          .plan = MakeMmaPlan,
          .default_schedule = DefaultMmaSchedule};
}

}  // namespace tilewright
